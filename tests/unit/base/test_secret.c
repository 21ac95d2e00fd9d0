/* Secrets: set, compared, replaced, gone. */
#include "support/test.h"

#include "base/secret.h"

static void life_of_a_secret(void **state)
{
    (void)state;
    struct secret s = {0};
    assert_false(secret_is_set(&s));
    assert_false(secret_matches(&s, STR_NONE));
    assert_false(secret_matches(&s, STR_LIT("x")));
    assert_int_equal(secret_set(&s, STR_LIT("sy_key")), ST_OK);
    assert_true(secret_is_set(&s));
    assert_true(secret_matches(&s, STR_LIT("sy_key")));
    assert_false(secret_matches(&s, STR_LIT("sy_ke")));
    assert_false(secret_matches(&s, STR_LIT("sy_keyy")));
    assert_false(secret_matches(&s, STR_NONE));
    assert_str_is(secret_expose(&s), "sy_key");
    assert_int_equal(secret_set(&s, STR_LIT("other")), ST_OK);
    assert_string_equal(s.ptr, "other");
    /* A value may be replaced by a part of itself. */
    assert_int_equal(secret_set(&s, str_n(s.ptr + 2, 3)), ST_OK);
    assert_string_equal(s.ptr, "her");
    assert_int_equal(secret_set(&s, STR_NONE), ST_OK);
    assert_false(secret_is_set(&s));
    assert_false(secret_matches(&s, STR_NONE));
    secret_done(&s);
    secret_done(&s);
    secret_done(NULL);
    assert_null(s.ptr);
}

static void failing_keeps_the_old_one(void **state)
{
    (void)state;
    struct secret s = {0};
    assert_int_equal(secret_set(&s, STR_LIT("old")), ST_OK);
    mem_fail_after(1);
    assert_int_equal(secret_set(&s, STR_LIT("new")), ST_NOMEM);
    assert_str_is(secret_expose(&s), "old");
    secret_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_of_a_secret),
        cmocka_unit_test(failing_keeps_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
