/* sessions, sessions show, sessions delete: asked of the running gateway. */
#include "base/clock.h"
#include "cli/gateway.h"
#include "cli/show_run.h"

#define OUT_MAX ((size_t)64 * 1024 * 1024)

static struct str text_of(const cJSON *obj, const char *key)
{
    struct str s = STR_NONE;

    (void)json_get_str(obj, key, &s);
    return s;
}

static void add_time(const cJSON *obj, const char *key, struct buf *out)
{
    char text[32] = "";
    int64_t at = 0;

    (void)json_get_i64(obj, key, &at);
    clock_format_utc(at, text);
    buf_addf(out, "%.19sZ", text);
}

static void list(const cJSON *doc, struct buf *out)
{
    const cJSON *sessions = json_get(doc, "sessions");

    for (const cJSON *s = sessions != NULL ? sessions->child : NULL; s != NULL;
         s = s->next) {
        int64_t n = 0;

        (void)json_get_i64(s, "messages", &n);
        cli_text(out, text_of(s, "id"));
        buf_add_c(out, "  ");
        add_time(s, "updated_unix_ms", out);
        buf_addf(out, "  %4lld messages  ", (long long)n);
        cli_text(out, text_of(s, "agent_id"));
        buf_add_c(out, " on ");
        cli_text(out, text_of(s, "channel"));
        buf_add_c(out, "  ");
        cli_text(out, text_of(s, "session_id"));
        buf_add_char(out, '\n');
    }
    if (out->len == 0) {
        buf_add_c(out, "no sessions\n");
    }
}

static void history(const cJSON *doc, struct buf *out)
{
    const cJSON *messages = json_get(doc, "history");

    for (const cJSON *m = messages != NULL ? messages->child : NULL; m != NULL;
         m = m->next) {
        struct str tool = text_of(m, "tool");

        buf_add_c(out, cli_colour("dim"));
        add_time(m, "at_unix_ms", out);
        buf_addf(out, "%s  %s", cli_colour("off"), cli_colour("bold"));
        cli_text(out, text_of(m, "role"));
        if (tool.len > 0) {
            buf_add_char(out, ' ');
            cli_text(out, tool);
        }
        buf_addf(out, "%s\n", cli_colour("off"));
        cli_indent(out, "  ", text_of(m, "text"));
    }
}

static enum cli_exit ask(struct cli *c, const char *method,
                         void (*show)(const cJSON *doc, struct buf *out))
{
    struct gateway g;
    struct buf path, raw, out;
    cJSON *doc = NULL;
    enum cli_exit result = gateway_find(c, &g);

    if (result != CLI_DONE) {
        return result;
    }
    buf_init(&path, 4096);
    buf_init(&raw, OUT_MAX);
    buf_init(&out, OUT_MAX);
    buf_add_c(&path, "/api/v1/sessions");
    if (c->args.nwords > 0) {
        buf_add_char(&path, '/');
        url_add_segment(&path, str_c(c->args.words[0]));
    }
    result = buf_status(&path) == ST_OK
                 ? gateway_ask(&g, method, path.ptr, STR_NONE, &doc, &raw)
                 : cli_misuse(c, "the id is too long");
    if (result == CLI_DONE) {
        show(doc, &out);
        result = cli_print(c, c->json ? &raw : &out);
    }
    cJSON_Delete(doc);
    buf_done(&out);
    buf_done(&raw);
    buf_done(&path);
    return result;
}

static void deleted(const cJSON *doc, struct buf *out)
{
    (void)doc;
    buf_add_c(out, "deleted\n");
}

enum cli_exit cmd_sessions(struct cli *c)
{
    return ask(c, "GET", list);
}

enum cli_exit cmd_sessions_show(struct cli *c)
{
    return ask(c, "GET", history);
}

enum cli_exit cmd_sessions_delete(struct cli *c)
{
    return ask(c, "DELETE", deleted);
}
