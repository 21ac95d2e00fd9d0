/* Views: comparisons, searching, splitting, numbers, at and around every border. */
#include "support/test.h"

static void views_compare(void **state)
{
    (void)state;
    assert_true(str_eq(STR_NONE, STR_LIT("")));
    assert_true(str_eq(str_c(NULL), STR_NONE));
    assert_true(str_eq_c(STR_LIT("a"), "a"));
    assert_false(str_eq_c(STR_LIT("a"), "b"));
    assert_false(str_eq_c(STR_LIT("a"), "ab"));
    assert_true(str_eq(str_n("a\0b", 3), str_n("a\0b", 3)));
    assert_false(str_eq(str_n("a\0b", 3), str_n("a\0c", 3)));
    assert_true(str_eq_nocase(STR_LIT("Content-@[`{"), STR_LIT("cONTENT-@[`{")));
    assert_false(str_eq_nocase(STR_LIT("@"), STR_LIT("`")));
    assert_false(str_eq_nocase(STR_LIT("ab"), STR_LIT("abc")));
    assert_true(str_starts(STR_LIT("abc"), STR_LIT("ab")));
    assert_true(str_starts(STR_LIT("abc"), STR_NONE));
    assert_false(str_starts(STR_LIT("a"), STR_LIT("ab")));
    assert_false(str_starts(STR_LIT("ba"), STR_LIT("ab")));
    assert_true(str_ends(STR_LIT("abc"), STR_LIT("bc")));
    assert_true(str_ends(STR_NONE, STR_NONE));
    assert_false(str_ends(STR_LIT("c"), STR_LIT("bc")));
    assert_false(str_ends(STR_LIT("bb"), STR_LIT("bc")));
}

static void white_space_goes(void **state)
{
    (void)state;
    assert_str_is(str_trim(STR_LIT(" \t\r\n\v\fa b \n")), "a b");
    assert_str_is(str_trim(STR_LIT(" \n ")), "");
    assert_str_is(str_trim(STR_NONE), "");
    assert_str_is(str_trim(STR_LIT("a")), "a");
    assert_int_equal(str_trim(str_n("\0", 1)).len, 1);
}

static void things_are_found(void **state)
{
    (void)state;
    assert_true(str_find_char(STR_NONE, 'a') == SIZE_MAX);
    assert_true(str_find_char(STR_LIT("abc"), 'd') == SIZE_MAX);
    assert_int_equal(str_find_char(STR_LIT("abc"), 'c'), 2);
    assert_int_equal(str_find(STR_LIT("aaab"), STR_LIT("aab")), 1);
    assert_int_equal(str_find(STR_LIT("abcabd"), STR_LIT("abd")), 3);
    assert_int_equal(str_find(STR_LIT("abc"), STR_NONE), 0);
    assert_int_equal(str_find(STR_LIT("abc"), STR_LIT("abc")), 0);
    assert_true(str_find(STR_LIT("abc"), STR_LIT("abcd")) == SIZE_MAX);
    assert_true(str_find(STR_LIT("aaaa"), STR_LIT("ab")) == SIZE_MAX);
    assert_true(str_find(STR_LIT("xa"), STR_LIT("ab")) == SIZE_MAX);
    assert_true(str_find(STR_LIT("xyz"), STR_LIT("a")) == SIZE_MAX);
    assert_true(str_find(STR_NONE, STR_LIT("a")) == SIZE_MAX);
}

static void splitting_gives_every_part(void **state)
{
    (void)state;
    struct str s = STR_LIT("a,,b,");
    struct str part;
    static const char *const wanted[] = {"a", "", "b", ""};
    for (size_t i = 0; i < 4; i++) {
        assert_true(str_split(&s, ',', &part));
        assert_str_is(part, wanted[i]);
    }
    assert_false(str_split(&s, ',', &part));
    s = STR_LIT("");
    assert_true(str_split(&s, ',', &part));
    assert_int_equal(part.len, 0);
    assert_false(str_split(&s, ',', &part));
}

static void secrets_compare(void **state)
{
    (void)state;
    assert_true(str_eq_secret(STR_LIT("key"), STR_LIT("key")));
    assert_false(str_eq_secret(STR_LIT("kez"), STR_LIT("key")));
    assert_false(str_eq_secret(STR_LIT("ke"), STR_LIT("key")));
    assert_false(str_eq_secret(STR_LIT("key1"), STR_LIT("key")));
    assert_false(str_eq_secret(str_n("key\0", 4), STR_LIT("key")));
    assert_false(str_eq_secret(STR_LIT("key"), str_n("key\0", 4)));
    assert_false(str_eq_secret(STR_NONE, STR_LIT("key")));
    assert_true(str_eq_secret(STR_NONE, STR_NONE));
}

static void numbers_are_strict(void **state)
{
    (void)state;
    int64_t v = 5;
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1a",
                                      "0x1",
                                      "--1",
                                      "1-",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "92233720368547758070",
                                      "/",
                                      ":"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(str_to_i64(str_c(bad[i]), INT64_MIN, INT64_MAX, &v), ST_INVALID);
    }
    assert_int_equal(v, 5);
    assert_int_equal(str_to_i64(STR_LIT("9223372036854775807"), INT64_MIN, INT64_MAX, &v),
                     ST_OK);
    assert_true(v == INT64_MAX);
    assert_int_equal(
        str_to_i64(STR_LIT("-9223372036854775808"), INT64_MIN, INT64_MAX, &v), ST_OK);
    assert_true(v == INT64_MIN);
    assert_int_equal(str_to_i64(STR_LIT("-0"), 0, 0, &v), ST_OK);
    assert_int_equal(v, 0);
    assert_int_equal(str_to_i64(STR_LIT("007"), 0, 7, &v), ST_OK);
    assert_int_equal(v, 7);
    assert_int_equal(str_to_i64(STR_LIT("8"), 0, 7, &v), ST_INVALID);
    assert_int_equal(str_to_i64(STR_LIT("-1"), 0, 7, &v), ST_INVALID);
    assert_int_equal(str_to_i64(str_n("12", 1), 0, 7, &v), ST_OK);
    assert_int_equal(v, 1);
}

static void distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(str_distance(STR_LIT("kitten"), STR_LIT("sitting")), 3);
    assert_int_equal(str_distance(STR_NONE, STR_LIT("abc")), 3);
    assert_int_equal(str_distance(STR_LIT("abc"), STR_NONE), 3);
    assert_int_equal(str_distance(STR_LIT("timeout"), STR_LIT("timout")), 1);
    assert_int_equal(str_distance(STR_LIT("a"), STR_LIT("a")), 0);
    char text[65];
    memset(text, 'a', sizeof(text));
    assert_int_equal(str_distance(str_n(text, 64), str_n(text, 63)), 1);
    assert_true(str_distance(str_n(text, 65), STR_NONE) == SIZE_MAX);
    assert_true(str_distance(STR_NONE, str_n(text, 65)) == SIZE_MAX);
}

static bool can_dup(void)
{
    char *s = str_dup(str_n("abc", 2));
    bool ok = s != NULL && strcmp(s, "ab") == 0;
    mem_free(s);
    return ok;
}

static void copies_end_in_nul(void **state)
{
    (void)state;
    TEST_SWEEP(can_dup());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_compare),
        cmocka_unit_test(white_space_goes),
        cmocka_unit_test(things_are_found),
        cmocka_unit_test(splitting_gives_every_part),
        cmocka_unit_test(secrets_compare),
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(copies_end_in_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
