/* Requests by name in, lines of JSON out: the table of operations, the calls in flight and
 * their end. Decides nothing about tools or senders. */
#include "agent/ops.h"

#include "agent/dispatch.h"
#include "agent/ops_internal.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "plugin/plugin.h"

#include <pthread.h>

#define FIELD_SHOWN ((size_t)200) /* bytes of a name that a caller made up */

struct ops {
    struct agent_core *core;
    pthread_mutex_t lock; /* guards the list, its count and next_id */
    struct op_call *active;
    size_t nactive;
    uint64_t next_id;
};

static const struct {
    const char *name;
    void (*run)(struct op_call *c);
} table[] = {
    {"chat", op_chat},
    {"chat.cancel", op_chat_cancel},
    {"tools.run", op_tools_run},
    {"agents", op_agents},
    {"agents.get", op_agents_get},
    {"agents.tools", op_agents_tools},
    {"sessions", op_sessions},
    {"sessions.get", op_sessions_get},
    {"sessions.delete", op_sessions_delete},
    {"status", op_status},
};
#define NTABLE (sizeof(table) / sizeof(table[0]))

enum status ops_new(struct agent_core *core, struct ops **out, struct error *err)
{
    struct ops *o = mem_zalloc(sizeof(*o));

    if (o == NULL || pthread_mutex_init(&o->lock, NULL) != 0) {
        mem_free(o);
        return error_set(err, ST_NOMEM, "out of memory for the operations");
    }
    o->core = core;
    *out = o;
    return ST_OK;
}

void ops_free(struct ops *o)
{
    if (o != NULL) {
        (void)pthread_mutex_destroy(&o->lock);
        mem_free(o);
    }
}

static void call_free(struct op_call *c)
{
    cJSON_Delete(c->doc);
    event_done(&c->cancel);
    arena_free(c->a);
    mem_free(c);
}

/* The final line, then nothing of the call is left. */
static void finish(struct op_call *c, uint32_t kind, struct str json)
{
    struct ops *o = c->ops;
    struct op_call **at;

    (void)pthread_mutex_lock(&o->lock);
    for (at = &o->active; *at != c; at = &(*at)->next) {
    }
    *at = c->next;
    (void)pthread_mutex_unlock(&o->lock);
    c->line(c->ctx, kind, json);
    call_free(c);
    /* Counted out last: who waits for zero may take the core apart. */
    (void)pthread_mutex_lock(&o->lock);
    o->nactive--;
    (void)pthread_mutex_unlock(&o->lock);
}

void op_fail(struct op_call *c, int http, const char *code, const char *message,
             const char *field, const struct verdict *v)
{
    struct str at = str_c(field);
    struct buf b;

    at.len = utf8_cut(at, FIELD_SHOWN);
    buf_init(&b, (size_t)16 * 1024);
    buf_add_char(&b, '{');
    json_add_key_string(&b, "code", str_c(code));
    json_add_key_string(&b, "message", str_c(message));
    json_add_key_i64(&b, "status", http);
    if (field != NULL) {
        json_add_key_string(&b, "field", at);
    }
    if (v != NULL) {
        verdict_json(v, &b);
    }
    buf_add_char(&b, '}');
    finish(c, SY_LINE_ERROR,
           buf_status(&b) == ST_OK
               ? buf_str(&b)
               : STR_LIT("{\"code\":\"internal\",\"message\":\"out of memory\","
                         "\"status\":500}"));
    buf_done(&b);
}

static const struct {
    enum status status;
    int http;
    const char *code;
} by_status[] = {
    {ST_INVALID, 400, "invalid"},     {ST_REFUSED, 403, "denied"},
    {ST_NOT_FOUND, 404, "not_found"}, {ST_CONFLICT, 409, "conflict"},
    {ST_TOO_LARGE, 413, "too_large"}, {ST_BUSY, 429, "busy"},
    {ST_TIMEOUT, 504, "timeout"},     {ST_CANCELLED, 409, "cancelled"},
    {ST_IO, 503, "unavailable"},      {ST_UNSUPPORTED, 501, "unsupported"},
    {ST_NOMEM, 503, "out_of_memory"}, {ST_AUTH, 401, "unauthorized"},
};

void op_fail_error(struct op_call *c, const struct error *err)
{
    for (size_t i = 0; i < sizeof(by_status) / sizeof(by_status[0]); i++) {
        if (by_status[i].status == err->status) {
            op_fail(c, by_status[i].http, by_status[i].code, err->text, NULL, NULL);
            return;
        }
    }
    log_line(c->core->log, LOG_ERROR, "ops", "%s: %s", c->name, err->text);
    op_fail(c, 500, "internal", "an internal error; the log has it", NULL, NULL);
}

void op_result(struct op_call *c, const struct buf *out)
{
    if (buf_status(out) != ST_OK) {
        op_fail(c, 503, "out_of_memory", "the answer does not fit into memory", NULL,
                NULL);
        return;
    }
    finish(c, SY_LINE_RESULT, buf_str(out));
}

bool op_fields(struct op_call *c, const struct field *fields, size_t n)
{
    const char *bad = NULL;
    struct error err = {0};

    if (fields_read(c->doc, c->args, fields, n, &bad, &err) == ST_OK) {
        return true;
    }
    op_fail(c, 400, "invalid", err.text, bad, NULL);
    return false;
}

void op_announce(struct op_call *c)
{
    struct buf b;

    (void)pthread_mutex_lock(&c->ops->lock);
    c->announced = true;
    (void)pthread_mutex_unlock(&c->ops->lock);
    if (!c->events) {
        return;
    }
    buf_init(&b, (size_t)16 * 1024);
    buf_add_char(&b, '{');
    json_add_key_string(&b, "type", STR_LIT("run"));
    json_add_key_string(&b, "run_id", str_c(c->run_id));
    json_add_key_string(&b, "agent_id", c->agent);
    json_add_key_string(&b, "session_id", c->session);
    buf_add_char(&b, '}');
    if (buf_status(&b) == ST_OK) {
        c->line(c->ctx, SY_LINE_EVENT, buf_str(&b));
    }
    buf_done(&b);
}

bool ops_cancel_run(struct ops *o, struct str run_id)
{
    bool found = false;

    (void)pthread_mutex_lock(&o->lock);
    for (struct op_call *c = o->active; c != NULL; c = c->next) {
        if (c->announced && str_eq_c(run_id, c->run_id)) {
            event_fire(&c->cancel);
            found = true;
        }
    }
    (void)pthread_mutex_unlock(&o->lock);
    return found;
}

static void ops_cancel(struct ops *o, uint64_t id)
{
    (void)pthread_mutex_lock(&o->lock);
    for (struct op_call *c = o->active; c != NULL; c = c->next) {
        if (c->id == id) {
            event_fire(&c->cancel);
        }
    }
    (void)pthread_mutex_unlock(&o->lock);
}

void ops_cancel_all(struct ops *o)
{
    (void)pthread_mutex_lock(&o->lock);
    for (struct op_call *c = o->active; c != NULL; c = c->next) {
        event_fire(&c->cancel);
    }
    (void)pthread_mutex_unlock(&o->lock);
}

void ops_runs_json(struct ops *o, struct buf *out)
{
    json_add_key(out, "runs");
    buf_add_char(out, '[');
    (void)pthread_mutex_lock(&o->lock);
    for (struct op_call *c = o->active; c != NULL; c = c->next) {
        if (!c->announced) {
            continue;
        }
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "run_id", str_c(c->run_id));
        json_add_key_string(out, "op", str_c(c->name));
        json_add_key_string(out, "agent_id", c->agent);
        json_add_key_string(out, "session_id", c->session);
        json_add_key_i64(out, "since_unix_ms", c->begun_unix_ms);
        buf_add_char(out, '}');
    }
    (void)pthread_mutex_unlock(&o->lock);
    buf_add_char(out, ']');
}

static enum status copy_view(struct arena *a, struct str in, struct str *out)
{
    const char *p = arena_dup(a, in);

    *out = str_n(p, in.len);
    return p != NULL ? ST_OK : ST_NOMEM;
}

static enum status call_new(struct ops *o, const struct ops_request *req,
                            struct op_call **out, struct error *err)
{
    struct op_call *c = mem_zalloc(sizeof(*c));
    struct str args = req->args.len > 0 ? req->args : STR_LIT("{}");

    if (c == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for a request");
    }
    c->cancel.fd = -1;
    c->a = arena_new(args.len + (size_t)256 * 1024);
    if (c->a == NULL || copy_view(c->a, args, &c->args) != ST_OK ||
        copy_view(c->a, req->peer, &c->peer) != ST_OK ||
        copy_view(c->a, req->request_id, &c->request_id) != ST_OK) {
        call_free(c);
        return error_set(err, ST_NOMEM, "out of memory for a request");
    }
    if (event_init(&c->cancel, err) != ST_OK) {
        call_free(c);
        return ST_IO;
    }
    c->ops = o;
    c->core = o->core;
    c->entry = req->entry;
    c->local = req->local;
    c->events = req->events;
    c->deadline_ms = req->deadline_ms > 0 ? req->deadline_ms : CLOCK_NEVER;
    c->begun_unix_ms = clock_unix_ms();
    c->ctx = req->ctx;
    c->line = req->line;
    *out = c;
    return ST_OK;
}

static enum status enlist(struct ops *o, struct op_call *c, struct error *err)
{
    enum status st = ST_OK;

    (void)pthread_mutex_lock(&o->lock);
    if (o->nactive >= OPS_MAX_ACTIVE) {
        st = ST_BUSY;
    } else {
        c->id = ++o->next_id;
        c->next = o->active;
        o->active = c;
        o->nactive++;
    }
    (void)pthread_mutex_unlock(&o->lock);
    return st == ST_OK ? ST_OK
                       : error_set(err, ST_BUSY, "too many requests are in flight");
}

/* From here on the call always ends with a final line. */
static void begin(struct op_call *c, void (*run)(struct op_call *c))
{
    struct error err = {0};

    if (json_parse(c->args, &c->doc, &err) != ST_OK) {
        op_fail(c, 400, "invalid_json", err.text, NULL, NULL);
    } else if (!cJSON_IsObject(c->doc)) {
        op_fail(c, 400, "invalid_json", "the body must be a JSON object", NULL, NULL);
    } else {
        run(c);
    }
}

enum status ops_call(struct ops *o, const struct ops_request *req, uint64_t *id,
                     struct error *err)
{
    struct op_call *c = NULL;
    size_t i = 0;
    enum status st;

    while (i < NTABLE && !str_eq_c(req->op, table[i].name)) {
        i++;
    }
    if (i == NTABLE) {
        return error_set(err, ST_NOT_FOUND, "no operation %.*s", STR_ARG(req->op));
    }
    st = call_new(o, req, &c, err);
    if (st == ST_OK) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): set on ST_OK */
        c->name = table[i].name;
        st = enlist(o, c, err);
        if (st != ST_OK) {
            call_free(c);
            return st;
        }
        *id = c->id;
        begin(c, table[i].run);
    }
    return st;
}

/* ---- soulacy.host.gateway/1 --------------------------------------------------------- */

static struct str from_sy(struct sy_str s)
{
    return str_n(s.ptr, s.len);
}

struct line_ctx {
    struct plugin_instance *caller;
    void *ctx;
    void (*line)(void *ctx, uint32_t kind, struct sy_str json);
};

static void pass_line(void *ctx, uint32_t kind, struct str json)
{
    struct line_ctx *l = ctx;

    if (plugin_call_begin(l->caller, PLUGIN_CALL_FOLLOWS)) {
        l->line(l->ctx, kind, (struct sy_str){json.ptr, json.len});
        plugin_call_end(l->caller, PLUGIN_CALL_FOLLOWS);
    }
    if (kind != SY_LINE_EVENT) {
        mem_free(l);
    }
}

static sy_status service_call(void *ctx, const struct sy_gateway_call *in,
                              uint64_t *call_id, struct sy_error *out)
{
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "gateway.call", PLUGIN_FROM_START);
    struct sy_gateway_call call;
    struct line_ctx *l = NULL;
    struct error err = {0};
    enum status st;

    if (p == NULL) {
        return SY_E_INVALID;
    }
    if (!plugin_take_struct(p, "gateway.call", in,
                            offsetof(struct sy_gateway_call, line) + sizeof(in->line),
                            &call, sizeof(call)) ||
        call.line == NULL || call_id == NULL ||
        !plugin_check_text(p, "gateway.call op", call.op, 64) ||
        !plugin_check_text(p, "gateway.call args", call.args, SIZE_MAX)) {
        st = error_set(&err, ST_INVALID, "gateway.call: the call is not well formed");
        goto out;
    }
    l = mem_zalloc(sizeof(*l));
    if (l == NULL) {
        st = error_set(&err, ST_NOMEM, "out of memory for a request");
        goto out;
    }
    *l = (struct line_ctx){p, call.ctx, call.line};
    st = ops_call(plugin_slot(p, PLUGIN_SLOT_GATEWAY),
                  &(struct ops_request){.op = from_sy(call.op),
                                        .args = from_sy(call.args),
                                        .entry = ENTRY_TOOLS_RUN,
                                        .local = call.local != 0,
                                        .peer = from_sy(call.peer),
                                        .request_id = from_sy(call.request_id),
                                        .deadline_ms = call.deadline_ms,
                                        .events = call.events != 0,
                                        .ctx = l,
                                        .line = pass_line},
                  call_id, &err);
    if (st != ST_OK) {
        mem_free(l); /* nothing was begun: no line will come */
    }
out:
    plugin_upcall_end(p);
    return st == ST_OK ? SY_OK : plugin_give_error(&err, out);
}

static void service_cancel(void *ctx, uint64_t call_id)
{
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "gateway.cancel", PLUGIN_FROM_START);

    if (p != NULL) {
        ops_cancel(plugin_slot(p, PLUGIN_SLOT_GATEWAY), call_id);
        plugin_upcall_end(p);
    }
}

const struct sy_host_gateway *ops_service(void)
{
    static const struct sy_host_gateway service = {
        .size = sizeof(service), .call = service_call, .cancel = service_cancel};

    return &service;
}
