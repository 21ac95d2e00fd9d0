/* A call's name and bytes in, a report out. Runs nothing that the gate has not approved,
 * and nothing but the bytes that were checked. */
#include "agent/dispatch.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tools/source.h"

#include <stdio.h>

#define ENV_MAX 128

const struct config *core_config(const struct agent_core *c)
{
    return atomic_load(&c->cfg);
}

enum status core_run_id(char out[33], struct error *err)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345"; /* 32 */
    unsigned char raw[20];
    enum status st = io_random(raw, sizeof(raw), err);

    for (size_t i = 0; i < sizeof(raw); i++) {
        out[i] = digits[raw[i] % 32];
    }
    out[sizeof(raw)] = '\0';
    return st;
}

static void fail(struct call_report *r, const char *cause, const struct error *err)
{
    r->is_error = true;
    r->status = err->status;
    r->cause = str_c(cause);
    buf_clear(&r->text);
    buf_add_c(&r->text, err->text);
}

static enum status audit_call(struct agent_core *core, const struct dispatch_call *call,
                              const struct verdict *v, struct error *err)
{
    const struct origin *from = admitted_origin(call->by);
    struct audit_record rec = {.event = "call",
                               .entry = gate_entry_name(from->entry),
                               .run_id = str_c(call->run_id),
                               .agent = str_c(admitted_soul(call->by)->id),
                               .channel = from->channel,
                               .sender = from->sender,
                               .tool = call->name,
                               .session = call->session,
                               .verdict = gate_answer_name(v->answer),
                               .row = v->row->id,
                               .args = call->args,
                               .took_ms = -1};

    return core->audit != NULL ? audit_write(core->audit, &rec, err) : ST_OK;
}

static void audit_run(struct agent_core *core, const struct dispatch_call *call,
                      const struct call_report *r)
{
    const struct origin *from = admitted_origin(call->by);
    struct audit_record rec = {.event = "run",
                               .entry = gate_entry_name(from->entry),
                               .run_id = str_c(call->run_id),
                               .agent = str_c(admitted_soul(call->by)->id),
                               .tool = call->name,
                               .cause = r->cause.ptr,
                               .took_ms = r->total_ms};
    struct error err = {0};

    /* The call itself is on record; a run that has happened cannot be taken back. */
    if (core->audit != NULL && audit_write(core->audit, &rec, &err) != ST_OK) {
        metric_add(core->metrics, METRIC_AUDIT_FAILED, 1);
        log_line(core->log, LOG_ERROR, "audit", "%s", err.text);
    }
}

/* Values of the agent's `env` names, from the gateway's environment at this moment. */
static size_t agent_env(const struct agent_core *core, const struct soul *soul,
                        struct arena *a, const char **out, bool *failed)
{
    size_t n = 0;

    for (size_t i = 0; i < soul->env.n && n < ENV_MAX; i++) {
        const char *value = config_env_get(core->env, soul->env.items[i]);

        if (value != NULL) {
            out[n] = arena_printf(a, "%s=%s", soul->env.items[i], value);
            *failed = *failed || out[n] == NULL;
            n++;
        }
    }
    return n;
}

static enum status check_digest(const struct dispatch_call *call,
                                const struct soul_tool *tool, const struct source *src,
                                struct error *err)
{
    char want[65];

    if (tool->python_file == NULL ||
        (agents_tool_digest(call->agents, admitted_soul(call->by), tool->name, want) &&
         str_eq_c(str_c(src->digest), want))) {
        return ST_OK;
    }
    return error_set(err, ST_REFUSED,
                     "tool %s: its file was changed since it was loaded; an operator has "
                     "to accept it (restart, or SIGHUP)",
                     tool->name);
}

/* __file__ of the tool, so that it finds what lies beside it. Tracebacks show the name. */
static const char *source_path(const struct source *src, struct arena *a)
{
    const char *path =
        src->folder != NULL ? arena_printf(a, "%s/%s", src->folder, src->filename) : NULL;

    return path != NULL ? path : src->filename;
}

static enum status make_plan(struct agent_core *core, const struct dispatch_call *call,
                             const struct approved *approved, struct plan **out,
                             struct error *err)
{
    const struct config *cfg = core_config(core);
    const struct soul *soul = admitted_soul(call->by);
    const struct soul_tool *tool = approved_tool(approved)->python;
    struct arena *a = arena_new((size_t)8 * 1024 * 1024);
    const char *env[ENV_MAX] = {NULL};
    struct source src = {0};
    struct plan_policy policy = {.cfg = cfg,
                                 .bootstrap = exec_bootstrap(),
                                 .protected_paths = core->protected_paths,
                                 .nprotected = core->nprotected,
                                 .work_root = core->work_root,
                                 .root_gateway = core->root_gateway,
                                 .drop_uid = core->drop_uid,
                                 .drop_gid = core->drop_gid,
                                 .base_env = core->base_env,
                                 .nbase_env = core->nbase_env,
                                 .agent_env = env,
                                 .max_timeout_ms = call->deadline_ms - clock_mono_ms()};
    struct tool_source text;
    bool failed = a == NULL;
    enum status st;

    policy.nagent_env = failed ? 0 : agent_env(core, soul, a, env, &failed);
    st = failed ? error_set(err, ST_NOMEM, "out of memory for a tool call") : ST_OK;
    if (st == ST_OK && policy.max_timeout_ms <= 0) {
        st = error_set(err, ST_TIMEOUT, "the run's time is used up");
    }
    if (st == ST_OK) {
        st = core->python(core->python_ctx, call->deadline_ms, &policy.python, err);
    }
    if (st == ST_OK) {
        st = source_read(tool, &cfg->runtime.allowed_tool_dirs, &src, err);
    }
    if (st == ST_OK) {
        st = check_digest(call, tool, &src, err);
    }
    if (st == ST_OK) {
        text = (struct tool_source){buf_str(&src.text), source_path(&src, a), src.folder};
        st = plan_build(approved, &policy, &text, call->run_id, out, err);
    }
    source_done(&src);
    for (size_t i = 0; i < policy.nagent_env; i++) {
        if (env[i] != NULL) {
            mem_wipe((char *)(uintptr_t)env[i], str_c(env[i]).len);
        }
    }
    arena_free(a);
    return st;
}

struct run_ctx {
    const struct dispatch_call *call;
    struct call_report *report;
};

static void on_log(void *ctx, struct str text)
{
    struct run_ctx *run = ctx;
    struct buf *log = &run->report->log;
    size_t room = log->len < DISPATCH_LOG_MAX ? DISPATCH_LOG_MAX - log->len : 0;

    buf_add(log, text.ptr, utf8_cut(text, room));
    if (run->call->log != NULL) {
        run->call->log(run->call->ctx, run->call, text);
    }
}

static void run_plan(struct agent_core *core, const struct dispatch_call *call,
                     const struct plan *plan, struct call_report *r)
{
    struct run_ctx ctx = {call, r};
    struct exec_events events = {.ctx = &ctx, .log = on_log};
    struct exec_outcome out;

    metric_add(core->metrics, METRIC_RUNS_ACTIVE, 1);
    exec_run(core->exec, plan, call->cancel, &events, &out);
    metric_add(core->metrics, METRIC_RUNS_ACTIVE, -1);
    r->ran = true;
    r->is_error = out.cause != EXEC_OK;
    r->cause = str_c(exec_cause_name(out.cause));
    r->text = out.text; /* taken over: there is one result, not a second try to hold it */
    out.text = (struct buf){0};
    if (buf_status(&r->text) != ST_OK) {
        fail(r, "memory",
             &(struct error){.status = ST_NOMEM, .text = "out of memory for the result"});
    }
    (void)snprintf(r->layers, sizeof(r->layers), "%s", out.layers);
    r->from_stock = out.from_stock;
    r->attempts = out.attempts;
    r->queue_ms = out.queue_ms;
    r->start_ms = out.start_ms;
    r->run_ms = out.run_ms;
    exec_outcome_done(&out);
}

/* The agent may have been edited since the turn began: what is offered was the old one's,
 * what is dispatched must pass the new one too. */
static enum status judge_again(struct agent_core *core, const struct dispatch_call *call,
                               const struct gate_policy *policy, struct verdict *v,
                               struct error *err)
{
    const struct soul *was = admitted_soul(call->by);
    struct agent_snapshot *now = agents_take(core->agents);
    const struct soul *soul = agents_find(now, str_c(was->id));
    struct arena *a = NULL;
    struct catalog tools;
    enum status st = ST_OK;

    if (soul == NULL) {
        *v = (struct verdict){GATE_DENY, gate_message_row(0)};
    } else if (soul != was) {
        a = arena_new((size_t)1024 * 1024);
        st = a != NULL ? catalog_build(soul, a, &tools, err)
                       : error_set(err, ST_NOMEM, "out of memory for a tool call");
        if (st == ST_OK) {
            st = gate_explain(soul, policy, admitted_origin(call->by), &tools, call->name,
                              STR_NONE, v, err);
        }
    }
    if (st == ST_OK && v->answer != GATE_ALLOW) {
        st = error_set(err, ST_REFUSED,
                       "tool %.*s was denied: the agent was changed during the run (%s)",
                       STR_ARG(call->name), v->row->text);
    }
    arena_free(a);
    agents_put(now);
    return st;
}

/* False: the call must not go on without a record of it. */
static bool put_on_record(struct agent_core *core, const struct dispatch_call *call,
                          const struct verdict *v)
{
    struct error err = {0};

    if (audit_call(core, call, v, &err) == ST_OK) {
        return true;
    }
    metric_add(core->metrics, METRIC_AUDIT_FAILED, 1);
    log_line(core->log, LOG_ERROR, "audit", "%s", err.text);
    return !core_config(core)->audit.required;
}

static void judge_and_run(struct agent_core *core, const struct dispatch_call *call,
                          struct call_report *r)
{
    const struct gate_policy policy = {core_config(core)->runtime.allow_system_tools};
    struct call_request req = {call->name, call->args, call->offered, false};
    struct approved *approved = NULL;
    struct plan *plan = NULL;
    struct error err = {0};
    enum status st =
        gate_call(call->by, &policy, call->tools, &req, &r->verdict, &approved, &err);

    if (st == ST_OK) {
        st = judge_again(core, call, &policy, &r->verdict, &err);
    }
    if (call->judged != NULL) {
        call->judged(call->ctx, call, &r->verdict);
    }
    if (!put_on_record(core, call, &r->verdict)) {
        (void)error_set(&err, ST_IO, "the call cannot be audited, so it is not run");
        fail(r, "unaudited", &err);
        goto out;
    }
    if (st != ST_OK) {
        metric_add(core->metrics, METRIC_TOOL_DENIED, 1);
        fail(r, str_eq_c(str_c(r->verdict.row->id), "arguments") ? "arguments" : "denied",
             &err);
        goto out;
    }
    st = make_plan(core, call, approved, &plan, &err);
    if (st != ST_OK) {
        fail(r, st == ST_TIMEOUT ? "timeout" : "refused", &err);
        goto out;
    }
    run_plan(core, call, plan, r);
out:
    plan_free(plan);
    approved_free(approved);
}

void dispatch_call(struct agent_core *core, const struct dispatch_call *call,
                   struct call_report *report)
{
    int64_t begin = clock_mono_ms();

    *report = (struct call_report){0};
    buf_init(&report->text, (size_t)128 * 1024 * 1024);
    buf_init(&report->log, DISPATCH_LOG_MAX + 4);
    metric_add(core->metrics, METRIC_TOOL_CALLS, 1);
    judge_and_run(core, call, report);
    report->total_ms = clock_mono_ms() - begin;
    if (report->ran) {
        audit_run(core, call, report);
    }
    if (report->is_error) {
        metric_add(core->metrics, METRIC_TOOL_FAILED, 1);
    }
}

void call_report_done(struct call_report *r)
{
    buf_done(&r->text);
    buf_done(&r->log);
}

void verdict_json(const struct verdict *v, struct buf *out)
{
    json_add_key_string(out, "verdict", str_c(gate_answer_name(v->answer)));
    json_add_key(out, "row");
    buf_add_char(out, '{');
    json_add_key_i64(out, "number", v->row->number);
    json_add_key_string(out, "id", str_c(v->row->id));
    json_add_key_string(out, "text", str_c(v->row->text));
    buf_add_char(out, '}');
}

/* Strict JSON without the white space between its tokens: reports are one line each. */
static void add_compact(struct buf *out, struct str json)
{
    bool in_string = false;

    for (size_t i = 0; i < json.len; i++) {
        char c = json.ptr[i];

        if (in_string && c == '\\') {
            buf_add_char(out, c);
            c = json.ptr[++i];
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            continue;
        }
        buf_add_char(out, c);
    }
}

void call_report_json(const struct dispatch_call *call, const struct call_report *r,
                      struct buf *out)
{
    struct error ignored;

    buf_add_char(out, '{');
    json_add_key_string(out, "call_id", call->call_id);
    json_add_key_string(out, "tool", call->name);
    if (call->args.len == 0) {
        json_add_key_raw(out, "args", STR_LIT("{}"));
    } else if (json_check(call->args, JSON_MAX_DEPTH, &ignored) == ST_OK) {
        json_add_key(out, "args");
        add_compact(out, call->args);
    } else {
        json_add_key_string(out, "args", call->args);
    }
    verdict_json(&r->verdict, out);
    json_add_key_bool(out, "ok", !r->is_error);
    json_add_key_string(out, "cause", r->cause);
    json_add_key_string(out, r->is_error ? "error" : "result", buf_str(&r->text));
    if (r->ran) {
        json_add_key_raw(out, "sandbox",
                         r->layers[0] != '\0' ? str_c(r->layers) : STR_LIT("null"));
        json_add_key_string(out, "log", buf_str(&r->log));
        json_add_key_bool(out, "from_stock", r->from_stock);
        json_add_key_i64(out, "attempts", r->attempts);
        json_add_key(out, "times_ms");
        buf_add_char(out, '{');
        json_add_key_i64(out, "queue", r->queue_ms);
        json_add_key_i64(out, "start", r->start_ms);
        json_add_key_i64(out, "run", r->run_ms);
        json_add_key_i64(out, "total", r->total_ms);
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
}
