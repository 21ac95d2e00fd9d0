/* Growing bytes with a compulsory maximum. In: bytes, formats. Out: one run of bytes
 * with a NUL behind it, or a sticky failure that buf_status tells. Never holds more than
 * max bytes, never adds a part of what was asked. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAP 64

/* What ptr shows while nothing is allocated. Nobody writes to it: every writer goes
 * through grow() first, which replaces it. */
static char nothing[1];

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.ptr = nothing, .max = max, .failed = ST_OK};
}

static bool owns_memory(const struct buf *b)
{
    return b->cap != 0;
}

void buf_done(struct buf *b)
{
    if (b == NULL) {
        return;
    }
    if (owns_memory(b)) {
        mem_free(b->ptr);
    }
    buf_init(b, b->max);
}

void buf_wipe(struct buf *b)
{
    if (b != NULL && owns_memory(b)) {
        mem_wipe(b->ptr, b->cap);
    }
    buf_done(b);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = ST_OK;
    if (owns_memory(b)) {
        b->ptr[0] = '\0';
    }
}

/* Make room for n bytes and a NUL behind len; false, and failed set, if that cannot be. */
static bool grow(struct buf *b, size_t n)
{
    if (b->failed != ST_OK) {
        return false;
    }
    if (b->len > b->max || n > b->max - b->len || b->max == SIZE_MAX) {
        b->failed = ST_TOO_LARGE;
        return false;
    }
    size_t need = b->len + n + 1; /* no overflow: at most max + 1 */
    if (need <= b->cap) {
        return true;
    }
    size_t cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;
    cap = cap < FIRST_CAP ? FIRST_CAP : cap;
    cap = cap > b->max + 1 ? b->max + 1 : cap;
    cap = cap < need ? need : cap;
    char *p = mem_realloc(owns_memory(b) ? b->ptr : NULL, cap);
    if (p == NULL) {
        b->failed = ST_NOMEM;
        return false;
    }
    b->ptr = p;
    b->cap = cap;
    b->ptr[b->len] = '\0';
    return true;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (n != 0 && grow(b, n)) {
        memcpy(b->ptr + b->len, p, n);
        b->len += n;
        b->ptr[b->len] = '\0';
    }
}

void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.ptr, s.len);
}

void buf_add_c(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    char small[256]; /* most pieces fit: one pass, no allocation */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = b->failed != ST_OK ? b->failed : ST_INVALID;
        return;
    }
    if ((size_t)n < sizeof(small)) {
        buf_add(b, small, (size_t)n);
        return;
    }
    if (!grow(b, (size_t)n)) {
        return;
    }
    va_start(ap, fmt);
    int again = vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += again == n ? (size_t)n : 0;
    b->ptr[b->len] = '\0';
}

void buf_add_hex(struct buf *b, const void *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = p;
    size_t twice;
    if (!size_mul(n, 2, &twice)) {
        b->failed = b->failed != ST_OK ? b->failed : ST_TOO_LARGE;
        return;
    }
    if (n == 0 || !grow(b, twice)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        b->ptr[b->len++] = digits[bytes[i] >> 4];
        b->ptr[b->len++] = digits[bytes[i] & 0x0FU];
    }
    b->ptr[b->len] = '\0';
}

char *buf_room(struct buf *b, size_t n)
{
    if (!grow(b, n)) {
        return NULL;
    }
    /* Zeroed, so that a NUL follows wherever the caller leaves len. */
    memset(b->ptr + b->len, 0, n + 1);
    return b->ptr + b->len;
}

void buf_consume(struct buf *b, size_t n)
{
    n = n > b->len ? b->len : n;
    if (n != 0) {
        b->len -= n;
        memmove(b->ptr, b->ptr + n, b->len + 1);
    }
}

enum status buf_status(const struct buf *b)
{
    return b->failed;
}

struct str buf_str(const struct buf *b)
{
    return str_n(b->ptr, b->len);
}

char *buf_take(struct buf *b)
{
    if (b->failed != ST_OK || !grow(b, 0)) {
        return NULL;
    }
    char *p = b->ptr;
    buf_init(b, b->max);
    return p;
}
