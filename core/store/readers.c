/* Read-only connections. In: threads that want to read. Out: a connection for each, at
 * most READERS at a time. The first free one is taken, so that a quiet gateway opens one
 * only. Never writes. Each lock is held by whoever has taken that connection and guards
 * it alone. */
#include "store/readers.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>

#define READERS 4

struct reader {
    struct db db;
    pthread_mutex_t lock;
};

struct readers {
    const struct db_file *file;
    struct reader all[READERS];
    atomic_uint turn; /* whose lock to wait for when all are taken */
};

struct readers *readers_new(const struct db_file *file)
{
    struct readers *r = mem_zalloc(sizeof(*r));
    if (r == NULL) {
        return NULL;
    }
    r->file = file;
    for (size_t i = 0; i < READERS; i++) {
        pthread_mutex_init(&r->all[i].lock, NULL); /* cannot fail with Linux's futexes */
    }
    return r;
}

void readers_free(struct readers *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < READERS; i++) {
        db_close(&r->all[i].db);
        pthread_mutex_destroy(&r->all[i].lock);
    }
    mem_free(r);
}

static struct reader *lock_one(struct readers *r)
{
    for (size_t i = 0; i < READERS; i++) {
        if (pthread_mutex_trylock(&r->all[i].lock) == 0) {
            return &r->all[i];
        }
    }
    struct reader *one = &r->all[atomic_fetch_add(&r->turn, 1) % READERS];
    pthread_mutex_lock(&one->lock);
    return one;
}

enum status readers_take(struct readers *r, struct db **out, struct error *err)
{
    struct reader *one = lock_one(r);
    db_close_if_stale(&one->db);
    if (one->db.handle == NULL) {
        enum status st = db_open(r->file, DB_READ, &one->db, err);
        if (st != ST_OK) {
            pthread_mutex_unlock(&one->lock);
            return st;
        }
    }
    *out = &one->db;
    return ST_OK;
}

void readers_put(struct readers *r, struct db *db)
{
    for (size_t i = 0; db != NULL && i < READERS; i++) {
        if (&r->all[i].db == db) {
            pthread_mutex_unlock(&r->all[i].lock);
            return;
        }
    }
}
