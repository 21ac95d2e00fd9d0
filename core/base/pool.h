/* Worker threads, bounded and lazily grown; an idle thread ends after idle_ms. */
#ifndef SOULACY_BASE_POOL_H
#define SOULACY_BASE_POOL_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct pool;

struct pool_config {
    const char *name;   /* thread name, at most 11 bytes are used; borrowed for good */
    size_t max_threads; /* at least 1 */
    size_t max_queued;  /* tasks that may wait; over it pool_submit says ST_BUSY */
    size_t stack_bytes; /* 0 = 256 KiB */
    int64_t idle_ms;    /* 0 = 10 s */
};

enum status pool_new(const struct pool_config *cfg, struct pool **out,
                     struct error *err) SY_MUST_CHECK;
/* Run fn(arg) on a worker: ST_OK, ST_BUSY, ST_CANCELLED after pool_stop. */
enum status pool_submit(struct pool *p, void (*fn)(void *arg), void *arg) SY_MUST_CHECK;
/* Refuse new tasks, run what is queued, wait for every thread. */
void pool_stop(struct pool *p);
void pool_free(struct pool *p);     /* stops first; NULL is fine */
size_t pool_active(struct pool *p); /* tasks running now */
size_t pool_queued(struct pool *p);

#endif
