/* Turns over a model that the test plays: what it is shown, the ceilings of a run, agents
 * edited meanwhile, histories that were cut off. */
#include "support/agent_world.h"

#include "agent/dispatch.h"
#include "model/model.h"

static const char soul[] = "id: a\n"
                           "system_prompt: Be brief.\n"
                           "tools:\n"
                           "  - {name: echo, inline: 'def echo(): pass'}\n"
                           "  - {name: other, inline: 'def other(): pass'}\n";
static const char chat[] = "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"go\"}";

/* What the model does. One test at a time; a turn asks it from one thread. */
static struct script {
    struct agent_world *w;
    size_t asked;        /* times so far */
    size_t calls_each;   /* calls in each answer ... */
    size_t answers_with; /* ... of so many first answers */
    const char *name;    /* of the tool called */
    enum status fail;
    const char *edit; /* SOUL.yaml put into force when it is asked first */
    size_t saw_tools, saw_messages, saw_orphans;
    char roles[512]; /* u, a, A (with calls), t, x (error result) of the last request */
} script;

static size_t orphans(const struct model_request *req)
{
    size_t n = 0;
    for (size_t i = 0; i < req->nmessages; i++) {
        for (size_t c = 0; c < req->messages[i].ncalls; c++) {
            bool answered = false;
            for (size_t k = i + 1;
                 k < req->nmessages && req->messages[k].role == MODEL_TOOL; k++) {
                answered = answered ||
                           str_eq(req->messages[k].call_id, req->messages[i].calls[c].id);
            }
            n += answered ? 0 : 1;
        }
    }
    return n;
}

static void look(const struct model_request *req)
{
    script.saw_tools = req->ntools;
    script.saw_messages = req->nmessages;
    script.saw_orphans += orphans(req);
    memset(script.roles, 0, sizeof(script.roles));
    for (size_t i = 0; i < req->nmessages && i < sizeof(script.roles) - 1; i++) {
        const struct model_message *m = &req->messages[i];
        script.roles[i] = m->role == MODEL_USER   ? 'u'
                          : m->role == MODEL_TOOL ? (m->is_error ? 'x' : 't')
                          : m->ncalls > 0         ? 'A'
                                                  : 'a';
    }
}

/* Takes the place of the embedded provider. */
enum status model_local(const struct model_request *req, struct arena *a,
                        struct model_reply *out, struct error *err)
{
    size_t n = script.asked < script.answers_with ? script.calls_each : 0;
    struct model_call *calls = arena_array(a, n + 1, sizeof(*calls));
    look(req);
    script.asked++;
    if (script.edit != NULL && script.asked == 1) {
        world_edit(script.w, script.edit);
    }
    if (script.fail != ST_OK) {
        return error_set(err, script.fail, "the model is ill");
    }
    if (calls == NULL) {
        return ST_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const char *id = arena_printf(a, "c%zu-%zu", script.asked, i);
        calls[i] = (struct model_call){str_c(id), str_c(script.name), STR_LIT("{}")};
    }
    *out = (struct model_reply){.text = n == 0 ? STR_LIT("done") : STR_NONE,
                                .calls = calls,
                                .ncalls = n,
                                .input_tokens = 3,
                                .output_tokens = 2};
    if (req->token != NULL && n == 0) {
        req->token(req->ctx, STR_LIT("do"));
        req->token(req->ctx, STR_LIT("ne"));
    }
    return ST_OK;
}

static int setup(void **state)
{
    struct agent_world *w =
        world_new(soul, "runtime: {default_max_turns: 4, max_turns_ceiling: 5}");
    script = (struct script){.w = w, .name = "echo"};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world_free(*state);
    return 0;
}

static size_t runs(struct agent_world *w)
{
    return atomic_load(&w->exec.runs);
}

static void test_plain_answer(void **state)
{
    struct agent_world *w = *state;
    struct asked *a = world_ask(w, "chat", chat);
    asked_wait(a);
    assert_non_null(strstr(a->final, "\"reply\":\"done\""));
    assert_non_null(
        strstr(a->final, "\"usage\":{\"input_tokens\":3,\"output_tokens\":2}"));
    assert_non_null(strstr(a->events, "\"type\":\"token\""));
    assert_non_null(strstr(a->events, "\"text\":\"ne\""));
    asked_free(a);
    assert_int_equal(script.saw_tools, 2); /* the agent's, and no built-in */
    assert_string_equal(script.roles, "u");
}

/* Several rounds with several calls; the model sees each result, and tokens add up. */
static void test_rounds(void **state)
{
    struct agent_world *w = *state;
    script.calls_each = 2;
    script.answers_with = 2;
    world_says(w, "chat", chat, "\"reply\":\"done\"",
               "\"usage\":{\"input_tokens\":9,\"output_tokens\":6}", "\"stop\":\"end\"",
               NULL);
    assert_string_equal(script.roles, "uAttAtt");
    assert_int_equal(runs(w), 4);
}

/* The model sees the session so far, also after the store was opened again. */
static void test_history(void **state)
{
    struct agent_world *w = *state;
    script.calls_each = 1;
    script.answers_with = 1;
    world_says(w, "chat", chat, NULL);
    world_reopen_store(w);
    world_says(w, "chat", chat, NULL);
    assert_string_equal(script.roles, "uAtau");
    world_says(w, "chat", "{\"agent_id\":\"a\",\"session_id\":\"t\",\"text\":\"go\"}",
               NULL);
    assert_string_equal(script.roles, "u"); /* another session is another history */
    assert_int_equal(script.saw_orphans, 0);
}

/* ---- ceilings ---------------------------------------------------------------------- */

static void turns(struct agent_world *w, const char *agent_lines, const char *overrides,
                  size_t want)
{
    char text[1024], args[256];
    (void)snprintf(text, sizeof(text), "%s%s", soul, agent_lines);
    world_edit(w, text);
    (void)snprintf(args, sizeof(args), "{\"agent_id\":\"a\",\"text\":\"go\"%s}",
                   overrides);
    script.calls_each = 1;
    script.answers_with = SIZE_MAX;
    script.asked = 0;
    world_says(w, "chat", args, "\"stop\":\"max_turns\"", "the limit of this run", NULL);
    assert_int_equal(script.asked, want);
}

static void test_max_turns(void **state)
{
    struct agent_world *w = *state;
    turns(w, "", "", 4);
    turns(w, "max_turns: 3\n", "", 3);
    turns(w, "max_turns: 5\n", "", 5);
    /* overrides lower and never raise (security-rules 10) */
    turns(w, "max_turns: 3\n", ",\"overrides\":{\"max_turns\":2}", 2);
    turns(w, "max_turns: 3\n", ",\"overrides\":{\"max_turns\":4}", 3);
    turns(w, "max_turns: 3\n", ",\"overrides\":{\"max_turns\":1}", 1);
}

/* One below, at, and above the 64 calls of a run. */
static void test_calls_of_a_run(void **state)
{
    struct agent_world *w = *state;
    script.answers_with = 1;
    script.calls_each = 63;
    world_says(w, "chat", chat, "\"stop\":\"end\"", NULL);
    assert_int_equal(runs(w), 63);
    script.asked = 0;
    script.calls_each = 64;
    world_says(w, "chat", chat, "\"stop\":\"end\"", NULL);
    assert_int_equal(runs(w), 63 + 64);
    script.asked = 0;
    script.calls_each = 65;
    world_says(w, "chat", chat, "\"stop\":\"max_tool_calls\"", NULL);
    assert_int_equal(runs(w), 63 + 64 + 64);
    assert_int_equal(script.asked, 1);
    /* over the rounds too */
    script.asked = 0;
    script.answers_with = 3;
    script.calls_each = 30;
    world_says(w, "chat", chat, "\"stop\":\"max_tool_calls\"", NULL);
    assert_int_equal(runs(w), 63 + 64 + 64 + 64);
    script.answers_with = 0;
    world_says(w, "chat", chat, NULL); /* what was not run has its result all the same */
    assert_int_equal(script.saw_orphans, 0);
}

static void test_no_tools(void **state)
{
    struct agent_world *w = *state;
    script.calls_each = 1;
    script.answers_with = 1;
    world_says(
        w, "chat",
        "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"go\",\"overrides\":{\"tool_"
        "choice\":\"none\"}}",
        "\"id\":\"not-offered\"", NULL);
    assert_int_equal(script.saw_tools, 0);
    assert_int_equal(runs(w), 0);
    script.asked = 0;
    world_says(
        w, "chat",
        "{\"agent_id\":\"a\",\"text\":\"go\",\"overrides\":{\"tool_choice\":\"auto\"}}",
        "\"ok\":true", NULL);
    assert_int_equal(script.saw_tools, 2);
}

/* ---- agents edited during the run ---------------------------------------------------- */

static void edited(struct agent_world *w, const char *agent, const char *row)
{
    world_edit(w, soul);
    script = (struct script){
        .w = w, .name = "echo", .calls_each = 1, .answers_with = 1, .edit = agent};
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"go\"}", "\"verdict\":\"deny\"",
               row, "changed during the run", NULL);
    assert_int_equal(runs(w), 0);
}

/* decisions 24: the offered set and the policy of now both allow. */
static void test_edited_during_the_run(void **state)
{
    struct agent_world *w = *state;
    edited(w, "id: a\nenabled: false\ntools: [{name: echo, inline: 'x'}]\n",
           "agent-disabled");
    edited(w, "id: a\ntools: [{name: other, inline: 'x'}]\n", "tool-unknown");
    edited(w, "id: a\nchannels: [whatsapp]\ntools: [{name: echo, inline: 'x'}]\n",
           "channel-not-served");
    edited(w, "id: a\nconfirm_tools: [echo]\ntools: [{name: echo, inline: 'x'}]\n",
           "nobody-to-ask");
    edited(w, "id: b\n", "agent-unknown");
    /* an edit that takes nothing away does not stop a run */
    world_edit(w, soul);
    script =
        (struct script){.w = w,
                        .name = "echo",
                        .calls_each = 1,
                        .answers_with = 1,
                        .edit = "id: a\ndescription: new\ntools: [{name: echo, inline: "
                                "'x'}]\n"};
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"go\"}", "\"ok\":true", NULL);
    assert_int_equal(runs(w), 1);
}

/* ---- histories that were cut off ------------------------------------------------------- */

static void test_orphan_calls(void **state)
{
    struct agent_world *w = *state;
    struct session_key key = {STR_LIT("a"), STR_LIT("http"), STR_LIT("s")};
    const struct message rows[] = {
        {.role = ROLE_TOOL, .text = STR_LIT("lost"), .call_id = STR_LIT("c0")},
        {.role = ROLE_USER, .text = STR_LIT("hi")},
        {.role = ROLE_ASSISTANT,
         .tool_calls = STR_LIT("[{\"id\":\"c1\",\"name\":\"echo\",\"args\":\"{}\"},"
                               "{\"id\":\"c2\",\"name\":\"echo\",\"args\":\"{}\"}]")},
        {.role = ROLE_TOOL, .text = STR_LIT("ok"), .call_id = STR_LIT("c1")},
    };
    char id[33];
    assert_int_equal(
        store_append(w->core.store, key, STR_NONE, STR_NONE, rows, 4, id, NULL), ST_OK);
    world_says(w, "chat", chat, "\"reply\":\"done\"", NULL);
    assert_string_equal(script.roles, "uAtxu");
    assert_int_equal(script.saw_orphans, 0);
}

/* Rows that this program did not write: a clear end, not a 400 for the sender. */
static void test_broken_rows(void **state)
{
    struct agent_world *w = *state;
    static const char *const calls[] = {"{", "[1]", "[{\"id\":\"c\",\"name\":\"n\"}]",
                                        "[{\"id\":1,\"name\":\"n\",\"args\":\"\"}]"};
    for (size_t i = 0; i < 4; i++) {
        char name[8], args[128], id[33];
        (void)snprintf(name, sizeof(name), "b%zu", i);
        struct session_key key = {STR_LIT("a"), STR_LIT("http"), str_c(name)};
        const struct message row = {.role = ROLE_ASSISTANT,
                                    .tool_calls = str_c(calls[i])};
        assert_int_equal(
            store_append(w->core.store, key, STR_NONE, STR_NONE, &row, 1, id, NULL),
            ST_OK);
        (void)snprintf(args, sizeof(args),
                       "{\"agent_id\":\"a\",\"session_id\":\"%s\",\"text\":\"go\"}",
                       name);
        world_fails(w, "chat", args, 500, "internal", NULL);
    }
    assert_int_equal(script.asked, 0);
}

/* ---- faults ---------------------------------------------------------------------------- */

static void test_model_fails(void **state)
{
    struct agent_world *w = *state;
    script.fail = ST_IO;
    world_fails(w, "chat", chat, 503, "unavailable", NULL);
    world_says(w, "sessions", "{}", "{\"sessions\":[]}", NULL);
    script.fail = ST_TIMEOUT;
    world_fails(w, "chat", chat, 504, "timeout", NULL);
    script.fail = ST_INTERNAL;
    world_fails(w, "chat", chat, 500, "internal", NULL);
    script.fail = ST_OK;
    world_says(w, "chat", chat, NULL);
    assert_string_equal(script.roles, "u");
}

static void test_unknown_provider(void **state)
{
    struct agent_world *w = *state;
    world_edit(w, "id: a\nllm: {provider: openai}\n");
    world_fails(w, "chat", chat, 501, "unsupported", NULL);
    assert_int_equal(script.asked, 0);
}

static void tool_fails(void *ctx, const struct plan *plan, const struct event *cancel,
                       const struct exec_events *events, struct exec_outcome *out)
{
    (void)ctx;
    (void)plan;
    (void)cancel;
    for (int i = 0; i < 40; i++) { /* more than is kept of a log: cut on a border */
        static char line[2049];
        memset(line, 0, sizeof(line));
        for (size_t k = 0; k + 1 < sizeof(line); k += 2) {
            memcpy(line + k, "\xC3\xA9", 2);
        }
        events->log(events->ctx, str_c(line));
    }
    out->cause = EXEC_TOOL_ERROR;
    buf_add_c(&out->text, "ValueError: no");
}

static void test_tool_error(void **state)
{
    struct agent_world *w = *state;
    w->exec.run = tool_fails;
    script.calls_each = 1;
    script.answers_with = 1;
    struct asked *a = world_ask(w, "chat", chat);
    asked_wait(a);
    assert_non_null(strstr(a->final, "\"ok\":false"));
    assert_non_null(strstr(a->final, "ValueError: no"));
    struct str log = STR_NONE;
    const cJSON *call = json_get(a->json, "tool_calls");
    assert_true(json_get_str(call->child, "log", &log));
    assert_in_range(log.len, DISPATCH_LOG_MAX - 1, DISPATCH_LOG_MAX);
    assert_null(strstr(a->final, "\xEF\xBF\xBD")); /* no half character */
    asked_free(a);
    assert_string_equal(script.roles, "uAx");
    assert_int_equal(metric_get(w->core.metrics, METRIC_TOOL_FAILED), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history, setup, teardown),
        cmocka_unit_test_setup_teardown(test_max_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calls_of_a_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_tools, setup, teardown),
        cmocka_unit_test_setup_teardown(test_edited_during_the_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_orphan_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_model_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_provider, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tool_error, setup, teardown),
    };
    return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
