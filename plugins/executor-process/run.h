/* One call through one child: shared by executor-process and executor-pool. */
#ifndef SOULACY_EXECUTOR_RUN_H
#define SOULACY_EXECUTOR_RUN_H

#include <soulacy/executor.h>

/* The core's services, as create() and start() found them. */
struct run_host {
    const struct sy_host *host;
    const struct sy_host_spawn *spawn;
};

/* Drive the child through the plan: preamble (unless it was fed before), wait until the
 * child is up, request, streams, end. Reaps the child in every case. What must hold of a
 * run() of sy_executor holds of this. start_ms and from_stock of out are the caller's.
 *   fed: the child has its preamble and has said that it is up
 *   began_ms: when the caller began to get a process */
sy_status run_child(const struct run_host *h, const struct sy_child *child, int fed,
                    int64_t began_ms, const struct sy_plan *plan,
                    const struct sy_sink *sink, struct sy_result *out,
                    struct sy_error *err);

/* Fill err: status back, so that "return run_fail(...)" reads well. */
sy_status run_fail(struct sy_error *err, sy_status st, const char *text);

#endif
