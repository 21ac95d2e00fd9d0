/* Which isolation works here: found by running the starter's tool under each level in a
 * runtime of its own, as `tool run` would. Writes no configuration. */
#include "base/clock.h"
#include "base/mem.h"
#include "cli/init.h"
#include "cli/local.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_MAX ((size_t)64 * 1024)
#define REPORT_MAX ((size_t)1024 * 1024)
#define WAIT_MS 20000

static enum status parse(struct init *in, struct config **out, struct error *err)
{
    struct problems probs;
    struct buf text;
    enum status st;

    buf_init(&text, CONFIG_MAX);
    problems_init(&probs, in->c->arena, "config.yaml");
    st = init_render(in, &text, err);
    if (st == ST_OK) {
        st = config_parse(buf_str(&text), in->dir, in->c->env, &probs, out, err);
        if (st != ST_OK && probs.first != NULL) {
            st = error_set(err, st, "the new config.yaml: %s", probs.first->text);
        }
    }
    buf_wipe(&text);
    return st;
}

/* The line of the operation's error, or of the tool's. */
static enum status judge(const struct buf *report, bool failed, struct error *err)
{
    struct str text = STR_NONE;
    struct error ignored;
    cJSON *doc = NULL;
    bool ok = false;
    enum status st = ST_OK;

    if (json_parse(buf_str(report), &doc, &ignored) != ST_OK) {
        return error_set(err, ST_INTERNAL, "the answer cannot be read");
    }
    (void)json_get_bool(doc, "ok", &ok);
    (void)json_get_str(doc, failed ? "message" : "error", &text);
    if (failed || !ok) {
        st = error_set(err, ST_UNSUPPORTED, "%.*s", STR_ARG(text));
    }
    cJSON_Delete(doc);
    return st;
}

static enum status run_tool(struct runtime *r, struct error *err)
{
    struct local_call call = {.agent = "assistant",
                              .tool = "sales_total",
                              .args = STR_LIT("{\"column\":\"units\"}"),
                              .timeout_ms = WAIT_MS};
    struct probe_report probe;
    struct buf report;
    bool failed = false;
    enum status st;

    buf_init(&report, REPORT_MAX);
    st = local_run(r, &call, &report, &failed, err);
    if (st == ST_OK) {
        st = judge(&report, failed, err);
    }
    buf_done(&report);
    if (st != ST_OK) {
        return st;
    }
    readiness_wait(runtime_readiness(r), clock_mono_ms() + WAIT_MS);
    return readiness_probe_state(runtime_readiness(r), &probe) == READINESS_FAILED
               ? error_set(err, ST_UNSUPPORTED, "the probe: %s", probe.problem)
               : ST_OK;
}

static enum status try_one(struct init *in, struct error *err)
{
    static char nowhere[] = "/dev/null";
    struct config *cfg = NULL;
    struct runtime *r = NULL;
    enum status st = parse(in, &cfg, err);

    if (st != ST_OK) {
        return st;
    }
    cfg->log.file = nowhere; /* what fails here is told by init itself */
    st = runtime_open(RUNTIME_TOOLS, cfg, in->c->env, &r, err);
    if (st != ST_OK) {
        config_free(cfg);
        return st;
    }
    st = run_tool(r, err);
    runtime_close(r);
    return st;
}

enum status init_choose(struct init *in, struct error *err)
{
    /* A python3 of a version manager in somebody's home cannot be read by the user that
     * tools become; the system's own can. */
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    struct error why = {0};

    for (int level = ISOLATION_STRICT; level >= ISOLATION_NONE; level--) {
        for (size_t i = 0; i < sizeof(pythons) / sizeof(pythons[0]); i++) {
            in->level = (enum isolation)level;
            in->python = pythons[i];
            if (try_one(in, &why) == ST_OK) {
                in->probed = true;
                return ST_OK;
            }
            (void)snprintf(in->why[level], sizeof(in->why[level]), "%.390s", why.text);
        }
    }
    in->level = ISOLATION_NONE;
    in->python = pythons[0];
    return error_set(err, ST_UNSUPPORTED,
                     "no tool runs here, not even without isolation: %s",
                     in->why[ISOLATION_NONE]);
}
