/* The parts' states in; /readyz and `status` out. Reports what was measured (probe, last
 * write, the plugin's own word), never what is configured, and never waits. */
#include "base/clock.h"
#include "base/json.h"
#include "runtime/internal.h"

#include <string.h>
#include <unistd.h>

static void part(struct buf *out, const char *name, bool ok, const char *text)
{
    json_add_key(out, name);
    buf_add_char(out, '{');
    json_add_key_bool(out, "ok", ok);
    if (text != NULL && text[0] != '\0') {
        json_add_key_string(out, "detail", str_c(text));
    }
    buf_add_char(out, '}');
}

static bool store_part(struct runtime *r, struct buf *out)
{
    struct error err = {0};
    bool ok = store_health(r->store, &err) == ST_OK;

    part(out, "store", ok, err.text);
    return ok;
}

static bool python_part(struct runtime *r, struct buf *out)
{
    char text[512];
    enum readiness_state state = readiness_python_state(r->readiness, text);

    part(out, "python", state != READINESS_FAILED,
         state == READINESS_PENDING ? "being looked for" : text);
    return state != READINESS_FAILED;
}

static bool sandbox_part(struct runtime *r, struct buf *out)
{
    struct probe_report report;
    enum readiness_state state = readiness_probe_state(r->readiness, &report);
    bool ok = state != READINESS_FAILED;

    json_add_key(out, "sandbox");
    buf_add_char(out, '{');
    json_add_key_bool(out, "ok", ok);
    if (state == READINESS_PENDING) {
        json_add_key_string(out, "detail", STR_LIT("the probe is running"));
    } else {
        json_add_key(out, "probe");
        probe_report_json(&report, out);
    }
    buf_add_char(out, '}');
    return ok;
}

static bool plugins_part(struct runtime *r, struct buf *out)
{
    bool all = true;

    json_add_key(out, "plugins");
    buf_add_char(out, '[');
    for (size_t i = 0; i < plugin_count(r->plugins); i++) {
        struct plugin_instance *p = plugin_at(r->plugins, i);
        char text[256];
        int32_t health = plugin_health(p, text);
        bool backend =
            plugin_kind(p) == SY_KIND_EXECUTOR &&
            strcmp(plugin_name(p), core_config(&r->core)->executor.backend) == 0;

        all = all && !(backend && health == SY_HEALTH_DOWN);
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "name", str_c(plugin_name(p)));
        json_add_key_string(out, "kind",
                            plugin_kind(p) == SY_KIND_EXECUTOR ? STR_LIT("executor")
                                                               : STR_LIT("channel"));
        json_add_key_string(out, "version", str_c(plugin_version(p)));
        json_add_key_string(out, "state", str_c(plugin_state_name(plugin_state(p))));
        json_add_key_string(out, "health",
                            health == SY_HEALTH_OK         ? STR_LIT("ok")
                            : health == SY_HEALTH_DEGRADED ? STR_LIT("degraded")
                                                           : STR_LIT("down"));
        json_add_key_string(out, "detail", str_c(text));
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
    return all;
}

static bool parts(struct runtime *r, struct buf *out)
{
    bool spawn = spawn_alive(r->spawn);
    bool ok = store_part(r, out);

    part(out, "spawn", spawn, spawn ? NULL : "soulacy-spawn is gone");
    ok = python_part(r, out) && ok;
    ok = sandbox_part(r, out) && ok;
    ok = plugins_part(r, out) && ok;
    return ok && spawn;
}

bool runtime_ready(void *ctx, bool detail, struct buf *out)
{
    struct runtime *r = ctx;
    struct buf all;
    bool ok;

    buf_init(&all, (size_t)256 * 1024);
    buf_add_char(&all, '{');
    ok = parts(r, &all);
    buf_add_char(out, '{');
    json_add_key_bool(out, "ready", ok);
    if (detail) {
        json_add_key(out, "parts");
        buf_add_str(out, buf_str(&all));
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
    buf_done(&all);
    return ok;
}

void runtime_status(void *ctx, struct buf *out)
{
    struct runtime *r = ctx;
    char url[128];

    json_add_key_string(out, "url", str_c(runtime_url(r, url)));
    json_add_key_i64(out, "pid", getpid());
    json_add_key_i64(out, "uptime_ms", clock_mono_ms() - r->started_ms);
    json_add_key_string(out, "backend", str_c(core_config(&r->core)->executor.backend));
    json_add_key_bool(out, "api_key",
                      secret_is_set(&core_config(&r->core)->server.api_key));
    json_add_key_bool(out, "open_to_network",
                      r->server != NULL && server_open_to_network(r->server));
    json_add_key_i64(out, "runs_active", metric_get(r->metrics, METRIC_RUNS_ACTIVE));
    json_add_key(out, "parts");
    buf_add_char(out, '{');
    (void)parts(r, out);
    buf_add_char(out, '}');
}
