/* Asks for the interpreter and runs the probe on one thread of its own; answers whoever
 * asks from any thread. Never starts anything but those two children. */
#include "sandbox/readiness.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>

#define QUERY_MS 20000
#define PROBE_MS 20000

struct readiness {
    struct readiness_config cfg;
    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    enum readiness_state python_state, probe_state;
    struct interpreter python; /* constant once READINESS_OK */
    struct error python_error;
    struct probe_report probe;
};

static void find_python(struct readiness *r)
{
    struct interpreter found = {0};
    struct error err = {0};
    enum status st =
        interpreter_query(r->cfg.spawn, r->cfg.python_bin, r->cfg.base_env,
                          r->cfg.nbase_env, clock_mono_ms() + QUERY_MS, &found, &err);

    (void)pthread_mutex_lock(&r->lock);
    r->python = found;
    r->python_error = err;
    r->python_state = st == ST_OK ? READINESS_OK : READINESS_FAILED;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    if (st != ST_OK) {
        log_line(r->cfg.log, LOG_ERROR, "sandbox", "%s", err.text);
    } else {
        log_line(r->cfg.log, LOG_INFO, "sandbox", "Python %s at %s", found.version,
                 found.path);
    }
}

static void probe(struct readiness *r)
{
    struct spawn_plan plan = r->cfg.probe;
    struct probe_report report = {0};
    struct error err = {0};
    enum status st;

    plan.env = r->cfg.base_env;
    plan.nenv = r->cfg.nbase_env;
    st = probe_run(r->cfg.spawn, &plan, clock_mono_ms() + PROBE_MS, &report, &err);
    if (st != ST_OK) {
        report.ok = false;
        report.level = plan.isolation;
        (void)snprintf(report.problem, sizeof(report.problem), "%.200s", err.text);
    }
    (void)pthread_mutex_lock(&r->lock);
    r->probe = report;
    r->probe_state = report.ok ? READINESS_OK : READINESS_FAILED;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    log_line(r->cfg.log, report.ok ? LOG_INFO : LOG_ERROR, "sandbox",
             report.ok ? "the probe found everything in force that was asked for%s"
                       : "the probe failed: %s",
             report.problem);
}

static void *work(void *arg)
{
    struct readiness *r = arg;

    find_python(r);
    probe(r);
    return NULL;
}

enum status readiness_new(const struct readiness_config *cfg, struct readiness **out,
                          struct error *err)
{
    struct readiness *r = mem_zalloc(sizeof(*r));

    if (r == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the sandbox's readiness");
    }
    r->cfg = *cfg;
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        mem_free(r);
        return error_set(err, ST_NOMEM, "cannot make a lock");
    }
    if (cond_init(&r->changed) != ST_OK) {
        (void)pthread_mutex_destroy(&r->lock);
        mem_free(r);
        return error_set(err, ST_NOMEM, "cannot make a condition");
    }
    if (pthread_create(&r->thread, NULL, work, r) != 0) {
        (void)pthread_cond_destroy(&r->changed);
        (void)pthread_mutex_destroy(&r->lock);
        mem_free(r);
        return error_set(err, ST_NOMEM, "cannot start a thread");
    }
    *out = r;
    return ST_OK;
}

void readiness_free(struct readiness *r)
{
    if (r != NULL) {
        (void)pthread_join(r->thread, NULL);
        (void)pthread_cond_destroy(&r->changed);
        (void)pthread_mutex_destroy(&r->lock);
        interpreter_done(&r->python);
        mem_free(r);
    }
}

enum status readiness_python(struct readiness *r, int64_t deadline_ms,
                             const struct interpreter **out, struct error *err)
{
    bool in_time = true;
    enum status st;

    (void)pthread_mutex_lock(&r->lock);
    while (r->python_state == READINESS_PENDING && in_time) {
        in_time = cond_wait_until(&r->changed, &r->lock, deadline_ms);
    }
    if (r->python_state == READINESS_OK) {
        *out = &r->python;
        st = ST_OK;
    } else if (r->python_state == READINESS_FAILED) {
        *err = r->python_error;
        st = r->python_error.status;
    } else {
        st = error_set(err, ST_TIMEOUT, "Python has not been found in time");
    }
    (void)pthread_mutex_unlock(&r->lock);
    return st;
}

enum readiness_state readiness_python_state(struct readiness *r, char text[512])
{
    enum readiness_state state;

    (void)pthread_mutex_lock(&r->lock);
    state = r->python_state;
    (void)snprintf(text, 512, "%s", r->python_error.text);
    (void)pthread_mutex_unlock(&r->lock);
    return state;
}

enum readiness_state readiness_probe_state(struct readiness *r,
                                           struct probe_report *report)
{
    enum readiness_state state;

    (void)pthread_mutex_lock(&r->lock);
    state = r->probe_state;
    *report = r->probe;
    (void)pthread_mutex_unlock(&r->lock);
    return state;
}

void readiness_wait(struct readiness *r, int64_t deadline_ms)
{
    bool in_time = true;

    (void)pthread_mutex_lock(&r->lock);
    while (
        (r->python_state == READINESS_PENDING || r->probe_state == READINESS_PENDING) &&
        in_time) {
        in_time = cond_wait_until(&r->changed, &r->lock, deadline_ms);
    }
    (void)pthread_mutex_unlock(&r->lock);
}
