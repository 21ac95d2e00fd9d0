/* In: a plan and a sink of the core. Out: the run of an executor plugin, with the sink
 * behind checks. It never passes on a must bit that the executor does not enforce, nor
 * more runs at once than it allows. */
#include "plugin/internal.h"

#include "base/utf8.h"

#include <string.h>

static const struct {
    uint64_t bit;
    const char *name;
} musts[] = {
    {SY_MUST_FS_ROOT, "file system root"},   {SY_MUST_NO_NET, "no network"},
    {SY_MUST_MEM, "memory limit"},           {SY_MUST_PIDS, "process limit"},
    {SY_MUST_CPU_TIME, "CPU limit"},         {SY_MUST_NO_NEW_PRIV, "no new privileges"},
    {SY_MUST_KILL_TREE, "kill of the tree"}, {SY_MUST_FILES, "open files limit"},
    {SY_MUST_FILE_SIZE, "file size limit"},  {SY_MUST_NAMESPACES, "namespaces"},
};

uint64_t plugin_executor_enforces(const struct plugin_instance *p)
{
    return p->executor.enforces;
}

uint32_t plugin_executor_max_parallel(const struct plugin_instance *p)
{
    return p->executor.max_parallel;
}

void plugin_must_names(uint64_t bits, struct buf *out)
{
    const char *sep = "";
    for (size_t i = 0; i < sizeof musts / sizeof musts[0]; i++) {
        if ((bits & musts[i].bit) != 0) {
            buf_addf(out, "%s%s", sep, musts[i].name);
            bits &= ~musts[i].bit;
            sep = ", ";
        }
    }
    if (bits != 0) {
        buf_addf(out, "%sbits %#llx", sep, (unsigned long long)bits);
    }
}

/* The plugin's view of the core's sink. */
struct guarded_sink {
    struct plugin_instance *p;
    const struct sy_sink *sink;
    pthread_mutex_t lock; /* guards the rest; one output() at a time is the rule */
    bool in_call, over, enough, started;
};

/* False when the call breaks a rule of the sink; then nothing is passed on. */
static bool sink_enter(struct guarded_sink *g, const char *what)
{
    (void)pthread_mutex_lock(&g->lock);
    bool busy = g->in_call;
    if (!busy) {
        g->in_call = true;
    }
    (void)pthread_mutex_unlock(&g->lock);
    if (busy) {
        plugin_misbehaved(g->p, "%s: two calls at once for one run", what);
    }
    return !busy;
}

static void sink_leave(struct guarded_sink *g)
{
    (void)pthread_mutex_lock(&g->lock);
    g->in_call = false;
    (void)pthread_mutex_unlock(&g->lock);
}

static int32_t guarded_output(void *ctx, uint32_t stream, const void *data, size_t len)
{
    struct guarded_sink *g = ctx;
    int32_t res = 1;
    if (!sink_enter(g, "output")) {
        return 1;
    }
    if (stream != SY_STREAM_ANSWER && stream != SY_STREAM_LOG) {
        plugin_misbehaved(g->p, "output: stream %u is unknown", stream);
    } else if (data == NULL && len > 0) {
        plugin_misbehaved(g->p, "output: a length but no bytes");
    } else if (stream == SY_STREAM_ANSWER && g->enough) {
        plugin_misbehaved(g->p, "output: more of the answer after the core said enough");
    } else {
        res = g->sink->output(g->sink->ctx, stream, data, len);
        g->enough = g->enough || res != 0;
    }
    sink_leave(g);
    return res;
}

static void guarded_started(void *ctx, struct sy_str layers)
{
    struct guarded_sink *g = ctx;
    if (!sink_enter(g, "started")) {
        return;
    }
    if (g->started) {
        plugin_misbehaved(g->p, "started: called twice for one run");
    } else if (plugin_check_text(g->p, "started: layers", layers, 4096)) {
        g->started = true;
        if (g->sink->started != NULL) {
            g->sink->started(g->sink->ctx, layers);
        }
    }
    sink_leave(g);
}

static struct sy_result empty_result(void)
{
    struct sy_result r;
    memset(&r, 0, sizeof r);
    r.size = sizeof r;
    r.exit_code = -1;
    r.cpu_ms = -1;
    r.max_rss_bytes = -1;
    r.start_ms = -1;
    return r;
}

static enum status refuse_bits(const struct plugin_instance *p, uint64_t missing,
                               struct error *err)
{
    struct buf b;
    buf_init(&b, 400);
    plugin_must_names(missing, &b);
    enum status st = error_set(err, ST_REFUSED, "executor %s cannot enforce: %.*s",
                               p->name, STR_ARG(buf_str(&b)));
    buf_done(&b);
    return st;
}

enum status plugin_executor_run(struct plugin_instance *p, const struct sy_plan *plan,
                                const struct sy_sink *sink, struct sy_result *result,
                                struct error *err)
{
    struct sy_error e = plugin_error_slot();
    struct sy_result res = empty_result();
    struct guarded_sink g = {.p = p, .sink = sink};
    uint64_t missing = plan->launch->must & ~p->executor.enforces;
    *result = res;
    if (missing != 0) {
        return refuse_bits(p, missing, err);
    }
    if (pthread_mutex_init(&g.lock, NULL) != 0) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    enum status st = plugin_downcall_begin(p, true, err);
    if (st == ST_OK) {
        const struct sy_sink guarded = {.size = sizeof guarded,
                                        .ctx = &g,
                                        .output = guarded_output,
                                        .started = guarded_started};
        sy_status got = p->executor.run(p->self, plan, &guarded, &res, &e);
        plugin_check_deadline(p, "run()", plan->deadline_ms);
        plugin_downcall_end(p, true);
        if (got != SY_OK) {
            st = plugin_take_error(p, "run()", got, &e, err);
        }
        res.size = sizeof res;
        *result = res;
    }
    (void)pthread_mutex_destroy(&g.lock);
    return st;
}

void plugin_executor_prepare(struct plugin_instance *p, const struct sy_launch *launch)
{
    struct error ignored;
    if ((launch->must & ~p->executor.enforces) == 0 &&
        plugin_downcall_begin(p, false, &ignored) == ST_OK) {
        p->executor.prepare(p->self, launch);
        plugin_downcall_end(p, false);
    }
}

void plugin_executor_retire(struct plugin_instance *p, uint64_t launch_id)
{
    struct error ignored;
    if (plugin_downcall_begin(p, false, &ignored) == ST_OK) {
        p->executor.retire(p->self, launch_id);
        plugin_downcall_end(p, false);
    }
}

static void check_out(void *ctx, struct sy_str json)
{
    struct buf *b = ctx;
    if (json.ptr != NULL &&
        utf8_valid(str_n(json.ptr, json.len < b->max ? json.len : b->max))) {
        buf_add(b, json.ptr, json.len);
    }
}

enum status plugin_executor_check(struct plugin_instance *p, int64_t deadline_ms,
                                  struct buf *out, struct error *err)
{
    struct sy_error e = plugin_error_slot();
    enum status st = plugin_downcall_begin(p, false, err);
    if (st != ST_OK) {
        return st;
    }
    sy_status got = p->executor.check(p->self, deadline_ms, out, check_out, &e);
    plugin_check_deadline(p, "check()", deadline_ms);
    plugin_downcall_end(p, false);
    if (got != SY_OK) {
        return plugin_take_error(p, "check()", got, &e, err);
    }
    return buf_status(out);
}
