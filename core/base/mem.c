/* The allocator's only door. In: sizes. Out: memory or NULL. Never aborts, never lets a
 * size overflow. The two counters below are the only mutable globals of the core: they
 * are a test aid, and must sit where every allocation passes. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t alloc_count;
static _Atomic uint64_t fail_in; /* 0: off; else this many allocations from now fails */

static bool must_fail(void)
{
    atomic_fetch_add_explicit(&alloc_count, 1, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&fail_in, memory_order_relaxed);
    while (left != 0) {
        if (atomic_compare_exchange_weak_explicit(
                &fail_in, &left, left - 1, memory_order_relaxed, memory_order_relaxed)) {
            return left == 1;
        }
    }
    return false;
}

void *mem_alloc(size_t n)
{
    if (must_fail()) {
        return NULL;
    }
    return malloc(n != 0 ? n : 1);
}

void *mem_zalloc(size_t n)
{
    return mem_array(1, n);
}

void *mem_array(size_t n, size_t size)
{
    size_t total;
    if (must_fail() || !size_mul(n, size, &total)) {
        return NULL;
    }
    return calloc(1, total != 0 ? total : 1);
}

void *mem_realloc(void *p, size_t n)
{
    if (must_fail()) {
        return NULL;
    }
    return realloc(p, n != 0 ? n : 1);
}

void *mem_dup(const void *p, size_t n)
{
    size_t total;
    if (!size_add(n, 1, &total)) {
        return NULL;
    }
    char *copy = mem_alloc(total);
    if (copy == NULL) {
        return NULL;
    }
    if (n != 0) {
        memcpy(copy, p, n);
    }
    copy[n] = '\0';
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_dup(s, strlen(s));
}

void mem_free(void *p)
{
    free(p);
}

bool size_add(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

bool size_mul(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

void mem_wipe(void *p, size_t n)
{
    /* Called through a volatile pointer, so the compiler cannot know it is memset and
     * drop it as a dead store. */
    static void *(*const volatile wipe)(void *, int, size_t) = memset;
    if (n != 0) {
        wipe(p, 0, n);
    }
}

void mem_fail_after(uint64_t n)
{
    atomic_store(&fail_in, n);
}

uint64_t mem_alloc_count(void)
{
    return atomic_load(&alloc_count);
}
