/* Condition variables on the monotonic clock. In: a deadline in ms. Out: whether it has
 * passed. Never affected by a change of the wall clock. */
#include "base/cond.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

enum status cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) {
        return ST_NOMEM;
    }
    int rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    rc = rc != 0 ? rc : pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
    return rc == 0 ? ST_OK : ST_NOMEM;
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *held, int64_t deadline_ms)
{
    if (deadline_ms == CLOCK_NEVER) {
        return pthread_cond_wait(c, held) == 0;
    }
    int64_t ms = deadline_ms > 0 ? deadline_ms : 0;
    struct timespec ts = {
        .tv_sec = (time_t)(ms / 1000),
        .tv_nsec = (long)(ms % 1000) * 1000000,
    };
    return pthread_cond_timedwait(c, held, &ts) != ETIMEDOUT;
}
