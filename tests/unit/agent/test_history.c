/* History: rows and back, and the repair of what was cut off. */
#include "support/test.h"

#include "agent/history.h"
#include "base/json.h"

static struct arena *arena;

static const struct model_call two_calls[] = {
    {{"c1", 2}, {"add", 3}, {"{\"n\":9007199254740993}", 22}},
    {{"c2", 2}, {"sub", 3}, {"{", 1}},
};

static struct model_message user(const char *text)
{
    return (struct model_message){.role = MODEL_USER, .text = str_c(text)};
}

static struct model_message says(const char *text)
{
    return (struct model_message){.role = MODEL_ASSISTANT, .text = str_c(text)};
}

static struct model_message asks(size_t n)
{
    return (struct model_message){
        .role = MODEL_ASSISTANT, .calls = two_calls, .ncalls = n};
}

static struct model_message result(const char *id)
{
    return (struct model_message){
        .role = MODEL_TOOL, .text = STR_LIT("ok"), .call_id = str_c(id)};
}

/* One letter a message: u, a, A (with calls), t, x (result made up). */
static void repaired(const struct model_message *in, size_t n, const char *want)
{
    struct model_message *out = NULL;
    char got[64] = "";
    size_t nout = 0;
    assert_int_equal(history_repair(in, n, arena, &out, &nout), ST_OK);
    for (size_t i = 0; i < nout; i++) {
        bool made_up = out[i].role == MODEL_TOOL && out[i].is_error;
        assert_true(i < sizeof(got) - 1);
        got[i] = made_up                     ? 'x'
                 : out[i].role == MODEL_TOOL ? 't'
                 : out[i].role == MODEL_USER ? 'u'
                 : out[i].ncalls > 0         ? 'A'
                                             : 'a';
        assert_true(!made_up || (out[i].text.len > 0 && out[i].tool_name.len > 0));
    }
    assert_string_equal(got, want);
}

#define REPAIRED(want, ...) \
    do { \
        const struct model_message list_[] = {__VA_ARGS__}; \
        repaired(list_, sizeof(list_) / sizeof(list_[0]), want); \
    } while (0)

static void test_whole_history_stays(void **state)
{
    (void)state;
    repaired(NULL, 0, "");
    REPAIRED("ua", user("hi"), says("hello"));
    REPAIRED("uAtta", user("hi"), asks(2), result("c1"), result("c2"), says("done"));
    REPAIRED("uAtta", user("hi"), asks(2), result("c2"), result("c1"), says("done"));
    REPAIRED("uAtAta", user("hi"), asks(1), result("c1"), asks(1), result("c1"),
             says("done"));
}

/* Failure class: a crash, a cancel or a trim orphans a tool result or a call. */
static void test_cut_off(void **state)
{
    (void)state;
    REPAIRED("uAxx", user("hi"), asks(2));
    REPAIRED("uAtx", user("hi"), asks(2), result("c1"));
    REPAIRED("uAxxu", user("hi"), asks(2), user("again"));
    REPAIRED("uAtxa", user("hi"), asks(2), result("c2"), says("done"));
    REPAIRED("uAxAx", user("hi"), asks(1), asks(1));
    /* the old end: results without their call, an answer without its question */
    REPAIRED("ua", result("c1"), says("done"), user("hi"), says("hello"));
    REPAIRED("u", asks(2), result("c1"), result("c2"), user("hi"));
    REPAIRED("", asks(2), result("c1"));
    /* results nobody asked for, or asked for once */
    REPAIRED("ua", user("hi"), result("c1"), says("hello"));
    REPAIRED("uAta", user("hi"), asks(1), result("c1"), result("c1"), says("x"));
    REPAIRED("uAxa", user("hi"), asks(1), result("c9"), says("x"));
    REPAIRED("uAtau", user("hi"), asks(1), result("c1"), says("x"), result("c1"),
             user("y"));
}

static void test_rows(void **state)
{
    (void)state;
    struct message row;
    struct model_message m = asks(2);
    cJSON *doc = NULL;
    assert_int_equal(history_row(&m, arena, &row), ST_OK);
    assert_int_equal(row.role, ROLE_ASSISTANT);
    assert_int_equal(json_parse(row.tool_calls, &doc, NULL), ST_OK);
    assert_int_equal(cJSON_GetArraySize(doc), 2);
    struct str args = STR_NONE;
    assert_true(json_get_str(cJSON_GetArrayItem(doc, 0), "args", &args));
    assert_str_is(args, "{\"n\":9007199254740993}"); /* as text, so as it was written */
    cJSON_Delete(doc);
    m = result("c1");
    m.tool_name = STR_LIT("add");
    m.is_error = true;
    assert_int_equal(history_row(&m, arena, &row), ST_OK);
    assert_int_equal(row.role, ROLE_TOOL);
    assert_true(row.is_error);
    assert_str_is(row.call_id, "c1");
    assert_str_is(row.tool_name, "add");
    assert_int_equal(row.tool_calls.len, 0);
    m = user("hi");
    assert_int_equal(history_row(&m, arena, &row), ST_OK);
    assert_int_equal(row.role, ROLE_USER);
    assert_str_is(row.text, "hi");
}

static bool repairs(void)
{
    const struct model_message in[] = {user("hi"), asks(2)};
    struct arena *a = arena_new((size_t)1024 * 1024);
    struct model_message *out = NULL;
    struct message row;
    size_t n = 0;
    bool ok = a != NULL && history_repair(in, 2, a, &out, &n) == ST_OK &&
              history_row(&in[1], a, &row) == ST_OK;
    arena_free(a);
    return ok;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    TEST_SWEEP(repairs());
}

static int setup(void **state)
{
    (void)state;
    arena = arena_new((size_t)1024 * 1024);
    return arena != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_history_stays),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("history", tests, setup, teardown);
}
