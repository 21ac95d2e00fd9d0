/* Token buckets per peer in a table of fixed size: when a row is full, the bucket that
 * was idle longest makes room. Time is an argument. One owner. */
#ifndef SOULACY_SERVER_LIMITS_H
#define SOULACY_SERVER_LIMITS_H

#include "server/access.h"

struct limits;

/* per_minute <= 0: no limit. buckets is rounded up to a power of two, at least 8. seed:
 * random, so that nobody can choose who shares a row with whom. */
struct limits *limits_new(int64_t per_minute, size_t buckets,
                          uint64_t seed) SY_MUST_CHECK;
void limits_free(struct limits *l); /* NULL is fine */
/* One more of this peer: true when it may. else *retry_ms says when the next one may. */
bool limits_take(struct limits *l, const struct net_addr *peer, int64_t now_ms,
                 int64_t *retry_ms);
/* Would limits_take say yes? */
bool limits_left(struct limits *l, const struct net_addr *peer, int64_t now_ms,
                 int64_t *retry_ms);
/* The last one taken does not count after all. */
void limits_refund(struct limits *l, const struct net_addr *peer);

#endif
