/* plan -> outcome. Picks the executor by name, refuses when it does not enforce what the
 * plan must have, runs it on a worker of the jobs pool, reads frames, names causes. The
 * caller gets the outcome on the answer frame; teardown goes on off its path. */
#ifndef SOULACY_EXEC_EXEC_H
#define SOULACY_EXEC_EXEC_H

#include "base/io.h"
#include "base/pool.h"
#include "plugin/plugin.h"
#include "sandbox/launch.h"

/* Why a run has no result. Names are stable: they go to the model, the log and the API. */
enum exec_cause {
    EXEC_OK = 0,
    EXEC_TOOL_ERROR, /* the function raised; class, message and traceback are in text */
    EXEC_TIMEOUT,
    EXEC_CANCELLED,
    EXEC_CPU,         /* CPU limit */
    EXEC_MEMORY,      /* memory limit */
    EXEC_SIGNAL,      /* killed by a signal, number in detail */
    EXEC_EXIT,        /* exited by itself without a result, code in detail */
    EXEC_NO_RESULT,   /* ended with 0 and no answer, or closed its channel */
    EXEC_BAD_ANSWER,  /* the frame was not one */
    EXEC_TOO_LARGE,   /* answer over the cap */
    EXEC_REFUSED,     /* a limit or layer could not be set up: nothing ran */
    EXEC_UNAVAILABLE, /* the backend is not there */
    EXEC_UNKNOWN      /* connection lost after the request was sent: outcome unknown */
};
const char *exec_cause_name(enum exec_cause c); /* "ok", "tool_error", "timeout", ... */

struct exec_outcome {
    enum exec_cause cause;
    int detail;       /* signal or exit code */
    struct buf text;  /* the result, or one message for the model (cause and limit) */
    char layers[512]; /* JSON of what was in force, "" if unknown */
    bool from_stock;
    uint32_t attempts;
    int64_t queue_ms, start_ms, run_ms; /* waiting for a worker; process; call */
    int64_t cpu_ms, max_rss_bytes;      /* -1 unknown (known only after teardown) */
};
void exec_outcome_done(struct exec_outcome *o);

/* Called on a worker thread while it runs. */
struct exec_events {
    void *ctx;
    void (*log)(void *ctx,
                struct str text); /* stderr of the tool, valid UTF-8, whole lines
                                                or pieces of at most 4 KiB */
    void (*started)(void *ctx, const char *layers);
};

struct exec;

enum status exec_new(struct launches *launches, struct plugin_registry *plugins,
                     struct pool *jobs, struct log *log, struct exec **out,
                     struct error *err) SY_MUST_CHECK;
/* Waits for teardown of every run. */
void exec_free(struct exec *e);

/* Run and wait until the answer, the deadline (plan's timeout) or cancel (event may be
 * NULL). Always fills out (call exec_outcome_done). Never runs anywhere but on the plan's
 * backend. events may be NULL. */
void exec_run(struct exec *e, const struct plan *plan, const struct event *cancel,
              const struct exec_events *events, struct exec_outcome *out);

/* Runs not yet torn down. */
size_t exec_active(struct exec *e);

/* The harness text, embedded. */
struct str exec_harness(void);
/* "<decimal length>\n<harness>": what launches_new takes as preamble. */
struct str exec_preamble(void);
/* argv of the interpreter: PATH -I -S -c BOOTSTRAP; bootstrap text is constant. */
const char *exec_bootstrap(void);

#endif
