/* What a Python says of itself, as a struct. */
#include "support/test.h"

#include "base/buf.h"
#include "sandbox/interpreter.h"

static void test_answer(void **state)
{
    (void)state;
    struct interpreter i = {0};
    assert_int_equal(interpreter_parse(STR_LIT("noise\n"
                                               "a wrapper speaks\n"
                                               "path /usr/bin/python3.11\n"
                                               "path /other\n"
                                               "version 3.11.2\n"
                                               "version 4\n"
                                               "read /usr\n"
                                               "read /opt/my libs\n"
                                               "read /\n"
                                               "read relative\n"
                                               "read \n"),
                                       &i, NULL),
                     ST_OK);
    assert_string_equal(i.path, "/usr/bin/python3.11");
    assert_string_equal(i.version, "3.11.2");
    assert_int_equal(i.paths.n, 2); /* never "/", nothing relative */
    assert_string_equal(i.paths.items[0], "/usr");
    assert_string_equal(i.paths.items[1], "/opt/my libs");
    interpreter_done(&i);
    interpreter_done(&i);
}

static void test_no_answer(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "\n",
                                      "path /usr/bin/python3\n",
                                      "version 3\n",
                                      "path python3\nversion 3\n",
                                      "path \nversion 3\n",
                                      "path/usr/bin/python3\nversion 3\n"};
    for (size_t n = 0; n < sizeof(bad) / sizeof(bad[0]); n++) {
        struct interpreter i = {0};
        struct error err = {0};
        assert_int_equal(interpreter_parse(str_c(bad[n]), &i, &err), ST_INVALID);
        assert_null(i.path);
        assert_true(err.text[0] != '\0');
    }
}

static enum status parse_paths(size_t n)
{
    struct interpreter i = {0};
    struct buf b;
    enum status st;
    buf_init(&b, (size_t)64 * 1024);
    buf_add_c(&b, "path /p\nversion 3\n");
    for (size_t k = 0; k < n; k++) {
        buf_addf(&b, "read /p%zu\n", k);
    }
    st = interpreter_parse(buf_str(&b), &i, NULL);
    buf_done(&b);
    interpreter_done(&i);
    return st;
}

static void test_path_limit(void **state)
{
    (void)state;
    assert_int_equal(parse_paths(127), ST_OK);
    assert_int_equal(parse_paths(128), ST_OK);
    assert_int_equal(parse_paths(129), ST_TOO_LARGE);
}

static bool parses(void)
{
    struct interpreter i = {0};
    struct error err = {0};
    enum status st =
        interpreter_parse(STR_LIT("path /p\nversion 3\nread /a\nread /b\n"), &i, &err);
    assert_true(st == ST_OK || (st == ST_NOMEM && err.status == ST_NOMEM));
    interpreter_done(&i);
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    TEST_SWEEP(parses());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_path_limit),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("interpreter", tests, NULL, NULL);
}
