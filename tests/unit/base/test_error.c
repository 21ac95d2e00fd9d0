/* Errors: one clean line, cut on a border, context before it. */
#include "support/test.h"

#include "base/error.h"
#include "base/utf8.h"

#include <errno.h>
#include <wchar.h>

static void text_and_status_are_set(void **state)
{
    (void)state;
    struct error e;
    assert_int_equal(error_set(&e, ST_IO, "line %d", 7), ST_IO);
    assert_int_equal(e.status, ST_IO);
    assert_int_equal(e.os_errno, 0);
    assert_string_equal(e.text, "line 7");
    assert_int_equal(error_set_errno(&e, ST_IO, ENOENT, "open %s", "x"), ST_IO);
    assert_int_equal(e.os_errno, ENOENT);
    assert_string_equal(e.text, "open x: No such file or directory");
    assert_int_equal(error_set_errno(&e, ST_IO, 99999, "odd"), ST_IO);
    assert_non_null(strstr(e.text, "99999"));
    assert_int_equal(error_context(&e, "file %s", "a.yaml"), ST_IO);
    assert_true(strncmp(e.text, "file a.yaml: odd: ", 18) == 0);
    assert_int_equal(e.os_errno, 99999);
}

static void null_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, ST_BUSY, "x"), ST_BUSY);
    assert_int_equal(error_set_errno(NULL, ST_IO, 1, "x"), ST_IO);
    assert_int_equal(error_context(NULL, "x"), ST_INTERNAL);
}

static void text_is_one_clean_line(void **state)
{
    (void)state;
    struct error e;
    error_set(&e, ST_INVALID, "a\nb\x1B[m\x7F\xFFz\xC3\xBC");
    assert_string_equal(e.text, "a?b?[m??z\xC3\xBC");
    error_set(&e, ST_INVALID, "end \xC3"); /* not cut by us, so it is shown */
    assert_string_equal(e.text, "end ?");
}

static void long_text_is_cut_on_a_border(void **state)
{
    (void)state;
    struct error e;
    char text[600];
    for (size_t before = 500; before < 520; before++) {
        memset(text, 'a', sizeof(text));
        memcpy(text + before, "\xF0\x9F\x98\x80", 5);
        error_set(&e, ST_INVALID, "%s", text);
        size_t len = strlen(e.text);
        assert_true(utf8_valid(str_c(e.text)));
        assert_null(strchr(e.text, '?'));
        assert_int_equal(len, before + 4 <= 511 ? before + 4
                              : before > 511    ? 511
                                                : before);
    }
    memset(text, 'b', sizeof(text));
    text[599] = '\0';
    error_context(&e, "%s", text);
    assert_int_equal(strlen(e.text), 511);
    memset(text, 0x80, 511); /* invalid to the end, yet no cut character */
    error_set(&e, ST_INVALID, "%.520s", text);
    assert_int_equal(strlen(e.text), 511);
}

static void odd_arguments(void **state)
{
    (void)state;
    struct error e;
    error_set(&e, ST_IO, "inner");
    error_set(&e, ST_BUSY, "outer: %s", e.text); /* its own text as an argument */
    assert_string_equal(e.text, "outer: inner");
    static const wchar_t unknown[] = {0x7FFFFFFF, 0}; /* vsnprintf fails on it */
    error_set(&e, ST_IO, "x%ls", unknown);
    assert_string_equal(e.text, "");
    error_context(&e, "ctx");
    assert_string_equal(e.text, "ctx: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_status_are_set),
        cmocka_unit_test(null_is_allowed),
        cmocka_unit_test(text_is_one_clean_line),
        cmocka_unit_test(long_text_is_cut_on_a_border),
        cmocka_unit_test(odd_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
