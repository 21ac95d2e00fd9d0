/*
 * Comes in: configurations and routes. Goes out: whether server_new, server_add_route and
 * server_start take what they should, say what is wrong with the rest, and leave nothing
 * behind whenever memory runs out.
 */
#include "base/clock.h"
#include "server/internal.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct fixture {
    struct config cfg;
    struct pool *pool;
    struct metrics *metrics;
    struct server *s;
    struct error err;
};

static char loopback[] = "127.0.0.1";

static void on_request(void *ctx, const struct sy_request *req)
{
    struct fixture *f = ctx;
    (void)f;
    (void)handle_begin(req->http, 200, NULL, 0, 0);
    handle_end(req->http);
}

static void on_text(void *ctx, struct sy_http *http, struct sy_str text)
{
    (void)ctx;
    (void)http;
    (void)text;
}

static int set_up(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    f.cfg.server.host = loopback;
    f.cfg.server.max_body_mb = 1;
    f.cfg.server.rate_limit_per_minute = 600;
    struct pool_config pc = {.name = "http", .max_threads = 2, .max_queued = 16};
    f.metrics = metrics_new();
    assert_non_null(f.metrics);
    assert_int_equal(pool_new(&pc, &f.pool, &f.err), ST_OK);
    assert_int_equal(server_new(&f.cfg, f.pool, f.metrics, NULL, NULL, &f.s, &f.err),
                     ST_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    server_free(f->s);
    pool_free(f->pool);
    metrics_free(f->metrics);
    return 0;
}

static struct sy_route route(const char *method, const char *path)
{
    return (struct sy_route){.size = sizeof(struct sy_route),
                             .auth = SY_AUTH_KEY,
                             .method = method,
                             .path = path,
                             .handle = on_request};
}

static enum status add(struct fixture *f, const char *owner, struct sy_route r)
{
    return server_add_route(f->s, owner, &r, &f->err);
}

static void test_routes(void **state)
{
    struct fixture *f = *state;
    static const char *const bad_paths[] = {
        "",        "x",        "/a/../b",          "//",   "/%41", "/a?b", "/healthz",
        "/readyz", "/metrics", "/channels/http/x", "/\xff"};
    for (size_t i = 0; i < sizeof bad_paths / sizeof bad_paths[0]; i++) {
        assert_int_equal(add(f, "http", route("GET", bad_paths[i])), ST_INVALID);
    }
    assert_int_equal(add(f, "http", route("GET", NULL)), ST_INVALID);
    static const char *const bad_methods[] = {"get", "HEAD", "PATCH", "", NULL};
    for (size_t i = 0; i < sizeof bad_methods / sizeof bad_methods[0]; i++) {
        assert_int_equal(add(f, "http", route(bad_methods[i], "/a")), ST_INVALID);
    }
    assert_int_equal(add(f, "http", route("GET", "/a")), ST_OK);
    assert_int_equal(add(f, "http", route("GET", "/a")), ST_CONFLICT);
    assert_int_equal(add(f, "http", route("PUT", "/a")), ST_OK);
    struct sy_route r = route("GET", "/b");
    r.flags = SY_ROUTE_PREFIX;
    assert_int_equal(add(f, "http", r), ST_INVALID);
    r.path = "/b/";
    assert_int_equal(add(f, "http", r), ST_OK);
    r.flags = SY_ROUTE_WEBSOCKET;
    assert_int_equal(add(f, "http", r), ST_INVALID); /* no message function */
    r.message = on_text;
    assert_int_equal(add(f, "http", r), ST_OK);
    r.method = "POST";
    assert_int_equal(add(f, "http", r), ST_INVALID);
    r = route("GET", "/c");
    r.flags = 8;
    assert_int_equal(add(f, "http", r), ST_INVALID);
    r = route("GET", "/c");
    r.auth = 0;
    assert_int_equal(add(f, "http", r), ST_INVALID);
    r = route("GET", "/c");
    r.handle = NULL;
    assert_int_equal(add(f, "http", r), ST_INVALID);
    r = route("GET", "/c");
    r.size = 8;
    assert_int_equal(add(f, "http", r), ST_INVALID);
    assert_int_equal(server_add_route(f->s, "http", NULL, &f->err), ST_INVALID);
}

static void test_owners(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(add(f, "sms", route("GET", "/api/v1/x")), ST_INVALID);
    assert_non_null(strstr(f->err.text, "/channels/NAME/"));
    assert_int_equal(add(f, "sms", route("GET", "/channels/sms")), ST_INVALID);
    assert_int_equal(add(f, "sms", route("GET", "/channels/sms/")), ST_INVALID);
    assert_int_equal(add(f, "sms", route("GET", "/channels/smsx/in")), ST_INVALID);
    assert_int_equal(add(f, "sms", route("GET", "/channels/whatsapp/in")), ST_INVALID);
    assert_int_equal(add(f, "sms", route("GET", "/channels/sms/in")), ST_OK);
    assert_int_equal(add(f, "whatsapp", route("GET", "/api/v1/x")), ST_INVALID);
    assert_int_equal(add(f, "", route("GET", "/channels//in")), ST_INVALID);
    assert_int_equal(add(f, NULL, route("GET", "/x")), ST_INVALID);
    struct sy_route r = route("GET", "/channels/sms/pub");
    r.auth = SY_AUTH_NONE;
    assert_int_equal(add(f, "sms", r), ST_INVALID);
    r.path = "/index.html";
    assert_int_equal(add(f, "http", r), ST_OK);
    r.method = "POST";
    assert_int_equal(add(f, "http", r), ST_INVALID);
}

static enum route_found find(struct fixture *f, const char *method, const char *path,
                             const char *want)
{
    struct route *r = NULL;
    struct buf allow;
    buf_init(&allow, 256);
    enum route_found found = routes_find(f->s, str_c(method), str_c(path), &r, &allow);
    if (found == ROUTE_FOUND) {
        assert_string_equal(r->path, want);
    } else if (found == ROUTE_OTHER_METHOD) {
        assert_str_is(buf_str(&allow), want);
    }
    buf_done(&allow);
    return found;
}

static void test_find(void **state)
{
    struct fixture *f = *state;
    struct sy_route tree = route("GET", "/t/");
    tree.flags = SY_ROUTE_PREFIX;
    assert_int_equal(add(f, "http", tree), ST_OK);
    tree.path = "/t/deep/";
    assert_int_equal(add(f, "http", tree), ST_OK);
    assert_int_equal(add(f, "http", route("GET", "/t/deep/exact")), ST_OK);
    assert_int_equal(add(f, "http", route("POST", "/t/deep/exact")), ST_OK);
    assert_int_equal(find(f, "GET", "/t/x", "/t/"), ROUTE_FOUND);
    assert_int_equal(find(f, "HEAD", "/t/", "/t/"), ROUTE_FOUND);
    assert_int_equal(find(f, "GET", "/t/deep/x", "/t/deep/"), ROUTE_FOUND);
    assert_int_equal(find(f, "GET", "/t/deep/exact", "/t/deep/exact"), ROUTE_FOUND);
    assert_int_equal(find(f, "GET", "/t", ""), ROUTE_NONE);
    assert_int_equal(find(f, "PUT", "/t/x", "GET, HEAD"), ROUTE_OTHER_METHOD);
}

static void test_config(void **state)
{
    struct fixture *f = *state;
    char *items[] = {loopback};
    struct server *s = NULL;
    f->cfg.server.tls_cert = loopback;
    assert_int_equal(server_new(&f->cfg, f->pool, f->metrics, NULL, NULL, &s, &f->err),
                     ST_INVALID);
    assert_non_null(strstr(f->err.text, "tls_key"));
    f->cfg.server.tls_cert = NULL;
    char junk[] = "junk";
    char *bad[] = {junk};
    f->cfg.server.trusted_proxies = (struct str_list){bad, 1};
    assert_int_equal(server_new(&f->cfg, f->pool, f->metrics, NULL, NULL, &s, &f->err),
                     ST_INVALID);
    assert_non_null(strstr(f->err.text, "trusted_proxies"));
    f->cfg.server.trusted_proxies = (struct str_list){items, 1};
    TEST_SWEEP(server_new(&f->cfg, f->pool, f->metrics, NULL, NULL, &s, &f->err) ==
               ST_OK);
    server_free(s);
}

static void test_open_to_network(void **state)
{
    struct fixture *f = *state;
    char *items[] = {loopback};
    assert_int_equal(server_start(f->s, &f->err), ST_OK);
    assert_true(server_loopback_only(f->s));
    assert_string_equal(server_address(f->s), "127.0.0.1");
    assert_true(server_port(f->s) > 0);
    assert_false(server_open_to_network(f->s));
    f->cfg.server.allowed_hosts = (struct str_list){items, 1};
    assert_true(server_open_to_network(f->s));
    f->cfg.server.allowed_hosts.n = 0;
    f->cfg.server.trusted_proxies = (struct str_list){items, 1};
    assert_true(server_open_to_network(f->s));
}

/* Judged by the socket, not by the text. */
static void test_empty_host_is_every_interface(void **state)
{
    struct fixture *f = *state;
    static char empty[] = "";
    f->cfg.server.host = empty;
    assert_int_equal(server_start(f->s, &f->err), ST_OK);
    assert_false(server_loopback_only(f->s));
    assert_true(server_open_to_network(f->s));
    f->cfg.server.host = loopback;
}

static void test_localhost_is_loopback(void **state)
{
    struct fixture *f = *state;
    static char name[] = "localhost";
    f->cfg.server.host = name;
    assert_int_equal(server_start(f->s, &f->err), ST_OK);
    assert_true(server_loopback_only(f->s));
    f->cfg.server.host = loopback;
}

/* One request on a connection of its own: the status, or 0 when it was closed. */
static int ask(struct fixture *f, const char *path)
{
    char text[512];
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server_port(f->s)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    int n = snprintf(text, sizeof text,
                     "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n",
                     path, server_port(f->s));
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    int status = 0;
    ssize_t got = recv(fd, text, sizeof text, 0);
    if (got >= 12) {
        status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
    }
    close(fd);
    return status;
}

/* Whatever allocation fails, the request gets an error or a close, and the next is fine. */
static void test_requests_without_memory(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(add(f, "http", route("GET", "/a")), ST_OK);
    assert_int_equal(server_start(f->s, &f->err), ST_OK);
    assert_int_equal(ask(f, "/a"), 200);
    int failed = 0;
    for (uint64_t n = 1; n < 40; n++) {
        mem_fail_after(n);
        int status = ask(f, "/a");
        mem_fail_after(0);
        failed += status != 200;
        assert_true(status == 0 || status == 200 || status == 500 || status == 503);
        assert_int_equal(ask(f, "/a"), 200);
    }
    assert_true(failed > 0);
}

static void test_reload_changes_the_key_at_once(void **state)
{
    struct fixture *f = *state;
    struct config next = f->cfg;
    assert_int_equal(add(f, "http", route("GET", "/a")), ST_OK);
    assert_int_equal(server_start(f->s, &f->err), ST_OK);
    assert_int_equal(ask(f, "/a"), 200);
    assert_int_equal(secret_set(&next.server.api_key, STR_LIT("sy_new_key")), ST_OK);
    server_reload(f->s, &next);
    assert_int_equal(ask(f, "/a"), 401);
    server_reload(f->s, &f->cfg);
    assert_int_equal(ask(f, "/a"), 200);
    secret_done(&next.server.api_key);
}

static void test_drain_closes_the_listener(void **state)
{
    struct fixture *f = *state;
    size_t before = test_open_fds();
    assert_int_equal(server_start(f->s, &f->err), ST_OK);
    assert_int_equal(ask(f, "/healthz"), 200);
    server_drain(f->s, clock_mono_ms() + 2000);
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server_port(f->s)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server_free(f->s);
    f->s = NULL;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_not_equal(connect(fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    close(fd);
    assert_int_equal(test_open_fds(), before);
}

static void test_start_twice_on_one_port(void **state)
{
    struct fixture *f = *state;
    struct server *other = NULL;
    assert_int_equal(server_start(f->s, &f->err), ST_OK);
    f->cfg.server.port = server_port(f->s);
    assert_int_equal(
        server_new(&f->cfg, f->pool, f->metrics, NULL, NULL, &other, &f->err), ST_OK);
    assert_int_equal(server_start(other, &f->err), ST_IO);
    assert_non_null(strstr(f->err.text, "127.0.0.1"));
    server_free(other);
    server_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_routes),
        TEST(test_owners),
        TEST(test_find),
        TEST(test_config),
        TEST(test_open_to_network),
        TEST(test_empty_host_is_every_interface),
        TEST(test_localhost_is_loopback),
        TEST(test_requests_without_memory),
        TEST(test_reload_changes_the_key_at_once),
        TEST(test_drain_closes_the_listener),
        TEST(test_start_twice_on_one_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
