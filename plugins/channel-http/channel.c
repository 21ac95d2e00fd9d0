/* Comes in: requests for the API from the core's listener. Goes out: operations of the
 * gateway, and their result or error as the answer. Never decides who may do what, keeps
 * nothing of a request once it is answered, and holds no thread while an operation runs.
 * When the client goes away its operation is cancelled. */
#include "args.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STOP_SECONDS 10
#define SITES_MAX 16

/* One request that waits for its operation. Two references: the handler's and that of the
 * final line. */
struct call {
    struct channel *ch;
    struct call *next;
    struct sy_http *http;
    uint64_t id;
    bool has_id, gone;
    unsigned refs;
    char request_id[64];
};

struct channel {
    const struct sy_host *host;
    const struct sy_host_http *http;
    const struct sy_host_gateway *gateway;
    pthread_mutex_t lock; /* guards calls, their members and stopping */
    pthread_cond_t idle;
    struct call *calls;
    bool stopping;
    struct site {
        struct channel *ch;
        const struct endpoint *route;
    } sites[SITES_MAX]; /* nendpoints of them are used */
};

/* ---- answers ---- */

static void answer(struct channel *ch, struct sy_http *http, int status,
                   struct sy_str body)
{
    struct sy_pair headers[2] = {
        {span_c("Content-Type"), span_c("application/json")},
        {span_c("Retry-After"), span_c("1")},
    };
    size_t n = status == 429 || status == 503 ? 2 : 1;
    void *ctx = ch->host->ctx;
    if (ch->http->begin(ctx, http, status, headers, n, (int64_t)body.len) == SY_OK) {
        (void)ch->http->write(ctx, http, body);
    }
    ch->http->end(ctx, http);
}

/* The members are JSON text; field may be empty. */
static void answer_error(struct channel *ch, struct sy_http *http, int status,
                         const struct sy_str members[3], struct sy_str request_id)
{
    static const char *const names[] = {"\"code\":", ",\"message\":", ",\"field\":"};
    struct text t = {0};
    text_add_c(&t, "{\"error\":{");
    for (size_t i = 0; i < 3; i++) {
        if (members[i].len > 0) {
            text_add_c(&t, names[i]);
            text_add(&t, members[i]);
        }
    }
    text_add_c(&t, ",\"request_id\":");
    text_add_string(&t, request_id);
    text_add_c(&t, "}}");
    if (t.failed) {
        ch->http->end(ch->host->ctx, http); /* the core answers 500 */
    } else {
        answer(ch, http, status, (struct sy_str){t.ptr, t.len});
    }
    text_done(&t);
}

static void refuse(struct channel *ch, struct sy_http *http, const struct refusal *no,
                   struct sy_str request_id)
{
    struct text code = {0};
    struct text message = {0};
    struct text field = {0};
    text_add_string(&code, span_c(no->code));
    text_add_string(&message, span_c(no->message));
    if (no->field.len > 0) {
        text_add_string(&field, no->field);
    }
    const struct sy_str members[3] = {
        {code.ptr, code.len}, {message.ptr, message.len}, {field.ptr, field.len}};
    answer_error(ch, http, no->status, members, request_id);
    text_done(&code);
    text_done(&message);
    text_done(&field);
}

static void answer_line(const struct call *c, struct sy_http *http, uint32_t kind,
                        struct sy_str json)
{
    if (kind == SY_LINE_RESULT) {
        answer(c->ch, http, 200, json);
        return;
    }
    int status = json_small(json_member(json, "status"), 400, 599, 500);
    struct sy_str members[3] = {json_member(json, "code"), json_member(json, "message"),
                                json_member(json, "field")};
    if (members[0].len == 0 || members[1].len == 0) {
        members[0] = span_c("\"internal\"");
        members[1] = span_c("\"the operation failed\"");
    }
    answer_error(c->ch, http, status, members, span_c(c->request_id));
}

/* ---- calls ---- */

/* With the lock held. */
static void unlink_call(struct call *c)
{
    struct call **at = &c->ch->calls;
    while (*at && *at != c) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = c->next;
    }
}

static void call_unref(struct call *c)
{
    struct channel *ch = c->ch;
    (void)pthread_mutex_lock(&ch->lock);
    bool last = --c->refs == 0;
    if (last) {
        /* Out of the list only now: stop() waits for who may still call the core. */
        unlink_call(c);
        (void)pthread_cond_broadcast(&ch->idle);
    }
    (void)pthread_mutex_unlock(&ch->lock);
    if (last) {
        free(c);
    }
}

/* Take the handle, so that gone() no longer finds it: after end() its address may be
 * another request's. */
static struct sy_http *take_http(struct call *c)
{
    (void)pthread_mutex_lock(&c->ch->lock);
    struct sy_http *http = c->http;
    c->http = NULL;
    (void)pthread_mutex_unlock(&c->ch->lock);
    return http;
}

static void on_line(void *ctx, uint32_t kind, struct sy_str json)
{
    struct call *c = ctx;
    if (kind == SY_LINE_EVENT) {
        return;
    }
    struct sy_http *http = take_http(c);
    if (http) {
        answer_line(c, http, kind, json);
    }
    call_unref(c);
}

static struct call *call_new(struct channel *ch, const struct sy_request *req)
{
    struct call *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    size_t n = req->request_id.len < sizeof c->request_id - 1 ? req->request_id.len
                                                              : sizeof c->request_id - 1;
    memcpy(c->request_id, req->request_id.ptr, n);
    c->ch = ch;
    c->http = req->http;
    c->refs = 2;
    (void)pthread_mutex_lock(&ch->lock);
    bool stopping = ch->stopping;
    if (!stopping) {
        c->next = ch->calls;
        ch->calls = c;
    }
    (void)pthread_mutex_unlock(&ch->lock);
    if (stopping) {
        free(c);
        return NULL;
    }
    return c;
}

static struct refusal refusal_of(sy_status st, const struct sy_error *err)
{
    switch (st) {
    case SY_E_BUSY:
        return (struct refusal){.status = 503, .code = "busy", .message = err->text};
    case SY_E_INVALID:
        return (struct refusal){.status = 400, .code = "invalid", .message = err->text};
    case SY_E_UNSUPPORTED:
        return (struct refusal){.status = 404, .code = "not_found", .message = err->text};
    case SY_E_CANCELLED:
        return (struct refusal){
            .status = 503, .code = "stopping", .message = "the gateway is stopping"};
    default:
        return (struct refusal){
            .status = 500, .code = "internal", .message = "the operation did not begin"};
    }
}

/* Begin the operation; the answer comes with its final line. */
static void begin_call(struct call *c, const struct sy_request *req, const struct wish *w)
{
    struct channel *ch = c->ch;
    struct sy_error err = {.size = sizeof err};
    const struct sy_gateway_call gc = {
        .size = sizeof gc,
        .local = req->local,
        .op = span_c(w->op),
        .args = {w->args.ptr, w->args.len},
        .peer = req->peer,
        .request_id = req->request_id,
        .ctx = c,
        .line = on_line,
    };
    uint64_t id = 0;
    sy_status st = ch->gateway->call(ch->host->ctx, &gc, &id, &err);
    if (st != SY_OK) {
        struct sy_http *http = take_http(c);
        struct refusal no = refusal_of(st, &err);
        if (no.message[0] == 0) {
            no.message = "the operation did not begin";
        }
        refuse(ch, http, &no, span_c(c->request_id));
        call_unref(c); /* there will be no line */
        call_unref(c); /* NOLINT(clang-analyzer-unix.Malloc): the second of two */
        return;
    }
    (void)pthread_mutex_lock(&ch->lock);
    c->id = id;
    c->has_id = true;
    bool cancel = c->gone || ch->stopping;
    (void)pthread_mutex_unlock(&ch->lock);
    if (cancel) {
        ch->gateway->cancel(ch->host->ctx, id);
    }
    call_unref(c);
}

static void on_request(void *ctx, const struct sy_request *req)
{
    const struct site *site = ctx;
    struct channel *ch = site->ch;
    struct refusal no = {0};
    struct wish wish = {0};
    if (!args_from(ch->http, ch->host->ctx, site->route, req, &wish, &no)) {
        refuse(ch, req->http, &no, req->request_id);
        return;
    }
    struct call *c = call_new(ch, req);
    if (c) {
        begin_call(c, req, &wish);
    } else {
        no = (struct refusal){
            .status = 503, .code = "busy", .message = "the gateway is stopping"};
        refuse(ch, req->http, &no, req->request_id);
    }
    text_done(&wish.args);
}

static void on_gone(void *ctx, struct sy_http *http)
{
    const struct site *site = ctx;
    struct channel *ch = site->ch;
    uint64_t id = 0;
    bool cancel = false;
    (void)pthread_mutex_lock(&ch->lock);
    for (struct call *c = ch->calls; c; c = c->next) {
        if (c->http == http) {
            c->gone = true;
            cancel = c->has_id;
            id = c->id;
        }
    }
    (void)pthread_mutex_unlock(&ch->lock);
    if (cancel) {
        ch->gateway->cancel(ch->host->ctx, id); /* the final line ends the handle */
    }
}

/* ---- the plugin ---- */

static sy_status fail(struct sy_error *err, sy_status st, const char *text)
{
    if (err) {
        size_t n = strlen(text);
        n = n < sizeof err->text - 1 ? n : sizeof err->text - 1;
        memcpy(err->text, text, n);
        err->text[n] = 0;
        err->os_errno = 0;
    }
    return st;
}

static sy_status create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err)
{
    (void)cfg;
    (void)ncfg;
    struct channel *ch = calloc(1, sizeof *ch);
    if (!ch) {
        return fail(err, SY_E_NOMEM, "out of memory");
    }
    ch->host = host;
    ch->http = host->service(host->ctx, SY_HOST_HTTP_ID);
    ch->gateway = host->service(host->ctx, SY_HOST_GATEWAY_ID);
    if (!ch->http || !ch->gateway) {
        free(ch);
        return fail(err, SY_E_UNSUPPORTED,
                    "this core does not grant the listener or the gateway");
    }
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int rc = pthread_mutex_init(&ch->lock, NULL);
    if (rc == 0 && pthread_cond_init(&ch->idle, &attr) != 0) {
        (void)pthread_mutex_destroy(&ch->lock);
        rc = -1;
    }
    (void)pthread_condattr_destroy(&attr);
    if (rc != 0) {
        free(ch);
        return fail(err, SY_E_NOMEM, "cannot make a lock");
    }
    *out = ch;
    return SY_OK;
}

static void destroy(void *self)
{
    struct channel *ch = self;
    if (!ch || ch->calls) {
        return; /* a late line may still come: better kept than freed under it */
    }
    (void)pthread_cond_destroy(&ch->idle);
    (void)pthread_mutex_destroy(&ch->lock);
    free(ch);
}

static sy_status start(void *self, struct sy_error *err)
{
    struct channel *ch = self;
    for (size_t i = 0; i < nendpoints && i < SITES_MAX; i++) {
        const struct endpoint *e = &endpoints[i];
        if (!endpoint_is_first(i)) {
            continue;
        }
        ch->sites[i] = (struct site){ch, e};
        const struct sy_route route = {
            .size = sizeof route,
            .auth = SY_AUTH_KEY,
            .method = e->method,
            .path = e->path,
            .flags = e->tail ? SY_ROUTE_PREFIX : 0,
            .ctx = &ch->sites[i],
            .handle = on_request,
            .gone = on_gone,
        };
        sy_status st = ch->http->add_route(ch->host->ctx, &route, err);
        if (st != SY_OK) {
            return st;
        }
    }
    return SY_OK;
}

/* Cancel what runs and wait for the final lines. */
static void stop(void *self)
{
    struct channel *ch = self;
    uint64_t ids[64];
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_SECONDS;
    int rc = 0;
    (void)pthread_mutex_lock(&ch->lock);
    ch->stopping = true;
    while (ch->calls && rc == 0) {
        size_t n = 0;
        for (struct call *c = ch->calls; c && n < sizeof ids / sizeof ids[0];
             c = c->next) {
            if (c->has_id && !c->gone) {
                c->gone = true;
                ids[n++] = c->id;
            }
        }
        if (n > 0) {
            (void)pthread_mutex_unlock(&ch->lock);
            for (size_t i = 0; i < n; i++) {
                ch->gateway->cancel(ch->host->ctx, ids[i]);
            }
            (void)pthread_mutex_lock(&ch->lock);
        } else {
            rc = pthread_cond_timedwait(&ch->idle, &ch->lock, &until);
        }
    }
    (void)pthread_mutex_unlock(&ch->lock);
}

static const void *query(void *self, const char *id)
{
    static const struct sy_channel channel = {
        .size = sizeof channel,
        .start = start,
        .stop = stop,
    };
    (void)self;
    return strcmp(id, SY_CHANNEL_ID) == 0 ? &channel : NULL;
}

const struct sy_plugin soulacy_plugin_v1 = {
    .size = sizeof soulacy_plugin_v1,
    .abi_minor = SY_ABI_MINOR,
    .kind = SY_KIND_CHANNEL,
    .name = "http",
    .version = "1",
    .create = create,
    .destroy = destroy,
    .query = query,
};
