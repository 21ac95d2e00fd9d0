/* The store thread. In: writes from any thread, through a bounded queue. Out: each is on
 * disk, or undone and answered with the reason. Writes that wait at the same moment share
 * one transaction; each has a savepoint of its own, so that one that is refused does not
 * take the others with it. A connection that broke is opened again for the next batch.
 * Never answers before COMMIT has returned. `lock` guards the fields named below it. */
#include "store/writer.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"
#include "base/queue.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#define MAX_QUEUED 1024
#define MAX_BATCH 128
#define STACK_BYTES ((size_t)256 * 1024)

struct writer {
    struct db db; /* of the store thread alone once it runs */
    const struct db_file *file;
    struct queue *queue;
    pthread_t thread;
    struct write_op probe; /* the small write of writer_health */

    pthread_mutex_t lock;
    pthread_cond_t finished; /* a batch is over */
    struct writer_stats stats;
    struct error health; /* status ST_OK: the last transaction was fine */
    bool probing;        /* the probe is queued */
};

static enum status ensure_open(struct writer *w, struct error *err)
{
    db_close_if_stale(&w->db);
    return w->db.handle != NULL ? ST_OK : db_open(w->file, DB_WRITE, &w->db, err);
}

/* Run one write inside its savepoint. Its own failure is kept in it; the return value
 * says whether the transaction can go on. */
static enum status run_one(struct db *db, struct write_op *op, struct error *err)
{
    enum status st = db_exec(db, "SAVEPOINT one", err);
    if (st != ST_OK) {
        return st;
    }
    op->status = op->run(db, op, &op->err);
    if (op->status == ST_OK) {
        return db_exec(db, "RELEASE one", err);
    }
    if (db->broken || !db_in_transaction(db)) {
        /* SQLite has undone the whole transaction: the others fail with it. */
        *err = op->err;
        return op->status;
    }
    return db_exec(db, "ROLLBACK TO one; RELEASE one", err);
}

static enum status run_batch(struct writer *w, struct write_op **ops, size_t n,
                             struct error *err)
{
    enum status st = ensure_open(w, err);
    if (st == ST_OK) {
        st = db_exec(&w->db, "BEGIN IMMEDIATE", err);
    }
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        st = run_one(&w->db, ops[i], err);
    }
    if (st == ST_OK) {
        st = db_exec(&w->db, "COMMIT", err);
    }
    if (st != ST_OK && db_in_transaction(&w->db)) {
        if (db_exec(&w->db, "ROLLBACK", NULL) != ST_OK) {
            w->db.broken = true;
        }
    }
    return st;
}

/* The first write of the batch that could not be made although nothing is wrong with
 * it says that the disk is not well; its neighbours may have been luckier. */
static const struct error *disk_fault(struct write_op **ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->status == ST_IO) {
            return &ops[i]->err;
        }
    }
    return NULL;
}

/* Answer everybody. After `done` is set under the lock an op that is waited for may be
 * gone, so those with a drop are remembered before. */
static void finish_batch(struct writer *w, struct write_op **ops, size_t n,
                         enum status st, const struct error *why)
{
    size_t posted = 0;
    pthread_mutex_lock(&w->lock);
    w->stats.transactions++;
    w->stats.writes += n;
    for (size_t i = 0; i < n; i++) {
        if (st != ST_OK) {
            ops[i]->status = st;
            ops[i]->err = *why;
        }
        w->stats.failures += ops[i]->status != ST_OK ? 1 : 0;
    }
    const struct error *fault = disk_fault(ops, n);
    if (fault != NULL) {
        w->health = *fault;
    } else if (st == ST_OK) {
        w->health = (struct error){.status = ST_OK};
    }
    for (size_t i = 0; i < n; i++) {
        struct write_op *op = ops[i];
        if (op->drop != NULL) {
            ops[posted++] = op;
        } else if (op == &w->probe) {
            w->probing = false;
        } else {
            op->done = true;
        }
    }
    pthread_cond_broadcast(&w->finished);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < posted; i++) {
        ops[i]->drop(ops[i]);
    }
}

static void *store_thread(void *arg)
{
    struct writer *w = arg;
    prctl(PR_SET_NAME, "store", 0, 0, 0);
    struct write_op *ops[MAX_BATCH];
    void *items[MAX_BATCH];
    while (queue_pop(w->queue, CLOCK_NEVER, &items[0]) == ST_OK) {
        size_t n = 1 + queue_take(w->queue, items + 1, MAX_BATCH - 1);
        for (size_t i = 0; i < n; i++) {
            ops[i] = items[i];
        }
        struct error why = {.status = ST_OK};
        enum status st = run_batch(w, ops, n, &why);
        finish_batch(w, ops, n, st, &why);
    }
    return NULL;
}

/* Nothing but the wish to know whether a write goes through. */
static enum status run_probe(struct db *db, struct write_op *op, struct error *err)
{
    (void)op;
    struct query q;
    query_begin(&q, db, SQL_VALUE_PUT);
    query_str(&q, STR_LIT("store.probe"));
    query_str(&q, STR_LIT("1"));
    enum status st = query_run(&q, err);
    query_end(&q);
    return st;
}

static enum status start_thread(struct writer *w, struct error *err)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) {
        return error_set(err, ST_NOMEM, "out of memory for the store thread");
    }
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    /* Signals are for the control thread. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&w->thread, &attr, store_thread, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc == 0 ? ST_OK : error_set_errno(err, ST_NOMEM, rc, "store thread");
}

static struct writer *writer_new(const struct db_file *file)
{
    struct writer *w = mem_zalloc(sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    w->probe.run = run_probe;
    w->file = file;
    w->queue = queue_new(MAX_QUEUED);
    bool ok = w->queue != NULL && pthread_mutex_init(&w->lock, NULL) == 0;
    if (ok && cond_init(&w->finished) == ST_OK) {
        return w;
    }
    if (ok) {
        pthread_mutex_destroy(&w->lock);
    }
    queue_free(w->queue, NULL);
    mem_free(w);
    return NULL;
}

static void writer_free(struct writer *w)
{
    db_close(&w->db);
    pthread_cond_destroy(&w->finished);
    pthread_mutex_destroy(&w->lock);
    queue_free(w->queue, NULL);
    mem_free(w);
}

enum status writer_start(const struct db_file *file, struct db *db, struct writer **out,
                         struct error *err)
{
    struct writer *w = writer_new(file);
    if (w == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the store");
    }
    w->db = *db;
    enum status st = start_thread(w, err);
    if (st != ST_OK) {
        w->db = (struct db){.handle = NULL}; /* still the caller's */
        writer_free(w);
        return st;
    }
    *db = (struct db){.handle = NULL};
    *out = w;
    return ST_OK;
}

void writer_stop(struct writer *w)
{
    if (w == NULL) {
        return;
    }
    queue_close(w->queue);
    pthread_join(w->thread, NULL);
    writer_free(w);
}

static enum status push(struct writer *w, struct write_op *op, struct error *err)
{
    enum status st = queue_push(w->queue, op);
    if (st == ST_BUSY) {
        return error_set(err, st, "the store is overloaded: try later");
    }
    return st == ST_OK ? st : error_set(err, st, "the store is closed");
}

enum status writer_run(struct writer *w, struct write_op *op, struct error *err)
{
    op->drop = NULL;
    op->done = false;
    op->status = ST_INTERNAL;
    enum status st = push(w, op, err);
    if (st != ST_OK) {
        return st;
    }
    pthread_mutex_lock(&w->lock);
    while (!op->done) {
        pthread_cond_wait(&w->finished, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    if (op->status != ST_OK && err != NULL) {
        *err = op->err;
    }
    return op->status;
}

enum status writer_post(struct writer *w, struct write_op *op, struct error *err)
{
    op->status = ST_INTERNAL;
    enum status st = push(w, op, err);
    if (st != ST_OK) {
        op->drop(op);
    }
    return st;
}

enum status writer_health(struct writer *w, struct error *err)
{
    pthread_mutex_lock(&w->lock);
    struct error health = w->health;
    bool probe = health.status != ST_OK && !w->probing;
    if (probe) {
        w->probing = queue_push(w->queue, &w->probe) == ST_OK;
    }
    pthread_mutex_unlock(&w->lock);
    if (health.status != ST_OK && err != NULL) {
        *err = health;
    }
    return health.status;
}

void writer_stats(struct writer *w, struct writer_stats *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->stats;
    pthread_mutex_unlock(&w->lock);
    out->queued = queue_count(w->queue);
}
