/* The embedded provider: its three commands, its values, its errors. */
#include "support/test.h"

#include "base/json.h"
#include "model/model.h"

#define SCHEMA \
    "{\"type\":\"object\",\"properties\":{" \
    "\"text\":{\"type\":\"string\",\"description\":\"What to say\"}," \
    "\"n\":{\"type\":\"integer\"},\"any\":{}," \
    "\"odd\":{\"type\":[\"string\",\"null\"]},\"no\":true}," \
    "\"required\":[\"text\",7]}"

#define FREE "{\"properties\":{\"x\":{\"type\":\"null\"}}}"

static const struct model_tool tools[] = {
    {{"echo", 4}, {"Says it again.", 14}, {SCHEMA, sizeof(SCHEMA) - 1}},
    {{"bare", 4}, {NULL, 0}, {"{\"type\":\"object\"}", 17}},
    {{"free", 4}, {NULL, 0}, {FREE, sizeof(FREE) - 1}},
    {{"broken", 6}, {NULL, 0}, {"{", 1}},
};

struct world {
    struct arena *a;
    struct model_request req;
    struct model_message message;
    struct model_reply reply;
    struct error err;
    char streamed[4096];
};

static void on_token(void *ctx, struct str text)
{
    struct world *w = ctx;
    (void)snprintf(w->streamed, sizeof(w->streamed), "%.*s", STR_ARG(text));
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    json_init();
    w->a = arena_new((size_t)400 * 1024 * 1024);
    assert_non_null(w->a);
    w->req = (struct model_request){.messages = &w->message,
                                    .nmessages = 1,
                                    .tools = tools,
                                    .ntools = 4,
                                    .agent_name = "helper",
                                    .ctx = w,
                                    .token = on_token};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    arena_free(w->a);
    free(w);
    return 0;
}

static void ask(struct world *w, struct str text)
{
    w->message.text = text;
    w->streamed[0] = '\0';
    w->reply = (struct model_reply){0};
    assert_int_equal(model_local(&w->req, w->a, &w->reply, &w->err), ST_OK);
    assert_int_equal(w->reply.ncalls > 0, w->reply.text.len == 0); /* one or the other */
}

static void asks_for(struct world *w, const char *text, const char *name,
                     const char *args)
{
    ask(w, str_c(text));
    if (w->reply.ncalls != 1) {
        fail_msg("\"%s\" is answered \"%.*s\"", text, STR_ARG(w->reply.text));
    }
    assert_str_is(w->reply.calls[0].name, name);
    assert_str_is(w->reply.calls[0].args, args);
    assert_true(w->reply.calls[0].id.len > 0);
}

static void says(struct world *w, const char *text, const char *part)
{
    ask(w, str_c(text));
    assert_int_equal(w->reply.ncalls, 0);
    if (str_find(w->reply.text, str_c(part)) == SIZE_MAX) {
        fail_msg("\"%s\" is answered \"%.*s\", without \"%s\"", text,
                 STR_ARG(w->reply.text), part);
    }
    assert_int_equal(strlen(w->streamed), w->reply.text.len); /* and as tokens */
}

static void test_help(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"",           " ",           "hello",
                                        "/toolss",    "/TOOLS",      "tools",
                                        "/tools now", "say /tool x", "/tool\xC2\xA0x"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        says(w, texts[i], "I am no language model");
    }
    w->req.nmessages = 0;
    says(w, "", "I am no language model");
    w->req.nmessages = 1;
    w->message.role = MODEL_ASSISTANT;
    says(w, "x", "I am no language model");
    w->req.token = NULL;
    ask(w, STR_LIT("hello"));
    assert_true(w->reply.text.len > 0);
}

static void test_list(void **state)
{
    struct world *w = *state;
    says(w, " /tools\n",
         "Tools of helper on this channel:\n"
         "- echo: Says it again.\n"
         "    text: string, required. What to say\n"
         "    n: integer\n"
         "    any: any\n"
         "    odd: any\n"
         "    no: any\n"
         "- bare\n"
         "- free\n"
         "    x: null\n"
         "- broken");
    w->req.ntools = 0;
    says(w, "/tools", "helper has no tools here.");
}

static void test_pairs(void **state)
{
    struct world *w = *state;
    asks_for(w, "/tool echo", "echo", "{}");
    asks_for(w, "/tool echo text=hi n=3", "echo", "{\"text\":\"hi\",\"n\":3}");
    asks_for(w, "  /tool\techo\n text=hi\r\n n=3 ", "echo", "{\"text\":\"hi\",\"n\":3}");
    /* text where the tool wants text */
    asks_for(w, "/tool echo text=3", "echo", "{\"text\":\"3\"}");
    asks_for(w, "/tool echo text=true any=true", "echo",
             "{\"text\":\"true\",\"any\":true}");
    asks_for(w, "/tool echo odd=null no=1", "echo", "{\"odd\":null,\"no\":1}");
    /* numbers as they were written */
    asks_for(w, "/tool echo n=9007199254740993", "echo", "{\"n\":9007199254740993}");
    asks_for(w, "/tool echo n=1.50", "echo", "{\"n\":1.50}");
    asks_for(w, "/tool echo n=01", "echo", "{\"n\":\"01\"}");
    asks_for(w, "/tool echo n=", "echo", "{\"n\":\"\"}");
    asks_for(w, "/tool echo any={\"a\":[1]} n=2", "echo",
             "{\"any\":{\"a\":[1]},\"n\":2}");
    asks_for(w, "/tool echo any=a=b=c", "echo", "{\"any\":\"a=b=c\"}");
    /* quotes */
    asks_for(w, "/tool echo text=\"a b\" n=\"3\"", "echo",
             "{\"text\":\"a b\",\"n\":\"3\"}");
    asks_for(w, "/tool echo text='a \"b\"'", "echo", "{\"text\":\"a \\\"b\\\"\"}");
    asks_for(w, "/tool echo text=\"a\\\"b\\\\c\"", "echo", "{\"text\":\"a\\\"b\\\\c\"}");
    asks_for(w, "/tool echo text=\"\"", "echo", "{\"text\":\"\"}");
    asks_for(w, "/tool echo text=\"a\"n=1", "echo", "{\"text\":\"a\",\"n\":1}");
    asks_for(w, "/tool echo text=it's", "echo", "{\"text\":\"it's\"}");
    asks_for(w, "/tool echo text=\"two\nlines\"", "echo", "{\"text\":\"two\\nlines\"}");
    /* tools without a schema to go by; names that are not here are the gate's business */
    asks_for(w, "/tool bare n=1", "bare", "{\"n\":1}");
    asks_for(w, "/tool broken n=1", "broken", "{\"n\":1}");
    asks_for(w, "/tool nonesuch n=1", "nonesuch", "{\"n\":1}");
    asks_for(w, "/tool tool=echo n=1", "echo", "{\"n\":1}");
    /* said twice stays said twice: the gate refuses it */
    asks_for(w, "/tool echo n=1 n=2", "echo", "{\"n\":1,\"n\":2}");
    asks_for(w, "/tool echo \xC3\xA9=\"\xC3\xA9\"", "echo",
             "{\"\xC3\xA9\":\"\xC3\xA9\"}");
}

static void test_json(void **state)
{
    struct world *w = *state;
    asks_for(w, "/tool echo {\"n\": 9007199254740993}", "echo",
             "{\"n\": 9007199254740993}");
    asks_for(w, "/tool echo {\"n\":", "echo", "{\"n\":"); /* the gate's to refuse */
    asks_for(w, "/tool {\"tool\":\"echo\"}", "echo", "{}");
    asks_for(w, "/tool {\"tool\":\"echo\",\"args\":{\"n\": 1.50}}", "echo",
             "{\"n\": 1.50}");
    asks_for(w, "/tool {\"\\u0061rgs\":{\"n\":1},\"tool\":\"echo\"}", "echo",
             "{\"n\":1}");
    asks_for(w, "/tool {\"tool\":\"echo\",\"args\":null}", "echo", "null");
    asks_for(w, "/tool {\"tool\":\"\"}", "", "{}");
}

static void test_faults_are_answers(void **state)
{
    struct world *w = *state;
    says(w, "/tool", "name a tool");
    says(w, "/tool tool=", "name a tool");
    says(w, "/tool echo hello", "key=value");
    says(w, "/tool echo n=1 hello", "key=value");
    says(w, "/tool echo =1", "key=value");
    says(w, "/tool echo a b=1", "key=value");
    says(w, "/tool echo a\tb=1", "key=value"); /* white space of any kind ends a key */
    says(w, "/tool echo n = 1", "key=value");
    says(w, "/tool echo text=\"open", "the value of text has no closing quote");
    says(w, "/tool echo text='", "no closing quote");
    says(w, "/tool echo text=\"open\\", "no closing quote");
    says(w, "/tool echo text=\"open\\\"", "no closing quote");
    says(w, "/tool {\"tool\":\"echo\"", "Say anything else for help");
    says(w, "/tool {\"tool\":\"echo\",\"tool\":\"x\"}", "Say anything else for help");
    says(w, "/tool {}", "no \"tool\"");
    says(w, "/tool {\"tool\":1}", "no \"tool\"");
    says(w, "/tool {\"tool\":\"echo\",\"arg\":{}}", "\"arg\""); /* never passed over */
    says(w, "/tool {\"tool\":\"echo\"} x", "Say anything else for help");
}

static void test_results(void **state)
{
    struct world *w = *state;
    struct model_message history[] = {
        {.role = MODEL_TOOL, .text = STR_LIT("old"), .tool_name = STR_LIT("a")},
        {.role = MODEL_USER, .text = STR_LIT("/tool a")},
        {.role = MODEL_ASSISTANT},
        {.role = MODEL_TOOL, .text = STR_LIT("one"), .tool_name = STR_LIT("a")},
        {.role = MODEL_TOOL,
         .text = STR_LIT("two"),
         .tool_name = STR_LIT("b"),
         .is_error = true},
    };
    w->req.messages = history;
    w->req.nmessages = 5;
    ask(w, STR_NONE);
    assert_str_is(w->reply.text, "one\nb failed: two");
    w->req.nmessages = 4;
    ask(w, STR_NONE);
    assert_str_is(w->reply.text, "one");
    w->req.nmessages = 1;
    ask(w, STR_NONE);
    assert_str_is(w->reply.text, "old");
}

/* The largest result that the configuration allows is still shown. */
static void test_large_result(void **state)
{
    struct world *w = *state;
    size_t len = (size_t)64 * 1024 * 1024;
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'r', len);
    w->message.role = MODEL_TOOL;
    w->req.token = NULL;
    ask(w, str_n(text, len));
    assert_int_equal(w->reply.text.len, len);
    /* over every limit: an error, nothing half */
    struct model_message two[] = {w->message, w->message};
    w->req.messages = two;
    w->req.nmessages = 2;
    assert_int_equal(model_local(&w->req, w->a, &w->reply, &w->err), ST_NOMEM);
    free(text);
}

/* A schema is read once, not once for each argument. */
static void test_many_pairs(void **state)
{
    struct world *w = *state;
    size_t n = 30000;
    char *text = malloc(n * 16);
    size_t len = 10;
    assert_non_null(text);
    memcpy(text, "/tool echo", len);
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, 16, " k%zu=%zu", i, i);
    }
    uint64_t before = mem_alloc_count();
    ask(w, str_n(text, len));
    assert_int_equal(w->reply.ncalls, 1);
    assert_in_range(mem_alloc_count() - before, 1, n * 4);
    free(text);
}

static bool answers(struct world *w, const char *text)
{
    struct model_reply r = {0};
    struct error err = {0};
    struct arena *a = arena_new((size_t)1024 * 1024);
    enum status st = ST_NOMEM;
    w->message.text = str_c(text);
    w->req.token = NULL;
    if (a != NULL) {
        st = model_local(&w->req, a, &r, &err);
        assert_true(st == ST_OK ||
                    (st == ST_NOMEM && err.status == ST_NOMEM && r.text.len == 0));
    }
    if (st == ST_OK && r.ncalls > 0 && text[0] == '/') {
        assert_str_is(r.calls[0].args, "{\"any\":{\"a\":1,\"b\":2}}"); /* never as text */
    }
    arena_free(a);
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    struct world *w = *state;
    char many[4096] = " /tool echo any={";
    for (int i = 0; i < 300; i++) { /* more keys than json_check holds without memory */
        size_t len = strlen(many);
        (void)snprintf(many + len, sizeof(many) - len, "%s\"k%d\":1", i > 0 ? "," : "",
                       i);
    }
    memcpy(many + strlen(many), "}", 2);
    TEST_SWEEP(answers(w, many));
    TEST_SWEEP(answers(w, "/tool echo any={\"a\":1,\"b\":2}"));
    TEST_SWEEP(answers(w, "/tool echo {\"any\":{\"a\":1,\"b\":2}}"));
    TEST_SWEEP(
        answers(w, "/tool {\"tool\":\"echo\",\"args\":{\"any\":{\"a\":1,\"b\":2}}}"));
    TEST_SWEEP(answers(w, "/tools"));
    TEST_SWEEP(answers(w, "/tool echo x"));
    w->message.role = MODEL_TOOL;
    TEST_SWEEP(answers(w, "result"));
    struct arena *small = arena_new(8);
    struct model_reply r;
    w->message.role = MODEL_USER;
    w->message.text = STR_LIT("/tool echo x");
    assert_int_equal(model_local(&w->req, small, &r, NULL), ST_NOMEM);
    arena_free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_help, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pairs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faults_are_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_results, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_result, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_pairs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("model_local", tests, NULL, NULL);
}
