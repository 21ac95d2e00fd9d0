/* A bounded FIFO between threads. In: pointers from any thread. Out: the same pointers
 * in order, to any thread. Never blocks a pusher, never grows, never looks at an item.
 * `lock` guards every field of struct queue. */
#include "base/queue.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty; /* or closed */
    void **items;             /* a ring of max */
    size_t max, first, count;
    bool closed;
};

struct queue *queue_new(size_t max_items)
{
    struct queue *q = mem_zalloc(sizeof(*q));
    if (q == NULL) {
        return NULL;
    }
    q->max = max_items;
    q->items = mem_array(max_items, sizeof(*q->items));
    if (q->items == NULL) {
        goto fail;
    }
    if (pthread_mutex_init(&q->lock, NULL) != 0) {
        goto fail;
    }
    if (cond_init(&q->not_empty) != ST_OK) {
        pthread_mutex_destroy(&q->lock);
        goto fail;
    }
    return q;

fail:
    mem_free(q->items);
    mem_free(q);
    return NULL;
}

/* Caller holds the lock (or is alone); count > 0. */
static void *take_first(struct queue *q)
{
    void *item = q->items[q->first];
    q->first = q->first + 1 == q->max ? 0 : q->first + 1;
    q->count--;
    return item;
}

void queue_free(struct queue *q, void (*drop)(void *item))
{
    if (q == NULL) {
        return;
    }
    while (q->count != 0) {
        void *item = take_first(q);
        if (drop != NULL) {
            drop(item);
        }
    }
    pthread_cond_destroy(&q->not_empty);
    pthread_mutex_destroy(&q->lock);
    mem_free(q->items);
    mem_free(q);
}

enum status queue_push(struct queue *q, void *item)
{
    enum status st = ST_OK;
    pthread_mutex_lock(&q->lock);
    if (q->closed) {
        st = ST_CANCELLED;
    } else if (q->count == q->max) {
        st = ST_BUSY;
    } else {
        size_t free_slots_to_end = q->max - q->first;
        size_t at = q->count < free_slots_to_end ? q->first + q->count
                                                 : q->count - free_slots_to_end;
        q->items[at] = item;
        q->count++;
        pthread_cond_signal(&q->not_empty);
    }
    pthread_mutex_unlock(&q->lock);
    return st;
}

enum status queue_pop(struct queue *q, int64_t deadline_ms, void **item)
{
    enum status st = ST_OK;
    bool in_time = true;
    pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->closed && in_time) {
        in_time = cond_wait_until(&q->not_empty, &q->lock, deadline_ms);
    }
    if (q->count != 0) {
        *item = take_first(q);
    } else {
        st = q->closed ? ST_CANCELLED : ST_TIMEOUT;
    }
    pthread_mutex_unlock(&q->lock);
    return st;
}

size_t queue_take(struct queue *q, void **items, size_t max)
{
    size_t n = 0;
    pthread_mutex_lock(&q->lock);
    while (n < max && q->count != 0) {
        items[n++] = take_first(q);
    }
    pthread_mutex_unlock(&q->lock);
    return n;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}

size_t queue_count(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->count;
    pthread_mutex_unlock(&q->lock);
    return n;
}
