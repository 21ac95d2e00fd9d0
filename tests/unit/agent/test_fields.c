/* Members of a request against a table: types, limits, what is unknown or missing. */
#include "support/test.h"

#include "agent/fields.h"

struct values {
    struct str name, note, args;
    int64_t n;
    const char *bad;
    struct error err;
};

static enum status read_all(struct values *v, const char *json)
{
    const struct field fields[] = {
        {"name", FIELD_TEXT, true, 1, 5, &v->name, NULL},
        {"note", FIELD_TEXT, false, 0, 3, &v->note, NULL},
        {"args", FIELD_OBJECT, false, 0, 0, &v->args, NULL},
        {"n", FIELD_INT, false, -1, 9007199254740990, NULL, &v->n},
    };
    cJSON *doc = NULL;
    enum status st;
    static char name[32], note[32];
    *v = (struct values){.n = 7};
    assert_int_equal(json_parse(str_c(json), &doc, NULL), ST_OK);
    st = fields_read(doc, str_c(json), fields, 4, &v->bad, &v->err);
    /* what was read lives in doc */
    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(v->name));
    (void)snprintf(note, sizeof(note), "%.*s", STR_ARG(v->note));
    v->name.ptr = name;
    v->note.ptr = note;
    if (v->bad != NULL && strcmp(v->bad, "other") == 0) {
        v->bad = "other"; /* its text is of doc too */
    }
    cJSON_Delete(doc);
    return st;
}

static void refused(const char *json, const char *field, const char *text)
{
    struct values v;
    assert_int_equal(read_all(&v, json), ST_INVALID);
    assert_string_equal(v.bad, field);
    assert_string_equal(v.err.text, text);
}

static void test_good(void **state)
{
    (void)state;
    struct values v;
    assert_int_equal(read_all(&v, "{\"name\":\"a\"}"), ST_OK);
    assert_str_is(v.name, "a");
    assert_int_equal(v.note.len, 0);
    assert_int_equal(v.args.len, 0);
    assert_int_equal(v.n, 7); /* what is absent stays as it was */
    assert_null(v.bad);
    assert_int_equal(
        read_all(&v, "{\"args\":{\"x\": 9007199254740993},\"n\":-1,\"note\":\"\","
                     "\"name\":\"abcde\"}"),
        ST_OK);
    assert_str_is(v.name, "abcde");
    assert_str_is(v.args, "{\"x\": 9007199254740993}"); /* the very bytes */
    assert_int_equal(v.n, -1);
    assert_int_equal(read_all(&v, "{\"n\\u0061me\":\"x\",\"\\u0061rgs\":{}}"), ST_OK);
    assert_str_is(v.name, "x");
    assert_str_is(v.args, "{}");
    assert_int_equal(read_all(&v, "{\"name\":\"a\",\"n\":9007199254740990}"), ST_OK);
    assert_true(v.n == 9007199254740990);
}

static void test_bad(void **state)
{
    (void)state;
    refused("{}", "name", "name is missing");
    refused("{\"name\":null}", "name", "name must be a string");
    refused("{\"name\":1}", "name", "name must be a string");
    refused("{\"name\":[\"a\"]}", "name", "name must be a string");
    refused("{\"name\":\"\"}", "name", "name must not be empty");
    refused("{\"name\":\"abcdef\"}", "name", "name is longer than 5 bytes");
    refused("{\"name\":\"\xC3\xA9\xC3\xA9\xC3\xA9\"}", "name",
            "name is longer than 5 bytes");
    refused("{\"name\":\"a\",\"note\":\"abcd\"}", "note", "note is longer than 3 bytes");
    refused("{\"name\":\"a\",\"other\":1}", "other", "unknown member other");
    refused("{\"other\":1}", "other", "unknown member other");
    refused("{\"name\":\"a\",\"args\":[]}", "args", "args must be an object");
    refused("{\"name\":\"a\",\"args\":\"{}\"}", "args", "args must be an object");
    refused("{\"name\":\"a\",\"args\":null}", "args", "args must be an object");
    refused("{\"name\":\"a\",\"n\":\"1\"}", "n", "n must be a whole number");
    refused("{\"name\":\"a\",\"n\":1.5}", "n", "n must be a whole number");
    refused("{\"name\":\"a\",\"n\":true}", "n", "n must be a whole number");
    refused("{\"name\":\"a\",\"n\":1e300}", "n", "n must be a whole number");
    refused("{\"name\":\"a\",\"n\":9007199254740991}", "n",
            "n must be between -1 and 9007199254740990");
    refused("{\"name\":\"a\",\"n\":-2}", "n",
            "n must be between -1 and 9007199254740990");
}

/* Names are exact, and a table may be empty. */
static void test_names(void **state)
{
    (void)state;
    struct values v;
    cJSON *doc = NULL;
    const char *bad = "x";
    struct error err;
    assert_int_equal(read_all(&v, "{\"Name\":\"a\"}"), ST_INVALID);
    assert_string_equal(v.err.text, "unknown member Name");
    assert_int_equal(json_parse(STR_LIT("{}"), &doc, NULL), ST_OK);
    assert_int_equal(fields_read(doc, STR_LIT("{}"), NULL, 0, &bad, &err), ST_OK);
    assert_null(bad);
    cJSON_Delete(doc);
    doc = NULL;
    assert_int_equal(json_parse(STR_LIT("{\"a\":1}"), &doc, NULL), ST_OK);
    assert_int_equal(fields_read(doc, STR_LIT("{\"a\":1}"), NULL, 0, &bad, &err),
                     ST_INVALID);
    assert_string_equal(bad, "a");
    cJSON_Delete(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
