/* Comes in: a peer and the time. Goes out: whether one more request of it is within the
 * rate. Never grows: the table is made once, and an address that wants a place takes that
 * of the longest idle one of its row. */
#include "server/limits.h"

#include "base/mem.h"

#include <string.h>

#define WAYS 8U
#define MINUTE_MS 60000

struct bucket {
    unsigned char key[16];
    int64_t at_ms;  /* when tokens was right; 0: free */
    int64_t tokens; /* in units of 1 / MINUTE_MS */
};

struct limits {
    int64_t per_minute;
    size_t rows; /* a power of two */
    uint64_t seed;
    struct bucket *buckets;
};

struct limits *limits_new(int64_t per_minute, size_t buckets, uint64_t seed)
{
    struct limits *l = mem_zalloc(sizeof *l);
    if (!l) {
        return NULL;
    }
    l->per_minute = per_minute > 1000000 ? 1000000 : per_minute;
    l->seed = seed;
    l->rows = 1;
    while (l->rows * WAYS < buckets) {
        l->rows *= 2;
    }
    l->buckets = mem_array(l->rows * WAYS, sizeof *l->buckets);
    if (!l->buckets) {
        mem_free(l);
        return NULL;
    }
    return l;
}

void limits_free(struct limits *l)
{
    if (l) {
        mem_free(l->buckets);
        mem_free(l);
    }
}

/* FNV with a secret start and a final mix: enough to spread, cheap for each request. */
static size_t row_of(const struct limits *l, const struct net_addr *key)
{
    uint64_t h = l->seed;
    for (size_t i = 0; i < sizeof key->b; i++) {
        h = (h ^ key->b[i]) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
    }
    h = (h ^ (h >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 40) & (l->rows - 1);
}

static struct bucket *find(struct limits *l, const struct net_addr *peer, int64_t now_ms)
{
    struct net_addr key = net_addr_group(peer);
    struct bucket *row = &l->buckets[row_of(l, &key) * WAYS];
    struct bucket *oldest = row;
    for (size_t i = 0; i < WAYS; i++) {
        if (row[i].at_ms != 0 && memcmp(row[i].key, key.b, sizeof key.b) == 0) {
            return &row[i];
        }
        if (row[i].at_ms < oldest->at_ms) {
            oldest = &row[i];
        }
    }
    memcpy(oldest->key, key.b, sizeof key.b);
    oldest->at_ms = now_ms > 0 ? now_ms : 1;
    oldest->tokens = l->per_minute * MINUTE_MS;
    return oldest;
}

static bool refill(struct limits *l, const struct net_addr *peer, int64_t now_ms,
                   int64_t *retry_ms, struct bucket **out)
{
    struct bucket *b = find(l, peer, now_ms);
    int64_t passed = now_ms - b->at_ms;
    if (passed > 0) {
        passed = passed > MINUTE_MS ? MINUTE_MS : passed;
        b->tokens += passed * l->per_minute;
        if (b->tokens > l->per_minute * MINUTE_MS) {
            b->tokens = l->per_minute * MINUTE_MS;
        }
        b->at_ms = now_ms;
    }
    *out = b;
    if (b->tokens >= MINUTE_MS) {
        return true;
    }
    *retry_ms = (MINUTE_MS - b->tokens + l->per_minute - 1) / l->per_minute;
    return false;
}

bool limits_take(struct limits *l, const struct net_addr *peer, int64_t now_ms,
                 int64_t *retry_ms)
{
    struct bucket *b = NULL;
    if (l->per_minute <= 0) {
        return true;
    }
    if (!refill(l, peer, now_ms, retry_ms, &b)) {
        return false;
    }
    b->tokens -= MINUTE_MS;
    return true;
}

bool limits_left(struct limits *l, const struct net_addr *peer, int64_t now_ms,
                 int64_t *retry_ms)
{
    struct bucket *b = NULL;
    return l->per_minute <= 0 || refill(l, peer, now_ms, retry_ms, &b);
}

void limits_refund(struct limits *l, const struct net_addr *peer)
{
    if (l->per_minute <= 0) {
        return;
    }
    /* A bucket that was given away meanwhile is full: nothing to give back. */
    struct bucket *b = find(l, peer, 1);
    b->tokens += MINUTE_MS;
    if (b->tokens > l->per_minute * MINUTE_MS) {
        b->tokens = l->per_minute * MINUTE_MS;
    }
}
