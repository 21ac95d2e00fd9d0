/* The only door to the allocator. Every failure is reported, none is fatal.
 * mem_fail_after() makes the n-th allocation from now fail (tests: "the sweep"). */
#ifndef SOULACY_BASE_MEM_H
#define SOULACY_BASE_MEM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t n) SY_MUST_CHECK;  /* uninitialised; n == 0 gives 1 byte */
void *mem_zalloc(size_t n) SY_MUST_CHECK; /* zeroed */
void *mem_array(size_t n, size_t size) SY_MUST_CHECK; /* zeroed, overflow-checked */
void *mem_realloc(void *p, size_t n) SY_MUST_CHECK;
void *mem_dup(const void *p, size_t n) SY_MUST_CHECK; /* copy, and a NUL after it */
char *mem_strdup(const char *s) SY_MUST_CHECK;
void mem_free(void *p);

bool size_add(size_t a, size_t b, size_t *out) SY_MUST_CHECK; /* false on overflow */
bool size_mul(size_t a, size_t b, size_t *out) SY_MUST_CHECK;

/* Overwrite n bytes in a way the compiler may not drop. p may be NULL when n is 0. */
void mem_wipe(void *p, size_t n);

/* Test aid, process-wide: 0 switches it off; otherwise allocation number n from now
 * fails once. mem_alloc_count() is the number of allocations since process start. */
void mem_fail_after(uint64_t n);
uint64_t mem_alloc_count(void);

#endif
