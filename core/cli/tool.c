/* tool run: one call through gate and executor, here and now. The result goes to stdout,
 * the tool's log and what went wrong to stderr. */
#include "base/io.h"
#include "cli/local.h"
#include "cli/show_run.h"

#include <unistd.h>

#define REPORT_MAX ((size_t)320 * 1024 * 1024)
#define ARGS_MAX ((size_t)16 * 1024 * 1024)

static enum cli_exit show_error(struct cli *c, struct str json)
{
    struct error ignored;
    struct str code = STR_NONE, message = STR_NONE, row = STR_NONE;
    cJSON *doc = NULL;

    if (json_parse(json, &doc, &ignored) != ST_OK) {
        return cli_fail(c, "the answer cannot be read");
    }
    (void)json_get_str(doc, "code", &code);
    (void)json_get_str(doc, "message", &message);
    (void)json_get_str(json_get(doc, "row"), "text", &row);
    if (row.len > 0) {
        (void)cli_fail(c, "%.*s (row %.*s: %.*s)", STR_ARG(message), STR_ARG(code),
                       STR_ARG(row));
    } else {
        (void)cli_fail(c, "%.*s", STR_ARG(message));
    }
    cJSON_Delete(doc);
    return CLI_FAILED;
}

static enum cli_exit show_report(struct cli *c, struct str json, bool verbose)
{
    struct error ignored;
    struct str text = STR_NONE, cause = STR_NONE;
    struct buf out;
    cJSON *doc = NULL;
    bool ok = false;
    enum cli_exit result;

    if (json_parse(json, &doc, &ignored) != ST_OK) {
        return cli_fail(c, "the answer cannot be read");
    }
    (void)json_get_bool(doc, "ok", &ok);
    (void)json_get_str(doc, ok ? "result" : "error", &text);
    (void)json_get_str(doc, "cause", &cause);
    buf_init(&out, REPORT_MAX);
    if (verbose) {
        show_call(doc, true, &out);
    } else if (ok && cli_is_tty(STDOUT_FILENO)) {
        cli_text(&out, text);
        buf_add_char(&out, '\n');
    } else if (ok) {
        buf_add_str(&out, text);
        buf_add_char(&out, '\n');
    }
    result = cli_print(c, &out);
    if (!ok && !verbose) {
        (void)cli_fail(c, "%.*s: %.*s", STR_ARG(cause), STR_ARG(text));
    }
    buf_done(&out);
    cJSON_Delete(doc);
    return ok ? result : CLI_FAILED;
}

static enum cli_exit print_json(struct cli *c, struct buf *report, bool failed)
{
    struct error ignored;
    cJSON *doc = NULL;
    bool ok = false;
    enum cli_exit result;

    if (!failed && json_parse(buf_str(report), &doc, &ignored) == ST_OK) {
        (void)json_get_bool(doc, "ok", &ok);
        cJSON_Delete(doc);
    }
    buf_add_char(report, '\n');
    result = cli_print(c, report);
    return ok ? result : CLI_FAILED;
}

static enum cli_exit run(struct cli *c, struct runtime *r, struct str args)
{
    struct agent_snapshot *agents = agents_take(runtime_core(r)->agents);
    bool verbose = args_value(&c->args, "verbose") != NULL, failed = false;
    struct local_call call = {
        .tool = c->args.words[0], .args = args, .show_log = !c->json && !verbose};
    struct error err = {0};
    struct buf out;
    enum cli_exit result;
    enum status st =
        local_agent(agents, args_value(&c->args, "agent"), c->arena, &call.agent, &err);

    agents_put(agents);
    buf_init(&out, REPORT_MAX);
    if (st == ST_OK) {
        st = local_run(r, &call, &out, &failed, &err);
    }
    if (st == ST_OK && buf_status(&out) != ST_OK) {
        st = error_set(&err, ST_NOMEM, "out of memory for the answer");
    }
    if (st != ST_OK) {
        result = cli_fail(c, "%s", err.text);
    } else if (c->json) {
        result = print_json(c, &out, failed);
    } else if (failed) {
        result = show_error(c, buf_str(&out));
    } else {
        result = show_report(c, buf_str(&out), verbose);
    }
    buf_done(&out);
    return result;
}

/* The arguments' text; "-" reads them from stdin. */
static enum status read_args(struct cli *c, struct buf *from_stdin, struct str *out,
                             struct error *err)
{
    cJSON *doc = NULL;
    enum status st = ST_OK;

    *out = c->args.nwords > 1 ? str_c(c->args.words[1]) : STR_NONE;
    if (str_eq_c(*out, "-")) {
        st = io_read_all(STDIN_FILENO, ARGS_MAX, from_stdin, err);
        *out = buf_str(from_stdin);
    }
    if (st == ST_OK && out->len > 0) {
        st = json_parse(*out, &doc, err);
        if (st == ST_OK && !cJSON_IsObject(doc)) {
            st = error_set(err, ST_INVALID, "must be one JSON object");
        }
        cJSON_Delete(doc);
        if (st != ST_OK) {
            (void)error_context(err, "the arguments");
        }
    }
    return st;
}

enum cli_exit cmd_tool_run(struct cli *c)
{
    struct runtime *r = NULL;
    struct error err = {0};
    struct buf input;
    struct str args = STR_NONE;
    enum cli_exit result;

    buf_init(&input, ARGS_MAX);
    if (read_args(c, &input, &args, &err) != ST_OK) {
        result = cli_misuse(c, "%s; for example '{\"name\": \"value\"}'", err.text);
        goto out;
    }
    result = cli_config(c, false);
    if (result != CLI_DONE) {
        goto out;
    }
    if (runtime_open(RUNTIME_TOOLS, c->cfg, c->env, &r, &err) != ST_OK) {
        result = cli_fail(c, "%s", err.text);
        goto out;
    }
    (void)cli_take_config(c);
    result = run(c, r, args);
    runtime_close(r);
out:
    buf_done(&input);
    return result;
}
