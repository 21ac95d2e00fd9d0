/* Waiting on a condition until a monotonic deadline. For queue.c, pool.c and whoever
 * else needs a condition variable (never one on the wall clock). */
#ifndef SOULACY_BASE_COND_H
#define SOULACY_BASE_COND_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A condition variable on CLOCK_MONOTONIC. */
enum status cond_init(pthread_cond_t *c) SY_MUST_CHECK;
/* false when deadline_ms has passed; true for any other wake-up (check your condition). */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *held,
                     int64_t deadline_ms) SY_MUST_CHECK;

#endif
