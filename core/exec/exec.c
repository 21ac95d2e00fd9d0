/* Plans in, outcomes out. Comes in: a plan on the caller's thread. Goes out: the answer,
 * as soon as its frame is there, while the executor is still cleaning up on a worker of
 * the jobs pool. It never runs a plan on another backend than its own. */
#include "exec/run.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <poll.h>
#include <string.h>

void exec_outcome_done(struct exec_outcome *o)
{
    if (o != NULL) {
        buf_done(&o->text);
    }
}

/* ---- the engine ---------------------------------------------------------------------- */

static void on_retire(void *arg, uint64_t id)
{
    struct exec *e = arg;
    for (size_t i = 0; i < plugin_count(e->plugins); i++) {
        struct plugin_instance *p = plugin_at(e->plugins, i);
        if (plugin_kind(p) == SY_KIND_EXECUTOR) {
            plugin_executor_retire(p, id);
        }
    }
}

enum status exec_new(struct launches *launches, struct plugin_registry *plugins,
                     struct pool *jobs, struct log *log, struct exec **out,
                     struct error *err)
{
    struct exec *e = mem_zalloc(sizeof *e);
    if (e == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    if (pthread_mutex_init(&e->lock, NULL) != 0) {
        mem_free(e);
        return error_set(err, ST_NOMEM, "out of memory");
    }
    if (cond_init(&e->ended) != ST_OK) {
        (void)pthread_mutex_destroy(&e->lock);
        mem_free(e);
        return error_set(err, ST_NOMEM, "out of memory");
    }
    e->launches = launches;
    e->plugins = plugins;
    e->jobs = jobs;
    e->log = log;
    launches_on_retire(launches, on_retire, e);
    *out = e;
    return ST_OK;
}

void exec_free(struct exec *e)
{
    if (e == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&e->lock);
    while (e->active > 0) {
        bool woken = cond_wait_until(&e->ended, &e->lock, CLOCK_NEVER);
        (void)woken;
    }
    (void)pthread_mutex_unlock(&e->lock);
    launches_on_retire(e->launches, NULL, NULL);
    (void)pthread_cond_destroy(&e->ended);
    (void)pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

size_t exec_active(struct exec *e)
{
    (void)pthread_mutex_lock(&e->lock);
    size_t n = e->active;
    (void)pthread_mutex_unlock(&e->lock);
    return n;
}

uint64_t exec_ends(struct exec *e)
{
    (void)pthread_mutex_lock(&e->lock);
    uint64_t n = e->ends;
    (void)pthread_mutex_unlock(&e->lock);
    return n;
}

void exec_count_end(struct exec *e, bool was_active)
{
    (void)pthread_mutex_lock(&e->lock);
    e->ends++;
    if (was_active) {
        e->active--;
    }
    (void)pthread_cond_broadcast(&e->ended);
    (void)pthread_mutex_unlock(&e->lock);
}

bool exec_wait_end(struct exec *e, uint64_t ends, int64_t deadline_ms)
{
    bool in_time = true;
    (void)pthread_mutex_lock(&e->lock);
    while (in_time && e->ends == ends) {
        in_time = cond_wait_until(&e->ended, &e->lock, deadline_ms);
    }
    (void)pthread_mutex_unlock(&e->lock);
    return in_time;
}

/* ---- the caller -------------------------------------------------------------------- */

/* The backend's plugin, when it is there and enforces what must hold. */
static bool find_plugin(struct exec *e, const struct launch_spec *launch,
                        const struct outcome_limits *l, struct plugin_instance **out,
                        struct exec_outcome *o)
{
    struct plugin_instance *p =
        plugin_find(e->plugins, SY_KIND_EXECUTOR, launch->backend);
    if (p == NULL) {
        outcome_set(EXEC_UNAVAILABLE, l, "no such executor is loaded", o);
        return false;
    }
    uint64_t missing = launch->must & ~plugin_executor_enforces(p);
    if (missing != 0) {
        struct buf why;
        buf_init(&why, 512);
        buf_addf(&why, "executor '%s' cannot enforce: ", launch->backend);
        plugin_must_names(missing, &why);
        outcome_set(EXEC_REFUSED, l, why.ptr, o);
        buf_done(&why);
        return false;
    }
    *out = p;
    return true;
}

/* Wait for the worker's word until answer_by_ms, at most limit_ms, or cancel. */
static enum status wait_for_answer(struct run *r, int cancel_fd, int64_t limit_ms)
{
    for (;;) {
        event_clear(&r->wake);
        (void)pthread_mutex_lock(&r->lock);
        bool done = r->done;
        int64_t by_ms = r->answer_by_ms < limit_ms ? r->answer_by_ms : limit_ms;
        (void)pthread_mutex_unlock(&r->lock);
        if (done) {
            return ST_OK;
        }
        enum status st = io_wait(r->wake.fd, POLLIN, cancel_fd, by_ms);
        if (st != ST_OK) {
            return st;
        }
    }
}

/* Tell the worker and the executor to stop. True when a worker has the run. */
static bool stop_run(struct run *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = true;
    bool taken = r->number > 0;
    (void)pthread_mutex_unlock(&r->lock);
    event_fire(&r->stop);
    exec_count_end(r->e, false); /* it may be waiting for a place */
    return taken;
}

/* Take the outcome, or give up on it; from here on no callback comes. */
static void leave_run(struct run *r, enum status waited, struct exec_outcome *out)
{
    (void)pthread_mutex_lock(&r->lock);
    r->events = NULL;
    while (r->in_callback) {
        bool woken = cond_wait_until(&r->quiet, &r->lock, CLOCK_NEVER);
        (void)woken;
    }
    bool done = r->done;
    if (done) {
        struct exec_outcome empty = *out;
        *out = r->final;
        r->final = empty;
    } else {
        out->attempts = r->number;
        memcpy(out->layers, r->final.layers, sizeof out->layers);
    }
    r->done = true;
    (void)pthread_mutex_unlock(&r->lock);
    if (!done) {
        out->run_ms = clock_mono_ms() - r->queued_ms;
        outcome_set(waited == ST_CANCELLED ? EXEC_CANCELLED : EXEC_TIMEOUT, &r->limits,
                    NULL, out);
    }
}

void exec_run(struct exec *e, const struct plan *plan, const struct event *cancel,
              const struct exec_events *events, struct exec_outcome *out)
{
    struct outcome_limits limits = {.timeout_ms = 0};
    struct plugin_instance *plugin = NULL;
    struct run *r;
    struct error err = {.status = ST_OK};
    outcome_limits_of(plan_launch(plan), plan_call(plan), &limits);
    outcome_init(out, limits.max_output_bytes);
    if (!find_plugin(e, plan_launch(plan), &limits, &plugin, out)) {
        log_line(e->log, LOG_WARN, "exec", "run %s: %s", plan_call(plan)->run_id,
                 out->text.ptr);
        return;
    }
    r = run_new(e, plan, events, &err);
    if (r == NULL) {
        outcome_set(EXEC_UNAVAILABLE, &limits, err.text, out);
        return;
    }
    r->plugin = plugin;
    (void)pthread_mutex_lock(&e->lock);
    e->active++;
    (void)pthread_mutex_unlock(&e->lock);
    enum status st = pool_submit(e->jobs, run_worker, r);
    if (st != ST_OK) {
        outcome_set(EXEC_UNAVAILABLE, &limits, "too many calls are waiting", out);
        run_free(r);
        exec_count_end(e, true);
        return;
    }
    st = wait_for_answer(r, cancel != NULL ? cancel->fd : -1, CLOCK_NEVER);
    if (st != ST_OK && stop_run(r) && st == ST_CANCELLED &&
        wait_for_answer(r, -1, clock_mono_ms() + EXEC_KILL_MS) == ST_OK) {
        st = ST_OK;
    }
    leave_run(r, st, out);
    run_unref(r);
}
