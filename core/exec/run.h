/* What exec.c (engine and caller) and run.c (the worker's side) share. */
#ifndef SOULACY_EXEC_RUN_H
#define SOULACY_EXEC_RUN_H

#include "exec/exec.h"
#include "exec/frame.h"
#include "exec/logtext.h"
#include "exec/outcome.h"

#include <pthread.h>

#define EXEC_ANSWER_MAX ((size_t)64 * 1024 * 1024 + (size_t)64 * 1024)
/* How long a caller whose deadline has passed, or who cancelled, waits for the kill: it
 * gets the last log text and the true cause then. */
#define EXEC_KILL_MS 250

struct exec {
    struct launches *launches;
    struct plugin_registry *plugins;
    struct pool *jobs;
    struct log *log;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t ended; /* a run was torn down */
    size_t active;
    uint64_t ends; /* counts them */
};

/* Shared by the caller and the worker; the last of the two frees it. */
struct run {
    struct exec *e;
    struct plugin_instance *plugin;
    const struct sy_launch *launch;
    struct buf request;
    uint64_t call_id;
    char run_id[33], tool[65];
    struct outcome_limits limits;
    uint32_t attempts_left;
    int64_t backoff_ms, queued_ms;
    struct event wake; /* for the caller: look at the shared part */
    struct event stop; /* for the executor: stop now */

    /* The worker's alone. */
    struct frame_reader *reader;
    struct logtext logtext;
    struct exec_outcome current; /* of this attempt */
    bool answered;               /* a frame came, or something that ends the wait */
    bool published;              /* the caller has its outcome */
    int64_t dispatched_ms, started_ms;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t quiet; /* no callback is running */
    int refs;
    bool done;     /* final is the outcome */
    bool stopping; /* cancelled, or the caller has gone: no further attempt */
    bool in_callback;
    uint32_t number; /* of the attempt; 0 while waiting for a worker */
    int64_t answer_by_ms;
    const struct exec_events *events; /* NULL once the caller has gone */
    struct exec_outcome final;
};

void outcome_init(struct exec_outcome *o, size_t max_output);

/* A run was torn down, or a place may be free otherwise: wake who waits for one. */
void exec_count_end(struct exec *e, bool was_active);
uint64_t exec_ends(struct exec *e);
/* Wait until more than `ends` were counted; false at the deadline. */
bool exec_wait_end(struct exec *e, uint64_t ends, int64_t deadline_ms);

/* NULL: err says why. Two references, the caller's and the worker's. */
struct run *run_new(struct exec *e, const struct plan *plan,
                    const struct exec_events *events, struct error *err) SY_MUST_CHECK;
void run_free(struct run *r);
void run_unref(struct run *r);
/* The task of the jobs pool; takes the worker's reference. */
void run_worker(void *arg);

#endif
