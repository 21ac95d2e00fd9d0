/*
 * Comes in: settings as name=value words. Goes out: "PORT n" on stdout once it listens,
 * then the real server with routes to try it by, until stdin closes; then "LEFT n", the
 * requests that were never ended. It drives the server; the checks are in test_http.py.
 */
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "server/internal.h"

#include "api.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIST_MAX 8

struct settings {
    struct config cfg;
    char *hosts[LIST_MAX], *origins[LIST_MAX], *proxies[LIST_MAX];
    int64_t tick_ms, head_ms, body_ms, idle_ms, stall_ms, linger_ms, ping_ms, drain_ms;
    int64_t max_conns, threads, queued, nofile;
    bool ready, api;
};

/* What the routes share. */
struct site {
    struct server *s;
    struct pool *pool;
    pthread_mutex_t lock;
    struct sy_http *held[64]; /* answered by /api/v1/release or when gone */
    size_t nheld;
    unsigned gone;
};

static struct site site;

static void list_add(struct str_list *list, char **items, char *value)
{
    if (list->n < LIST_MAX) {
        items[list->n++] = value;
        list->items = items;
    }
}

static bool set_number(struct settings *o, const char *name, int64_t n)
{
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {
        {"port", &o->cfg.server.port},
        {"rate", &o->cfg.server.rate_limit_per_minute},
        {"max_body_mb", &o->cfg.server.max_body_mb},
        {"tick_ms", &o->tick_ms},
        {"head_ms", &o->head_ms},
        {"body_ms", &o->body_ms},
        {"idle_ms", &o->idle_ms},
        {"stall_ms", &o->stall_ms},
        {"linger_ms", &o->linger_ms},
        {"ping_ms", &o->ping_ms},
        {"drain_ms", &o->drain_ms},
        {"max_conns", &o->max_conns},
        {"threads", &o->threads},
        {"queued", &o->queued},
        {"nofile", &o->nofile},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].to = n;
            return true;
        }
    }
    return false;
}

static bool set(struct settings *o, char *name, char *value)
{
    int64_t n = 0;
    if (strcmp(name, "key") == 0) {
        return secret_set(&o->cfg.server.api_key, str_c(value)) == ST_OK;
    }
    if (strcmp(name, "host") == 0) {
        o->cfg.server.host = value;
    } else if (strcmp(name, "cert") == 0) {
        o->cfg.server.tls_cert = value;
    } else if (strcmp(name, "certkey") == 0) {
        o->cfg.server.tls_key = value;
    } else if (strcmp(name, "allow_host") == 0) {
        list_add(&o->cfg.server.allowed_hosts, o->hosts, value);
    } else if (strcmp(name, "allow_origin") == 0) {
        list_add(&o->cfg.server.allowed_origins, o->origins, value);
    } else if (strcmp(name, "proxy") == 0) {
        list_add(&o->cfg.server.trusted_proxies, o->proxies, value);
    } else if (strcmp(name, "ready") == 0) {
        o->ready = value[0] == '1';
    } else if (strcmp(name, "api") == 0) {
        o->api = value[0] == '1';
    } else if (strcmp(name, "open_metrics") == 0) {
        o->cfg.server.open_metrics = value[0] == '1';
    } else {
        return str_to_i64(str_c(value), 0, INT64_MAX, &n) == ST_OK &&
               set_number(o, name, n);
    }
    return true;
}

/* ---- routes ---- */

static void answer(struct sy_http *h, int status, struct str body)
{
    static const struct sy_pair type[] = {
        {{"Content-Type", 12}, {"application/json", 16}}};
    if (handle_begin(h, status, type, 1, (int64_t)body.len) == SY_OK) {
        (void)handle_write(h, (struct sy_str){body.ptr, body.len});
    }
    handle_end(h);
}

/* What the plugin is told of the request. */
static void on_echo(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    struct buf b;
    struct sy_str q = {0};
    struct sy_str x = {0};
    buf_init(&b, 64U << 20);
    (void)handle_query(req->http, "q", &q);
    (void)handle_header(req->http, "X-Test", &x);
    buf_addf(&b,
             "{\"method\":\"%s\",\"path\":\"%s\",\"query\":\"%s\",\"q\":\"%s\","
             "\"x\":\"%s\",\"peer\":\"%s\",\"auth\":%u,\"local\":%u,\"id\":\"%s\","
             "\"bytes\":%zu,\"body\":\"",
             req->method.ptr, req->path.ptr, req->query.ptr, q.ptr ? q.ptr : "",
             x.ptr ? x.ptr : "", req->peer.ptr, req->authenticated, req->local,
             req->request_id.ptr, req->body.len);
    buf_add_str(&b, str_n(req->body.ptr, req->body.len < 1000 ? req->body.len : 1000));
    buf_add_c(&b, "\"}");
    answer(req->http, 200, buf_str(&b));
    buf_done(&b);
}

static void on_status(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    struct sy_str q = {0};
    int64_t status = 200;
    if (handle_query(req->http, "status", &q) != SY_OK ||
        str_to_i64(str_n(q.ptr, q.len), 200, 599, &status) != ST_OK) {
        status = 400;
    }
    answer(req->http, (int)status, STR_LIT("{}"));
}

static void on_stream(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    bool ok = handle_begin(req->http, 200, NULL, 0, -1) == SY_OK;
    for (int i = 0; ok && i < 5; i++) {
        ok = handle_write(req->http, (struct sy_str){"line\n", 5}) == SY_OK;
    }
    handle_end(req->http);
}

/* Writes until it is cut off. */
static void on_flood(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    static char block[16384];
    memset(block, 'x', sizeof block);
    bool ok = handle_begin(req->http, 200, NULL, 0, -1) == SY_OK;
    int n = 0;
    while (ok && n++ < 100000) {
        ok = handle_write(req->http, (struct sy_str){block, sizeof block}) == SY_OK;
    }
    handle_end(req->http);
}

static void on_big(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    struct buf b;
    buf_init(&b, 8U << 20);
    char *room = buf_room(&b, 4U << 20);
    if (room) {
        memset(room, 'y', 4U << 20);
        b.len = 4U << 20;
    }
    answer(req->http, 200, buf_str(&b));
    buf_done(&b);
}

static void on_hold(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    pthread_mutex_lock(&site.lock);
    bool kept = site.nheld < 64;
    if (kept) {
        site.held[site.nheld++] = req->http;
    }
    pthread_mutex_unlock(&site.lock);
    if (!kept) {
        handle_end(req->http);
    }
}

static void on_hold_gone(void *ctx, struct sy_http *http)
{
    (void)ctx;
    bool mine = false;
    pthread_mutex_lock(&site.lock);
    for (size_t i = 0; i < site.nheld; i++) {
        if (site.held[i] == http) {
            site.held[i] = site.held[--site.nheld];
            mine = true;
            break;
        }
    }
    site.gone++;
    pthread_mutex_unlock(&site.lock);
    if (mine) {
        if (handle_begin(http, 200, NULL, 0, -1) != SY_E_CANCELLED) {
            fputs("begin after gone was not refused\n", stderr);
        }
        handle_end(http);
    }
}

static void on_release(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    char text[64];
    struct sy_http *held[64];
    pthread_mutex_lock(&site.lock);
    size_t n = site.nheld;
    unsigned gone = site.gone;
    memcpy(held, site.held, sizeof held);
    site.nheld = 0;
    pthread_mutex_unlock(&site.lock);
    for (size_t i = 0; i < n; i++) {
        answer(held[i], 200, STR_LIT("{\"held\":true}"));
    }
    int len = snprintf(text, sizeof text, "{\"held\":%zu,\"gone\":%u}", n, gone);
    answer(req->http, 200, str_n(text, (size_t)len));
}

static void on_count(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    char text[64];
    pthread_mutex_lock(&site.lock);
    int len =
        snprintf(text, sizeof text, "{\"held\":%zu,\"gone\":%u}", site.nheld, site.gone);
    pthread_mutex_unlock(&site.lock);
    answer(req->http, 200, str_n(text, (size_t)len));
}

/* Every misuse must be refused, and the client still gets one answer. */
static void on_misuse(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    struct sy_http *h = req->http;
    const struct sy_pair split = {{"X-A", 3}, {"a\r\nB: c", 7}};
    const struct sy_pair framing = {{"Content-Length", 14}, {"1", 1}};
    const struct sy_pair name = {{"X A", 3}, {"a", 1}};
    int wrong = 0;
    wrong += handle_write(h, (struct sy_str){"x", 1}) != SY_E_INVALID;
    wrong += handle_begin(h, 99, NULL, 0, -1) != SY_E_INVALID;
    wrong += handle_begin(h, 101, NULL, 0, -1) != SY_E_INVALID;
    wrong += handle_begin(h, 200, &split, 1, -1) != SY_E_INVALID;
    wrong += handle_begin(h, 200, &framing, 1, -1) != SY_E_INVALID;
    wrong += handle_begin(h, 200, &name, 1, -1) != SY_E_INVALID;
    wrong += handle_begin(h, 200, NULL, 0, -2) != SY_E_INVALID;
    wrong += handle_begin(h, 200, NULL, 0, 1) != SY_OK;
    wrong += handle_begin(h, 200, NULL, 0, 1) != SY_E_INVALID;
    wrong += handle_write(h, (struct sy_str){"12", 2}) != SY_E_INVALID;
    wrong += handle_write(h, (struct sy_str){wrong ? "1" : "0", 1}) != SY_OK;
    handle_end(h);
}

static void on_none(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    handle_end(req->http);
}

static void on_short(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    (void)handle_begin(req->http, 200, NULL, 0, 10);
    (void)handle_write(req->http, (struct sy_str){"12345", 5});
    handle_end(req->http);
}

static void on_ws(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    (void)handle_begin(req->http, 101, NULL, 0, -1);
}

static void on_ws_text(void *ctx, struct sy_http *http, struct sy_str text)
{
    (void)ctx;
    if (text.len == 3 && memcmp(text.ptr, "bye", 3) == 0) {
        on_hold_gone(NULL, http);
        handle_end(http);
    } else {
        (void)handle_write(http, text);
    }
}

static void on_ws_gone(void *ctx, struct sy_http *http)
{
    (void)ctx;
    pthread_mutex_lock(&site.lock);
    site.gone++;
    pthread_mutex_unlock(&site.lock);
    handle_end(http);
}

static bool add(const char *owner, struct sy_route r)
{
    struct error err = {0};
    r.size = sizeof r;
    if (server_add_route(site.s, owner, &r, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return false;
    }
    return true;
}

#define ROUTE(a, m, p, f) \
    (struct sy_route) \
    { \
        .auth = (a), .method = (m), .path = (p), .handle = (f) \
    }

static bool add_routes(void)
{
    struct sy_route hold = ROUTE(SY_AUTH_KEY, "GET", "/api/v1/hold", on_hold);
    struct sy_route ws = ROUTE(SY_AUTH_KEY, "GET", "/ws/echo", on_ws);
    struct sy_route small = ROUTE(SY_AUTH_KEY, "POST", "/api/v1/small", on_echo);
    struct sy_route tree = ROUTE(SY_AUTH_KEY, "GET", "/api/v1/tree/", on_echo);
    hold.gone = on_hold_gone;
    hold.max_parallel = 4;
    ws.flags = SY_ROUTE_WEBSOCKET;
    ws.message = on_ws_text;
    ws.gone = on_ws_gone;
    ws.max_body = 1000;
    small.max_body = 100;
    tree.flags = SY_ROUTE_PREFIX;
    return add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/echo", on_echo)) &&
           add("http", ROUTE(SY_AUTH_KEY, "POST", "/api/v1/echo", on_echo)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/answer", on_status)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/stream", on_stream)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/flood", on_flood)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/big", on_big)) &&
           add("http", ROUTE(SY_AUTH_KEY, "POST", "/api/v1/release", on_release)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/count", on_count)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/misuse", on_misuse)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/none", on_none)) &&
           add("http", ROUTE(SY_AUTH_KEY, "GET", "/api/v1/short", on_short)) &&
           add("http", ROUTE(SY_AUTH_NONE, "GET", "/static", on_echo)) &&
           add("whatsapp",
               ROUTE(SY_AUTH_PLUGIN, "GET", "/channels/whatsapp/webhook", on_status)) &&
           add("http", hold) && add("http", ws) && add("http", small) &&
           add("http", tree);
}

/* ---- run ---- */

static bool ready(void *ctx, bool detail, struct buf *out)
{
    const struct settings *o = ctx;
    buf_addf(out, "{\"ready\":%s%s}", o->ready ? "true" : "false",
             detail ? ",\"parts\":[]" : "");
    return o->ready;
}

static void shorten(const struct settings *o)
{
    site.s->tick_ms = o->tick_ms;
    site.s->head_ms = o->head_ms;
    site.s->body_ms = o->body_ms;
    site.s->idle_ms = o->idle_ms;
    site.s->stall_ms = o->stall_ms;
    site.s->linger_ms = o->linger_ms;
    site.s->ping_ms = o->ping_ms;
    site.s->max_conns = (size_t)o->max_conns;
}

static void wait_for_stdin(void)
{
    char byte;
    while (io_read(0, &byte, 1) > 0) {
    }
}

static int run(struct settings *o)
{
    struct error err = {0};
    struct log *log = NULL;
    struct metrics *metrics = metrics_new();
    struct pool_config pc = {.name = "http",
                             .max_threads = (size_t)o->threads,
                             .max_queued = (size_t)o->queued};
    struct server_status status = {.ctx = o, .ready = ready};
    if (!metrics || log_open(LOG_WARN, LOG_CONSOLE, NULL, &log, &err) != ST_OK ||
        pool_new(&pc, &site.pool, &err) != ST_OK ||
        server_new(&o->cfg, site.pool, metrics, log, &status, &site.s, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    shorten(o);
    if (!add_routes() || (o->api && !api_start(site.s)) ||
        server_start(site.s, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        server_free(site.s);
        return 1;
    }
    printf("PORT %d\n", server_port(site.s));
    fflush(stdout);
    wait_for_stdin();
    server_drain(site.s, clock_mono_ms() + o->drain_ms);
    pthread_mutex_lock(&site.lock);
    size_t left = site.nheld;
    pthread_mutex_unlock(&site.lock);
    if (o->api) {
        left += api_stop();
    }
    printf("LEFT %zu\n", left);
    fflush(stdout);
    server_free(site.s);
    pool_free(site.pool);
    metrics_free(metrics);
    log_close(log);
    secret_done(&o->cfg.server.api_key);
    return 0;
}

int main(int argc, char **argv)
{
    static char host[] = "127.0.0.1";
    static struct settings o;
    o.cfg.server.host = host;
    o.cfg.server.max_body_mb = 1;
    o.cfg.server.rate_limit_per_minute = 100000;
    o.tick_ms = SERVER_TICK_MS;
    o.head_ms = SERVER_HEAD_MS;
    o.body_ms = SERVER_BODY_MS;
    o.idle_ms = SERVER_IDLE_MS;
    o.stall_ms = SERVER_STALL_MS;
    o.linger_ms = SERVER_LINGER_MS;
    o.ping_ms = SERVER_PING_MS;
    o.drain_ms = 1000;
    o.max_conns = SERVER_CONNECTIONS_MAX;
    o.threads = 4;
    o.queued = 256;
    o.ready = true;
    (void)signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&site.lock, NULL);
    for (int i = 1; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (!eq) {
            return 2;
        }
        *eq = 0;
        if (!set(&o, argv[i], eq + 1)) {
            fprintf(stderr, "bad setting %s\n", argv[i]);
            return 2;
        }
    }
    if (o.nofile > 0) {
        struct rlimit rl = {(rlim_t)o.nofile, (rlim_t)o.nofile};
        (void)setrlimit(RLIMIT_NOFILE, &rl);
    }
    return run(&o);
}
