/* UTF-8: every border of Unicode's table of well-formed sequences, and made visible. */
#include "support/test.h"

#include "base/utf8.h"

static void borders_of_the_table(void **state)
{
    (void)state;
    static const char *const good[] = {
        "",
        "a",
        "\x7F",
        "\xC2\x80",
        "\xDF\xBF",
        "\xE0\xA0\x80",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF",
        "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80",
    };
    static const char *const bad[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC2",
        "\xC2\x7F",
        "\xC2\xC0",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xE1\x80",
        "\xE1\x80\x7F",
        "\xE1\x80\xC0",
        "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF1\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFF",
        "\xFE",
        "\xF1\x80\x80\x7F",
        "\xE1",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(utf8_valid(str_c(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(utf8_valid(str_c(bad[i])));
        assert_int_equal(utf8_valid_prefix(str_c(bad[i])), 0);
    }
    assert_true(utf8_valid(str_n("\0", 1)));
    assert_int_equal(utf8_valid_prefix(STR_LIT("ab\xC3\xBC\xC3")), 4);
    assert_true(utf8_valid(STR_NONE));
}

static void cutting_keeps_characters_whole(void **state)
{
    (void)state;
    struct str s = STR_LIT("a\xC3\xBC\xF0\x9F\x98\x80");
    static const size_t wanted[] = {0, 1, 1, 3, 3, 3, 3, 7, 7};
    for (size_t n = 0; n < 9; n++) {
        assert_int_equal(utf8_cut(s, n), wanted[n]);
    }
    assert_int_equal(utf8_count(s), 3);
    assert_int_equal(utf8_count(STR_NONE), 0);
    assert_int_equal(utf8_cut(STR_LIT("\x80\x80"), 1), 0);
}

static void lossy_replaces_each_bad_byte(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    utf8_append_lossy(&b, STR_LIT("a\xFF\xC3\xBC\x80"));
    assert_str_is(buf_str(&b), "a\xEF\xBF\xBD\xC3\xBC\xEF\xBF\xBD");
    buf_clear(&b);
    utf8_append_lossy(&b, STR_LIT("good"));
    assert_str_is(buf_str(&b), "good");
    buf_clear(&b);
    utf8_append_lossy(&b, STR_NONE);
    assert_int_equal(b.len, 0);
    buf_done(&b);
}

static void check_visible(const char *text, bool keep_lines, const char *wanted)
{
    struct buf b;
    buf_init(&b, 1000);
    utf8_append_visible(&b, str_c(text), keep_lines);
    assert_int_equal(buf_status(&b), ST_OK);
    assert_str_is(buf_str(&b), wanted);
    buf_done(&b);
}

static void what_hides_is_shown(void **state)
{
    (void)state;
    check_visible("a\x1B[31m\n\tb\r", false, "a\\x1b[31m\\x0a\\x09b\\x0d");
    check_visible("a\n\tb\r", true, "a\n\tb\\x0d");
    check_visible("\xFF", true, "\\xff");
    check_visible("\x7F\xFFg\xC3\xBC", false, "\\x7f\\xffg\xC3\xBC");
    check_visible("\xC2\x9B", false, "\\u{9b}");          /* C1 CSI */
    check_visible("x\xE2\x80\xAEy", true, "x\\u{202e}y"); /* right-to-left override */
    check_visible("\xD8\x9C\xE2\x81\xA6", true, "\\u{61c}\\u{2066}");
    check_visible("\xE2\x80\x8B\xEF\xBB\xBF", true, "\\u{200b}\\u{feff}");
    check_visible("\xF3\xA0\x81\x81", true, "\\u{e0041}"); /* tag A */
    check_visible("\xE2\x80\x8D\xF0\x9F\x98\x80", true, "\xE2\x80\x8D\xF0\x9F\x98\x80");
    check_visible("\xC2\xA0", true, "\xC2\xA0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders_of_the_table),
        cmocka_unit_test(cutting_keeps_characters_whole),
        cmocka_unit_test(lossy_replaces_each_bad_byte),
        cmocka_unit_test(what_hides_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
