/* An executor engine without processes, for tests of what stands before it. Link
 * fake_exec.c: it takes the place of core/exec, of which nothing is drawn in then. */
#ifndef SOULACY_TESTS_FAKE_EXEC_H
#define SOULACY_TESTS_FAKE_EXEC_H

#include "exec/exec.h"
#include "sandbox/plan.h"

#include <stdatomic.h>

struct exec {
    void *ctx;
    /* What a run does, on the caller's thread; out is set up. NULL: answers with the
     * arguments. */
    void (*run)(void *ctx, const struct plan *plan, const struct event *cancel,
                const struct exec_events *events, struct exec_outcome *out);
    atomic_size_t runs;
};

/* For a run: wait until cancel or the plan's timeout, and end as the engine would. */
void fake_exec_hang(const struct plan *plan, const struct event *cancel,
                    struct exec_outcome *out);

#endif
