/* The operations from their arguments to their one final line, over a real store, gate,
 * plan and provider local; only the executor is a fake. */
#include "support/agent_world.h"

#include "base/clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

static const char soul[] = "id: a\n"
                           "description: An agent.\n"
                           "tools:\n"
                           "  - name: echo\n"
                           "    inline: 'def echo(text): return text'\n"
                           "    parameters:\n"
                           "      type: object\n"
                           "      properties: {text: {type: string}}\n"
                           "      required: [text]\n"
                           "      additionalProperties: false\n";

static int setup(void **state)
{
    *state = world_new(soul, "");
    return 0;
}

static int teardown(void **state)
{
    world_free(*state);
    return 0;
}

/* ---- chat ------------------------------------------------------------------------------ */

static void test_chat_with_a_tool(void **state)
{
    struct agent_world *w = *state;
    struct asked *a = world_ask(
        w, "chat",
        "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"/tool echo text=hi\"}");
    static const char *const order[] = {"\"type\":\"run\"", "\"type\":\"tool_call\"",
                                        "\"verdict\":\"allow\"",
                                        "\"type\":\"tool_result\"", "\"type\":\"token\""};
    const char *at = a->events;
    asked_wait(a);
    assert_int_equal(a->kind, SY_LINE_RESULT);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        at = strstr(at, order[i]);
        assert_non_null(at);
    }
    struct str s = STR_NONE;
    assert_true(json_get_str(a->json, "reply", &s));
    assert_str_is(s, "{\"text\":\"hi\"}"); /* the fake answers with its arguments */
    assert_true(json_get_str(a->json, "session_id", &s));
    assert_str_is(s, "s");
    assert_true(json_get_str(a->json, "run_id", &s));
    assert_str_is(s, a->run_id);
    assert_true(json_get_str(a->json, "stop", &s));
    assert_str_is(s, "end");
    const cJSON *calls = json_get(a->json, "tool_calls");
    assert_int_equal(cJSON_GetArraySize(calls), 1);
    bool ok = false;
    assert_true(json_get_bool(calls->child, "ok", &ok) && ok);
    asked_free(a);
    assert_int_equal(atomic_load(&w->exec.runs), 1);
    assert_int_equal(atomic_load(&w->audited), 3); /* message, call, run */
    assert_int_equal(metric_get(w->core.metrics, METRIC_TURNS), 1);
    assert_int_equal(metric_get(w->core.metrics, METRIC_TURNS_ACTIVE), 0);
    assert_int_equal(metric_get(w->core.metrics, METRIC_RUNS_ACTIVE), 0);
}

/* Promise 1: naming a tool that was not offered never runs it. */
static void test_denied_tools_never_run(void **state)
{
    struct agent_world *w = *state;
    static const char *const texts[] = {"/tool shell_exec command=id",
                                        "/tool read_file path=/etc/passwd",
                                        "/tool nonesuch",
                                        "/tool Echo text=x",
                                        "/tool echo n=1",
                                        "/tool echo",
                                        "/tool echo text=a text=b",
                                        "/tool agent__b text=x",
                                        "/tool echo {\\\"text\\\":\\\"\\\\ud800\\\"}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char args[256];
        (void)snprintf(args, sizeof(args), "{\"agent_id\":\"a\",\"text\":\"%s\"}",
                       texts[i]);
        world_says(w, "chat", args, " failed: tool ", "\"ok\":false",
                   "\"verdict\":\"deny\"", NULL);
    }
    assert_int_equal(atomic_load(&w->exec.runs), 0);
    assert_int_equal(metric_get(w->core.metrics, METRIC_TOOL_DENIED),
                     sizeof(texts) / sizeof(texts[0]));
}

static void test_chat_sessions(void **state)
{
    struct agent_world *w = *state;
    /* its own name, its user's, or a new one */
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"session_id\":\"s1\"}",
               "\"session_id\":\"s1\"", NULL);
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"user_id\":\"anna\"}",
               "\"session_id\":\"anna\"", NULL);
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"x\"}", "\"session_id\":\"s-",
               NULL);
    world_says(w, "sessions", "{}", "\"session_id\":\"s1\"", "\"user_id\":\"anna\"",
               NULL);
}

/* What was answered is there after the store was closed and opened again. */
static void test_history_survives(void **state)
{
    struct agent_world *w = *state;
    char id[64], args[128];
    world_says(w, "chat",
               "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"/tool echo text=hi\","
               "\"user_id\":\"u\",\"username\":\"Uma\"}",
               NULL);
    world_reopen_store(w);
    struct asked *a = world_ask(w, "sessions", "{\"agent_id\":\"a\"}");
    asked_wait(a);
    struct str s = STR_NONE;
    const cJSON *list = json_get(a->json, "sessions");
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_true(json_get_str(list->child, "id", &s));
    (void)snprintf(id, sizeof(id), "%.*s", STR_ARG(s));
    asked_free(a);
    (void)snprintf(args, sizeof(args), "{\"id\":\"%s\"}", id);
    world_says(w, "sessions.get", args, "\"username\":\"Uma\"", "\"messages\":4",
               "\"role\":\"user\"", "/tool echo text=hi", "\"role\":\"tool\"",
               "\"tool_calls\":[{\"id\":\"call_1\",\"name\":\"echo\"", NULL);
    (void)snprintf(args, sizeof(args), "{\"id\":\"%s\",\"limit\":1}", id);
    world_says(w, "sessions.get", args, "\"history\":[{\"id\":1,\"role\":\"user\"", NULL);
    (void)snprintf(args, sizeof(args), "{\"id\":\"%s\"}", id);
    world_says(w, "sessions.delete", args, "{\"deleted\":true}", NULL);
    world_fails(w, "sessions.get", args, 404, "not_found", NULL);
    world_fails(w, "sessions.delete", args, 404, "not_found", NULL);
    world_says(w, "sessions", "", "{\"sessions\":[]}", NULL);
}

/* A store that cannot write: the sender hears it, nothing half is kept, no tool runs. */
static void test_store_failure(void **state)
{
    struct agent_world *w = *state;
    struct rlimit was, none = {.rlim_cur = 0};
    const char *chat = "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"hello\"}";
    const char *tool =
        "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"/tool echo text=hi\"}";
    world_says(w, "chat", chat, NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    none.rlim_max = was.rlim_max;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    world_fails(w, "chat", chat, 503, "unavailable", NULL);
    world_fails(w, "chat", tool, 503, "unavailable", NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(atomic_load(&w->exec.runs), 0); /* not on record: not run */
    world_says(w, "sessions", "{}", "\"messages\":2", NULL);
    world_reopen_store(w);
    world_says(w, "chat", tool, "\"ok\":true", NULL);
    world_says(w, "sessions", "{}", "\"messages\":6", NULL);
}

static void hang(void *ctx, const struct plan *plan, const struct event *cancel,
                 const struct exec_events *events, struct exec_outcome *out)
{
    struct event *begun = ctx;
    events->log(events->ctx, STR_LIT("working\n"));
    if (begun != NULL) {
        event_fire(begun);
    }
    fake_exec_hang(plan, cancel, out);
}

static void wait_event(const struct event *e)
{
    assert_int_equal(io_wait(e->fd, POLLIN, -1, clock_mono_ms() + 10000), ST_OK);
}

static void test_cancel(void **state)
{
    struct agent_world *w = *state;
    struct event begun;
    char args[128];
    assert_int_equal(event_init(&begun, NULL), ST_OK);
    w->exec.ctx = &begun;
    w->exec.run = hang;
    struct asked *a = world_ask(
        w, "chat",
        "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"/tool echo text=x\"}");
    struct asked *queued = world_ask(
        w, "chat", "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"two\"}");
    wait_event(&begun);
    asked_wait_run(queued); /* a message that waits has a name too */
    world_says(w, "status", "", a->run_id, queued->run_id, "\"agent_id\":\"a\"", NULL);
    (void)snprintf(args, sizeof(args), "{\"run_id\":\"%s\"}", queued->run_id);
    world_says(w, "chat.cancel", args, "{\"cancelled\":true}", NULL);
    (void)snprintf(args, sizeof(args), "{\"run_id\":\"%s\"}", a->run_id);
    world_says(w, "chat.cancel", args, NULL);
    asked_wait(a);
    assert_int_equal(a->kind, SY_LINE_ERROR);
    assert_non_null(strstr(a->final, "\"code\":\"cancelled\""));
    assert_non_null(strstr(a->events, "\"type\":\"tool_log\""));
    asked_wait(queued);
    assert_non_null(strstr(queued->final, "\"code\":\"cancelled\""));
    world_fails(w, "chat.cancel", args, 404, "not_found", "run_id");
    /* the call and how it ended are on record */
    world_says(w, "sessions", "{}", "\"messages\":3", NULL);
    asked_free(a);
    asked_free(queued);
    event_done(&begun);
}

/* The request's own deadline is the run's too, and no tool gets more than is left. */
static void test_deadline(void **state)
{
    struct agent_world *w = *state;
    w->exec.run = hang;
    struct asked *a =
        world_ask_by(w, "chat", "{\"agent_id\":\"a\",\"text\":\"/tool echo text=x\"}",
                     clock_mono_ms() + 100, true);
    asked_wait(a);
    assert_non_null(strstr(a->final, "\"status\":504"));
    assert_non_null(strstr(a->final, "\"code\":\"timeout\""));
    asked_free(a);
    a = world_ask_by(w, "chat", "{\"agent_id\":\"a\",\"text\":\"x\"}", 1, true);
    asked_wait(a);
    assert_non_null(strstr(a->final, "\"status\":504"));
    asked_free(a);
    a = world_ask_by(w, "tools.run",
                     "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":{\"text\":\"x\"}}",
                     clock_mono_ms() + 100, true);
    asked_wait(a);
    assert_int_equal(a->kind, SY_LINE_RESULT);
    assert_non_null(strstr(a->final, "\"cause\":\"timeout\""));
    asked_free(a);
}

static void test_run_timeout(void **state)
{
    (void)state;
    struct agent_world *w = world_new(soul, "runtime: {run_timeout: 1s}");
    w->exec.run = hang;
    world_fails(w, "chat", "{\"agent_id\":\"a\",\"text\":\"/tool echo text=x\"}", 504,
                "timeout", NULL);
    world_free(w);
}

/* ---- order ----------------------------------------------------------------------------- */

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t inside, want;
    bool crowd; /* want were inside together */
    char order[64];
};

/* Stays until as many are inside as the test wants. */
static void meet(void *ctx, const struct plan *plan, const struct event *cancel,
                 const struct exec_events *events, struct exec_outcome *out)
{
    struct meeting *m = ctx;
    int64_t until = clock_mono_ms() + 10000;
    struct timespec at;
    (void)events;
    (void)cancel;
    (void)until;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += 10;
    pthread_mutex_lock(&m->lock);
    m->inside++;
    strncat(m->order, plan_call(plan)->args.ptr + 9, 1); /* {"text":"X"} */
    while (m->inside < m->want && !m->crowd &&
           pthread_cond_timedwait(&m->moved, &m->lock, &at) == 0) {
    }
    m->crowd = m->crowd || m->inside >= m->want;
    pthread_cond_broadcast(&m->moved);
    m->inside--;
    pthread_mutex_unlock(&m->lock);
    buf_add_c(&out->text, "ok");
}

static void test_sessions_side_by_side(void **state)
{
    struct agent_world *w = *state;
    struct meeting m = {.want = 3};
    struct asked *a[3];
    pthread_mutex_init(&m.lock, NULL);
    pthread_cond_init(&m.moved, NULL);
    w->exec.ctx = &m;
    w->exec.run = meet;
    for (int i = 0; i < 3; i++) {
        char args[128];
        (void)snprintf(args, sizeof(args),
                       "{\"agent_id\":\"a\",\"session_id\":\"s%d\",\"text\":\"/tool echo "
                       "text=%d\"}",
                       i, i);
        a[i] = world_ask(w, "chat", args);
    }
    for (int i = 0; i < 3; i++) {
        asked_free(a[i]);
    }
    assert_true(m.crowd);
    pthread_cond_destroy(&m.moved);
    pthread_mutex_destroy(&m.lock);
}

static void test_one_session_in_order(void **state)
{
    struct agent_world *w = *state;
    struct meeting m = {.want = 1};
    struct asked *a[8];
    pthread_mutex_init(&m.lock, NULL);
    pthread_cond_init(&m.moved, NULL);
    w->exec.ctx = &m;
    w->exec.run = meet;
    for (int i = 0; i < 8; i++) {
        char args[128];
        (void)snprintf(args, sizeof(args),
                       "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"/tool echo "
                       "text=%d\"}",
                       i);
        a[i] = world_ask(w, "chat", args);
    }
    for (int i = 0; i < 8; i++) {
        asked_free(a[i]);
    }
    assert_string_equal(m.order, "01234567");
    world_says(w, "sessions", "{}", "\"messages\":32", NULL);
    pthread_cond_destroy(&m.moved);
    pthread_mutex_destroy(&m.lock);
}

static void test_full_session(void **state)
{
    struct agent_world *w = *state;
    struct asked *a[LANE_MAX_WAITING + 2];
    struct event begun;
    assert_int_equal(event_init(&begun, NULL), ST_OK);
    w->exec.ctx = &begun;
    w->exec.run = hang;
    const char *args =
        "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"/tool echo text=x\"}";
    a[0] = world_ask(w, "chat", args);
    wait_event(&begun);
    for (size_t i = 1; i <= LANE_MAX_WAITING; i++) {
        a[i] = world_ask(w, "chat", args);
        assert_int_equal(a[i]->finals, 0);
    }
    world_fails(w, "chat", args, 429, "busy", NULL);
    world_says(w, "chat", "{\"agent_id\":\"a\",\"session_id\":\"t\",\"text\":\"x\"}",
               NULL);
    ops_cancel_all(w->ops);
    for (size_t i = 0; i <= LANE_MAX_WAITING; i++) {
        asked_free(a[i]);
    }
    event_done(&begun);
}

/* ---- arguments --------------------------------------------------------------------------- */

static void test_arguments(void **state)
{
    struct agent_world *w = *state;
    char id[256], args[512];
    static const struct {
        const char *op, *args, *field;
    } bad[] = {
        {"chat", "{}", "agent_id"},
        {"chat", "{\"agent_id\":\"a\"}", "text"},
        {"chat", "{\"agent_id\":\"a\",\"text\":\"\"}", "text"},
        {"chat", "{\"agent_id\":1,\"text\":\"x\"}", "agent_id"},
        {"chat", "{\"agent_id\":\"a\",\"text\":null}", "text"},
        {"chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"Text\":\"x\"}", "Text"},
        {"chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"session_id\":\"\"}", "session_id"},
        {"chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"user_id\":7}", "user_id"},
        {"chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"overrides\":1}", "overrides"},
        {"chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"overrides\":{\"max_turns\":0}}",
         "overrides"},
        {"chat", "{\"agent_id\":\"a\",\"text\":\"x\",\"overrides\":{\"max_turns\":1001}}",
         "overrides"},
        {"chat",
         "{\"agent_id\":\"a\",\"text\":\"x\",\"overrides\":{\"tool_choice\":\"any\"}}",
         "overrides"},
        {"chat",
         "{\"agent_id\":\"a\",\"text\":\"x\",\"overrides\":{\"system_prompt\":\"x\"}}",
         "overrides"},
        {"chat.cancel", "{}", "run_id"},
        {"tools.run", "{\"agent_id\":\"a\"}", "tool"},
        {"tools.run", "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":[]}", "args"},
        {"tools.run", "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":\"{}\"}", "args"},
        {"tools.run", "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":{\"text\":1}}",
         "args"},
        {"tools.run", "{\"agent_id\":\"a\",\"tool\":\"echo\"}", "args"},
        {"agents", "{\"x\":1}", "x"},
        {"agents.get", "{}", "id"},
        {"agents.tools", "{\"id\":\"\"}", "id"},
        {"sessions", "{\"limit\":0}", "limit"},
        {"sessions", "{\"limit\":1001}", "limit"},
        {"sessions", "{\"before\":-1}", "before"},
        {"sessions.get", "{\"id\":\"x\",\"after\":1.5}", "after"},
        {"sessions.delete", "{\"id\":[]}", "id"},
        {"status", "{\"x\":null}", "x"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        world_fails(w, bad[i].op, bad[i].args, 400,
                    strcmp(bad[i].op, "tools.run") == 0 &&
                            strstr(bad[i].args, "echo\"") != NULL &&
                            strstr(bad[i].args, "[]") == NULL &&
                            strstr(bad[i].args, "\"{}\"") == NULL
                        ? "arguments"
                        : "invalid",
                    bad[i].field);
    }
    /* limits: at and above */
    memset(id, 'i', 200);
    id[200] = '\0';
    (void)snprintf(args, sizeof(args),
                   "{\"agent_id\":\"a\",\"text\":\"x\",\"session_id\":\"%s\"}", id);
    world_says(w, "chat", args, NULL);
    (void)snprintf(args, sizeof(args),
                   "{\"agent_id\":\"a\",\"text\":\"x\",\"session_id\":\"%si\"}", id);
    world_fails(w, "chat", args, 400, "invalid", "session_id");
    world_says(w, "sessions", "{\"limit\":1000}", NULL);
}

static void test_bodies_that_are_no_object(void **state)
{
    struct agent_world *w = *state;
    static const char *const bad[] = {"[]",
                                      "null",
                                      "1",
                                      "\"x\"",
                                      "{",
                                      "{}{}",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"a\":\"\\ud800\"}",
                                      "\xFF",
                                      " ",
                                      "{\"a\":01}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        world_fails(w, "chat", bad[i], 400, "invalid_json", NULL);
    }
    world_fails(w, "chat.nonesuch", "{}", 0, "not_begun", NULL);
}

/* A name of a megabyte is the caller's fault, not ours, and does not come back whole. */
static void test_long_unknown_member(void **state)
{
    struct agent_world *w = *state;
    size_t len = (size_t)1024 * 1024;
    char *args = malloc(len + 16);
    assert_non_null(args);
    memcpy(args, "{\"", 2);
    memset(args + 2, 'm', len);
    memcpy(args + 2 + len, "\":1}", 5);
    struct asked *a = world_ask(w, "chat", args);
    asked_wait(a);
    assert_non_null(strstr(a->final, "\"status\":400"));
    assert_true(strlen(a->final) < 2000);
    asked_free(a);
    free(args);
}

static void test_text_limit(void **state)
{
    struct agent_world *w = *state;
    static const char head[] = "{\"agent_id\":\"a\",\"text\":\"";
    size_t len = (size_t)1024 * 1024, n = sizeof(head) - 1;
    char *args = malloc(n + len + 8);
    assert_non_null(args);
    memcpy(args, head, n);
    memset(args + n, 't', len + 1);
    memcpy(args + n + len, "\"}", 3);
    world_says(w, "chat", args, NULL);
    memcpy(args + n + len, "t\"}", 4);
    world_fails(w, "chat", args, 400, "invalid", "text");
    free(args);
}

/* ---- gate from here ----------------------------------------------------------------------- */

static void test_unknown_agent(void **state)
{
    struct agent_world *w = *state;
    world_fails(w, "chat", "{\"agent_id\":\"b\",\"text\":\"x\"}", 404, "agent-unknown",
                "agent_id");
    world_fails(w, "tools.run", "{\"agent_id\":\"b\",\"tool\":\"echo\"}", 404,
                "agent-unknown", "agent_id");
    world_fails(w, "agents.get", "{\"id\":\"b\"}", 404, "not_found", "id");
    world_fails(w, "agents.tools", "{\"id\":\"A\"}", 404, "not_found", "id");
}

static void closed(struct agent_world *w, const char *lines, const char *row, bool tools)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s%s", soul, lines);
    world_edit(w, text);
    world_fails(w, "chat", "{\"agent_id\":\"a\",\"text\":\"x\"}", 403, row, NULL);
    if (tools) {
        world_fails(w, "tools.run",
                    "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":{\"text\":\"x\"}}",
                    403, row, NULL);
    }
    assert_int_equal(atomic_load(&w->exec.runs), 0);
}

/* security-rules 7, from chat and from tools.run */
static void test_closed_agents(void **state)
{
    struct agent_world *w = *state;
    closed(w, "enabled: false\n", "agent-disabled", true);
    closed(w, "channels: [whatsapp]\n", "channel-not-served", true);
    closed(w, "security: {passphrase: open-sesame}\n", "passphrase", true);
    closed(w, "trigger: webhook\n", "trigger-kind", false);
    closed(w, "trigger: internal\n", "trigger-kind", false);
    world_edit(w, soul);
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"x\"}", NULL);
}

static void test_tools_run(void **state)
{
    struct agent_world *w = *state;
    world_says(w, "tools.run",
               "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":{ \"text\" : \"hi\" }}",
               "\"args\":{\"text\":\"hi\"}", "\"ok\":true", "\"verdict\":\"allow\"",
               "\"times_ms\":{", NULL);
    world_fails(w, "tools.run", "{\"agent_id\":\"a\",\"tool\":\"nonesuch\"}", 404,
                "tool-unknown", "tool");
    world_fails(w, "tools.run", "{\"agent_id\":\"a\",\"tool\":\"sys_info\"}", 403,
                "not-available", NULL);
    world_fails(w, "tools.run", "{\"agent_id\":\"a\",\"tool\":\"shell_exec\"}", 403,
                "system-permit", NULL);
    struct asked *a = world_ask_by(
        w, "tools.run", "{\"agent_id\":\"a\",\"tool\":\"read_file\"}", 0, false);
    asked_wait(a);
    assert_non_null(strstr(a->final, "\"code\":\"not-local\""));
    asked_free(a);
    assert_int_equal(atomic_load(&w->exec.runs), 1);
}

/* security-rules 9: nobody can be asked at tools.run, so it is denied at once. */
static void test_confirm_without_approver(void **state)
{
    struct agent_world *w = *state;
    char text[1024];
    (void)snprintf(text, sizeof(text), "%sconfirm_tools: [echo]\n", soul);
    world_edit(w, text);
    world_fails(w, "tools.run",
                "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":{\"text\":\"x\"}}", 403,
                "nobody-to-ask", NULL);
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"/tool echo text=x\"}",
               "was not offered", "\"verdict\":\"deny\"", NULL);
    assert_int_equal(atomic_load(&w->exec.runs), 0);
}

static void test_audit_required(void **state)
{
    (void)state;
    struct agent_world *w = world_new(soul, "audit: {required: true}");
    const char *run = "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":{\"text\":\"x\"}}";
    atomic_store(&w->audit_fails, true);
    world_says(w, "tools.run", run, "\"cause\":\"unaudited\"", "\"ok\":false", NULL);
    assert_int_equal(atomic_load(&w->exec.runs), 0);
    assert_true(metric_get(w->core.metrics, METRIC_AUDIT_FAILED) > 0);
    atomic_store(&w->audit_fails, false);
    world_says(w, "tools.run", run, "\"ok\":true", NULL);
    world_free(w);
}

static void test_audit_not_required(void **state)
{
    struct agent_world *w = *state;
    atomic_store(&w->audit_fails, true);
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"/tool echo text=x\"}",
               "\"ok\":true", NULL);
    assert_int_equal(metric_get(w->core.metrics, METRIC_AUDIT_FAILED), 3);
}

/* A python_file that was changed after it was let in is not run (security-rules 4). */
static void test_changed_tool_file(void **state)
{
    struct agent_world *w = *state;
    const char *run = "{\"agent_id\":\"a\",\"tool\":\"hi\"}";
    const char *agent = "id: a\ntools: [{name: hi, python_file: hi.py}]\n";
    char path[PATH_MAX];
    test_write_file(test_path(&w->dir, "agents/a/hi.py", path), "def hi(): return 1\n");
    world_edit(w, agent);
    world_says(w, "tools.run", run, "\"ok\":true", NULL);
    test_write_file(path, "def hi(): return 2\n");
    world_says(w, "tools.run", run, "\"cause\":\"refused\"", "was changed", NULL);
    assert_int_equal(unlink(path), 0);
    world_says(w, "tools.run", run, "\"cause\":\"refused\"", "\"ok\":false", NULL);
    assert_int_equal(atomic_load(&w->exec.runs), 1);
}

/* ---- reading -------------------------------------------------------------------------- */

static void test_reading(void **state)
{
    struct agent_world *w = *state;
    world_says(w, "agents", "", "\"agents\":[{\"id\":\"a\"", "\"problems\":[]",
               "\"description\":\"An agent.\"", NULL);
    world_says(w, "agents.get", "{\"id\":\"a\"}", "\"digest\":\"", "SOUL.yaml", NULL);
    world_says(w, "agents.tools", "{\"id\":\"a\"}",
               "\"name\":\"echo\",\"kind\":\"python\"", "\"http\":{\"verdict\":\"allow\"",
               "\"whatsapp\":{\"verdict\":\"allow\"", "\"id\":\"not-local\"",
               "\"id\":\"system-permit\"", NULL);
    world_says(w, "status", "", "\"version\":\"", "\"runs\":[]", NULL);
}

static void test_without_a_store(void **state)
{
    struct agent_world *w = *state;
    struct store *store = w->core.store;
    w->core.store = NULL;
    world_fails(w, "sessions", "{}", 503, "unavailable", NULL);
    world_fails(w, "sessions.get", "{\"id\":\"x\"}", 503, "unavailable", NULL);
    world_fails(w, "sessions.delete", "{\"id\":\"x\"}", 503, "unavailable", NULL);
    world_says(w, "chat", "{\"agent_id\":\"a\",\"text\":\"/tool echo text=x\"}",
               "\"ok\":true", NULL);
    w->core.store = store;
}

/* ---- out of memory -------------------------------------------------------------------- */

static bool done(struct agent_world *w, const char *op, const char *args)
{
    struct asked *a = world_ask(w, op, args);
    asked_wait(a);
    bool ok = a->kind == SY_LINE_RESULT && strstr(a->final, "\"ok\":false") == NULL;
    asked_free(a); /* one final line, whatever failed */
    return ok;
}

static void test_out_of_memory(void **state)
{
    struct agent_world *w = *state;
    TEST_SWEEP(
        done(w, "chat",
             "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"/tool echo text=hi\","
             "\"overrides\":{\"max_turns\":3}}"));
    TEST_SWEEP(done(w, "tools.run",
                    "{\"agent_id\":\"a\",\"tool\":\"echo\",\"args\":{\"text\":\"x\"}}"));
    TEST_SWEEP(done(w, "agents.tools", "{\"id\":\"a\"}"));
    TEST_SWEEP(done(w, "sessions", "{}"));
    /* whatever was kept of the failed ones is a history that can be gone on with */
    world_says(w, "chat", "{\"agent_id\":\"a\",\"session_id\":\"s\",\"text\":\"x\"}",
               NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chat_with_a_tool, setup, teardown),
        cmocka_unit_test_setup_teardown(test_denied_tools_never_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chat_sessions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history_survives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
        cmocka_unit_test(test_run_timeout),
        cmocka_unit_test_setup_teardown(test_sessions_side_by_side, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_session_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_session, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bodies_that_are_no_object, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_unknown_member, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_agent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closed_agents, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tools_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_confirm_without_approver, setup, teardown),
        cmocka_unit_test(test_audit_required),
        cmocka_unit_test_setup_teardown(test_audit_not_required, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed_tool_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reading, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_store, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
