/* Arenas: alignment, zeroes, the maximum, overflow. */
#include "support/test.h"

#include "base/arena.h"

#include <wchar.h>

static void pieces_are_zeroed_and_aligned(void **state)
{
    (void)state;
    struct arena *a = arena_new(1 << 20);
    assert_non_null(a);
    for (size_t n = 0; n < 300; n++) {
        unsigned char *p = arena_alloc(a, n);
        assert_non_null(p);
        assert_true((uintptr_t)p % 16 == 0);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(p[i], 0);
        }
        memset(p, 0xAA, n);
    }
    assert_non_null(arena_alloc(a, 200000)); /* larger than any block */
    assert_non_null(arena_array(a, 10, 100));
    assert_null(arena_array(a, SIZE_MAX / 2, 3));
    assert_null(arena_alloc(a, SIZE_MAX));
    assert_string_equal(arena_dup(a, str_n("abc", 2)), "ab");
    assert_string_equal(arena_dup(a, STR_NONE), "");
    assert_null(arena_dup(a, str_n("", SIZE_MAX)));
    assert_string_equal(arena_printf(a, "%s=%d", "x", 7), "x=7");
    static const wchar_t unknown[] = {0x7FFFFFFF, 0}; /* vsnprintf fails on it */
    assert_null(arena_printf(a, "%ls", unknown));
    arena_free(a);
    arena_free(NULL);
}

static void the_maximum_holds(void **state)
{
    (void)state;
    struct arena *a = arena_new(64);
    assert_non_null(a);
    assert_non_null(arena_alloc(a, 48));
    assert_null(arena_alloc(a, 17));
    assert_int_equal(arena_used(a), 48);
    assert_non_null(arena_alloc(a, 16));
    assert_int_equal(arena_used(a), 64);
    assert_null(arena_alloc(a, 0));
    assert_null(arena_dup(a, STR_LIT("x")));
    assert_null(arena_printf(a, "x"));
    arena_free(a);
    a = arena_new(SIZE_MAX);
    assert_non_null(a);
    assert_null(arena_alloc(a, SIZE_MAX - 31)); /* the block's header would overflow */
    arena_free(a);
}

static bool can_build(void)
{
    struct arena *a = arena_new(1 << 20);
    bool ok = a != NULL;
    for (int i = 0; ok && i < 10; i++) {
        ok = arena_alloc(a, 3000) != NULL && arena_printf(a, "%d", i) != NULL;
    }
    arena_free(a);
    return ok;
}

static void sweep(void **state)
{
    (void)state;
    TEST_SWEEP(can_build());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zeroed_and_aligned),
        cmocka_unit_test(the_maximum_holds),
        cmocka_unit_test(sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
