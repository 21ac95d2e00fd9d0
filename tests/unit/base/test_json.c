/* JSON: what is refused and at which byte, what is accepted, members, writers. */
#include "support/test.h"

#include "base/json.h"
#include "base/utf8.h"

struct refused {
    const char *text;
    const char *why;
};

static void refused_with_the_byte(void **state)
{
    (void)state;
    static const struct refused all[] = {
        {"", "value expected, but the text ends at byte 0"},
        {"  ", "value expected, but the text ends at byte 2"},
        {"1 2", "something behind the value at byte 2"},
        {"{} x", "something behind the value at byte 3"},
        {"\xEF\xBB\xBF{}", "value expected at byte 0"},
        {"\"\xFF\"", "invalid UTF-8 at byte 1"},
        {"\"\xED\xA0\x80\"", "invalid UTF-8 at byte 1"},
        {"\"\\ud800\"", "lone surrogate at byte 1"},
        {"\"\\ud800x\\udc00\"", "lone surrogate at byte 1"},
        {"\"\\ud800\\n\"", "lone surrogate at byte 1"},
        {"\"\\ud800\\u0041\"", "lone surrogate at byte 1"},
        {"\"\\ud800\\ue000\"", "lone surrogate at byte 1"},
        {"\"\\udc00\\ud800\"", "lone surrogate at byte 1"},
        {"\"ab\\u00g0\"", "bad \\u escape"},
        {"\"\\u00/0\"", "bad \\u escape"},
        {"\"\\u00@0\"", "bad \\u escape"},
        {"\"\\u00G0\"", "bad \\u escape"},
        {"\"\\u00`0\"", "bad \\u escape"},
        {"\"\\u00:0\"", "bad \\u escape"},
        {"\"\\uaFf0\\uAFF\"", "bad \\u escape"},
        {"\"\\u00", "bad \\u escape"},
        {"\"\\u0000\"", "NUL in a string at byte 1"},
        {"\"\\x\"", "bad escape at byte 1"},
        {"\"\\", "bad escape at byte 1"},
        {"\"a\tb\"", "control byte in a string at byte 2"},
        {"\"abc", "string without end, begun at byte 0"},
        {"[\"abc\\\"]", "string without end, begun at byte 1"},
        {"01", "number with a leading zero at byte 0"},
        {"-01", "number with a leading zero at byte 0"},
        {"-", "digit expected, but the text ends at byte 1"},
        {"-a", "digit expected at byte 1"},
        {"+1", "value expected at byte 0"},
        {".5", "value expected at byte 0"},
        {"1.", "digit expected"},
        {"1.e5", "digit expected at byte 2"},
        {"1e", "digit expected"},
        {"1e+", "digit expected"},
        {"1e999", "number out of range at byte 0"},
        {"-1e999", "number out of range at byte 0"},
        {"0x10", "something behind the value at byte 1"},
        {"NaN", "value expected at byte 0"},
        {"Infinity", "value expected at byte 0"},
        {"nul", "value expected at byte 0"},
        {"True", "value expected at byte 0"},
        {"truex", "something behind the value at byte 4"},
        {"falsy", "value expected at byte 0"},
        {"[1,]", "value expected at byte 3"},
        {"[,1]", "value expected at byte 1"},
        {"[1 2]", "',' or ']' expected at byte 3"},
        {"[1}", "',' or ']' expected at byte 2"},
        {"[", "value expected, but the text ends at byte 1"},
        {"]", "value expected at byte 0"},
        {"{", "key expected, but the text ends at byte 1"},
        {"{1:2}", "key expected at byte 1"},
        {"{'a':2}", "key expected at byte 1"},
        {"{\"a\" 1}", "':' expected at byte 5"},
        {"{\"a\":1,}", "key expected at byte 7"},
        {"{\"a\":1]", "',' or '}' expected at byte 6"},
        {"{\"a\":}", "value expected at byte 5"},
        {"{\"a\":1 \"b\":2}", "',' or '}' expected at byte 7"},
        {"{\"a\\q\":1}", "bad escape at byte 3"},
        {"// c\n1", "value expected at byte 0"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "duplicate key \"a\" at byte 13"},
        {"{\"a\":1,\"\\u0061\":3}", "duplicate key \"\\u0061\" at byte 7"},
        {"{\"\\u00e4\":1,\"\xC3\xA4\":3}", "duplicate key"},
        {"{\"\\ud83d\\ude00\":1,\"\xF0\x9F\x98\x80\":3}", "duplicate key"},
        {"{\"\\n\":1,\"\\u000a\":3}", "duplicate key"},
        {"{\"\\/\":1,\"/\":3}", "duplicate key"},
        {"{\"\":1,\"\":3}", "duplicate key \"\""},
        {"[{\"x\":{\"b\":1,\"b\":1}}]", "duplicate key \"b\" at byte 13"},
        {"{\"x\":1,\"y\":{\"x\":[{\"x\":3}]},\"x\":1}", "duplicate key \"x\" at byte 27"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct error err = {0};
        cJSON *tree = NULL;
        assert_int_equal(json_check(str_c(all[i].text), 8, &err), ST_INVALID);
        if (strstr(err.text, all[i].why) == NULL) {
            fail_msg("%s: \"%s\" lacks \"%s\"", all[i].text, err.text, all[i].why);
        }
        assert_int_equal(json_parse(str_c(all[i].text), &tree, NULL), ST_INVALID);
        assert_null(tree);
    }
    struct error err;
    assert_int_equal(json_check(str_n("\"a\0b\"", 5), 8, &err), ST_INVALID);
    assert_int_equal(json_check(str_n("1\0", 2), 8, &err), ST_INVALID);
    assert_int_equal(json_check(str_n("\0", 1), 8, &err), ST_INVALID);
    assert_int_equal(json_check(str_n("[1,\0]", 5), 8, &err), ST_INVALID);
    assert_int_equal(json_check(str_n("\"\\\0\"", 4), 8, &err), ST_INVALID);
    assert_int_equal(json_check(STR_NONE, 8, &err), ST_INVALID);
}

static void accepted_and_parsed(void **state)
{
    (void)state;
    static const char *const all[] = {
        "0",
        "-0",
        "-0.0e-0",
        "1E+5",
        "1e-999",
        "1.7976931348623157e308",
        "null",
        "true",
        "false",
        "\"\"",
        "[]",
        "{}",
        " [ ] ",
        "\t{ }\r\n",
        "[[],{},[{}]]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\uD83D\\uDE00\xF0\x9F\x98\x80\x7F\"",
        "{\"a\":{\"a\":{\"a\":1}}}",
        "[{\"a\":1},{\"a\":1}]",
        "{\"a\":1,\"A\":1,\"\":0}",
        "{\"a\":1,\"aa\":1,\"ab\":2,\"\\u0062\":3}",
        "9007199254740993",
        "[1 , 2 ]",
        "{\"a\" : 1 , \"b\" : [ { \"a\" : 1 } ] }",
        "123456789012345678901234567890123456789012345678901234567890123",
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct error err = {0};
        cJSON *tree = NULL;
        if (json_check(str_c(all[i]), 8, &err) != ST_OK) {
            fail_msg("%s: %s", all[i], err.text);
        }
        assert_int_equal(json_parse(str_c(all[i]), &tree, &err), ST_OK);
        assert_non_null(tree);
        cJSON_Delete(tree);
    }
    struct error err;
    struct str exact = str_n("[1]x", 3); /* nothing behind the view is read */
    assert_int_equal(json_check(exact, 8, &err), ST_OK);
    assert_int_equal(
        json_check(
            STR_LIT("1234567890123456789012345678901234567890123456789012345678901234"),
            8, &err),
        ST_INVALID);
}

static void nest(struct buf *b, size_t depth)
{
    buf_clear(b);
    for (size_t i = 0; i < depth; i++) {
        buf_add_c(b, i % 2 == 0 ? "[" : "{\"a\":");
    }
    buf_add_c(b, "1");
    for (size_t i = depth; i-- > 0;) {
        buf_add_c(b, i % 2 == 0 ? "]" : "}");
    }
}

static void depth_is_capped(void **state)
{
    (void)state;
    struct buf b;
    struct error err;
    cJSON *tree = NULL;
    buf_init(&b, 1 << 22);
    static const size_t caps[] = {0, 1, 2, 64, 511, 512};
    for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
        nest(&b, caps[i]);
        assert_int_equal(json_check(buf_str(&b), caps[i], &err), ST_OK);
        nest(&b, caps[i] + 1);
        assert_int_equal(json_check(buf_str(&b), caps[i], &err), ST_INVALID);
        assert_non_null(strstr(err.text, "nested too deep"));
    }
    nest(&b, 513); /* the ceiling, whatever is asked for */
    assert_int_equal(json_check(buf_str(&b), SIZE_MAX, &err), ST_INVALID);
    nest(&b, 300000);
    assert_int_equal(json_check(buf_str(&b), SIZE_MAX, &err), ST_INVALID);
    nest(&b, JSON_MAX_DEPTH);
    assert_int_equal(json_parse(buf_str(&b), &tree, &err), ST_OK);
    cJSON_Delete(tree);
    assert_int_equal(json_check(STR_LIT("[]"), 0, &err), ST_INVALID);
    buf_done(&b);
}

/* n keys, the last of which is the first again if duplicate. */
static void many_keys(struct buf *b, int n, bool duplicate)
{
    buf_clear(b);
    buf_add_char(b, '{');
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof(key), "k%d", duplicate && i == n - 1 ? 0 : i);
        json_add_key_i64(b, key, i);
    }
    buf_add_char(b, '}');
}

static void many_keys_are_checked(void **state)
{
    (void)state;
    struct buf b;
    struct error err;
    buf_init(&b, 1 << 22);
    static const int counts[] = {2, 47, 48, 49, 97, 60000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        many_keys(&b, counts[i], false);
        assert_int_equal(json_check(buf_str(&b), 8, &err), ST_OK);
        many_keys(&b, counts[i], true);
        assert_int_equal(json_check(buf_str(&b), 8, &err), ST_INVALID);
        assert_non_null(strstr(err.text, "duplicate key \"k0\""));
    }
    /* The error stays one clean line of valid text, whatever the key is. */
    buf_clear(&b);
    buf_add_c(&b, "{\"");
    for (int i = 0; i < 100; i++) {
        buf_add_c(&b, "\xC3\xA4x");
    }
    char *half = str_dup(buf_str(&b));
    assert_non_null(half);
    buf_add_c(&b, "\":1,");
    buf_add_c(&b, half + 1);
    buf_add_c(&b, "\":1}");
    mem_free(half);
    assert_int_equal(json_check(buf_str(&b), 8, &err), ST_INVALID);
    assert_true(utf8_valid(str_c(err.text)));
    assert_true(strlen(err.text) < 120);
    buf_done(&b);
}

static void getters(void **state)
{
    (void)state;
    cJSON *o = NULL;
    struct str s;
    int64_t v = 3;
    bool b = false;
    assert_int_equal(
        json_parse(STR_LIT("{\"s\":\"x\\u00e4\",\"i\":-7,\"f\":1.5,\"w\":2.0,\"t\":true,"
                           "\"n\":null,\"m\":9007199254740991,\"big\":9007199254740992,"
                           "\"o\":{}}"),
                   &o, NULL),
        ST_OK);
    assert_true(json_get_str(o, "s", &s));
    assert_str_is(s, "x\xC3\xA4");
    assert_false(json_get_str(o, "S", &s));
    assert_false(json_get_str(o, "i", &s));
    assert_true(json_get_i64(o, "i", &v));
    assert_true(v == -7);
    assert_true(json_get_i64(o, "w", &v));
    assert_true(v == 2);
    assert_false(json_get_i64(o, "f", &v));
    assert_false(json_get_i64(o, "s", &v));
    assert_false(json_get_i64(o, "big", &v));
    assert_true(v == 2);
    assert_true(json_get_i64(o, "m", &v));
    assert_true(v == 9007199254740991);
    assert_true(json_get_bool(o, "t", &b));
    assert_true(b);
    assert_false(json_get_bool(o, "n", &b));
    assert_non_null(json_get(o, "n"));
    assert_null(json_get(o, "none"));
    assert_null(json_get(NULL, "n"));
    assert_null(json_get(json_get(o, "s"), "n"));
    assert_false(json_get_str(NULL, "n", &s));
    cJSON_Delete(o);
}

static void check_member(const char *text, const char *key, const char *wanted)
{
    struct str raw = STR_NONE;
    assert_int_equal(json_raw_member(str_c(text), key, &raw), ST_OK);
    assert_str_is(raw, wanted);
}

static void raw_members(void **state)
{
    (void)state;
    static const char text[] =
        " { \"a\" : 9007199254740993 , \"b\":[1,{\"a\":\"]}\\\"\"} ] ,\"c\\u00e4\\n\":"
        "\"x\",\"d\":true,\"e\":{\"a\":2}, \"\\ud83d\\ude00\" : -1e5}";
    check_member(text, "a", "9007199254740993");
    check_member(text, "b", "[1,{\"a\":\"]}\\\"\"} ]");
    check_member(text, "c\xC3\xA4\n", "\"x\"");
    check_member(text, "d", "true");
    check_member(text, "e", "{\"a\":2}");
    check_member(text, "\xF0\x9F\x98\x80", "-1e5");
    struct str raw;
    static const char *const absent[] = {"", "A", "aa", "c", "c\\u00e4\\n"};
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        assert_int_equal(json_raw_member(str_c(text), absent[i], &raw), ST_NOT_FOUND);
    }
    assert_int_equal(json_raw_member(STR_LIT("{}"), "a", &raw), ST_NOT_FOUND);
    check_member("{\"\\\\\":1}", "\\", "1"); /* a backslash in the plain key */
    check_member("{\"\\t\\/\\\"\":1}", "\t/\"", "1");
    /* Not checked before: nothing is read behind the end. */
    static const char *const broken[] = {
        "",          "[]",       "1",         "{",         "{\"",       "{\"a",
        "{\"a\\",    "{\"a\"",   "{\"a\":",   "{\"a\":}",  "{\"a\":[",  "{\"a\":[\"",
        "{\"a\":\"", "{\"b\":1", "{\"b\":1,", "{\"b\" 1}", "{\"b\":,}", "{\"a\":]}",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        assert_int_equal(json_raw_member(str_c(broken[i]), "a", &raw), ST_INVALID);
    }
    assert_int_equal(json_raw_member(STR_LIT("{\"\xF0\":1}"), "a", &raw), ST_NOT_FOUND);
    assert_int_equal(json_raw_member(STR_LIT("{\"\\q\":1}"), "\\", &raw), ST_OK);
}

static void writers(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1000);
    buf_add_char(&b, '{');
    json_add_key_string(&b, "s", STR_LIT("\"\\\n\r\t\x01\x7F/\xC3\xA4\xFFz"));
    json_add_key_i64(&b, "i", INT64_MIN);
    json_add_key_bool(&b, "t", true);
    json_add_key_bool(&b, "f", false);
    json_add_key_raw(&b, "r", STR_LIT("[1]"));
    json_add_key_raw(&b, "n", STR_NONE);
    json_add_key(&b, "l\"");
    buf_add_char(&b, '[');
    json_add_sep(&b);
    buf_add_char(&b, '1');
    json_add_sep(&b);
    json_add_string(&b, STR_NONE);
    buf_add_c(&b, "]}");
    assert_str_is(
        buf_str(&b),
        "{\"s\":\"\\\"\\\\\\n\\r\\t\\u0001\\u007f/\xC3\xA4\xEF\xBF\xBDz\","
        "\"i\":-9223372036854775808,\"t\":true,\"f\":false,\"r\":[1],\"n\":null,"
        "\"l\\\"\":[1,\"\"]}");
    assert_int_equal(json_check(buf_str(&b), 8, NULL), ST_OK);
    buf_clear(&b);
    json_add_sep(&b);
    json_add_string(&b, STR_LIT("x\xC3"));
    assert_str_is(buf_str(&b), "\"x\xEF\xBF\xBD\"");
    buf_done(&b);
    buf_init(&b, 5);
    json_add_string(&b, STR_LIT("12345"));
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    buf_done(&b);
}

static bool can_parse(struct str text)
{
    cJSON *tree = NULL;
    struct error err;
    enum status st = json_parse(text, &tree, &err);
    assert_true(st == ST_OK || st == ST_NOMEM);
    cJSON_Delete(tree);
    return st == ST_OK;
}

static void sweep(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1 << 20);
    many_keys(&b, 200, false);
    json_init();
    TEST_SWEEP(can_parse(buf_str(&b)));
    cJSON_InitHooks(NULL);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_with_the_byte),
        cmocka_unit_test(accepted_and_parsed),
        cmocka_unit_test(depth_is_capped),
        cmocka_unit_test(many_keys_are_checked),
        cmocka_unit_test(getters),
        cmocka_unit_test(raw_members),
        cmocka_unit_test(writers),
        cmocka_unit_test(sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
