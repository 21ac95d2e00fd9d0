/* An owned, growing byte string with a compulsory maximum; always a NUL after len.
 * Failure is sticky: after one failed append nothing more is added and buf_status()
 * says why (ST_NOMEM when out of memory, ST_TOO_LARGE at the maximum). So a writer
 * appends freely and checks once. */
#ifndef SOULACY_BASE_BUF_H
#define SOULACY_BASE_BUF_H

#include "base/status.h"
#include "base/str.h"

struct buf {
    char *ptr; /* never NULL after buf_init, "" while empty */
    size_t len, cap, max;
    enum status failed;
};

void buf_init(struct buf *b, size_t max); /* allocates nothing */
void buf_done(struct buf *b);             /* NULL and a zeroed struct are fine */
void buf_wipe(struct buf *b);             /* erase the bytes, then buf_done */
void buf_clear(struct buf *b);            /* len 0, failure forgotten, memory kept */
/* What is added must not lie in b itself. */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_c(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_add_hex(struct buf *b, const void *p, size_t n);
/* Room for n more bytes at ptr+len, zeroed, or NULL; the caller raises len. */
char *buf_room(struct buf *b, size_t n) SY_MUST_CHECK;
/* Drop the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);
enum status buf_status(const struct buf *b) SY_MUST_CHECK;
struct str buf_str(const struct buf *b);
/* Hand the memory over (mem_free it); the buf is empty afterwards. NULL if it failed. */
char *buf_take(struct buf *b) SY_MUST_CHECK;

#endif
