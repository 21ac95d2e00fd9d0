/* What is found out about this machine after the start, in the background: where Python
 * is, and what the probe child could and could not do. Runs wait for the first; readiness,
 * status and doctor show both. */
#ifndef SOULACY_SANDBOX_READINESS_H
#define SOULACY_SANDBOX_READINESS_H

#include "sandbox/interpreter.h"
#include "sandbox/probe.h"

struct readiness;

struct readiness_config { /* borrowed until readiness_free */
    struct spawn *spawn;
    const char *python_bin;
    const char *const *base_env;
    size_t nbase_env;
    struct spawn_plan probe; /* level, uid, limits, work_root; paths are filled in */
    struct log *log;
};

/* Starts one thread. */
enum status readiness_new(const struct readiness_config *cfg, struct readiness **out,
                          struct error *err) SY_MUST_CHECK;
void readiness_free(struct readiness *r); /* waits for the thread; NULL is fine */

/* Wait until Python is known: ST_OK, or why there is none, or ST_TIMEOUT. [any] */
enum status readiness_python(struct readiness *r, int64_t deadline_ms,
                             const struct interpreter **out,
                             struct error *err) SY_MUST_CHECK;

enum readiness_state { READINESS_PENDING, READINESS_OK, READINESS_FAILED };
/* Without waiting. text: why it failed, or "". */
enum readiness_state readiness_python_state(struct readiness *r, char text[512]);
/* report is filled in unless pending. */
enum readiness_state readiness_probe_state(struct readiness *r,
                                           struct probe_report *report);
/* Wait until both are known or the deadline. */
void readiness_wait(struct readiness *r, int64_t deadline_ms);

#endif
