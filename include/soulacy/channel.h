/* soulacy/channel.h - messages in, replies out.
 *
 * A channel reports who wrote what and carries replies. It never decides who may speak:
 * allowlists, trigger phrases, the gate and the answer's content are the core's. The core
 * also stamps each message with the name of the instance that delivered it, so no channel
 * can pass itself off as another.
 *
 * The core owns the listener: a channel registers routes and answers requests through
 * handles; it opens no socket of its own to receive.
 */
#ifndef SOULACY_CHANNEL_H
#define SOULACY_CHANNEL_H

#include <soulacy/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SY_CHANNEL_ID "soulacy.channel/1"
#define SY_HOST_CHANNEL_ID "soulacy.host.channel/1"
#define SY_HOST_HTTP_ID "soulacy.host.http/1"
#define SY_HOST_FETCH_ID "soulacy.host.fetch/1"
#define SY_HOST_GATEWAY_ID "soulacy.host.gateway/1"

/* ---- messages ------------------------------------------------------------------- */

enum { SY_CHAT_DIRECT = 0, SY_CHAT_GROUP = 1 };

/* Kinds of attachment. */
enum { SY_MEDIA_FILE = 0, SY_MEDIA_IMAGE = 1, SY_MEDIA_AUDIO = 2, SY_MEDIA_VIDEO = 3 };

/* One file that came with a message or goes with a reply. fd is an open, readable,
 * seekable descriptor of the side that filled the struct, borrowed; it can be passed over
 * a socket. name is the stranger's text, for people only, never a path. Frozen layout. */
struct sy_attachment {
    int32_t fd;
    uint32_t kind; /* SY_MEDIA_* */
    uint64_t bytes;
    struct sy_str mime;
    struct sy_str name;
    struct sy_str caption;
};

/* One inbound message. Identities are what the transport authenticated, not what the text
 * claims; leave empty what was not. Limits, checked by the core: ids and names 512 bytes,
 * text 1 MiB, 16 other ids, 32 attachments. */
struct sy_message {
    uint32_t size;
    uint32_t chat;              /* SY_CHAT_* */
    int64_t sent_ms;            /* Unix time by the transport, or 0 */
    struct sy_str id;           /* transport's id; repeats of it are dropped */
    struct sy_str account;      /* which of our numbers or bots was written to */
    struct sy_str conversation; /* where replies go */
    struct sy_str sender;
    struct sy_str sender_name;
    const struct sy_str *sender_ids; /* further ids of the same sender */
    size_t nsender_ids;
    struct sy_str agent;    /* the configuration's agent for this account, or empty */
    struct sy_str reply_to; /* transport id of the message this one answers */
    struct sy_str text;
    const struct sy_attachment *attachments;
    size_t nattachments;
};

/* States of a message that was sent, in rising order; FAILED is final. */
enum {
    SY_DELIVERY_SENT = 1,
    SY_DELIVERY_DELIVERED = 2,
    SY_DELIVERY_READ = 3,
    SY_DELIVERY_FAILED = 4
};

/* What the transport says of a message that was sent earlier. */
struct sy_delivery {
    uint32_t size;
    uint32_t state; /* SY_DELIVERY_* */
    int64_t at_ms;  /* Unix time by the transport, or 0 */
    struct sy_str transport_id;
    struct sy_str reference; /* sy_outgoing.id if the transport echoed it, or empty */
    struct sy_str account;
    struct sy_str reason; /* FAILED: the transport's code and text */
};

struct sy_host_channel {
    uint32_t size;
    uint32_t reserved;

    /* [any] From start() on. Hand over 1 to 1024 messages, all or none. SY_OK: they are on
     * disk (or were seen before) and may be acknowledged; nothing is told of the gate's
     * verdict. SY_E_BUSY: keep them, try later. SY_E_INVALID: err names the member that
     * breaks the rules. SY_E_IO: cannot be stored now; do not acknowledge. May block for a
     * disk sync. */
    sy_status (*deliver)(void *ctx, const struct sy_message *msgs, size_t n,
                         struct sy_error *err);

    /* [any] From start() on. Report states of 1 to 1024 sent messages; same results as
     * deliver. */
    sy_status (*report)(void *ctx, const struct sy_delivery *items, size_t n,
                        struct sy_error *err);
};

/* One reply, or one part of a reply that was split. Borrowed. */
struct sy_outgoing {
    uint32_t size;
    int32_t cancel_fd; /* readable: give up */
    struct sy_str id;  /* the core's own id, unique; send it along if the transport has a
                          place for it, so that a lost answer can be settled later */
    struct sy_str account;
    struct sy_str conversation;
    struct sy_str reply_to; /* transport id, or empty */
    struct sy_str text;
    const struct sy_attachment *attachments;
    size_t nattachments;
    int64_t deadline_ms; /* monotonic */
};

enum {
    SY_SENT = 1,        /* accepted by the transport */
    SY_SENT_RETRY = 2,  /* not accepted, may be later */
    SY_SENT_NEVER = 3,  /* not accepted and never will be; err says why */
    SY_SENT_UNKNOWN = 4 /* asked, but no answer came: it is not repeated blindly */
};

struct sy_sent {
    uint32_t size;
    uint32_t outcome;       /* SY_SENT_* */
    int64_t retry_after_ms; /* RETRY: wait at least so long; 0 = the core's choice */
    char transport_id[512]; /* SENT: NUL-terminated, may be empty */
};

struct sy_channel {
    uint32_t size;
    uint32_t max_text_chars; /* longest text send() takes, in code points; 0 = no limit */

    /* [core] Begin receiving; called at most once. Routes were added in create() or are
     * added here; threads may start here. When it fails, undo what was begun: stop() will
     * not be called, destroy() will. */
    sy_status (*start)(void *self, struct sy_error *err);

    /* [core] Stop receiving. On return no thread of the plugin calls the core. */
    void (*stop)(void *self);

    /* [worker] Optional: absent when replies only go back on the request they came with.
     * One call at a time for one conversation; several conversations at once. SY_OK: see
     * out. Any other value counts as SY_SENT_RETRY. */
    sy_status (*send)(void *self, const struct sy_outgoing *msg, struct sy_sent *out,
                      struct sy_error *err);

    /* [worker] Optional. A turn for this message runs (busy != 0) or has ended. Called
     * again every 20 s while it runs. Best effort: failures are the channel's own. */
    void (*typing)(void *self, struct sy_str account, struct sy_str conversation,
                   struct sy_str message_id, uint32_t busy, int64_t deadline_ms);
};

/* ---- soulacy.host.http/1: routes on the core's listener -------------------------- */

/* A request in flight. From the handler's call until end() every span the core gave out
 * for it stays valid. write, begin, end may be called from any thread, one at a time for
 * one handle. After end() the handle is gone. Every handle must be ended. */
struct sy_http;

enum {
    SY_AUTH_KEY = 1,    /* the core has checked the gateway's key */
    SY_AUTH_PLUGIN = 2, /* the plugin authenticates each request itself; `doctor` lists
                           these routes */
    SY_AUTH_NONE = 3    /* public: static files only */
};

#define SY_ROUTE_WEBSOCKET (1u << 0) /* GET with upgrade; text messages both ways */
#define SY_ROUTE_PREFIX (1u << 1)    /* path is a prefix that ends in '/' */

/* A header or a query parameter, decoded. Frozen layout. */
struct sy_pair {
    struct sy_str name;
    struct sy_str value;
};

struct sy_request {
    uint32_t size;
    uint32_t authenticated; /* 1: the request carried the gateway's key */
    struct sy_http *http;
    struct sy_str method;
    struct sy_str path;  /* percent-decoded, normalised, no query */
    struct sy_str query; /* raw, without '?' */
    struct sy_str body;  /* whole; empty for WebSocket */
    struct sy_str peer;  /* address of the client as the core judges it, no port */
    struct sy_str request_id;
    uint32_t local; /* 1: carried the key, or came from loopback without a forwarding
                       header to a gateway that has no key (the "local" of the gate) */
    uint32_t reserved;
};

struct sy_route {
    uint32_t size;
    uint32_t auth;         /* SY_AUTH_* */
    const char *method;    /* "GET", "POST", "DELETE", "PUT" */
    const char *path;      /* third-party plugins: below /channels/NAME/ */
    uint32_t flags;        /* SY_ROUTE_* */
    uint32_t max_parallel; /* requests of this route at once, open streams included;
                              0 = 1024; more are answered 503 by the core */
    uint64_t max_body;     /* bytes; 0 = server.max_body_mb; more is answered 413 */
    void *ctx;             /* passed to the functions below */

    /* [worker] A request is there, its body complete. Return soon: the answer may be
     * written later from any thread. req and its spans: valid until end(). */
    void (*handle)(void *ctx, const struct sy_request *req);

    /* [worker] Optional. The client has gone before end(), or was closed as a slow reader;
     * called once. The handle stays valid and must still be ended. When another thread
     * ends it meanwhile, this call may already be under way: look http up in your own list
     * under your own lock, and ignore it when it is not there. The core gives the same
     * pointer to no other request before this call has returned (nor message() below). */
    void (*gone)(void *ctx, struct sy_http *http);

    /* [worker] WebSocket: one whole text message, valid UTF-8, at most max_body. */
    void (*message)(void *ctx, struct sy_http *http, struct sy_str text);
};

struct sy_host_http {
    uint32_t size;
    uint32_t reserved;

    /* [core] From create() or start(). The route and its strings are copied. */
    sy_status (*add_route)(void *ctx, const struct sy_route *route, struct sy_error *err);

    /* [any] First header of that name (case ignored), or SY_E_INVALID when absent. */
    sy_status (*header)(void *ctx, struct sy_http *http, const char *name,
                        struct sy_str *out);

    /* [any] Query parameter, percent-decoded; SY_E_INVALID when absent or given twice. */
    sy_status (*query)(void *ctx, struct sy_http *http, const char *name,
                       struct sy_str *out);

    /* [any] Status line and headers (a WebSocket is accepted by status 101). With
     * content_length >= 0 exactly so many bytes follow; -1 = until end(). The core adds
     * its security headers, Date and the request id. */
    sy_status (*begin)(void *ctx, struct sy_http *http, int32_t status,
                       const struct sy_pair *headers, size_t nheaders,
                       int64_t content_length);

    /* [any] Queue bytes, copied (WebSocket: one text message). SY_E_CANCELLED: the client
     * is gone, or was closed because 256 KiB were outstanding. Never blocks. */
    sy_status (*write)(void *ctx, struct sy_http *http, struct sy_str data);

    /* [any] No more bytes. The handle is gone on return. */
    void (*end)(void *ctx, struct sy_http *http);
};

/* ---- soulacy.host.fetch/1: outgoing requests through the core's egress rules ------ */

struct sy_fetch {
    uint32_t size;
    int32_t cancel_fd; /* -1: none */
    const char *method;
    struct sy_str url; /* https; hosts of allowed_hosts only, redirects included */
    const struct sy_str
        *allowed_hosts; /* "graph.example" or ".example" for sub-domains */
    size_t nallowed_hosts;
    const struct sy_pair *headers;
    size_t nheaders;
    struct sy_str bearer; /* secret: sent only while the host is in allowed_hosts */
    struct sy_str body;
    uint64_t max_body;   /* of the answer; more is SY_E_INVALID */
    int64_t deadline_ms; /* monotonic */
};

struct sy_fetched {
    uint32_t size;
    int32_t status; /* HTTP status */
    uint32_t sent;  /* 1: the request may have reached the server */
    uint32_t reserved;
    int64_t retry_after_ms; /* from Retry-After, or -1 */
};

struct sy_host_fetch {
    uint32_t size;
    uint32_t reserved;
    /* [worker] One request, blocking. out gets the body as it comes (may be NULL);
     * non-zero from it ends the transfer. SY_OK: an answer came, whatever its status.
     * SY_E_REFUSED: the egress rules forbid the address. */
    sy_status (*fetch)(void *ctx, const struct sy_fetch *req, void *out_ctx,
                       int32_t (*out)(void *out_ctx, struct sy_str data),
                       struct sy_fetched *res, struct sy_error *err);
};

/* ---- soulacy.host.gateway/1: the gateway's operations, for channel-http only ------ */

/* Operations and their JSON are listed in docs/http-api.md; the command line uses the
 * same table. Each answers with lines of JSON: events, then one result or error. */
struct sy_gateway_call {
    uint32_t size;
    uint32_t local;   /* from sy_request.local: what the gate takes for "local http" */
    struct sy_str op; /* "chat", "chat.cancel", "tools.run", "agents", "sessions", ... */
    struct sy_str args; /* one JSON object */
    struct sy_str peer;
    struct sy_str request_id;
    int64_t deadline_ms; /* monotonic; 0 = the operation's own */
    uint32_t events; /* 1: line() also gets events while it runs; 0: the result alone */
    uint32_t reserved;
    void *ctx;
    /* [any] One line of JSON without line end; borrowed. kind: SY_LINE_*. After
     * SY_LINE_RESULT or SY_LINE_ERROR nothing follows. */
    void (*line)(void *ctx, uint32_t kind, struct sy_str json);
};

enum { SY_LINE_EVENT = 1, SY_LINE_RESULT = 2, SY_LINE_ERROR = 3 };

struct sy_host_gateway {
    uint32_t size;
    uint32_t reserved;
    /* [any] Begin an operation. SY_OK: line() will get a final line, perhaps before this
     * returns. Else: nothing was begun and line() is not called. The spans are copied.
     * It holds no thread of the caller, so a chat costs its channel nothing while the
     * model thinks. */
    sy_status (*call)(void *ctx, const struct sy_gateway_call *call, uint64_t *call_id,
                      struct sy_error *err);
    /* [any] Cancel; the final line still comes. Unknown ids are ignored. */
    void (*cancel)(void *ctx, uint64_t call_id);
};

#ifdef __cplusplus
}
#endif

#endif
