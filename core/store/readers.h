/* A few read-only connections, opened when they are first needed. Private to the store. */
#ifndef SOULACY_STORE_READERS_H
#define SOULACY_STORE_READERS_H

#include "store/db.h"

struct readers;

/* file is borrowed for good. NULL: out of memory. */
struct readers *readers_new(const struct db_file *file) SY_MUST_CHECK;
void readers_free(struct readers *r); /* NULL is fine */
/* A connection of one's own until readers_put; waits when all are in use. [any] */
enum status readers_take(struct readers *r, struct db **out,
                         struct error *err) SY_MUST_CHECK;
void readers_put(struct readers *r, struct db *db); /* NULL is fine */

#endif
