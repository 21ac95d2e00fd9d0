/* JSON Schema: each keyword both ways, exact numbers, places in messages, and that
 * nothing a schema or a value says makes the check run on. */
#include "help.h"

static struct schema *compile(const char *text)
{
    struct schema *s = NULL;
    struct error err = {.status = ST_OK};
    enum status st = schema_compile(str_c(text), SCHEMA_STRICT, &s, &err);
    if (st != ST_OK) {
        print_error("%s: %s\n", text, err.text);
    }
    assert_int_equal(st, ST_OK);
    return s;
}

static void refuse_schema(const char *text, const char *said)
{
    struct schema *s = NULL;
    struct error err = {.status = ST_OK};
    assert_int_equal(schema_compile(str_c(text), SCHEMA_STRICT, &s, &err), ST_INVALID);
    assert_null(s);
    assert_contains(err.text, said);
}

/* said NULL: the value is fine. */
static void check(const char *schema, const char *args, const char *said)
{
    struct schema *s = compile(schema);
    struct error err = {.status = ST_OK};
    enum status st = schema_check(s, str_c(args), &err);
    if (said == NULL) {
        if (st != ST_OK) {
            print_error("%s against %s: %s\n", args, schema, err.text);
        }
        assert_int_equal(st, ST_OK);
    } else {
        assert_int_equal(st, ST_INVALID);
        assert_string_equal(err.text, said);
    }
    schema_free(s);
}

/* The value v of property a against the schema of it. */
static void check_a(const char *schema, const char *v, const char *said)
{
    struct buf s;
    struct buf a;
    buf_init(&s, 1U << 20);
    buf_init(&a, 1U << 20);
    buf_addf(&s, "{\"properties\":{\"a\":%s}}", schema);
    buf_addf(&a, "{\"a\":%s}", v);
    check(s.ptr, a.ptr, said);
    buf_done(&s);
    buf_done(&a);
}

static void test_types(void **state)
{
    (void)state;
    static const char *const types[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};
    static const char *const values[] = {"null", "true", "1", "1.5", "\"1\"", "[]", "{}"};
    for (size_t t = 0; t < 7; t++) {
        for (size_t v = 0; v < 7; v++) {
            char schema[64];
            (void)snprintf(schema, sizeof(schema), "{\"type\":\"%s\"}", types[t]);
            struct buf s;
            struct buf a;
            buf_init(&s, 4096);
            buf_init(&a, 4096);
            buf_addf(&s, "{\"properties\":{\"a\":%s}}", schema);
            buf_addf(&a, "{\"a\":%s}", values[v]);
            struct schema *c = compile(s.ptr);
            bool fits = t == v || (t == 3 && v == 2);
            assert_int_equal(schema_check(c, buf_str(&a), NULL),
                             fits ? ST_OK : ST_INVALID);
            schema_free(c);
            buf_done(&s);
            buf_done(&a);
        }
    }
    check_a("{\"type\":\"string\"}", "1", "arguments.a: must be a string");
    check_a("{\"type\":[\"string\",\"null\"]}", "1",
            "arguments.a: must be null or a string");
    check_a("{\"type\":\"integer\"}", "1.0", NULL);
    check_a("{\"type\":\"integer\"}", "10e-1", NULL);
    check_a("{\"type\":\"integer\"}", "1e-1", "arguments.a: must be a whole number");
    check_a("{\"type\":\"integer\"}", "12345678901234567890123", NULL);
    check_a("{\"type\":\"boolean\"}", "0", "arguments.a: must be true or false");
}

static void test_numbers(void **state)
{
    (void)state;
    check_a("{\"minimum\":9007199254740993}", "9007199254740992",
            "arguments.a: must be at least 9007199254740993");
    check_a("{\"minimum\":9007199254740993}", "9007199254740993", NULL);
    check_a("{\"minimum\":9007199254740993}", "9007199254740993.0000000001", NULL);
    check_a("{\"maximum\":-9007199254740993}", "-9007199254740992",
            "arguments.a: must be at most -9007199254740993");
    check_a("{\"maximum\":18446744073709551615}", "18446744073709551615", NULL);
    check_a("{\"maximum\":18446744073709551615}", "18446744073709551616",
            "arguments.a: must be at most 18446744073709551615");
    check_a("{\"exclusiveMinimum\":0}", "0", "arguments.a: must be above 0");
    check_a("{\"exclusiveMinimum\":0}", "0.000001", NULL);
    check_a("{\"exclusiveMinimum\":0}", "-0.0", "arguments.a: must be above 0");
    check_a("{\"exclusiveMaximum\":1e2}", "100", "arguments.a: must be below 1e2");
    check_a("{\"exclusiveMaximum\":1e2}", "99.99", NULL);
    check_a("{\"minimum\":0.1}", "0.09", "arguments.a: must be at least 0.1");
    check_a("{\"minimum\":0.1}", "1e-1", NULL);
    check_a("{\"multipleOf\":0.1}", "0.3", NULL);
    check_a("{\"multipleOf\":0.1}", "0.35", "arguments.a: must be a multiple of 0.1");
    check_a("{\"multipleOf\":7}", "9007199254740993",
            "arguments.a: must be a multiple of 7");
    check_a("{\"multipleOf\":7}", "9007199254740995", NULL);
    check_a("{\"multipleOf\":250}", "1e3", NULL);
    check_a("{\"multipleOf\":3}", "1e300", "arguments.a: must be a multiple of 3");
    check_a("{\"multipleOf\":3}", "0", NULL);
    check_a("{\"multipleOf\":10}", "5", "arguments.a: must be a multiple of 10");
    check_a("{\"minimum\":5}", "\"x\"", NULL); /* says nothing about texts */
}

static void test_strings(void **state)
{
    (void)state;
    check_a("{\"minLength\":2}", "\"\\u00e9\"",
            "arguments.a: must have at least 2 characters, has 1");
    check_a("{\"minLength\":2}", "\"\\ud83d\\ude00x\"", NULL);
    check_a("{\"maxLength\":1}", "\"\\ud83d\\ude00\"", NULL);
    check_a("{\"maxLength\":1}", "\"ab\"",
            "arguments.a: must have at most 1 characters, has 2");
    check_a("{\"maxLength\":0}", "\"\"", NULL);
    check_a("{\"pattern\":\"^a+$\"}", "\"aaa\"", NULL);
    check_a("{\"pattern\":\"^a+$\"}", "\"aaa\\n\"",
            "arguments.a: must match the pattern ^a+$");
    check_a("{\"pattern\":\"b\"}", "\"abc\"", NULL);
    check_a("{\"pattern\":\"^\\\\p{L}$\"}", "\"\\u00e9\"", NULL);
    check_a("{\"pattern\":\"^.$\"}", "\"\\ud83d\\ude00\"", NULL);
    check_a("{\"pattern\":\"\"}", "\"\"", NULL);
}

static void test_arrays(void **state)
{
    (void)state;
    check_a("{\"minItems\":1}", "[]", "arguments.a: must have at least 1 items, has 0");
    check_a("{\"maxItems\":1}", "[1]", NULL);
    check_a("{\"maxItems\":1}", "[1,2]", "arguments.a: must have at most 1 items, has 2");
    check_a("{\"items\":{\"type\":\"string\"}}", "[\"x\",1]",
            "arguments.a[1]: must be a string");
    check_a("{\"items\":false}", "[]", NULL);
    check_a("{\"items\":false}", "[1]", "arguments.a[0]: must not be given");
    check_a("{\"uniqueItems\":true}", "[1,2,1.0]",
            "arguments.a: must not contain a value twice");
    check_a("{\"uniqueItems\":true}", "[1,\"1\",[1],{\"x\":1},{\"x\":2},null,true]",
            NULL);
    check_a("{\"uniqueItems\":true}", "[{\"x\":1,\"y\":2},{\"y\":2,\"x\":1e0}]",
            "arguments.a: must not contain a value twice");
    check_a("{\"uniqueItems\":true}", "[9007199254740992,9007199254740993]", NULL);
    check_a("{\"uniqueItems\":false}", "[1,1]", NULL);
}

static void test_objects(void **state)
{
    (void)state;
    const char *s = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
                    "\"n\":{\"type\":\"integer\"}},\"required\":[\"path\"],"
                    "\"additionalProperties\":false}";
    check(s, "{\"path\":\"x\"}", NULL);
    check(s, "{\"n\":1}", "arguments.path: is required");
    check(s, "{\"path\":1}", "arguments.path: must be a string");
    check(s, "{\"path\":\"x\",\"m\":1}",
          "arguments.m: is no argument of this tool, did you mean n?");
    check(s, "{\"path\":\"x\",\"utterly\":1}",
          "arguments.utterly: is no argument of this tool");
    check(s, "[]", "arguments: must be an object");
    check(s, "{\"path\":\"x\",\"path\":\"y\"}",
          "arguments: JSON: duplicate key \"path\" at byte 12");
    check("{\"additionalProperties\":{\"type\":\"null\"}}", "{\"x y\":1}",
          "arguments[\"x y\"]: must be null");
    check("{\"minProperties\":1}", "{}",
          "arguments: must have at least 1 members, has 0");
    check("{\"maxProperties\":0}", "{\"a\":1}",
          "arguments: must have at most 0 members, has 1");
    check("{\"properties\":{\"a\":false}}", "{\"a\":1}",
          "arguments.a: must not be given");
    check_a("{\"properties\":{\"b\":{\"required\":[\"c d\"]}}}", "{\"b\":{}}",
            "arguments.a.b[\"c d\"]: is required");
    check_a("{\"additionalProperties\":false}", "{\"q\":1}",
            "arguments.a.q: is not known here");
}

static void test_values(void **state)
{
    (void)state;
    check_a("{\"enum\":[\"a\",1,null,{\"x\":[1]}]}", "1.0", NULL);
    check_a("{\"enum\":[\"a\",1,null,{\"x\":[1]}]}", "{\"x\":[1e0]}", NULL);
    check_a("{\"enum\":[\"a\",\"b\"]}", "\"c\"",
            "arguments.a: must be one of \"a\", \"b\"");
    check_a("{\"enum\":[9007199254740993]}", "9007199254740992",
            "arguments.a: must be one of 9007199254740993");
    check_a("{\"const\":\"x\"}", "\"x\"", NULL);
    check_a("{\"const\":\"x\"}", "\"y\"", "arguments.a: must be \"x\"");
    check_a("{\"const\":null}", "0", "arguments.a: must be null");
    check_a("{\"const\":1,\"enum\":[1,2]}", "2", "arguments.a: must be 1");
    check_a("{\"enum\":[true]}", "\"true\"", "arguments.a: must be one of true");
}

static void test_combined(void **state)
{
    (void)state;
    const char *any = "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}";
    check_a(any, "null", NULL);
    check_a(any, "\"\"", NULL);
    check_a(any, "1", "arguments.a: must be null or a string");
    check_a("{\"anyOf\":[{\"type\":\"string\",\"minLength\":3},{\"type\":\"null\"}]}",
            "\"x\"", "arguments.a: must have at least 3 characters, has 1");
    check_a("{\"anyOf\":[{\"minimum\":3},{\"maximum\":1}]}", "2",
            "arguments.a: has none of the forms allowed here (anyOf)");
    const char *one = "{\"oneOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}";
    check_a(one, "2", NULL);
    check_a(one, "6", "arguments.a: has more than one of the forms allowed here (oneOf)");
    check_a(one, "5", "arguments.a: has none of the forms allowed here (oneOf)");
    check_a("{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3",
            "arguments.a: must be at most 2");
    check_a("{\"not\":{\"type\":\"string\"}}", "1", NULL);
    check_a("{\"not\":{\"type\":\"string\"}}", "\"\"",
            "arguments.a: has a form that is excluded here (not)");
    check_a("{\"not\":{\"not\":{\"type\":\"string\"}}}", "\"\"", NULL);
}

static void test_refs(void **state)
{
    (void)state;
    const char *tree =
        "{\"$defs\":{\"n/o~d\":{\"type\":\"object\",\"properties\":{\"kids\":"
        "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n~1o~0d\"}},\"v\":"
        "{\"type\":\"integer\"}}}},\"properties\":{\"t\":{\"$ref\":"
        "\"#/%24defs/n~1o~0d\"}}}";
    check(tree, "{\"t\":{\"kids\":[{\"kids\":[{\"v\":1}]}]}}", NULL);
    check(tree, "{\"t\":{\"kids\":[{\"kids\":[{\"v\":\"x\"}]}]}}",
          "arguments.t.kids[0].kids[0].v: must be a whole number");
    check("{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
          "{\"a\":{\"a\":{\"b\":1}}}",
          "arguments.a.a.b: is not known here, did you mean a?");
    check("{\"definitions\":{\"s\":{\"type\":\"string\"}},\"properties\":{\"a\":"
          "{\"$ref\":\"#/definitions/s\",\"minLength\":1}}}",
          "{\"a\":\"\"}", "arguments.a: must have at least 1 characters, has 0");
    refuse_schema("{\"$ref\":\"#\"}", "leads back to itself");
    refuse_schema(
        "{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"not\":"
        "{\"$ref\":\"#/$defs/a\"}}}}",
        "leads back to itself");
    refuse_schema("{\"properties\":{\"a\":{\"$ref\":\"http://x/y\"}}}",
                  "#/properties/a/$ref: only references inside the same schema");
    refuse_schema("{\"properties\":{\"a\":{\"$ref\":\"#/nope\"}}}", "points to nothing");
    refuse_schema("{\"properties\":{\"a\":{\"$ref\":\"#anchor\"}}}",
                  "must be # or a pointer");
}

static void test_refused(void **state)
{
    (void)state;
    refuse_schema("[]", "must be a JSON Schema of an object");
    refuse_schema("true", "must be a JSON Schema of an object");
    refuse_schema("{\"type\":\"string\"}", "type must be object");
    refuse_schema("{\"type\":[\"string\",\"array\"]}", "type must be object");
    refuse_schema("{\"type\":\"objekt\"}", "type must be object");
    refuse_schema("{", "JSON");
    refuse_schema("{\"a\":1,\"a\":2}", "duplicate");
    refuse_schema("{\"properties\":{\"a\":{\"type\":\"int\"}}}",
                  "#/properties/a/type: must be null, boolean");
    refuse_schema("{\"properties\":{\"a\":{\"type\":[]}}}", "must name a type");
    refuse_schema("{\"properties\":{\"a\":5}}", "#/properties/a: must be a schema");
    refuse_schema("{\"properties\":[]}", "must be an object of schemas");
    refuse_schema("{\"required\":\"a\"}", "must be a list of names");
    refuse_schema("{\"required\":[1]}", "#/required/0: must be a name");
    refuse_schema("{\"enum\":[]}", "must not be empty");
    refuse_schema("{\"enum\":1}", "must be a list of values");
    refuse_schema("{\"minimum\":\"1\"}", "must be a number");
    refuse_schema("{\"minLength\":-1}", "whole number of at least 0");
    refuse_schema("{\"minLength\":1.5}", "whole number of at least 0");
    refuse_schema("{\"multipleOf\":0}", "must be above 0");
    refuse_schema("{\"multipleOf\":1234567890123456789}", "at most 18 digits");
    refuse_schema("{\"pattern\":\"(\"}", "#/pattern: not a pattern: ");
    refuse_schema("{\"pattern\":\"\\\\C\"}", "not a pattern");
    refuse_schema("{\"pattern\":1}", "must be a pattern");
    refuse_schema("{\"uniqueItems\":1}", "must be true or false");
    refuse_schema("{\"anyOf\":[]}", "at least one schema");
    refuse_schema("{\"not\":1}", "must be a schema");
    refuse_schema("{\"$defs\":1}", "must be an object of schemas");
    refuse_schema("{\"$defs\":{\"x\":{\"type\":\"y\"}}}", "#/$defs/x/type");
    static const char *const words[] = {"patternProperties",
                                        "if",
                                        "then",
                                        "contains",
                                        "propertyNames",
                                        "dependentRequired",
                                        "prefixItems",
                                        "$anchor",
                                        "nullable",
                                        "unevaluatedProperties"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "{\"%s\":{}}", words[i]);
        refuse_schema(text, "this keyword cannot be enforced here");
    }
}

static void test_lenient(void **state)
{
    (void)state;
    struct schema *s = NULL;
    struct error err = {.status = ST_OK};
    const char *text =
        "{ \"type\" : \"object\", \"if\":{}, \"required\":true, \"properties\":{\"a\":"
        "{\"pattern\":\"(\", \"type\":\"string\"},\"b\":{\"$ref\":\"http://x\"},\"c "
        "d\":5}}";
    assert_int_equal(schema_compile(str_c(text), SCHEMA_LENIENT, &s, &err), ST_OK);
    assert_str_is(schema_text(s),
                  "{\"type\":\"object\",\"if\":{},\"required\":true,"
                  "\"properties\":{\"a\":{\"pattern\":\"(\",\"type\":"
                  "\"string\"},\"b\":{\"$ref\":\"http://x\"},\"c d\":5}}");
    assert_int_equal(schema_check(s, STR_LIT("{\"a\":\"x\",\"b\":1,\"c d\":2}"), &err),
                     ST_OK);
    assert_int_equal(schema_check(s, STR_LIT("{\"a\":1}"), &err), ST_INVALID);
    schema_free(s);
    schema_free(NULL);
    assert_int_equal(
        schema_compile(STR_LIT("{\"type\":\"array\"}"), SCHEMA_LENIENT, &s, &err),
        ST_INVALID);
}

/* Patterns that backtrack for ever, alternatives that multiply, values that are huge. */
static void test_bounded(void **state)
{
    (void)state;
    check_a("{\"pattern\":\"^(a+)+$\"}",
            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"",
            "arguments: a text takes too long to match the pattern of its schema");
    struct buf b;
    buf_init(&b, 1U << 20);
    buf_add_c(&b, "{\"$defs\":{");
    for (int i = 0; i < 40; i++) {
        buf_addf(&b,
                 "\"d%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/"
                 "d%d\"}]},",
                 i, i + 1, i + 1);
    }
    buf_add_c(
        &b,
        "\"d40\":{\"type\":\"null\"}},\"properties\":{\"a\":{\"$ref\":\"#/$defs/d0\"}}}");
    refuse_schema(b.ptr, "more than 64 schemas in a chain");
    buf_clear(&b);
    buf_add_c(&b, "{\"$defs\":{");
    for (int i = 0; i < 25; i++) {
        buf_addf(&b,
                 "\"d%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/"
                 "d%d\"}]},",
                 i, i + 1, i + 1);
    }
    buf_add_c(
        &b,
        "\"d25\":{\"type\":\"null\"}},\"properties\":{\"a\":{\"$ref\":\"#/$defs/d0\"}}}");
    check(b.ptr, "{\"a\":1}",
          "arguments: too large to be checked against this tool's schema");
    buf_clear(&b);
    buf_add_c(&b, "{\"a\":[");
    for (int i = 0; i < 100000; i++) {
        buf_addf(&b, "%s%d", i == 0 ? "" : ",", i);
    }
    buf_add_c(&b, "]}");
    check("{\"properties\":{\"a\":{\"uniqueItems\":true,\"items\":{\"type\":\"integer\"}}"
          "}}",
          b.ptr, NULL);
    buf_done(&b);
}

static void test_depth(void **state)
{
    (void)state;
    struct buf b;
    for (int d = 63; d <= 65; d++) {
        buf_init(&b, 4096);
        buf_add_c(&b, "{\"a\":");
        for (int i = 1; i < d; i++) {
            buf_add_c(&b, "[");
        }
        for (int i = 1; i < d; i++) {
            buf_add_c(&b, "]");
        }
        buf_add_char(&b, '}');
        struct schema *s =
            compile("{\"properties\":{\"a\":{\"$ref\":\"#/$defs/l\"}},\"$defs\":"
                    "{\"l\":{\"items\":{\"$ref\":\"#/$defs/l\"}}}}");
        struct error err;
        assert_int_equal(schema_check(s, buf_str(&b), &err),
                         d <= 64 ? ST_OK : ST_INVALID);
        schema_free(s);
        buf_done(&b);
    }
}

static bool sweep_once(void)
{
    struct schema *s = NULL;
    struct error err;
    enum status st = schema_compile(
        STR_LIT(
            "{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^x\",\"enum\":"
            "[\"x\",\"y\"]},\"b\":{\"$ref\":\"#/$defs/q\"}},\"$defs\":{\"q\":{\"oneOf\":"
            "[{\"const\":1},{\"uniqueItems\":true,\"type\":\"array\"}]}}}"),
        SCHEMA_STRICT, &s, &err);
    if (st == ST_OK) {
        st = schema_check(s, STR_LIT("{\"a\":\"\\u0078\",\"b\":[1,2]}"), &err);
    }
    schema_free(s);
    assert_true(st == ST_OK || st == ST_NOMEM);
    return st == ST_OK;
}

static void test_sweep(void **state)
{
    (void)state;
    TEST_SWEEP(sweep_once());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),    cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_strings),  cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_objects),  cmocka_unit_test(test_values),
        cmocka_unit_test(test_combined), cmocka_unit_test(test_refs),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_bounded),  cmocka_unit_test(test_depth),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
