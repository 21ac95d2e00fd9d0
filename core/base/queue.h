/* A bounded FIFO of pointers between threads. */
#ifndef SOULACY_BASE_QUEUE_H
#define SOULACY_BASE_QUEUE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

struct queue *queue_new(size_t max_items) SY_MUST_CHECK;
/* Items still inside are handed to drop (may be NULL) first. */
void queue_free(struct queue *q, void (*drop)(void *item));
/* ST_OK, ST_BUSY when full, ST_CANCELLED after queue_close. */
enum status queue_push(struct queue *q, void *item) SY_MUST_CHECK;
/* Wait until deadline_ms (monotonic): ST_OK, ST_TIMEOUT, or ST_CANCELLED once the queue
 * is closed and empty. */
enum status queue_pop(struct queue *q, int64_t deadline_ms, void **item) SY_MUST_CHECK;
/* Take up to max items at once without waiting; returns how many. */
size_t queue_take(struct queue *q, void **items, size_t max);
void queue_close(struct queue *q); /* wakes every waiter; pushes fail from now on */
size_t queue_count(struct queue *q);

#endif
