/* chat, chat.cancel and tools.run: arguments in, a turn or a single tool call on the turns
 * pool, one final line out. */
#include "agent/ops_internal.h"
#include "agent/turn.h"
#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

#define TEXT_MAX ((int64_t)1024 * 1024)
#define NAME_MAX_BYTES 200
#define RESULT_MAX ((size_t)300 * 1024 * 1024)

/* A chat from its arguments to its turn. Lives in the call's arena. */
struct chat {
    struct op_call *call;
    struct agent_snapshot *agents;
    struct admitted *message;
    struct verdict admission;
    struct turn_overrides overrides;
    struct str user, username;
};

static void chat_event(void *ctx, struct str json)
{
    struct op_call *c = ctx;

    c->line(c->ctx, SY_LINE_EVENT, json);
}

static void chat_run(void *arg)
{
    struct chat *chat = arg;
    struct op_call *c = chat->call;
    struct turn t = {.message = chat->message,
                     .admission = &chat->admission,
                     .agents = chat->agents,
                     .user = chat->user,
                     .username = chat->username,
                     .overrides = chat->overrides,
                     .run_id = c->run_id,
                     .deadline_ms = c->deadline_ms,
                     .cancel = &c->cancel,
                     .ctx = c,
                     .event = c->events ? chat_event : NULL};
    struct error err = {0};
    struct buf out;
    enum status st;

    buf_init(&out, RESULT_MAX);
    st = turn_run(c->core, &t, &out, &err);
    admitted_free(chat->message);
    agents_put(chat->agents);
    if (st == ST_OK) {
        op_result(c, &out);
    } else {
        op_fail_error(c, &err);
    }
    buf_done(&out);
}

/* overrides may only lower. False: the call has ended. */
static bool read_overrides(struct op_call *c, struct str text, struct turn_overrides *out)
{
    struct str choice = STR_NONE;
    const struct field fields[] = {
        {"max_turns", FIELD_INT, false, 1, 1000, NULL, &out->max_turns},
        {"tool_choice", FIELD_TEXT, false, 1, 16, &choice, NULL},
    };
    struct error err = {0};
    const char *bad = NULL;
    cJSON *doc = NULL;
    enum status st;

    if (text.len == 0) {
        return true;
    }
    st = json_parse(text, &doc, &err);
    if (st == ST_OK) {
        st = fields_read(doc, text, fields, 2, &bad, &err);
    }
    if (st == ST_OK && choice.len > 0 && !str_eq_c(choice, "none") &&
        !str_eq_c(choice, "auto")) {
        st = error_set(&err, ST_INVALID, "tool_choice must be none or auto");
    }
    out->no_tools = str_eq_c(choice, "none");
    cJSON_Delete(doc);
    if (st != ST_OK) {
        (void)error_context(&err, "overrides");
        op_fail(c, 400, "invalid", err.text, "overrides", NULL);
    }
    return st == ST_OK;
}

static void audit_message(struct op_call *c, const struct chat *chat, struct str agent,
                          const struct origin *from)
{
    struct audit_record rec = {.event = "message",
                               .entry = gate_entry_name(from->entry),
                               .run_id = str_c(c->run_id),
                               .agent = agent,
                               .channel = from->channel,
                               .sender = from->sender,
                               .session = c->session,
                               .verdict = gate_answer_name(chat->admission.answer),
                               .row = chat->admission.row->id,
                               .took_ms = -1};
    struct error err = {0};

    if (c->core->audit != NULL && audit_write(c->core->audit, &rec, &err) != ST_OK) {
        metric_add(c->core->metrics, METRIC_AUDIT_FAILED, 1);
        log_line(c->core->log, LOG_ERROR, "audit", "%s", err.text);
    }
}

/* The session a request without session_id gets: its user's, or a new one. */
static enum status name_session(struct op_call *c, struct str session, struct str user,
                                struct error *err)
{
    char id[33];
    const char *copy;

    if (session.len > 0 || user.len > 0) {
        c->session = session.len > 0 ? session : user;
        return ST_OK;
    }
    if (core_run_id(id, err) != ST_OK) {
        return ST_IO;
    }
    copy = arena_printf(c->a, "s-%s", id);
    c->session = str_c(copy);
    return copy != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory for a session");
}

/* There is no way yet to give a passphrase here, so an agent that has one is closed. */
static bool no_passphrase(const struct soul *soul)
{
    return soul == NULL || !secret_is_set(&soul->passphrase);
}

static void admit_and_submit(struct op_call *c, struct chat *chat, struct str text)
{
    struct origin from = {.entry = ENTRY_CHAT,
                          .channel = STR_LIT("http"),
                          .local = c->local,
                          .keyless_open = c->core->keyless_open,
                          .sender = chat->user,
                          .sender_name = chat->username,
                          .conversation = c->session,
                          .peer = c->peer};
    const struct soul *soul = agents_find(chat->agents, c->agent);
    struct error err = {0};
    char *key;
    enum status st = gate_admit(soul, NULL, &from, text, no_passphrase(soul),
                                &chat->admission, &chat->message, &err);

    if (st == ST_OK || st == ST_REFUSED) {
        audit_message(c, chat, c->agent, &from);
    }
    if (st == ST_OK) {
        op_announce(c);
        key = arena_printf(c->a, "%.*s\n%.*s", STR_ARG(c->agent), STR_ARG(c->session));
        st = key != NULL ? lanes_submit(c->core->lanes, str_c(key), chat_run, chat)
                         : ST_NOMEM;
        if (st == ST_OK) {
            return; /* c may be gone already */
        }
        st = error_set(&err, st,
                       "too many messages wait in this session; try again later");
    }
    admitted_free(chat->message);
    agents_put(chat->agents);
    if (st == ST_REFUSED) {
        op_fail(c, soul == NULL ? 404 : 403, chat->admission.row->id, err.text,
                soul == NULL ? "agent_id" : NULL, &chat->admission);
    } else {
        op_fail_error(c, &err);
    }
}

void op_chat(struct op_call *c)
{
    struct str agent = STR_NONE, text = STR_NONE, session = STR_NONE, over = STR_NONE;
    struct chat *chat = arena_alloc(c->a, sizeof(*chat));
    struct error err = {0};

    if (chat == NULL) {
        (void)error_set(&err, ST_NOMEM, "out of memory for a message");
        op_fail_error(c, &err);
        return;
    }
    const struct field fields[] = {
        {"agent_id", FIELD_TEXT, true, 1, NAME_MAX_BYTES, &agent, NULL},
        {"text", FIELD_TEXT, true, 1, TEXT_MAX, &text, NULL},
        {"session_id", FIELD_TEXT, false, 1, NAME_MAX_BYTES, &session, NULL},
        {"user_id", FIELD_TEXT, false, 1, NAME_MAX_BYTES, &chat->user, NULL},
        {"username", FIELD_TEXT, false, 0, NAME_MAX_BYTES, &chat->username, NULL},
        {"overrides", FIELD_OBJECT, false, 0, 0, &over, NULL},
    };
    if (!op_fields(c, fields, sizeof(fields) / sizeof(fields[0])) ||
        !read_overrides(c, over, &chat->overrides)) {
        return;
    }
    c->agent = agent;
    if (name_session(c, session, chat->user, &err) != ST_OK ||
        core_run_id(c->run_id, &err) != ST_OK) {
        op_fail_error(c, &err);
        return;
    }
    chat->call = c;
    chat->agents = agents_take(c->core->agents);
    metric_add(c->core->metrics, METRIC_MESSAGES, 1);
    admit_and_submit(c, chat, text);
}

void op_chat_cancel(struct op_call *c)
{
    struct str run_id = STR_NONE;
    const struct field fields[] = {
        {"run_id", FIELD_TEXT, true, 1, 64, &run_id, NULL},
    };
    struct buf out;

    if (!op_fields(c, fields, 1)) {
        return;
    }
    if (!ops_cancel_run(c->ops, run_id)) {
        op_fail(c, 404, "not_found", "no such run is in flight", "run_id", NULL);
        return;
    }
    buf_init(&out, 256);
    buf_add_c(&out, "{\"cancelled\":true}");
    op_result(c, &out);
    buf_done(&out);
}

/* ---- tools.run ----------------------------------------------------------------------- */

struct tool_run {
    struct op_call *call;
    struct agent_snapshot *agents;
    struct admitted *by;
    struct str tool, args;
};

/* What a call that did not run is to the caller of the API. */
static void deny(struct op_call *c, const struct call_report *r)
{
    const char *row = r->verdict.row->id;
    bool unknown = strcmp(row, "tool-unknown") == 0;
    bool arguments = strcmp(row, "arguments") == 0;

    op_fail(c,
            arguments ? 400
            : unknown ? 404
                      : 403,
            row, r->text.ptr,
            arguments ? "args"
            : unknown ? "tool"
                      : NULL,
            &r->verdict);
}

static void tool_log(void *ctx, const struct dispatch_call *d, struct str text)
{
    struct op_call *c = ctx;
    struct buf b;

    if (!c->events) {
        return;
    }
    buf_init(&b, (size_t)64 * 1024);
    buf_add_char(&b, '{');
    json_add_key_string(&b, "type", STR_LIT("tool_log"));
    json_add_key_string(&b, "call_id", d->call_id);
    json_add_key_string(&b, "text", text);
    buf_add_char(&b, '}');
    if (buf_status(&b) == ST_OK) {
        c->line(c->ctx, SY_LINE_EVENT, buf_str(&b));
    }
    buf_done(&b);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void tool_run(void *arg)
{
    struct tool_run *t = arg;
    struct op_call *c = t->call;
    int64_t limit = clock_mono_ms() + core_config(c->core)->runtime.run_timeout_ms;
    struct catalog tools = {0};
    struct call_report report;
    struct error err = {0};
    struct buf out;
    struct dispatch_call d = {.by = t->by,
                              .agents = t->agents,
                              .tools = &tools,
                              .call_id = str_c(c->run_id),
                              .name = t->tool,
                              .args = t->args,
                              .offered = true,
                              .run_id = c->run_id,
                              .deadline_ms = sooner(limit, c->deadline_ms),
                              .cancel = &c->cancel,
                              .ctx = c,
                              .log = tool_log};

    if (catalog_build(admitted_soul(t->by), c->a, &tools, &err) != ST_OK) {
        admitted_free(t->by);
        agents_put(t->agents);
        op_fail_error(c, &err);
        return;
    }
    dispatch_call(c->core, &d, &report);
    buf_init(&out, RESULT_MAX);
    call_report_json(&d, &report, &out);
    admitted_free(t->by);
    agents_put(t->agents);
    if (report.ran || report.verdict.answer == GATE_ALLOW) {
        op_result(c, &out);
    } else {
        deny(c, &report);
    }
    buf_done(&out);
    call_report_done(&report);
}

static void tool_admit(struct op_call *c, struct tool_run *t)
{
    struct origin from = {.entry = c->entry,
                          .channel = STR_LIT("http"),
                          .local = c->local,
                          .keyless_open = c->core->keyless_open,
                          .sender = STR_LIT("api"),
                          .peer = c->peer};
    const struct soul *soul = agents_find(t->agents, c->agent);
    struct verdict v;
    struct error err = {0};
    enum status st =
        gate_admit(soul, NULL, &from, STR_NONE, no_passphrase(soul), &v, &t->by, &err);

    if (st == ST_OK) {
        op_announce(c);
        st = lanes_submit(c->core->lanes, STR_NONE, tool_run, t);
        if (st == ST_OK) {
            return; /* c may be gone already */
        }
        st = error_set(&err, st, "too many calls wait; try again later");
    }
    admitted_free(t->by);
    agents_put(t->agents);
    if (st == ST_REFUSED) {
        op_fail(c, soul == NULL ? 404 : 403, v.row->id, err.text,
                soul == NULL ? "agent_id" : NULL, &v);
    } else {
        op_fail_error(c, &err);
    }
}

void op_tools_run(struct op_call *c)
{
    struct tool_run *t = arena_alloc(c->a, sizeof(*t));
    struct error err = {0};

    if (t == NULL || core_run_id(c->run_id, &err) != ST_OK) {
        (void)error_set(&err, ST_NOMEM, "out of memory for a call");
        op_fail_error(c, &err);
        return;
    }
    const struct field fields[] = {
        {"agent_id", FIELD_TEXT, true, 1, NAME_MAX_BYTES, &c->agent, NULL},
        {"tool", FIELD_TEXT, true, 1, NAME_MAX_BYTES, &t->tool, NULL},
        {"args", FIELD_OBJECT, false, 0, 0, &t->args, NULL},
    };
    if (!op_fields(c, fields, sizeof(fields) / sizeof(fields[0]))) {
        return;
    }
    t->call = c;
    t->agents = agents_take(c->core->agents);
    tool_admit(c, t);
}
