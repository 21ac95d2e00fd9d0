/* Starts a process for a run and never reaps it. */
#define BAD_EXECUTOR
#define BAD_RUN(b, plan, sink) \
    struct sy_child c = {.size = sizeof c}; \
    (void)(sink); \
    (void)(b)->spawn->spawn((b)->host->ctx, (plan)->launch->id, &c, err)
#include "skeleton.h"
