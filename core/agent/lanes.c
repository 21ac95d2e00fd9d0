/* Jobs with a session key in, runs on a pool out: at most one of a key at a time. Never
 * runs a job on the caller's thread. */
#include "agent/lanes.h"

#include "base/mem.h"

#include <pthread.h>

#define BUCKETS 256

struct job {
    struct job *next;
    void (*fn)(void *arg);
    void *arg;
};

struct lane {
    struct lane *next; /* in its bucket */
    struct lanes *house;
    char *key;
    size_t key_len, bucket, waiting;
    struct job *first, *last;
};

struct lanes {
    pthread_mutex_t lock; /* guards everything below and every lane */
    struct pool *turns;
    struct lane *buckets[BUCKETS];
    size_t jobs; /* waiting or running */
};

static size_t bucket_of(struct str key)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < key.len; i++) {
        h = (h ^ (unsigned char)key.ptr[i]) * 16777619u;
    }
    return h % BUCKETS;
}

static struct lane *find(struct lanes *l, struct str key, size_t bucket)
{
    for (struct lane *lane = l->buckets[bucket]; lane != NULL; lane = lane->next) {
        if (key.len > 0 && str_eq(str_n(lane->key, lane->key_len), key)) {
            return lane;
        }
    }
    return NULL;
}

static struct lane *lane_new(struct lanes *l, struct str key, size_t bucket)
{
    struct lane *lane = mem_zalloc(sizeof(*lane));

    if (lane == NULL) {
        return NULL;
    }
    lane->house = l;
    lane->key = mem_dup(key.ptr, key.len);
    lane->key_len = key.len;
    lane->bucket = bucket;
    if (lane->key == NULL) {
        mem_free(lane);
        return NULL;
    }
    lane->next = l->buckets[bucket];
    l->buckets[bucket] = lane;
    return lane;
}

static void lane_remove(struct lane *lane)
{
    struct lane **at = &lane->house->buckets[lane->bucket];

    while (*at != lane) {
        at = &(*at)->next;
    }
    *at = lane->next;
    mem_free(lane->key);
    mem_free(lane);
}

static struct job *lane_take(struct lane *lane)
{
    struct job *job = lane->first;

    lane->first = job->next;
    if (lane->first == NULL) {
        lane->last = NULL;
    }
    lane->waiting--;
    return job;
}

/* Runs one job of the lane; false when the lane is empty and gone. */
static bool lane_step(struct lane *lane)
{
    struct lanes *l = lane->house;
    struct job *job;
    bool more;

    (void)pthread_mutex_lock(&l->lock);
    job = lane_take(lane);
    (void)pthread_mutex_unlock(&l->lock);
    job->fn(job->arg);
    mem_free(job);
    (void)pthread_mutex_lock(&l->lock);
    l->jobs--;
    more = lane->first != NULL;
    if (!more) {
        lane_remove(lane);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return more;
}

/* On a worker: one job, then to the back of the pool's queue, behind other sessions. The
 * pool has room for every job of the house; it refuses only when stopping, and then what
 * is left runs here. */
static void lane_run(void *arg)
{
    struct lane *lane = arg;

    while (lane_step(lane)) {
        if (pool_submit(lane->house->turns, lane_run, lane) == ST_OK) {
            return;
        }
    }
}

enum status lanes_new(struct pool *turns, struct lanes **out, struct error *err)
{
    struct lanes *l = mem_zalloc(sizeof(*l));

    if (l == NULL || pthread_mutex_init(&l->lock, NULL) != 0) {
        mem_free(l);
        return error_set(err, ST_NOMEM, "out of memory for the session lanes");
    }
    l->turns = turns;
    *out = l;
    return ST_OK;
}

void lanes_free(struct lanes *l)
{
    if (l != NULL) {
        (void)pthread_mutex_destroy(&l->lock);
        mem_free(l);
    }
}

/* Puts the job into its lane; *fresh when the lane has to be started. */
static enum status enqueue(struct lanes *l, struct str key, struct job *job,
                           struct lane **out, bool *fresh)
{
    size_t bucket = bucket_of(key);
    struct lane *lane = find(l, key, bucket);

    *fresh = lane == NULL;
    if (l->jobs >= LANES_MAX_WAITING ||
        (lane != NULL && lane->waiting >= LANE_MAX_WAITING)) {
        return ST_BUSY;
    }
    if (lane == NULL) {
        lane = lane_new(l, key, bucket);
        if (lane == NULL) {
            return ST_NOMEM;
        }
    }
    if (lane->last != NULL) {
        lane->last->next = job;
    } else {
        lane->first = job;
    }
    lane->last = job;
    lane->waiting++;
    l->jobs++;
    *out = lane;
    return ST_OK;
}

enum status lanes_submit(struct lanes *l, struct str key, void (*fn)(void *arg),
                         void *arg)
{
    struct job *job = mem_zalloc(sizeof(*job));
    struct lane *lane = NULL;
    bool fresh = false;
    enum status st;

    if (job == NULL) {
        return ST_NOMEM;
    }
    *job = (struct job){NULL, fn, arg};
    (void)pthread_mutex_lock(&l->lock);
    st = enqueue(l, key, job, &lane, &fresh);
    /* Under the lock: until the pool has it, nobody else may append to a lane that could
     * not be started. */
    if (st == ST_OK && fresh) {
        st = pool_submit(l->turns, lane_run, lane);
        if (st != ST_OK) {
            l->jobs--;
            lane_remove(lane);
        }
    }
    (void)pthread_mutex_unlock(&l->lock);
    if (st != ST_OK) {
        mem_free(job);
    }
    return st;
}
