/* The worker's side of a run. Comes in: bytes and ends from an executor. Goes out: one
 * outcome for the caller, log text while it runs. It never makes a second attempt while
 * the first may still be alive, and never calls back after the caller has gone. */
#include "exec/run.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_MAX ((size_t)160 * 1024 * 1024)
/* How long a caller with attempts left waits for an executor that should have stopped. */
#define HUNG_MS 10000

/* ---- outcomes ------------------------------------------------------------------------ */

void outcome_init(struct exec_outcome *o, size_t max_output)
{
    *o = (struct exec_outcome){
        .cause = EXEC_UNAVAILABLE, .cpu_ms = -1, .max_rss_bytes = -1};
    size_t cap =
        max_output > 0 && max_output < EXEC_ANSWER_MAX ? max_output : EXEC_ANSWER_MAX;
    buf_init(&o->text, cap + 4096);
}

/* ---- a run --------------------------------------------------------------------------- */

void run_free(struct run *r)
{
    buf_wipe(&r->request);
    frame_reader_free(r->reader);
    logtext_done(&r->logtext);
    exec_outcome_done(&r->current);
    exec_outcome_done(&r->final);
    event_done(&r->wake);
    event_done(&r->stop);
    if (r->launch != NULL) {
        launch_release(r->e->launches, r->launch);
    }
    (void)pthread_cond_destroy(&r->quiet);
    (void)pthread_mutex_destroy(&r->lock);
    mem_free(r);
}

void run_unref(struct run *r)
{
    (void)pthread_mutex_lock(&r->lock);
    int left = --r->refs;
    (void)pthread_mutex_unlock(&r->lock);
    if (left == 0) {
        run_free(r);
    }
}

/* ---- towards the caller ------------------------------------------------------------ */

/* Hand the current attempt's outcome to the caller; the first one counts. */
static void publish(struct run *r)
{
    r->published = true;
    (void)pthread_mutex_lock(&r->lock);
    if (!r->done) {
        struct exec_outcome empty = r->final;
        r->final = r->current;
        r->current = empty;
        r->done = true;
    }
    (void)pthread_mutex_unlock(&r->lock);
    event_fire(&r->wake);
}

/* The caller's callbacks, or NULL; between enter and leave the caller does not go. */
static const struct exec_events *callback_enter(struct run *r)
{
    (void)pthread_mutex_lock(&r->lock);
    const struct exec_events *ev = r->done ? NULL : r->events;
    r->in_callback = ev != NULL;
    (void)pthread_mutex_unlock(&r->lock);
    return ev;
}

static void callback_leave(struct run *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->in_callback = false;
    (void)pthread_cond_broadcast(&r->quiet);
    (void)pthread_mutex_unlock(&r->lock);
}

static void emit_log(void *ctx, struct str text)
{
    struct run *r = ctx;
    const struct exec_events *ev = callback_enter(r);
    if (ev != NULL) {
        if (ev->log != NULL) {
            ev->log(ev->ctx, text);
        }
        callback_leave(r);
    }
}

/* ---- what the executor calls --------------------------------------------------------- */

static void stamp(struct run *r)
{
    int64_t now = clock_mono_ms();
    struct exec_outcome *o = &r->current;
    o->queue_ms = r->dispatched_ms - r->queued_ms;
    o->start_ms = (r->started_ms > 0 ? r->started_ms : now) - r->dispatched_ms;
    o->run_ms = r->started_ms > 0 ? now - r->started_ms : 0;
}

static void log_failure(const struct run *r, const char *why)
{
    enum exec_cause cause = r->current.cause;
    if (cause == EXEC_REFUSED || cause == EXEC_UNAVAILABLE || cause == EXEC_UNKNOWN ||
        cause == EXEC_BAD_ANSWER) {
        log_line(r->e->log, LOG_WARN, "exec", "run %s of tool %s on %s: %s%s%s",
                 r->run_id, r->tool, r->limits.backend, exec_cause_name(cause),
                 why[0] != '\0' ? ": " : "", why);
    }
}

/* The answer is there, or will never be: what this attempt came to. */
static void conclude(struct run *r, const char *why)
{
    logtext_flush(&r->logtext);
    stamp(r);
    r->answered = true;
    log_failure(r, why);
    if (r->attempts_left == 0 || !outcome_retryable(r->current.cause)) {
        publish(r);
    }
}

static int32_t sink_answer(struct run *r, struct str bytes)
{
    struct frame_answer a;
    struct error err = {.status = ST_OK};
    enum status st = frame_feed(r->reader, bytes, &a, &err);
    if (st == ST_BUSY) {
        return 0;
    }
    if (st == ST_OK) {
        outcome_from_answer(&a, &r->limits, &r->current);
    } else if (st == ST_TOO_LARGE) {
        outcome_set(EXEC_TOO_LARGE, &r->limits, err.text, &r->current);
    } else {
        outcome_set(EXEC_BAD_ANSWER, &r->limits, err.text, &r->current);
    }
    conclude(r, err.text);
    return 1;
}

static int32_t sink_output(void *ctx, uint32_t stream, const void *data, size_t len)
{
    struct run *r = ctx;
    struct str bytes = str_n(data, len);
    if (stream == SY_STREAM_LOG) {
        if (!r->answered) {
            logtext_feed(&r->logtext, bytes);
        }
        return 0;
    }
    return r->answered ? 1 : sink_answer(r, bytes);
}

static void sink_started(void *ctx, struct sy_str layers)
{
    struct run *r = ctx;
    size_t n = layers.len < sizeof r->current.layers ? layers.len : 0;
    r->started_ms = clock_mono_ms();
    memcpy(r->current.layers, n > 0 ? layers.ptr : "", n);
    r->current.layers[n] = '\0';
    (void)pthread_mutex_lock(&r->lock);
    if (!r->done) {
        memcpy(r->final.layers, r->current.layers, sizeof r->final.layers);
    }
    (void)pthread_mutex_unlock(&r->lock);
    const struct exec_events *ev = callback_enter(r);
    if (ev != NULL) {
        if (ev->started != NULL) {
            ev->started(ev->ctx, r->current.layers);
        }
        callback_leave(r);
    }
}

/* ---- the worker ---------------------------------------------------------------------- */

static bool is_stopping(struct run *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool gone = r->stopping;
    (void)pthread_mutex_unlock(&r->lock);
    return gone;
}

static void set_answer_by(struct run *r, int64_t when_ms)
{
    (void)pthread_mutex_lock(&r->lock);
    r->answer_by_ms = when_ms;
    (void)pthread_mutex_unlock(&r->lock);
    event_fire(&r->wake);
}

/* A fresh reader and outcome. */
static enum status begin_attempt(struct run *r, uint32_t number)
{
    frame_reader_free(r->reader);
    r->reader = NULL;
    logtext_done(&r->logtext);
    logtext_init(&r->logtext, emit_log, r);
    exec_outcome_done(&r->current);
    outcome_init(&r->current, r->limits.max_output_bytes);
    r->current.attempts = number;
    r->answered = false;
    r->started_ms = 0;
    r->dispatched_ms = clock_mono_ms();
    (void)pthread_mutex_lock(&r->lock);
    r->number = number;
    (void)pthread_mutex_unlock(&r->lock);
    return frame_reader_new(r->call_id, EXEC_ANSWER_MAX, &r->reader);
}

/* One run() of the executor; waits for a place while it is busy. */
static enum status run_plugin(struct run *r, struct sy_result *result, struct error *err)
{
    const struct sy_sink sink = {
        .size = sizeof sink, .ctx = r, .output = sink_output, .started = sink_started};
    int64_t place_by_ms = r->dispatched_ms + r->limits.timeout_ms;
    for (;;) {
        uint64_t ends = exec_ends(r->e);
        r->dispatched_ms = clock_mono_ms();
        int64_t deadline_ms = r->dispatched_ms + r->limits.timeout_ms;
        const struct sy_plan plan = {
            .size = sizeof plan,
            .cancel_fd = r->stop.fd,
            .launch = r->launch,
            .run_id = {r->run_id, strlen(r->run_id)},
            .request = {r->request.ptr, r->request.len},
            .deadline_ms = deadline_ms,
        };
        set_answer_by(r, deadline_ms + (r->attempts_left > 0 ? HUNG_MS : EXEC_KILL_MS));
        enum status st = plugin_executor_run(r->plugin, &plan, &sink, result, err);
        if (st != ST_BUSY || r->started_ms > 0 || is_stopping(r)) {
            return st;
        }
        set_answer_by(r, place_by_ms + HUNG_MS);
        if (!exec_wait_end(r->e, ends, place_by_ms) || is_stopping(r)) {
            return error_set(err, ST_BUSY, "every place of it is taken");
        }
    }
}

/* True when another attempt may be made: nothing of this one is alive. */
static bool attempt(struct run *r, uint32_t number)
{
    struct sy_result result = {.size = sizeof result, .exit_code = -1, .cpu_ms = -1};
    struct error err = {.status = ST_OK};
    enum status st = begin_attempt(r, number);
    if (st == ST_OK) {
        st = run_plugin(r, &result, &err);
    } else {
        (void)error_set(&err, st, "out of memory");
    }
    bool dead = st == ST_OK || st == ST_TIMEOUT ||
                (r->started_ms == 0 && result.request_sent == 0);
    if (!r->answered) {
        struct outcome_end end = {
            .status = st, .result = result, .why = err.text, .cancelled = is_stopping(r)};
        r->current.from_stock = result.from_stock != 0;
        r->current.cpu_ms = result.cpu_ms;
        r->current.max_rss_bytes = result.max_rss_bytes;
        outcome_from_end(&end, &r->limits, &r->current);
        conclude(r, err.text);
    }
    return dead && !r->published && outcome_retryable(r->current.cause);
}

/* Let the places that this attempt took be seen as free, then wait. False: stop. */
static bool back_off(struct run *r)
{
    if (r->backoff_ms <= 0) {
        return !event_fired(&r->stop);
    }
    set_answer_by(r, CLOCK_NEVER);
    return io_wait(r->stop.fd, POLLIN, -1, clock_mono_ms() + r->backoff_ms) == ST_TIMEOUT;
}

void run_worker(void *arg)
{
    struct run *r = arg;
    struct exec *e = r->e;
    bool go_on = !is_stopping(r);
    for (uint32_t number = 1; go_on; number++) {
        go_on = attempt(r, number) && r->attempts_left > 0 && !is_stopping(r);
        if (go_on) {
            exec_count_end(e, false);
            go_on = back_off(r);
            r->attempts_left--;
        }
    }
    if (!r->published) {
        publish(r);
    }
    run_unref(r);
    exec_count_end(e, true);
}

/* ---- making one ---------------------------------------------------------------------- */

static enum status run_parts(struct run *r, struct error *err)
{
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    if (cond_init(&r->quiet) != ST_OK) {
        (void)pthread_mutex_destroy(&r->lock);
        return error_set(err, ST_NOMEM, "out of memory");
    }
    return ST_OK;
}

static enum status fill_run(struct run *r, const struct plan *plan, struct error *err)
{
    const struct plan_call *call = plan_call(plan);
    const struct launch_spec *launch = plan_launch(plan);
    enum status st = event_init(&r->wake, err);
    if (st == ST_OK) {
        st = event_init(&r->stop, err);
    }
    while (st == ST_OK && r->call_id == 0) {
        st = io_random(&r->call_id, sizeof r->call_id, err);
    }
    if (st != ST_OK) {
        return st;
    }
    (void)snprintf(r->run_id, sizeof r->run_id, "%s", call->run_id);
    (void)snprintf(r->tool, sizeof r->tool, "%s", call->tool_name);
    r->attempts_left = call->retries;
    r->backoff_ms = call->retry_backoff_ms;
    r->queued_ms = clock_mono_ms();
    r->answer_by_ms = r->queued_ms + call->timeout_ms;
    st = frame_request(call, launch, r->call_id, &r->request);
    if (st != ST_OK) {
        return error_set(err, st, "the request of the call: %s", status_name(st));
    }
    return launch_acquire(r->e->launches, launch, &r->launch, err);
}

struct run *run_new(struct exec *e, const struct plan *plan,
                    const struct exec_events *events, struct error *err)
{
    struct run *r = mem_zalloc(sizeof *r);
    if (r == NULL) {
        (void)error_set(err, ST_NOMEM, "out of memory");
        return NULL;
    }
    if (run_parts(r, err) != ST_OK) {
        mem_free(r);
        return NULL;
    }
    r->e = e;
    r->refs = 2;
    r->events = events;
    r->wake.fd = -1;
    r->stop.fd = -1;
    buf_init(&r->request, REQUEST_MAX);
    outcome_limits_of(plan_launch(plan), plan_call(plan), &r->limits);
    logtext_init(&r->logtext, emit_log, r);
    outcome_init(&r->current, r->limits.max_output_bytes);
    outcome_init(&r->final, r->limits.max_output_bytes);
    if (fill_run(r, plan, err) != ST_OK) {
        run_free(r);
        return NULL;
    }
    return r;
}
