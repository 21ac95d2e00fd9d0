/* An admitted message in, a reply out: history from the store, answers from the model,
 * tools through dispatch. The ceilings of a run are kept here. Never shows a tool to the
 * model that the gate would refuse. */
#include "agent/turn.h"

#include "agent/history.h"
#include "base/clock.h"
#include "base/json.h"

#include <pthread.h>
#include <string.h>

#define TURN_ARENA_MAX ((size_t)256 * 1024 * 1024)
#define CALLS_MAX 64 /* tool calls of one run */

struct run {
    struct agent_core *core;
    const struct turn *t;
    const struct soul *soul;
    struct arena *a;
    struct catalog tools;
    struct model_tool *offered;
    size_t noffered;
    struct model_message *messages; /* history, then this run */
    size_t nmessages, cap;
    size_t stored; /* of messages: how many the store has */
    bool begun;    /* something of this run is stored */
    struct session_key key;
    char session_id[33];
    int64_t deadline_ms, input_tokens, output_tokens;
    int64_t left; /* model calls */
    size_t ncalls;
    struct buf calls;           /* JSON array elements of reports */
    struct buf line;            /* event under construction */
    pthread_mutex_t event_lock; /* guards line: logs come from workers */
    const char *stop;           /* "end", "max_turns", "max_tool_calls" */
};

static struct session_key turn_session_key(const struct admitted *message)
{
    const struct origin *from = admitted_origin(message);
    struct str conversation =
        from->conversation.len > 0 ? from->conversation : from->sender;

    return (struct session_key){str_c(admitted_soul(message)->id), from->channel,
                                conversation};
}

static enum status no_memory(struct error *err)
{
    return error_set(err, ST_NOMEM, "out of memory for this turn");
}

/* ---- events ---------------------------------------------------------------------- */

static void event_begin(struct run *r, const char *type)
{
    (void)pthread_mutex_lock(&r->event_lock);
    buf_clear(&r->line);
    buf_add_char(&r->line, '{');
    json_add_key_string(&r->line, "type", str_c(type));
    json_add_key_string(&r->line, "run_id", str_c(r->t->run_id));
}

static void event_end(struct run *r)
{
    buf_add_char(&r->line, '}');
    if (buf_status(&r->line) == ST_OK) {
        r->t->event(r->t->ctx, buf_str(&r->line));
    }
    (void)pthread_mutex_unlock(&r->event_lock);
}

static void on_token(void *ctx, struct str text)
{
    struct run *r = ctx;

    if (r->t->event != NULL) {
        event_begin(r, "token");
        json_add_key_string(&r->line, "text", text);
        event_end(r);
    }
}

static void on_judged(void *ctx, const struct dispatch_call *c, const struct verdict *v)
{
    struct run *r = ctx;

    if (r->t->event != NULL) {
        event_begin(r, "tool_call");
        json_add_key_string(&r->line, "call_id", c->call_id);
        json_add_key_string(&r->line, "tool", c->name);
        json_add_key_string(&r->line, "args", c->args);
        verdict_json(v, &r->line);
        event_end(r);
    }
}

static void on_log(void *ctx, const struct dispatch_call *c, struct str text)
{
    struct run *r = ctx;

    if (r->t->event != NULL) {
        event_begin(r, "tool_log");
        json_add_key_string(&r->line, "call_id", c->call_id);
        json_add_key_string(&r->line, "text", text);
        event_end(r);
    }
}

/* ---- messages --------------------------------------------------------------------- */

static enum status add_message(struct run *r, struct model_message m)
{
    if (r->nmessages == r->cap) {
        size_t cap = r->cap == 0 ? 64 : r->cap * 2;
        struct model_message *grown = arena_array(r->a, cap, sizeof(*grown));

        if (grown == NULL) {
            return ST_NOMEM;
        }
        if (r->nmessages > 0) {
            memcpy(grown, r->messages, r->nmessages * sizeof(*grown));
        }
        r->messages = grown;
        r->cap = cap;
    }
    r->messages[r->nmessages++] = m;
    return ST_OK;
}

static enum status load_history(struct run *r, struct error *err)
{
    struct model_message *list = NULL;
    size_t n = 0;
    enum status st = ST_OK;

    if (r->core->store != NULL) {
        st = history_load(r->core->store, r->key, r->a, &list, &n, err);
    }
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        st = add_message(r, list[i]) == ST_OK ? ST_OK : no_memory(err);
    }
    r->stored = r->nmessages;
    return st;
}

/* Everything not stored yet, in one transaction. */
static enum status save(struct run *r, struct error *err)
{
    size_t n = r->nmessages - r->stored;
    struct message *rows;

    if (r->core->store == NULL || n == 0) {
        return ST_OK;
    }
    rows = arena_array(r->a, n, sizeof(*rows));
    if (rows == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        if (history_row(&r->messages[r->stored + i], r->a, &rows[i]) != ST_OK) {
            return no_memory(err);
        }
        rows[i].at_unix_ms = clock_unix_ms();
        rows[i].run_id = str_c(r->t->run_id);
    }
    if (store_append(r->core->store, r->key, r->t->user, r->t->username, rows, n,
                     r->session_id, err) != ST_OK) {
        return error_context(err, "the conversation cannot be stored");
    }
    r->stored = r->nmessages;
    r->begun = true;
    return ST_OK;
}

/* ---- tools ------------------------------------------------------------------------- */

static enum status offer_tools(struct run *r, struct error *err)
{
    struct gate_policy policy = {core_config(r->core)->runtime.allow_system_tools};
    enum status st = catalog_build(r->soul, r->a, &r->tools, err);

    if (st != ST_OK) {
        return st;
    }
    r->offered = arena_array(r->a, r->tools.n + 1, sizeof(*r->offered));
    if (r->offered == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < r->tools.n && !r->t->overrides.no_tools; i++) {
        const struct tool *t = &r->tools.tools[i];

        if (gate_offer(r->t->message, &policy, t).answer != GATE_DENY) {
            r->offered[r->noffered++] =
                (struct model_tool){t->name, t->description, schema_text(t->parameters)};
        }
    }
    return ST_OK;
}

static bool is_offered(const struct run *r, struct str name)
{
    for (size_t i = 0; i < r->noffered; i++) {
        if (str_eq(r->offered[i].name, name)) {
            return true;
        }
    }
    return false;
}

static enum status run_call(struct run *r, const struct model_call *call,
                            struct error *err)
{
    struct dispatch_call d = {.by = r->t->message,
                              .agents = r->t->agents,
                              .tools = &r->tools,
                              .call_id = call->id,
                              .name = call->name,
                              .args = call->args,
                              .session = r->key.conversation,
                              .offered = is_offered(r, call->name),
                              .run_id = r->t->run_id,
                              .deadline_ms = r->deadline_ms,
                              .cancel = r->t->cancel,
                              .ctx = r,
                              .judged = on_judged,
                              .log = on_log};
    struct call_report report;
    struct model_message m = {
        .role = MODEL_TOOL, .call_id = call->id, .tool_name = call->name};
    char *text;

    dispatch_call(r->core, &d, &report);
    json_add_sep(&r->calls);
    call_report_json(&d, &report, &r->calls);
    if (r->t->event != NULL) {
        event_begin(r, "tool_result");
        json_add_key(&r->line, "call");
        call_report_json(&d, &report, &r->line);
        event_end(r);
    }
    text = arena_dup(r->a, buf_str(&report.text));
    m.text = str_n(text, report.text.len);
    m.is_error = report.is_error;
    call_report_done(&report);
    return text != NULL && add_message(r, m) == ST_OK ? ST_OK : no_memory(err);
}

static enum status run_calls(struct run *r, const struct model_reply *reply,
                             struct error *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < reply->ncalls; i++) {
        if (r->ncalls++ < CALLS_MAX) {
            st = run_call(r, &reply->calls[i], err);
        } else {
            struct model_message m = {.role = MODEL_TOOL,
                                      .call_id = reply->calls[i].id,
                                      .tool_name = reply->calls[i].name,
                                      .is_error = true,
                                      .text = STR_LIT("not run: the run's tool calls are "
                                                      "used up")};

            r->stop = "max_tool_calls";
            st = add_message(r, m) == ST_OK ? ST_OK : no_memory(err);
        }
    }
    return st;
}

/* ---- the loop ---------------------------------------------------------------------- */

static enum status ask_model(struct run *r, struct model_reply *reply, struct error *err)
{
    const struct config *cfg = core_config(r->core);
    const char *provider =
        r->soul->llm.provider != NULL ? r->soul->llm.provider : cfg->llm.default_provider;
    struct model_request req = {.system = str_c(r->soul->system_prompt),
                                .messages = r->messages,
                                .nmessages = r->nmessages,
                                .tools = r->offered,
                                .ntools = r->noffered,
                                .agent_name = r->soul->id,
                                .deadline_ms = r->deadline_ms,
                                .cancel = r->t->cancel,
                                .ctx = r,
                                .token = on_token};

    if (strcmp(provider, "local") != 0) {
        return error_set(err, ST_UNSUPPORTED,
                         "agent %s asks for provider %s; this build has the provider "
                         "local only",
                         r->soul->id, provider);
    }
    return model_local(&req, r->a, reply, err);
}

static enum status check_time(const struct run *r, struct error *err)
{
    if (r->t->cancel != NULL && event_fired(r->t->cancel)) {
        return error_set(err, ST_CANCELLED, "cancelled");
    }
    if (clock_mono_ms() >= r->deadline_ms) {
        return error_set(err, ST_TIMEOUT, "the run took longer than its run_timeout");
    }
    return ST_OK;
}

static enum status loop(struct run *r, struct str *answer, struct error *err)
{
    enum status st = ST_OK;

    for (;;) {
        struct model_reply reply = {0};
        struct model_message m = {.role = MODEL_ASSISTANT};

        st = check_time(r, err);
        if (st == ST_OK) {
            st = ask_model(r, &reply, err);
        }
        if (st != ST_OK) {
            return st;
        }
        r->input_tokens += reply.input_tokens;
        r->output_tokens += reply.output_tokens;
        r->left--;
        m.text = reply.text;
        m.calls = reply.calls;
        m.ncalls = reply.ncalls;
        if (add_message(r, m) != ST_OK) {
            return no_memory(err);
        }
        if (reply.ncalls == 0) {
            *answer = reply.text;
            return ST_OK;
        }
        st = save(r, err); /* the call is on record before it runs */
        if (st == ST_OK) {
            st = run_calls(r, &reply, err);
        }
        if (st != ST_OK) {
            return st;
        }
        if (r->left <= 0 || strcmp(r->stop, "end") != 0) {
            r->stop = strcmp(r->stop, "end") == 0 ? "max_turns" : r->stop;
            *answer = STR_LIT("I stopped here: the limit of this run is reached.");
            m = (struct model_message){.role = MODEL_ASSISTANT, .text = *answer};
            return add_message(r, m) == ST_OK ? ST_OK : no_memory(err);
        }
    }
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static enum status prepare(struct run *r, struct error *err)
{
    const struct config *cfg = core_config(r->core);
    int64_t timeout = r->soul->run_timeout_ms > 0 ? r->soul->run_timeout_ms
                                                  : cfg->runtime.run_timeout_ms;
    enum status st;

    r->deadline_ms = smaller(clock_mono_ms() + timeout, r->t->deadline_ms);
    r->left =
        r->soul->max_turns > 0 ? r->soul->max_turns : cfg->runtime.default_max_turns;
    r->left = smaller(r->left, cfg->runtime.max_turns_ceiling);
    if (r->t->overrides.max_turns > 0) {
        r->left = smaller(r->left, r->t->overrides.max_turns);
    }
    st = load_history(r, err);
    if (st == ST_OK) {
        st = offer_tools(r, err);
    }
    if (st == ST_OK) {
        struct model_message m = {.role = MODEL_USER,
                                  .text = admitted_text(r->t->message)};

        st = add_message(r, m) == ST_OK ? ST_OK : no_memory(err);
    }
    return st;
}

static void result_json(const struct run *r, struct str answer, struct buf *out)
{
    const struct origin *from = admitted_origin(r->t->message);

    buf_add_char(out, '{');
    json_add_key_string(out, "reply", answer);
    json_add_key_string(out, "session_id", r->key.conversation);
    json_add_key_string(out, "run_id", str_c(r->t->run_id));
    json_add_key_string(out, "agent_id", str_c(r->soul->id));
    json_add_key_string(out, "stop", str_c(r->stop));
    json_add_key(out, "usage");
    buf_add_char(out, '{');
    json_add_key_i64(out, "input_tokens", r->input_tokens);
    json_add_key_i64(out, "output_tokens", r->output_tokens);
    buf_add_char(out, '}');
    json_add_key(out, "admission");
    buf_add_char(out, '{');
    json_add_key_string(out, "channel", from->channel);
    json_add_key_string(out, "entry", str_c(gate_entry_name(from->entry)));
    json_add_key_string(out, "sender", from->sender);
    json_add_key_bool(out, "local", from->local);
    verdict_json(r->t->admission, out);
    buf_add_char(out, '}');
    json_add_key(out, "tool_calls");
    buf_add_char(out, '[');
    buf_add_str(out, buf_str(&r->calls));
    buf_add_c(out, "]}");
}

enum status turn_run(struct agent_core *core, const struct turn *t, struct buf *out,
                     struct error *err)
{
    struct run r = {.core = core,
                    .t = t,
                    .soul = admitted_soul(t->message),
                    .key = turn_session_key(t->message),
                    .stop = "end"};
    struct str answer = STR_NONE;
    struct error save_err = {0};
    enum status st;

    buf_init(&r.calls, TURN_ARENA_MAX);
    buf_init(&r.line, TURN_ARENA_MAX);
    r.a = arena_new(TURN_ARENA_MAX);
    if (r.a == NULL || pthread_mutex_init(&r.event_lock, NULL) != 0) {
        arena_free(r.a);
        return no_memory(err);
    }
    metric_add(core->metrics, METRIC_TURNS, 1);
    metric_add(core->metrics, METRIC_TURNS_ACTIVE, 1);
    st = prepare(&r, err);
    if (st == ST_OK) {
        st = loop(&r, &answer, err);
    }
    if (st == ST_OK) {
        st = save(&r, err);
    } else if (r.begun && save(&r, &save_err) != ST_OK) {
        log_line(core->log, LOG_ERROR, "agent", "%s", save_err.text);
    }
    if (st == ST_OK) {
        result_json(&r, answer, out);
        st = buf_status(out) == ST_OK ? ST_OK : no_memory(err);
    }
    metric_add(core->metrics, METRIC_TURNS_ACTIVE, -1);
    (void)pthread_mutex_destroy(&r.event_lock);
    buf_done(&r.line);
    buf_done(&r.calls);
    arena_free(r.a);
    return st;
}
