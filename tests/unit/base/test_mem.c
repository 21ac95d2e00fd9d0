/* The allocator's door: sizes, overflow, the fault counter. */
#include "support/test.h"

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    size_t out = 7;
    assert_true(size_add(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
    out = 7;
    assert_false(size_add(SIZE_MAX, 1, &out));
    assert_int_equal(out, 7);
    assert_true(size_mul(SIZE_MAX, 1, &out));
    assert_true(size_mul(SIZE_MAX, 0, &out));
    assert_int_equal(out, 0);
    assert_false(size_mul(SIZE_MAX / 2 + 1, 2, &out));
    assert_null(mem_array(SIZE_MAX / 4, 8));
    assert_null(mem_dup("", SIZE_MAX));
}

static void nothing_is_something(void **state)
{
    (void)state;
    void *p[5] = {mem_alloc(0), mem_zalloc(0), mem_array(0, 8), mem_realloc(NULL, 0),
                  mem_dup(NULL, 0)};
    for (size_t i = 0; i < 5; i++) {
        assert_non_null(p[i]);
        mem_free(p[i]);
    }
    mem_free(NULL);
}

static void content_is_as_promised(void **state)
{
    (void)state;
    char *z = mem_array(10, 10);
    assert_non_null(z);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(z[i], 0);
    }
    memcpy(z, "abc", 4);
    z = mem_realloc(z, 1000);
    assert_non_null(z);
    assert_string_equal(z, "abc");
    char *d = mem_dup("a\0b", 3);
    char *s = mem_strdup("word");
    assert_non_null(d);
    assert_non_null(s);
    assert_memory_equal(d, "a\0b\0", 4);
    assert_string_equal(s, "word");
    mem_wipe(s, 4);
    assert_memory_equal(s, "\0\0\0\0\0", 5);
    mem_wipe(NULL, 0);
    mem_free(z);
    mem_free(d);
    mem_free(s);
}

static void the_nth_allocation_fails_once(void **state)
{
    (void)state;
    uint64_t before = mem_alloc_count();
    mem_fail_after(2);
    void *a = mem_alloc(1);
    void *b = mem_zalloc(1);
    void *c = mem_alloc(1);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    assert_true(mem_alloc_count() - before == 3);
    mem_fail_after(1);
    assert_null(mem_realloc(a, 100)); /* a is still ours */
    mem_fail_after(1);
    assert_null(mem_strdup("x"));
    mem_fail_after(1);
    assert_null(mem_alloc(1));
    mem_fail_after(1);
    mem_fail_after(0);
    void *d = mem_alloc(1);
    assert_non_null(d);
    mem_free(a);
    mem_free(c);
    mem_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(nothing_is_something),
        cmocka_unit_test(content_is_as_promised),
        cmocka_unit_test(the_nth_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
