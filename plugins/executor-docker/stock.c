/* Stock. Comes in: launches that are used, containers that are ready. Goes out: one of them
 * for one call. It makes no request: what has to go is put into the trash, which the keeper
 * empties. */
#include "docker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_MS (5 * 60 * 1000)

/* ---- the living and the trash ----------------------------------------------------------- */

bool live_has(const struct docker *d, uint64_t number)
{
    for (size_t i = 0; i < d->nlive; i++) {
        if (d->live[i] == number) {
            return true;
        }
    }
    return false;
}

static void live_remove_locked(struct docker *d, uint64_t number)
{
    for (size_t i = 0; i < d->nlive; i++) {
        if (d->live[i] == number) {
            d->live[i] = d->live[--d->nlive];
            return;
        }
    }
}

void live_remove(struct docker *d, uint64_t number)
{
    (void)pthread_mutex_lock(&d->lock);
    live_remove_locked(d, number);
    (void)pthread_mutex_unlock(&d->lock);
}

static void trash_locked(struct docker *d, struct box *b, const char *name,
                         uint64_t number, bool sure)
{
    if (d->ntrash >= TRASH_MAX) {
        /* The sweep finds it by its label once it is no longer among the living. */
        live_remove_locked(d, number);
        box_free(b);
        return;
    }
    struct trash *t = &d->trash[d->ntrash++];
    *t = (struct trash){.box = b, .number = number, .sure = sure, .pause_ms = 250};
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    t->since_ms = t->next_ms = engine_now(&d->engine);
}

void trash_box(struct docker *d, struct box *b)
{
    (void)pthread_mutex_lock(&d->lock);
    trash_locked(d, b, b->name, b->number, true);
    (void)pthread_mutex_unlock(&d->lock);
    keeper_wake(d);
}

void trash_name(struct docker *d, const char *name, uint64_t number, bool sure)
{
    (void)pthread_mutex_lock(&d->lock);
    trash_locked(d, NULL, name, number, sure);
    (void)pthread_mutex_unlock(&d->lock);
    keeper_wake(d);
}

/* ---- wants ------------------------------------------------------------------------------ */

void want_free(struct want *w)
{
    if (w != NULL) {
        for (size_t i = 0; w->argv != NULL && i < w->launch.nargv; i++) {
            free((char *)(uintptr_t)w->argv[i].ptr);
        }
        free(w->argv);
        free(w->key);
        free(w->preamble);
        free(w);
    }
}

static struct want *want_new(const struct sy_launch *l)
{
    struct want *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return NULL;
    }
    w->launch = *l;
    w->launch.mounts = NULL;
    w->launch.nmounts = 0;
    w->argv = calloc(l->nargv + 1, sizeof *w->argv);
    w->key = util_copy(l->key.ptr, l->key.len);
    w->preamble = util_copy(l->preamble.ptr, l->preamble.len);
    bool ok = w->argv != NULL && w->key != NULL && w->preamble != NULL;
    for (size_t i = 0; ok && i < l->nargv; i++) {
        w->argv[i].ptr = util_copy(l->argv[i].ptr, l->argv[i].len);
        w->argv[i].len = l->argv[i].len;
        ok = w->argv[i].ptr != NULL;
    }
    w->launch.argv = w->argv;
    w->launch.key.ptr = w->key;
    w->launch.preamble.ptr = w->preamble;
    if (!ok) {
        want_free(w);
        return NULL;
    }
    return w;
}

static bool same_key(struct sy_str a, struct sy_str b)
{
    return a.len == b.len && a.len > 0 && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static bool box_is(const struct box *b, struct sy_str key)
{
    return key.len == strlen(b->key) && memcmp(b->key, key.ptr, key.len) == 0;
}

static void drop_stock_at(struct docker *d, size_t i)
{
    struct box *b = d->stock[i];
    memmove(&d->stock[i], &d->stock[i + 1], (d->nstock - i - 1) * sizeof d->stock[0]);
    d->nstock--;
    trash_locked(d, b, b->name, b->number, true);
}

/* The launch is over for us: its stock goes too. */
static void drop_want_at(struct docker *d, size_t at)
{
    struct want *w = d->wants[at];
    d->wants[at] = d->wants[--d->nwants];
    for (size_t i = d->nstock; i > 0; i--) {
        if (box_is(d->stock[i - 1], w->launch.key)) {
            drop_stock_at(d, i - 1);
        }
    }
    want_free(w);
}

static struct want *find_want(struct docker *d, struct sy_str key)
{
    for (size_t i = 0; i < d->nwants; i++) {
        if (same_key(d->wants[i]->launch.key, key)) {
            return d->wants[i];
        }
    }
    return NULL;
}

static size_t oldest_want(const struct docker *d)
{
    size_t oldest = 0;
    for (size_t i = 1; i < d->nwants; i++) {
        if (d->wants[i]->used_ms < d->wants[oldest]->used_ms) {
            oldest = i;
        }
    }
    return oldest;
}

void stock_want(struct docker *d, const struct sy_launch *l)
{
    if (d->standby == 0 || l->key.len != KEY_LEN) {
        return;
    }
    int64_t now = engine_now(&d->engine);
    (void)pthread_mutex_lock(&d->lock);
    struct want *w = find_want(d, l->key);
    if (w != NULL) {
        w->used_ms = now;
        w->launch.id = l->id;
    } else if (!d->stopping) {
        w = want_new(l); /* without memory there is no stock, and the call goes on */
        if (w != NULL) {
            w->used_ms = now;
            if (d->nwants == WANTS_MAX) {
                drop_want_at(d, oldest_want(d));
            }
            d->wants[d->nwants++] = w;
        }
    }
    (void)pthread_mutex_unlock(&d->lock);
    keeper_wake(d);
}

void stock_retire(struct docker *d, uint64_t launch_id)
{
    (void)pthread_mutex_lock(&d->lock);
    for (size_t i = d->nwants; i > 0; i--) {
        if (d->wants[i - 1]->launch.id == launch_id) {
            drop_want_at(d, i - 1);
        }
    }
    (void)pthread_mutex_unlock(&d->lock);
    keeper_wake(d);
}

/* ---- boxes ------------------------------------------------------------------------------ */

/* Its stream has not ended. */
static bool is_alive(const struct box *b)
{
    char c;
    ssize_t n = recv(b->attach_fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

struct box *stock_take(struct docker *d, const struct sy_launch *l)
{
    struct box *found = NULL;
    (void)pthread_mutex_lock(&d->lock);
    for (size_t i = d->nstock; i > 0 && found == NULL; i--) {
        struct box *b = d->stock[i - 1];
        if (!box_is(b, l->key)) {
            continue;
        }
        if (b->epoch != d->epoch || !is_alive(b)) {
            drop_stock_at(d, i - 1);
            continue;
        }
        found = b;
        memmove(&d->stock[i - 1], &d->stock[i], (d->nstock - i) * sizeof d->stock[0]);
        d->nstock--;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return found;
}

void stock_put(struct docker *d, struct box *b)
{
    (void)pthread_mutex_lock(&d->lock);
    struct sy_str key = {b->key, strlen(b->key)};
    if (d->stopping || d->nstock >= STOCK_MAX || b->epoch != d->epoch ||
        find_want(d, key) == NULL) {
        trash_locked(d, b, b->name, b->number, true);
    } else {
        d->stock[d->nstock++] = b;
    }
    (void)pthread_mutex_unlock(&d->lock);
}

/* Over max_idle the launch that was used longest ago gives first. */
static void shed(struct docker *d)
{
    while (d->nstock > d->max_idle) {
        size_t victim = 0;
        int64_t oldest = INT64_MAX;
        for (size_t i = 0; i < d->nstock; i++) {
            struct sy_str key = {d->stock[i]->key, strlen(d->stock[i]->key)};
            const struct want *w = find_want(d, key);
            int64_t used = w != NULL ? w->used_ms : INT64_MIN;
            if (used < oldest) {
                oldest = used;
                victim = i;
            }
        }
        drop_stock_at(d, victim);
    }
}

void stock_tidy(struct docker *d)
{
    int64_t now = engine_now(&d->engine);
    (void)pthread_mutex_lock(&d->lock);
    for (size_t i = d->nwants; i > 0; i--) {
        if (now - d->wants[i - 1]->used_ms > IDLE_MS) {
            drop_want_at(d, i - 1);
        }
    }
    for (size_t i = d->nstock; i > 0; i--) {
        if (d->stock[i - 1]->epoch != d->epoch) {
            drop_stock_at(d, i - 1);
        } else if (!is_alive(d->stock[i - 1])) {
            drop_stock_at(d, i - 1);
            d->suspect = true;
            /* One that dies idle is made again no faster than this. */
            d->refill_pause_ms = d->refill_pause_ms < 250 ? 250 : d->refill_pause_ms * 2;
            d->refill_pause_ms = d->refill_pause_ms > 30000 ? 30000 : d->refill_pause_ms;
            d->refill_ms = now + d->refill_pause_ms;
        }
    }
    shed(d);
    (void)pthread_mutex_unlock(&d->lock);
}

void stock_clear(struct docker *d)
{
    (void)pthread_mutex_lock(&d->lock);
    while (d->nstock > 0) {
        drop_stock_at(d, d->nstock - 1);
    }
    (void)pthread_mutex_unlock(&d->lock);
}

/* When the launch was used that has stock and was used longest ago. */
static int64_t oldest_stocked(struct docker *d)
{
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < d->nstock; i++) {
        struct sy_str key = {d->stock[i]->key, strlen(d->stock[i]->key)};
        const struct want *w = find_want(d, key);
        if (w != NULL && w->used_ms < oldest) {
            oldest = w->used_ms;
        }
    }
    return oldest;
}

static size_t count_of(const struct docker *d, struct sy_str key)
{
    size_t n = 0;
    for (size_t i = 0; i < d->nstock; i++) {
        n += box_is(d->stock[i], key) ? 1 : 0;
    }
    return n;
}

struct want *stock_next(struct docker *d)
{
    struct want *copy = NULL;
    const struct want *best = NULL;
    (void)pthread_mutex_lock(&d->lock);
    bool may =
        !d->stopping && d->state == ENGINE_UP && engine_now(&d->engine) >= d->refill_ms;
    /* The most recent first. At max_idle only a launch without any stock gets some, which
     * shed() then takes from the one that was idle longest. */
    for (size_t i = 0; may && i < d->nwants; i++) {
        const struct want *w = d->wants[i];
        size_t have = count_of(d, w->launch.key);
        size_t most = d->standby < d->max_idle ? d->standby : d->max_idle;
        bool wanted = have < most && (d->nstock < d->max_idle || have == 0);
        if (wanted && d->nstock >= d->max_idle) {
            wanted = w->used_ms > oldest_stocked(d);
        }
        if (wanted && (best == NULL || w->used_ms > best->used_ms)) {
            best = w;
        }
    }
    if (best != NULL) {
        copy = want_new(&best->launch);
    }
    (void)pthread_mutex_unlock(&d->lock);
    return copy;
}
