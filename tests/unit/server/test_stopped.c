/*
 * Comes in: requests for the routes of channel-http, the real module in the real loader,
 * while it runs and after it was stopped. Goes out: while it runs it answers; afterwards
 * the core does, and nothing of the plugin is called.
 */
#include "base/clock.h"
#include "base/io.h"
#include "plugin/plugin.h"
#include "server/server.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static char loopback[] = "127.0.0.1";
static int calls; /* of the gateway's operations */

static sy_status on_call(void *ctx, const struct sy_gateway_call *call, uint64_t *id,
                         struct sy_error *err)
{
    (void)ctx;
    (void)err;
    calls++;
    *id = 1;
    call->line(call->ctx, SY_LINE_RESULT, (struct sy_str){"{\"agents\":[]}", 13});
    return SY_OK;
}

static void on_cancel(void *ctx, uint64_t id)
{
    (void)ctx;
    (void)id;
}

/* The answer to a GET on a connection of its own. */
static void get(int port, char *out, size_t cap)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[256];
    size_t got = 0;
    ssize_t n = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    int len = snprintf(request, sizeof request,
                       "GET /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                       "Connection: close\r\n\r\n",
                       port);
    assert_int_equal(write(fd, request, (size_t)len), len);
    while (n > 0 && got + 1 < cap) {
        assert_int_equal(io_wait(fd, POLLIN, -1, clock_mono_ms() + 10000), ST_OK);
        n = read(fd, out + got, cap - 1 - got);
        got += n > 0 ? (size_t)n : 0;
    }
    out[got] = '\0';
    io_close(&fd);
}

static void test_nothing_after_stop(void **state)
{
    static const struct sy_host_gateway gateway = {
        .size = sizeof gateway, .call = on_call, .cancel = on_cancel};
    const struct plugin_service services[] = {{SY_HOST_HTTP_ID, server_http_service()},
                                              {SY_HOST_GATEWAY_ID, &gateway}};
    struct config cfg = {0};
    struct pool_config pc = {.name = "http", .max_threads = 2, .max_queued = 16};
    struct metrics *metrics = metrics_new();
    struct pool *pool = NULL;
    struct server *s = NULL;
    struct plugin_registry *plugins = NULL;
    struct plugin_instance *http = NULL;
    struct error err = {0};
    char answer[4096], dir[PATH_MAX];
    (void)state;
    cfg.server.host = loopback;
    cfg.server.max_body_mb = 1;
    cfg.server.rate_limit_per_minute = 600;
    assert_int_equal(pool_new(&pc, &pool, &err), ST_OK);
    assert_int_equal(server_new(&cfg, pool, metrics, NULL, NULL, &s, &err), ST_OK);
    (void)snprintf(dir, sizeof dir, "%s/lib/soulacy", getenv("SOULACY_BUILD_DIR"));
    struct plugin_registry_config rc = {
        .plugin_dir = dir,
        .services = services,
        .nservices = 2,
        .slots = {[PLUGIN_SLOT_HTTP] = s, [PLUGIN_SLOT_GATEWAY] = &calls}};
    assert_int_equal(plugin_registry_new(&rc, &plugins, &err), ST_OK);
    struct plugin_spec spec = {.path = "http", .kind = SY_KIND_CHANNEL, .name = "http"};
    if (plugin_load(plugins, &spec, &http, &err) != ST_OK ||
        plugin_start(http, &err) != ST_OK || server_start(s, &err) != ST_OK) {
        fail_msg("%s", err.text);
    }
    get(server_port(s), answer, sizeof answer);
    assert_non_null(strstr(answer, "HTTP/1.1 200"));
    assert_int_equal(calls, 1);

    plugin_stop(http);
    get(server_port(s), answer, sizeof answer);
    assert_non_null(strstr(answer, "HTTP/1.1 503"));
    assert_non_null(strstr(answer, "this channel is being stopped"));
    assert_int_equal(calls, 1);
    assert_int_equal(plugin_breaches(http), 0); /* it was not even asked */

    server_free(s);
    pool_free(pool);
    plugin_registry_free(plugins);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_after_stop),
    };
    return cmocka_run_group_tests_name("server_stopped", tests, NULL, NULL);
}
