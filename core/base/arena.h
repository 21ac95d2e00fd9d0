/* Many small allocations that die together. Not thread-safe: one owner. */
#ifndef SOULACY_BASE_ARENA_H
#define SOULACY_BASE_ARENA_H

#include "base/str.h"

struct arena;

struct arena *arena_new(size_t max_bytes) SY_MUST_CHECK;    /* NULL: out of memory */
void arena_free(struct arena *a);                           /* NULL is fine */
void *arena_alloc(struct arena *a, size_t n) SY_MUST_CHECK; /* zeroed, 16-aligned */
void *arena_array(struct arena *a, size_t n, size_t size) SY_MUST_CHECK;
char *arena_dup(struct arena *a, struct str s) SY_MUST_CHECK; /* NUL-terminated */
char *arena_printf(struct arena *a, const char *fmt, ...) SY_MUST_CHECK
    __attribute__((format(printf, 2, 3)));
size_t arena_used(const struct arena *a);

#endif
