/* Worker threads. In: tasks from any thread. Out: each accepted task is run exactly
 * once, also when the pool is stopped behind it. Never more than max_threads threads,
 * never allocates for a task, never handles a signal (all are blocked in workers).
 * `lock` guards every field below it in struct pool. */
#include "base/pool.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#define DEFAULT_STACK_BYTES ((size_t)256 * 1024)
#define DEFAULT_IDLE_MS 10000

struct task {
    void (*fn)(void *arg);
    void *arg;
};

struct pool {
    struct pool_config cfg; /* constant after pool_new */
    size_t ring_size;       /* max_queued, and one for each thread about to take one */
    pthread_attr_t attr;
    pthread_mutex_t lock;
    pthread_cond_t work; /* a task was queued, or the pool stops */
    pthread_cond_t gone; /* a thread ended */
    struct task *ring;
    size_t first, queued;
    size_t threads, active;
    unsigned serial; /* for thread names */
    bool stopping;
    bool has_ended; /* `ended` is a thread that nobody has joined yet */
    pthread_t ended;
};

static enum status init_sync(struct pool *p)
{
    if (pthread_attr_init(&p->attr) != 0) {
        return ST_NOMEM;
    }
    if (pthread_attr_setstacksize(&p->attr, p->cfg.stack_bytes) != 0) {
        pthread_attr_destroy(&p->attr);
        return ST_INVALID;
    }
    enum status st = cond_init(&p->work);
    if (st == ST_OK) {
        st = cond_init(&p->gone);
        if (st == ST_OK) {
            if (pthread_mutex_init(&p->lock, NULL) == 0) {
                return ST_OK;
            }
            pthread_cond_destroy(&p->gone);
            st = ST_NOMEM;
        }
        pthread_cond_destroy(&p->work);
    }
    pthread_attr_destroy(&p->attr);
    return st;
}

enum status pool_new(const struct pool_config *cfg, struct pool **out, struct error *err)
{
    size_t ring_size;
    if (cfg->max_threads == 0 ||
        !size_add(cfg->max_threads, cfg->max_queued, &ring_size)) {
        return error_set(err, ST_INVALID, "pool %s: bad number of threads or tasks",
                         cfg->name);
    }
    struct pool *p = mem_zalloc(sizeof(*p));
    struct task *ring = mem_array(ring_size, sizeof(*ring));
    enum status st = ST_NOMEM;
    if (p != NULL && ring != NULL) {
        p->cfg = *cfg;
        p->cfg.stack_bytes =
            cfg->stack_bytes != 0 ? cfg->stack_bytes : DEFAULT_STACK_BYTES;
        p->cfg.idle_ms = cfg->idle_ms != 0 ? cfg->idle_ms : DEFAULT_IDLE_MS;
        p->ring = ring;
        p->ring_size = ring_size;
        st = init_sync(p);
    }
    if (st != ST_OK) {
        mem_free(ring);
        mem_free(p);
        return error_set(err, st, "pool %s: %s", cfg->name, status_name(st));
    }
    *out = p;
    return ST_OK;
}

static void name_thread(const struct pool *p, unsigned serial)
{
    char name[16]; /* the kernel's limit */
    snprintf(name, sizeof(name), "%.11s-%u", p->cfg.name, serial % 1000);
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

/* Wait for a task; false when this thread is to end. Lock held. */
static bool next_task(struct pool *p, struct task *task)
{
    int64_t until = clock_mono_ms() + p->cfg.idle_ms;
    bool in_time = true;
    while (p->queued == 0) {
        if (p->stopping || !in_time) {
            return false;
        }
        in_time = cond_wait_until(&p->work, &p->lock, until);
    }
    *task = p->ring[p->first];
    p->first = p->first + 1 == p->ring_size ? 0 : p->first + 1;
    p->queued--;
    return true;
}

static void *worker(void *arg)
{
    struct pool *p = arg;
    struct task task;
    pthread_mutex_lock(&p->lock);
    name_thread(p, ++p->serial);
    while (next_task(p, &task)) {
        p->active++;
        pthread_mutex_unlock(&p->lock);
        task.fn(task.arg);
        pthread_mutex_lock(&p->lock);
        p->active--;
    }
    /* Not ready for work from here on, so it leaves the count under the same lock. Each
     * thread that ends joins the one that ended before it: at most one is left unjoined,
     * and joining that one, as pool_stop does, waits for all. */
    bool join = p->has_ended;
    pthread_t other = p->ended;
    p->has_ended = true;
    p->ended = pthread_self();
    p->threads--;
    pthread_cond_broadcast(&p->gone);
    pthread_mutex_unlock(&p->lock);
    if (join) {
        pthread_join(other, NULL);
    }
    return NULL;
}

/* One more thread, with every signal blocked: they belong to the main thread. */
static bool start_thread(struct pool *p)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, &p->attr, worker, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok) {
        p->threads++;
    }
    return ok;
}

static enum status submit_locked(struct pool *p, struct task task)
{
    if (p->stopping) {
        return ST_CANCELLED;
    }
    /* Idle and starting threads will each take one of the queued tasks. */
    size_t ready = p->threads - p->active;
    if (p->queued >= ready && p->threads < p->cfg.max_threads && start_thread(p)) {
        ready++;
    }
    bool full = p->queued >= ready && p->queued - ready >= p->cfg.max_queued;
    /* With no thread at all a queued task might wait for ever. */
    if (full || p->threads == 0) {
        return ST_BUSY;
    }
    size_t to_end = p->ring_size - p->first;
    size_t at = p->queued < to_end ? p->first + p->queued : p->queued - to_end;
    p->ring[at] = task;
    p->queued++;
    pthread_cond_signal(&p->work);
    return ST_OK;
}

enum status pool_submit(struct pool *p, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&p->lock);
    enum status st = submit_locked(p, (struct task){fn, arg});
    pthread_mutex_unlock(&p->lock);
    return st;
}

void pool_stop(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    while (p->threads != 0) {
        if (pthread_cond_wait(&p->gone, &p->lock) != 0) {
            break;
        }
    }
    bool join = p->has_ended;
    p->has_ended = false;
    pthread_mutex_unlock(&p->lock);
    if (join) {
        pthread_join(p->ended, NULL);
    }
}

void pool_free(struct pool *p)
{
    if (p == NULL) {
        return;
    }
    pool_stop(p);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->gone);
    pthread_cond_destroy(&p->work);
    pthread_attr_destroy(&p->attr);
    mem_free(p->ring);
    mem_free(p);
}

size_t pool_active(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    size_t n = p->active;
    pthread_mutex_unlock(&p->lock);
    return n;
}

size_t pool_queued(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    size_t n = p->queued;
    pthread_mutex_unlock(&p->lock);
    return n;
}
