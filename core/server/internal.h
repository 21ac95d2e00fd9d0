/* Shared by the files of this module, included by nobody else.
 *
 * Who owns what: the server thread owns every connection and all of libwebsockets. A
 * request handle is shared by that thread, a worker and the plugin; its lock guards what
 * they share. Other threads reach the server thread by lws_cancel_service alone. */
#ifndef SOULACY_SERVER_INTERNAL_H
#define SOULACY_SERVER_INTERNAL_H

#include "base/buf.h"
#include "server/access.h"
#include "server/http.h"
#include "server/limits.h"
#include "server/server.h"
#include "server/ws.h"

#include <libwebsockets.h>
#include <pthread.h>
#include <stdatomic.h>

#define SERVER_OUTSTANDING_MAX (256U * 1024U)   /* unsent bytes of one stream */
#define SERVER_ANSWER_MAX (64U * 1024U * 1024U) /* one answer of declared length */
#define SERVER_CONNECTIONS_MAX 1000U
#define SERVER_PEER_CONNECTIONS_MAX 500U /* of one address beyond loopback */
#define SERVER_PIPELINED_MAX (64U * 1024U)
#define SERVER_WS_QUEUED_MAX 32U
#define SERVER_BAD_KEYS_PER_MINUTE 10
#define SERVER_LISTENERS_MAX 4U
#define SERVER_RID_LEN 24U /* hex digits */

/* Times a client has, milliseconds. Tests shorten them in struct server. */
#define SERVER_TICK_MS 1000 /* how often the others are looked at */
#define SERVER_HEAD_MS 10000
#define SERVER_BODY_MS 30000
#define SERVER_IDLE_MS 60000
#define SERVER_STALL_MS 30000
#define SERVER_LINGER_MS 2000
#define SERVER_PING_MS 30000
#define SERVER_BODY_BYTES_PER_MS 16 /* the slowest body, beside SERVER_BODY_MS */

struct plugin_instance;

struct route {
    struct plugin_instance *instance; /* whose functions these are; NULL: the core's */
    char *owner, *method, *path;
    uint32_t auth, flags, max_parallel;
    uint64_t max_body;
    void *ctx;
    void (*handle)(void *ctx, const struct sy_request *req);
    void (*gone)(void *ctx, struct sy_http *http);
    void (*message)(void *ctx, struct sy_http *http, struct sy_str text);
    atomic_uint active;
};

enum phase { PH_HEAD = 0, PH_BODY, PH_BUSY, PH_WS, PH_LINGER };

struct conn {
    struct server *s;
    struct lws *wsi;
    struct conn *prev, *next;
    struct net_addr tcp_peer, local;
    enum phase phase;
    bool dead;                  /* close as soon as libwebsockets lets us */
    bool closing;               /* close when everything is sent */
    bool paused;                /* reading is off */
    bool fresh;                 /* nothing of the next head has come */
    bool keep_alive, head_only; /* of the request that is answered now */
    int64_t deadline_ms;
    int64_t stall_ms; /* when unsent bytes count as stuck; CLOCK_NEVER: nothing unsent */
    uint64_t skip;    /* bytes of an unwanted body still to come */
    size_t scan;
    struct buf in;
    struct buf out;
    size_t out_done; /* bytes of out already handed over */
    struct sy_http *req;
    struct ws_parser *ws;
    int64_t pinged_ms;
};

struct ws_item {
    struct ws_item *next;
    size_t len;
    char text[];
};

struct sy_http {
    struct server *s;
    struct route *route;
    atomic_uint refs;
    struct conn *conn; /* server thread only; NULL once the connection is gone */
    struct sy_http *next_dirty, *next_untold;
    atomic_bool dirty; /* stands in the server's list */
    bool keep_alive, head_only, http10, websocket, refund;
    struct net_addr peer_addr;
    uint64_t body_want;

    pthread_mutex_t lock; /* guards the rest */
    bool begun, ended, gone, slow, upgraded, chunked;
    bool started;   /* the handler was called */
    bool calling;   /* a function of the plugin runs on a worker */
    bool gone_told; /* route->gone was called, or is about to be */
    bool refunded;
    int status;
    int64_t length_left; /* of a declared length; -1 */
    size_t inflight;     /* bytes the connection took and has not sent */
    struct buf out;
    struct ws_item *inbox, *inbox_last;
    size_t ninbox;

    /* Set before the handler is called, constant after. */
    struct sy_request req;
    struct buf body;
    struct sy_pair *fields, *params;
    size_t nfields, nparams;
    const char *cors_origin; /* NULL: no CORS headers */
    const char *ws_accept;   /* NULL: no WebSocket handshake */
    bool ws_protocol;        /* answer with subprotocol "soulacy" */
    char peer_text[NET_ADDR_TEXT];
    char text[];
};

struct server {
    _Atomic(const struct config *) cfg; /* swapped by server_reload */
    struct pool *pool;
    struct metrics *metrics;
    struct log *log;
    struct server_status status;

    struct net_range *trusted;
    size_t ntrusted;
    struct access_names names;
    struct limits *rate, *bad_keys;
    uint64_t max_body;
    int64_t tick_ms, head_ms, body_ms, idle_ms, stall_ms, linger_ms, ping_ms;
    size_t max_conns, max_peer_conns;

    /* Listening; set by server_start. */
    int fds[SERVER_LISTENERS_MAX];
    struct lws *listeners[SERVER_LISTENERS_MAX];
    size_t nfds;
    char address[NET_ADDR_TEXT];
    int port;
    bool loopback_only;

    struct lws_context *lws;
    struct lws_vhost *vhost;
    pthread_t thread;
    bool has_thread;

    /* Server thread only. */
    struct conn *conns; /* most recently active first */
    struct conn *conns_last;
    struct conn *current;  /* whose callback runs */
    size_t nconns, ndying; /* dying: killed and not closed yet */
    int spare_fd;
    bool accept_paused, ticking, listeners_closed;
    int64_t emfile_logged_ms;
    lws_sorted_usec_list_t tick;
    struct http_head head;
    char path[HTTP_TARGET_MAX + 1];
    struct buf scratch;
    char date[32];
    int64_t date_s;
    unsigned char random[512];
    size_t random_left;

    pthread_mutex_t routes_lock; /* guards routes, nroutes */
    struct route **routes;
    size_t nroutes;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t quiet; /* signalled when one of the counters falls */
    struct sy_http *dirty;
    struct sy_http *untold; /* gone() could not be queued yet */
    size_t handles;         /* alive */
    size_t calls;           /* functions of plugins running or queued */
    size_t open;            /* connections */
    bool wakeable;          /* lws is there to be woken */
    atomic_bool stop, draining, drain_now, reloaded;
    atomic_uint_fast64_t body_bytes; /* of all requests in memory */
};

/* server.c */
void server_mark_dirty(struct sy_http *h); /* [any] the connection has to look at h */
void server_call_begin(struct server *s);
void server_call_end(struct server *s);
void server_random_id(struct server *s, char out[SERVER_RID_LEN + 1]);
void server_need_tick(struct server *s);

/* routes.c */
enum route_found { ROUTE_NONE = 0, ROUTE_OTHER_METHOD, ROUTE_FOUND };
/* server_add_route for a plugin's instance, whose functions are then called only while it
 * may be called; NULL: the core's own. */
enum status routes_add(struct server *s, const char *owner,
                       struct plugin_instance *instance, const struct sy_route *route,
                       struct error *err) SY_MUST_CHECK;
enum route_found routes_find(struct server *s, struct str method, struct str path,
                             struct route **out, struct buf *allow);
void routes_free(struct server *s);

/* answer.c: response heads. Pure. */
struct answer {
    int status;
    const char *type; /* NULL: none */
    int64_t length;   /* -1: chunked or until the end */
    bool chunked, close;
    const char *rid;
    const char *date;
    const char *cors_origin;     /* NULL: none */
    struct str allow;            /* empty: none */
    int64_t retry_after_s;       /* 0: none */
    bool challenge;              /* WWW-Authenticate */
    bool upgrade_hint;           /* Upgrade: websocket, for 426 */
    const struct sy_pair *extra; /* further headers */
    size_t nextra;
};
void answer_date(int64_t unix_s, char out[32]);
bool answer_header_ok(const struct sy_pair *h);
void answer_head(struct buf *out, const struct answer *a);
void answer_error_body(struct buf *out, const struct http_fault *f, const char *rid);

/* conn.c */
struct conn *conn_new(struct server *s, const struct net_addr *peer,
                      const struct net_addr *local);
void conn_closed(struct conn *c); /* frees it */
void conn_rx(struct conn *c, struct str data);
void conn_writeable(struct conn *c);
void conn_look(struct conn *c); /* the handle has something */
void conn_tick(struct conn *c, int64_t now_ms);
void conn_kill(struct conn *c);
/* Answer the head in s->head (or what could not be read as one). a: what is to be said;
 * date, request id and length are filled in here. */
void conn_answer(struct conn *c, struct answer *a, struct str body);
void conn_error(struct conn *c, const struct http_fault *f, struct answer *a);
void conn_send(struct conn *c, struct str bytes);

/* check.c: one head, from limits to key; answers or dispatches. */
void check_head(struct conn *c, struct str raw);
/* Move bytes of the body over; false: it was answered with an error. */
bool check_body_take(struct conn *c, struct str *in);
/* End a request the plugin has not seen with an error. */
void check_abandon(struct conn *c, const struct http_fault *f, struct answer *a);

/* listen.c */
enum status listen_open(struct server *s, struct error *err) SY_MUST_CHECK;
void listen_close(struct server *s);
void listen_accept(struct server *s, int listener);
void listen_resume(struct server *s);

/* handle.c */
struct sy_http *handle_new(struct server *s, struct route *r,
                           const struct http_head *head, struct str path,
                           struct str query, struct http_fault *fault);
void handle_unref(struct sy_http *h);
enum status handle_dispatch(struct sy_http *h) SY_MUST_CHECK;
void handle_gone(struct sy_http *h);     /* the client is away; server thread */
void handle_tell_gone(struct server *s); /* try again what found the pool full */
enum status handle_ws_text(struct sy_http *h, struct str text) SY_MUST_CHECK;
sy_status handle_header(struct sy_http *h, const char *name, struct sy_str *out);
sy_status handle_query(struct sy_http *h, const char *name, struct sy_str *out);
sy_status handle_begin(struct sy_http *h, int32_t status, const struct sy_pair *headers,
                       size_t nheaders, int64_t content_length);
sy_status handle_write(struct sy_http *h, struct sy_str data);
void handle_end(struct sy_http *h);

#endif
