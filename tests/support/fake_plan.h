/* Plans made by a test instead of plan_build, which takes an approved call only. Link
 * fake_plan.c and call nothing else of plan.c: its accessors are defined here. */
#ifndef SOULACY_TESTS_FAKE_PLAN_H
#define SOULACY_TESTS_FAKE_PLAN_H

#include "sandbox/plan.h"

struct plan {
    struct launch_spec launch;
    struct plan_call call;
};

/* No limits, ISOLATION_NONE, `python -I -S -c bootstrap`; the caller changes what it
 * likes and then calls fake_plan_key. Pointers stay the caller's. */
void fake_plan_init(struct plan *p, const char *backend, const char *const *argv,
                    size_t nargv);
/* The launch key over all that shapes the process. */
void fake_plan_key(struct plan *p);

#endif
