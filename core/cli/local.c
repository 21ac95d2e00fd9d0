/* One tool call in, its report out, through the same operation as over http. Waits for the
 * answer; talks to no gateway and no model. */
#include "cli/local.h"

#include "base/clock.h"
#include "base/io.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define REPORT_MAX ((size_t)320 * 1024 * 1024)

enum status local_agent(const struct agent_snapshot *agents, const char *asked,
                        struct arena *a, const char **id, struct error *err)
{
    const char *want = asked;
    const struct soul *soul;
    struct buf list;

    if (want == NULL) {
        want = agents_count(agents) == 1 ? agents_at(agents, 0)->id : "assistant";
    }
    soul = agents_find(agents, str_c(want));
    if (soul != NULL) {
        *id = arena_dup(a, str_c(soul->id));
        return *id != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
    }
    if (agents_count(agents) == 0) {
        return error_set(err, ST_NOT_FOUND,
                         "no agent is loaded; `soulacy agent list` says why, `soulacy "
                         "init` makes one");
    }
    buf_init(&list, 400);
    for (size_t i = 0; i < agents_count(agents); i++) {
        buf_addf(&list, "%s%s", i > 0 ? ", " : "", agents_at(agents, i)->id);
    }
    (void)error_set(err, ST_NOT_FOUND, "%s%s%s; there %s %s",
                    asked != NULL ? "no agent " : "say which agent with --agent",
                    asked != NULL ? asked : "", "",
                    agents_count(agents) == 1 ? "is" : "are", list.ptr);
    buf_done(&list);
    return ST_NOT_FOUND;
}

struct wait {
    struct event done;
    struct buf *out;
    bool failed, show_log;
};

/* A tool's log line as it comes. */
static void show(struct str json)
{
    struct error ignored;
    struct str type, text;
    struct buf out;
    cJSON *doc = NULL;

    if (json_parse(json, &doc, &ignored) != ST_OK) {
        return;
    }
    if (json_get_str(doc, "type", &type) && str_eq_c(type, "tool_log") &&
        json_get_str(doc, "text", &text)) {
        buf_init(&out, (size_t)1024 * 1024);
        cli_text(&out, text);
        (void)fputs(out.ptr, stderr);
        buf_done(&out);
    }
    cJSON_Delete(doc);
}

static void on_line(void *ctx, uint32_t kind, struct str json)
{
    struct wait *w = ctx;

    if (kind == SY_LINE_EVENT) {
        if (w->show_log) {
            show(json);
        }
        return;
    }
    buf_add_str(w->out, json);
    w->failed = kind == SY_LINE_ERROR;
    event_fire(&w->done);
}

static void make_args(const struct local_call *call, struct buf *out)
{
    buf_add_char(out, '{');
    json_add_key_string(out, "agent_id", str_c(call->agent));
    json_add_key_string(out, "tool", str_c(call->tool));
    if (call->args.len > 0) {
        json_add_key_raw(out, "args", call->args);
    }
    buf_add_char(out, '}');
}

enum status local_run(struct runtime *r, const struct local_call *call, struct buf *out,
                      bool *failed, struct error *err)
{
    struct wait w = {.done = {.fd = -1}, .out = out, .show_log = call->show_log};
    struct ops_request req = {.op = STR_LIT("tools.run"),
                              .entry = ENTRY_CLI,
                              .local = true,
                              .peer = STR_LIT("cli"),
                              .events = true,
                              .ctx = &w,
                              .line = on_line};
    struct buf args;
    uint64_t id = 0;
    enum status st = event_init(&w.done, err);

    buf_init(&args, REPORT_MAX);
    make_args(call, &args);
    req.args = buf_str(&args);
    if (call->timeout_ms > 0) {
        req.deadline_ms = clock_mono_ms() + call->timeout_ms;
    }
    if (st == ST_OK && buf_status(&args) != ST_OK) {
        st = error_set(err, ST_NOMEM, "the arguments are too large");
    }
    if (st == ST_OK) {
        st = ops_call(runtime_ops(r), &req, &id, err);
    }
    if (st == ST_OK) {
        st = io_wait(w.done.fd, POLLIN, -1, CLOCK_NEVER);
    }
    *failed = w.failed;
    event_done(&w.done);
    buf_done(&args);
    return st;
}
