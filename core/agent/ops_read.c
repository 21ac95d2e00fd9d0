/* agents, sessions and status: what the gateway knows, as JSON. Changes nothing but for
 * sessions.delete. */
#include "agent/dispatch.h"
#include "agent/ops_internal.h"
#include "base/version.h"

#define LIST_MAX ((size_t)32 * 1024 * 1024)
#define PAGE 100

static const char *trigger_name(enum trigger t)
{
    return t == TRIGGER_CHANNEL   ? "channel"
           : t == TRIGGER_WEBHOOK ? "webhook"
                                  : "internal";
}

static void agent_members(const struct soul *s, struct buf *out)
{
    json_add_key_string(out, "id", str_c(s->id));
    json_add_key_string(out, "name",
                        str_c(s->name != NULL && s->name[0] != '\0' ? s->name : s->id));
    json_add_key_string(out, "description", str_c(s->description));
    json_add_key_string(out, "version", str_c(s->version));
    json_add_key_bool(out, "enabled", s->enabled);
    json_add_key_string(out, "trigger", str_c(trigger_name(s->trigger)));
    json_add_key_bool(out, "system", s->system);
    json_add_key_i64(out, "tools", (int64_t)s->ntools);
}

void op_agents(struct op_call *c)
{
    struct agent_snapshot *snap;
    const struct agent_file_state *files = NULL;
    size_t nfiles;
    struct buf out;

    if (!op_fields(c, NULL, 0)) {
        return;
    }
    snap = agents_take(c->core->agents);
    buf_init(&out, LIST_MAX);
    buf_add_c(&out, "{\"agents\":[");
    for (size_t i = 0; i < agents_count(snap); i++) {
        json_add_sep(&out);
        buf_add_char(&out, '{');
        agent_members(agents_at(snap, i), &out);
        buf_add_char(&out, '}');
    }
    buf_add_c(&out, "],\"problems\":[");
    nfiles = agents_file_states(snap, &files);
    for (size_t i = 0; i < nfiles; i++) {
        if (files[i].problem != NULL || files[i].waits) {
            json_add_sep(&out);
            buf_add_char(&out, '{');
            json_add_key_string(&out, "file", str_c(files[i].file));
            json_add_key_string(&out, "agent_id", str_c(files[i].id));
            json_add_key_string(&out, "problem", str_c(files[i].problem));
            json_add_key_bool(&out, "waits_for_reload", files[i].waits);
            buf_add_char(&out, '}');
        }
    }
    buf_add_c(&out, "]}");
    agents_put(snap);
    op_result(c, &out);
    buf_done(&out);
}

/* The agent named by "id"; NULL: the call has ended. */
static const struct soul *agent_of(struct op_call *c, struct agent_snapshot **snap)
{
    struct str id = STR_NONE;
    const struct field fields[] = {{"id", FIELD_TEXT, true, 1, 200, &id, NULL}};
    const struct soul *soul;

    if (!op_fields(c, fields, 1)) {
        return NULL;
    }
    *snap = agents_take(c->core->agents);
    soul = agents_find(*snap, id);
    if (soul == NULL) {
        agents_put(*snap);
        op_fail(c, 404, "not_found", "there is no agent of that id", "id", NULL);
    }
    return soul;
}

void op_agents_get(struct op_call *c)
{
    struct agent_snapshot *snap = NULL;
    const struct soul *soul = agent_of(c, &snap);
    struct buf out;

    if (soul == NULL) {
        return;
    }
    buf_init(&out, LIST_MAX);
    buf_add_char(&out, '{');
    agent_members(soul, &out);
    json_add_key_string(&out, "file", str_c(soul->file));
    json_add_key_string(&out, "digest", str_c(soul->digest));
    buf_add_char(&out, '}');
    agents_put(snap);
    op_result(c, &out);
    buf_done(&out);
}

static enum status one_tool(struct op_call *c, const struct soul *soul,
                            const struct catalog *tools, const struct tool *t,
                            struct buf *out, struct error *err)
{
    const struct gate_policy policy = {core_config(c->core)->runtime.allow_system_tools};
    const struct config *cfg = core_config(c->core);

    json_add_sep(out);
    buf_add_char(out, '{');
    json_add_key_string(out, "name", t->name);
    json_add_key_string(out, "kind", str_c(tool_kind_name(t->kind)));
    json_add_key_string(out, "description", t->description);
    if (t->parameters != NULL) {
        json_add_key_raw(out, "parameters", schema_text(t->parameters));
    }
    json_add_key(out, "channels");
    buf_add_char(out, '{');
    for (size_t i = 0; i < cfg->nchannels; i++) {
        bool http = str_eq_c(str_c(cfg->channels[i].name), "http");
        struct origin from = {.entry = http ? ENTRY_CHAT : ENTRY_CHANNEL,
                              .channel = str_c(cfg->channels[i].name),
                              .local = http && c->local,
                              .keyless_open = c->core->keyless_open};
        struct verdict v;
        enum status st =
            gate_explain(soul, &policy, &from, tools, t->name, STR_NONE, &v, err);

        if (st != ST_OK) {
            return st;
        }
        json_add_key(out, cfg->channels[i].name);
        buf_add_char(out, '{');
        verdict_json(&v, out);
        buf_add_char(out, '}');
    }
    buf_add_c(out, "}}");
    return ST_OK;
}

void op_agents_tools(struct op_call *c)
{
    struct agent_snapshot *snap = NULL;
    const struct soul *soul = agent_of(c, &snap);
    struct catalog tools = {0};
    struct error err = {0};
    struct buf out;
    enum status st;

    if (soul == NULL) {
        return;
    }
    buf_init(&out, LIST_MAX);
    st = catalog_build(soul, c->a, &tools, &err);
    buf_add_char(&out, '{');
    json_add_key_string(&out, "agent_id", str_c(soul->id));
    json_add_key(&out, "tools");
    buf_add_char(&out, '[');
    for (size_t i = 0; st == ST_OK && i < tools.n; i++) {
        st = one_tool(c, soul, &tools, &tools.tools[i], &out, &err);
    }
    buf_add_c(&out, "]}");
    agents_put(snap);
    if (st == ST_OK) {
        op_result(c, &out);
    } else {
        op_fail_error(c, &err);
    }
    buf_done(&out);
}

/* ---- sessions -------------------------------------------------------------------------- */

static void session_members(const struct session_info *s, struct buf *out)
{
    json_add_key_string(out, "id", str_c(s->id));
    json_add_key_string(out, "agent_id", s->agent);
    json_add_key_string(out, "channel", s->channel);
    json_add_key_string(out, "session_id", s->conversation);
    json_add_key_string(out, "user_id", s->user);
    json_add_key_string(out, "username", s->username);
    json_add_key_i64(out, "created_unix_ms", s->created_unix_ms);
    json_add_key_i64(out, "updated_unix_ms", s->updated_unix_ms);
    json_add_key_i64(out, "messages", s->messages);
}

/* False: the call has ended. */
static bool have_store(struct op_call *c)
{
    if (c->core->store == NULL) {
        op_fail(c, 503, "unavailable", "there is no store here", NULL, NULL);
        return false;
    }
    return true;
}

void op_sessions(struct op_call *c)
{
    struct str agent = STR_NONE;
    int64_t before = 0, limit = PAGE;
    const struct field fields[] = {
        {"agent_id", FIELD_TEXT, false, 1, 200, &agent, NULL},
        {"before", FIELD_INT, false, 0, INT64_MAX / 2, NULL, &before},
        {"limit", FIELD_INT, false, 1, 1000, NULL, &limit},
    };
    struct session_info *list = NULL;
    struct error err = {0};
    struct arena *a;
    struct buf out;
    size_t n = 0;
    enum status st;

    if (!have_store(c) || !op_fields(c, fields, 3)) {
        return;
    }
    a = arena_new(LIST_MAX);
    st = a != NULL ? ST_OK : error_set(&err, ST_NOMEM, "out of memory for a list");
    buf_init(&out, LIST_MAX);
    if (st == ST_OK) {
        st = store_sessions(c->core->store, agent, before, (size_t)limit, a, &list, &n,
                            &err);
    }
    buf_add_c(&out, "{\"sessions\":[");
    for (size_t i = 0; i < n; i++) {
        json_add_sep(&out);
        buf_add_char(&out, '{');
        session_members(&list[i], &out);
        buf_add_char(&out, '}');
    }
    buf_add_c(&out, "]}");
    if (st == ST_OK) {
        op_result(c, &out);
    } else {
        op_fail_error(c, &err);
    }
    buf_done(&out);
    arena_free(a);
}

static const char *role_name(enum message_role r)
{
    return r == ROLE_USER ? "user" : r == ROLE_ASSISTANT ? "assistant" : "tool";
}

static void message_json(const struct message *m, struct buf *out)
{
    json_add_sep(out);
    buf_add_char(out, '{');
    json_add_key_i64(out, "id", m->id);
    json_add_key_string(out, "role", str_c(role_name(m->role)));
    json_add_key_i64(out, "at_unix_ms", m->at_unix_ms);
    json_add_key_string(out, "run_id", m->run_id);
    json_add_key_string(out, "text", m->text);
    if (m->tool_calls.len > 0) {
        json_add_key_raw(out, "tool_calls", m->tool_calls);
    }
    if (m->role == ROLE_TOOL) {
        json_add_key_string(out, "call_id", m->call_id);
        json_add_key_string(out, "tool", m->tool_name);
        json_add_key_bool(out, "is_error", m->is_error);
    }
    buf_add_char(out, '}');
}

void op_sessions_get(struct op_call *c)
{
    struct str id = STR_NONE;
    int64_t after = 0, limit = PAGE;
    const struct field fields[] = {
        {"id", FIELD_TEXT, true, 1, 64, &id, NULL},
        {"after", FIELD_INT, false, 0, INT64_MAX / 2, NULL, &after},
        {"limit", FIELD_INT, false, 1, 1000, NULL, &limit},
    };
    struct arena *a;
    struct session_info info;
    struct message *msgs = NULL;
    struct error err = {0};
    struct buf out;
    size_t n = 0;
    enum status st;

    if (!have_store(c) || !op_fields(c, fields, 3)) {
        return;
    }
    a = arena_new(LIST_MAX);
    st = a != NULL ? ST_OK : error_set(&err, ST_NOMEM, "out of memory for a session");
    buf_init(&out, LIST_MAX);
    if (st == ST_OK) {
        st = store_session(c->core->store, id, a, &info, &err);
    }
    if (st == ST_OK) {
        st = store_session_messages(c->core->store, id, after, (size_t)limit, a, &msgs,
                                    &n, &err);
    }
    if (st == ST_OK) {
        buf_add_char(&out, '{');
        session_members(&info, &out);
        json_add_key(&out, "history");
        buf_add_char(&out, '[');
        for (size_t i = 0; i < n; i++) {
            message_json(&msgs[i], &out);
        }
        buf_add_c(&out, "]}");
        op_result(c, &out);
    } else {
        op_fail_error(c, &err);
    }
    buf_done(&out);
    arena_free(a);
}

void op_sessions_delete(struct op_call *c)
{
    struct str id = STR_NONE;
    const struct field fields[] = {{"id", FIELD_TEXT, true, 1, 64, &id, NULL}};
    struct error err = {0};
    struct buf out;

    if (!have_store(c) || !op_fields(c, fields, 1)) {
        return;
    }
    if (store_session_delete(c->core->store, id, &err) != ST_OK) {
        op_fail_error(c, &err);
        return;
    }
    buf_init(&out, 64);
    buf_add_c(&out, "{\"deleted\":true}");
    op_result(c, &out);
    buf_done(&out);
}

void op_status(struct op_call *c)
{
    struct buf out;

    if (!op_fields(c, NULL, 0)) {
        return;
    }
    buf_init(&out, LIST_MAX);
    buf_add_char(&out, '{');
    json_add_key_string(&out, "version", str_c(SOULACY_VERSION));
    if (c->core->status != NULL) {
        c->core->status(c->core->status_ctx, &out);
    }
    ops_runs_json(c->ops, &out);
    buf_add_char(&out, '}');
    op_result(c, &out);
    buf_done(&out);
}
