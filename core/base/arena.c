/* An arena: blocks in a list, freed together. In: sizes. Out: zeroed memory, 16-aligned,
 * or NULL at the maximum or out of memory. Never frees one piece, never moves one. */
#include "base/arena.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ALIGN 16
#define BLOCK_FIRST 4096
#define BLOCK_MAX 65536

struct block {
    struct block *next;
    size_t used, size; /* of the bytes behind this header */
};

struct arena {
    struct block *blocks; /* newest first; pieces come from the first */
    size_t max, used, next_size;
};

/* Where a block's bytes begin: the header, rounded up to the alignment. */
#define HEADER ((sizeof(struct block) + ALIGN - 1) / ALIGN * ALIGN)

struct arena *arena_new(size_t max_bytes)
{
    struct arena *a = mem_zalloc(sizeof(*a));
    if (a != NULL) {
        a->max = max_bytes;
        a->next_size = BLOCK_FIRST;
    }
    return a;
}

void arena_free(struct arena *a)
{
    if (a == NULL) {
        return;
    }
    struct block *b = a->blocks;
    while (b != NULL) {
        struct block *next = b->next;
        mem_free(b);
        b = next;
    }
    mem_free(a);
}

/* A new block with room for n, at the head of the list. */
static struct block *add_block(struct arena *a, size_t n)
{
    size_t size = n > a->next_size ? n : a->next_size;
    size_t total;
    if (!size_add(size, HEADER, &total)) {
        return NULL;
    }
    struct block *b = mem_zalloc(total);
    if (b == NULL) {
        return NULL;
    }
    b->size = size;
    b->next = a->blocks;
    a->blocks = b;
    if (a->next_size < BLOCK_MAX) {
        a->next_size *= 2;
    }
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    size_t rounded;
    if (!size_add(n != 0 ? n : 1, ALIGN - 1, &rounded)) {
        return NULL;
    }
    rounded -= rounded % ALIGN;
    if (rounded > a->max - a->used) {
        return NULL;
    }
    struct block *b = a->blocks;
    if (b == NULL || rounded > b->size - b->used) {
        b = add_block(a, rounded);
        if (b == NULL) {
            return NULL;
        }
    }
    char *p = (char *)b + HEADER + b->used;
    b->used += rounded;
    a->used += rounded;
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t total;
    return size_mul(n, size, &total) ? arena_alloc(a, total) : NULL;
}

char *arena_dup(struct arena *a, struct str s)
{
    size_t total;
    char *p = size_add(s.len, 1, &total) ? arena_alloc(a, total) : NULL;
    if (p != NULL && s.len != 0) {
        memcpy(p, s.ptr, s.len);
    }
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        return NULL;
    }
    char *p = arena_alloc(a, (size_t)n + 1);
    if (p == NULL) {
        return NULL;
    }
    va_start(ap, fmt);
    int again = vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return again == n ? p : NULL;
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}
