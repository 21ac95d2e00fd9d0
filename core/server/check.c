/* Comes in: one request head. Goes out: an answer of the core, or a request on its way to
 * a plugin. The order of the checks is the contract of server.h. Never looks at a body
 * before the request is allowed to have one. */
#include "base/clock.h"
#include "server/internal.h"

#include <string.h>

#define SKIPPED_BODY_MAX 65536U
#define BODIES_MAX_BYTES (UINT64_C(256) * 1024 * 1024)

struct check {
    struct conn *c;
    const struct http_head *head;
    struct str path, query;
    struct net_addr peer;
    int64_t now_ms;
    bool local, authenticated, proxied;
    const char *cors_origin; /* NULL, or the allowed Origin, NUL-terminated */
};

/* The rest of this request is not wanted: pass over a short body, else close. */
static void drop_body(struct check *k, struct answer *a)
{
    uint64_t want = k->head->content_length > 0 ? (uint64_t)k->head->content_length : 0;
    if (want > SKIPPED_BODY_MAX || k->head->expect_continue) {
        a->close = want > 0 || a->close;
    } else {
        k->c->skip = want;
    }
}

static void refuse_with(struct check *k, struct answer *a, const char *code,
                        const char *message)
{
    struct http_fault f = {a->status, code, message};
    metric_add(k->c->s->metrics, METRIC_HTTP_REJECTED, 1);
    a->cors_origin = k->cors_origin;
    drop_body(k, a);
    conn_error(k->c, &f, a);
}

static void refuse(struct check *k, int status, const char *code, const char *message)
{
    struct answer a = {.status = status};
    refuse_with(k, &a, code, message);
}

static void refuse_later(struct check *k, int64_t retry_ms, const char *message)
{
    struct answer a = {.status = 429, .retry_after_s = (retry_ms + 999) / 1000};
    refuse_with(k, &a, "rate_limited", message);
}

/* ---- who asks ---- */

static void judge_peer(struct check *k)
{
    struct server *s = k->c->s;
    k->peer = k->c->tcp_peer;
    k->proxied = net_range_has(s->trusted, s->ntrusted, &k->c->tcp_peer);
    if (!k->proxied || k->head->nforwarded_for == 0) {
        return;
    }
    struct str lists[HTTP_FIELDS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < k->head->nfields; i++) {
        if (str_eq_nocase(k->head->fields[i].name, STR_LIT("x-forwarded-for"))) {
            lists[n++] = k->head->fields[i].value;
        }
    }
    k->peer = access_forwarded(&k->c->tcp_peer, lists, n, s->trusted, s->ntrusted);
}

static bool check_names(struct check *k)
{
    struct server *s = k->c->s;
    if (!access_host_ok(&s->names, &k->c->local, k->head->host)) {
        refuse(k, 403, "host_not_allowed",
               "this name is not one of the gateway's; see server.allowed_hosts");
        return false;
    }
    enum access_origin origin =
        access_origin_check(&s->names, k->head->host, k->head->origin, k->proxied);
    if (origin == ORIGIN_REFUSED) {
        refuse(
            k, 403, "origin_not_allowed",
            "pages of this origin may not call the gateway; see server.allowed_origins");
        return false;
    }
    if (origin == ORIGIN_LISTED) {
        for (size_t i = 0; i < s->names.nallowed_origins; i++) {
            if (str_eq_nocase(k->head->origin, str_c(s->names.allowed_origins[i]))) {
                k->cors_origin = s->names.allowed_origins[i];
            }
        }
    }
    return true;
}

/* What follows "Bearer ", or a WebSocket subprotocol "bearer.KEY"; ptr NULL: none. */
static struct str shown_key(const struct http_head *head, bool websocket)
{
    struct str v = head->authorization;
    if (v.ptr) {
        bool bearer = v.len > 7 && str_eq_nocase(str_n(v.ptr, 7), STR_LIT("bearer "));
        return bearer ? str_trim(str_n(v.ptr + 7, v.len - 7)) : str_n("", 0);
    }
    struct str rest = websocket ? head->ws_protocols : STR_NONE;
    struct str part;
    while (str_split(&rest, ',', &part)) {
        part = str_trim(part);
        if (part.len > 7 && str_starts(part, STR_LIT("bearer."))) {
            return str_n(part.ptr + 7, part.len - 7);
        }
    }
    return STR_NONE;
}

/* Sets authenticated and local. needed: without the key it ends here, answered. guess: a
 * wrong one counts as a guess (a plugin's own credentials do not). */
static bool check_key(struct check *k, bool needed, bool guess, bool websocket)
{
    struct server *s = k->c->s;
    if (!secret_is_set(&s->cfg->server.api_key)) {
        k->local = net_addr_is_loopback(&k->c->tcp_peer) && !k->head->forwarded &&
                   !server_open_to_network(s);
        return true;
    }
    struct str key = shown_key(k->head, websocket);
    int64_t retry_ms = 0;
    bool left = !key.ptr || limits_left(s->bad_keys, &k->peer, k->now_ms, &retry_ms);
    if (!left && needed) {
        refuse_later(k, retry_ms, "too many wrong keys from this address");
        return false;
    }
    k->authenticated = left && key.ptr && secret_matches(&s->cfg->server.api_key, key);
    k->local = k->authenticated;
    if (k->authenticated) {
        return true;
    }
    if (key.ptr && guess && left) {
        (void)limits_take(s->bad_keys, &k->peer, k->now_ms, &retry_ms);
    }
    if (needed) {
        struct answer a = {.status = 401, .challenge = true};
        refuse_with(k, &a, "unauthorized",
                    key.ptr ? "the key is wrong"
                            : "send the gateway's key as Authorization: Bearer KEY");
        return false;
    }
    return true;
}

/* ---- what the core answers itself ---- */

static bool is_get(struct check *k)
{
    return str_eq_c(k->head->method, "GET") || str_eq_c(k->head->method, "HEAD");
}

static void answer_core(struct check *k, int status, const char *type, struct str body)
{
    struct answer a = {.status = status, .type = type, .cors_origin = k->cors_origin};
    drop_body(k, &a);
    conn_answer(k->c, &a, body);
}

static void answer_ready(struct check *k)
{
    struct server *s = k->c->s;
    struct buf body;
    bool keyless = !secret_is_set(&s->cfg->server.api_key);
    if (!check_key(k, false, true, false)) {
        return;
    }
    buf_init(&body, SERVER_OUTSTANDING_MAX);
    bool detail =
        k->authenticated || s->cfg->server.open_metrics || (keyless && k->local);
    bool ready = s->status.ready && s->status.ready(s->status.ctx, detail, &body);
    if (body.len == 0 || buf_status(&body) != ST_OK) {
        buf_clear(&body);
        buf_add_c(&body, ready ? "{\"ready\":true}" : "{\"ready\":false}");
    }
    answer_core(k, ready ? 200 : 503, "application/json", buf_str(&body));
    buf_done(&body);
}

static void answer_metrics(struct check *k)
{
    struct server *s = k->c->s;
    struct buf body;
    if (!s->cfg->server.open_metrics && !check_key(k, true, true, false)) {
        return;
    }
    buf_init(&body, SERVER_OUTSTANDING_MAX);
    metrics_print(s->metrics, &body);
    if (buf_status(&body) == ST_OK) {
        answer_core(k, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&body));
    } else {
        refuse(k, 503, "overloaded", "out of memory");
    }
    buf_done(&body);
}

static bool is_health(struct str path)
{
    return str_eq_c(path, "/healthz") || str_eq_c(path, "/readyz");
}

/* true: it was one of the core's paths. */
static bool answer_own(struct check *k)
{
    bool metrics = str_eq_c(k->path, "/metrics");
    if (!metrics && !is_health(k->path)) {
        return false;
    }
    if (!is_get(k)) {
        struct answer a = {.status = 405, .allow = STR_LIT("GET, HEAD")};
        refuse_with(k, &a, "method_not_allowed", "this path takes GET only");
    } else if (metrics) {
        answer_metrics(k);
    } else if (k->path.ptr[1] == 'h') {
        answer_core(k, 200, "application/json", STR_LIT("{\"status\":\"ok\"}"));
    } else {
        answer_ready(k);
    }
    return true;
}

/* A browser asks before it sends; only pages of allowed_origins get an answer. */
static bool answer_preflight(struct check *k)
{
    if (!k->cors_origin || !str_eq_c(k->head->method, "OPTIONS") ||
        !http_field_get(k->head, "access-control-request-method").ptr) {
        return false;
    }
    static const struct sy_pair extra[] = {
        {{"Access-Control-Allow-Methods", 28}, {"GET, POST, PUT, DELETE", 22}},
        {{"Access-Control-Allow-Headers", 28}, {"Authorization, Content-Type", 27}},
        {{"Access-Control-Max-Age", 22}, {"600", 3}},
    };
    struct answer a = {.status = 204, .cors_origin = k->cors_origin, .extra = extra};
    a.nextra = sizeof extra / sizeof extra[0];
    drop_body(k, &a);
    conn_answer(k->c, &a, STR_NONE);
    return true;
}

/* ---- routes ---- */

static struct route *find_route(struct check *k)
{
    struct route *r = NULL;
    struct buf allow;
    buf_init(&allow, 256);
    switch (routes_find(k->c->s, k->head->method, k->path, &r, &allow)) {
    case ROUTE_FOUND:
        break;
    case ROUTE_OTHER_METHOD: {
        struct answer a = {.status = 405, .allow = buf_str(&allow)};
        refuse_with(k, &a, "method_not_allowed", "this path does not take that method");
        break;
    }
    case ROUTE_NONE:
        refuse(k, 404, "not_found", "there is nothing at this path");
        break;
    }
    buf_done(&allow);
    return r;
}

static bool check_length(struct check *k, const struct route *r)
{
    int64_t n = k->head->content_length;
    bool body_method =
        str_eq_c(k->head->method, "POST") || str_eq_c(k->head->method, "PUT");
    if (n < 0 && body_method) {
        /* Without a length what follows would be read as the next request. */
        struct answer a = {.status = 411, .close = true};
        refuse_with(k, &a, "length_required", "send Content-Length");
        return false;
    }
    if (n > 0 && ((uint64_t)n > r->max_body || (r->flags & SY_ROUTE_WEBSOCKET) != 0)) {
        struct answer a = {.status = 413, .close = true};
        refuse_with(k, &a, "body_too_large", "the body is over the limit of this path");
        return false;
    }
    return true;
}

/* A key in a URL ends up in histories and logs, so it is not even looked at. */
static bool check_query(struct check *k, const struct route *r)
{
    static const char *const names[] = {"key", "token", "api_key", "apikey",
                                        "access_token"};
    struct str rest = k->query;
    char text[HTTP_TARGET_MAX + 2 * HTTP_PARAMS_MAX + 1];
    size_t used = 0;
    size_t n = 0;
    bool bad = false;
    struct http_field param;
    while (http_next_param(&rest, text, sizeof text, &used, &param, &bad)) {
        if (++n > HTTP_PARAMS_MAX) {
            bad = true;
            break;
        }
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (r->auth == SY_AUTH_KEY && str_eq_nocase(param.name, str_c(names[i]))) {
                refuse(k, 400, "key_in_query",
                       "a key has no place in a URL; send Authorization: Bearer KEY");
                return false;
            }
        }
    }
    if (bad) {
        refuse(k, 400, "bad_request", "the query is malformed");
    }
    return !bad;
}

static bool check_upgrade(struct check *k, const struct route *r)
{
    if ((r->flags & SY_ROUTE_WEBSOCKET) == 0 || k->head->upgrade) {
        return true;
    }
    struct answer a = {.status = 426, .close = true, .upgrade_hint = true};
    refuse_with(k, &a, "upgrade_required", "this path speaks WebSocket, version 13");
    return false;
}

/* The core still holds the only reference: the plugin has not seen the handle. */
void check_abandon(struct conn *c, const struct http_fault *f, struct answer *a)
{
    struct sy_http *h = c->req;
    c->req = NULL;
    c->phase = PH_HEAD;
    atomic_fetch_sub(&h->route->active, 1);
    metric_add(c->s->metrics, METRIC_HTTP_REJECTED, 1);
    conn_error(c, f, a);
    handle_unref(h);
}

static void body_done(struct conn *c)
{
    struct sy_http *h = c->req;
    h->req.body = (struct sy_str){h->body.len > 0 ? h->body.ptr : "", h->body.len};
    c->phase = PH_BUSY;
    c->deadline_ms = CLOCK_NEVER;
    if (handle_dispatch(h) != ST_OK) {
        static const struct http_fault f = {503, "busy", "the gateway is at its limit"};
        struct answer a = {.status = 503, .retry_after_s = 1};
        check_abandon(c, &f, &a);
    }
}

static void hand_over(struct check *k, struct route *r)
{
    struct conn *c = k->c;
    struct http_fault fault = {0};
    if (atomic_fetch_add(&r->active, 1) >= r->max_parallel) {
        atomic_fetch_sub(&r->active, 1);
        struct answer a = {.status = 503, .retry_after_s = 1};
        refuse_with(k, &a, "busy", "too many requests of this kind at once");
        return;
    }
    struct sy_http *h = handle_new(c->s, r, k->head, k->path, k->query, &fault);
    if (!h) {
        atomic_fetch_sub(&r->active, 1);
        refuse(k, fault.status, fault.code, fault.message);
        return;
    }
    h->req.authenticated = k->authenticated;
    h->req.local = k->local;
    net_addr_print(&k->peer, h->peer_text);
    h->req.peer = (struct sy_str){h->peer_text, strlen(h->peer_text)};
    h->peer_addr = k->peer;
    h->cors_origin = k->cors_origin;
    h->refund = r->auth == SY_AUTH_PLUGIN;
    h->websocket = (r->flags & SY_ROUTE_WEBSOCKET) != 0;
    h->keep_alive = h->keep_alive && !h->websocket;
    h->ws_protocol = str_find(k->head->ws_protocols, STR_LIT("soulacy")) != SIZE_MAX;
    h->conn = c;
    c->req = h;
    c->phase = PH_BODY;
    if (h->body_want == 0) {
        body_done(c);
        return;
    }
    c->deadline_ms =
        k->now_ms + c->s->body_ms + (int64_t)(h->body_want / SERVER_BODY_BYTES_PER_MS);
    if (k->head->expect_continue) {
        conn_send(c, STR_LIT("HTTP/1.1 100 Continue\r\n\r\n"));
    }
}

bool check_body_take(struct conn *c, struct str *in)
{
    static const struct http_fault nomem = {503, "overloaded", "too many bodies at once"};
    struct sy_http *h = c->req;
    uint64_t left = h->body_want - h->body.len;
    size_t n = in->len < left ? in->len : (size_t)left;
    if (atomic_load(&c->s->body_bytes) + n > BODIES_MAX_BYTES) {
        struct answer a = {.status = 503, .close = true, .retry_after_s = 1};
        check_abandon(c, &nomem, &a);
        return false;
    }
    buf_add(&h->body, in->ptr, n);
    if (buf_status(&h->body) != ST_OK) {
        struct answer a = {.status = 503, .close = true, .retry_after_s = 1};
        check_abandon(c, &nomem, &a);
        return false;
    }
    atomic_fetch_add(&c->s->body_bytes, n);
    *in = str_n(in->ptr + n, in->len - n);
    if (h->body.len == h->body_want) {
        body_done(c);
    }
    return true;
}

static void check_route(struct check *k)
{
    struct route *r = find_route(k);
    if (!r || !check_length(k, r) || !check_upgrade(k, r) || !check_query(k, r)) {
        return;
    }
    bool websocket = (r->flags & SY_ROUTE_WEBSOCKET) != 0;
    if (check_key(k, r->auth == SY_AUTH_KEY, r->auth == SY_AUTH_KEY, websocket)) {
        hand_over(k, r);
    }
}

void check_head(struct conn *c, struct str raw)
{
    struct server *s = c->s;
    struct http_fault fault;
    int64_t retry_ms = 0;
    struct check k = {.c = c, .head = &s->head, .peer = c->tcp_peer};
    k.now_ms = clock_mono_ms();
    metric_add(s->metrics, METRIC_HTTP_REQUESTS, 1);
    bool ok = http_parse_head(raw, &s->head, &fault);
    c->keep_alive = ok && s->head.keep_alive;
    c->head_only = ok && str_eq_c(s->head.method, "HEAD");
    if (!ok) {
        s->head.content_length = -1;
        s->head.expect_continue = false;
    } else {
        judge_peer(&k);
        ok = http_parse_target(s->head.target, s->path, sizeof s->path, &k.path, &k.query,
                               &fault);
    }
    if ((!ok || !is_health(k.path)) &&
        !limits_take(s->rate, &k.peer, k.now_ms, &retry_ms)) {
        refuse_later(&k, retry_ms, "too many requests from this address");
        return;
    }
    if (!ok) {
        refuse(&k, fault.status, fault.code, fault.message);
        return;
    }
    if (!check_names(&k) || answer_preflight(&k) || answer_own(&k)) {
        return;
    }
    check_route(&k);
}
