/* How a run ended -> its cause and what the model is told. Pure. */
#ifndef SOULACY_EXEC_OUTCOME_H
#define SOULACY_EXEC_OUTCOME_H

#include "exec/exec.h"
#include "exec/frame.h"

/* What the texts need to know of the plan; copied, since a run outlives its plan. */
struct outcome_limits {
    char backend[64];
    uint64_t cpu_seconds, mem_bytes, file_bytes; /* SPAWN_NO_LIMIT */
    int64_t timeout_ms;
    size_t max_output_bytes;
};

/* What is known when no answer came. */
struct outcome_end {
    enum status status; /* of run() */
    struct sy_result result;
    const char *why; /* error text of run(), or "" */
    bool cancelled;  /* the caller gave up */
};

void outcome_limits_of(const struct launch_spec *launch, const struct plan_call *call,
                       struct outcome_limits *out);
/* Fill cause, detail and text of an outcome whose text is initialised. */
void outcome_from_answer(const struct frame_answer *a, const struct outcome_limits *l,
                         struct exec_outcome *out);
void outcome_from_end(const struct outcome_end *end, const struct outcome_limits *l,
                      struct exec_outcome *out);
/* One with the standard text of that cause; why may be NULL. Folders of the host in why
 * are left out. */
void outcome_set(enum exec_cause cause, const struct outcome_limits *l, const char *why,
                 struct exec_outcome *out);
/* May the call be tried again after this? */
bool outcome_retryable(enum exec_cause cause);

#endif
