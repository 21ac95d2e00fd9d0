/* JSON reports of the gateway in, lines for people out. Trusts no byte of them. */
#include "cli/show_run.h"

#include <string.h>

#define SHOWN_MAX ((size_t)64 * 1024)

static struct str text_of(const cJSON *obj, const char *key)
{
    struct str s = STR_NONE;

    (void)json_get_str(obj, key, &s);
    return s;
}

static int64_t number_of(const cJSON *obj, const char *key)
{
    int64_t n = 0;

    (void)json_get_i64(obj, key, &n);
    return n;
}

static void label(struct buf *out, const char *name)
{
    buf_addf(out, "  %s%-9s%s ", cli_colour("dim"), name, cli_colour("off"));
}

static void add_row(const cJSON *from, struct buf *out)
{
    const cJSON *row = json_get(from, "row");
    struct str answer = text_of(from, "verdict");
    bool allow = str_eq_c(answer, "allow");

    buf_add_c(out, cli_colour(allow ? "green" : "red"));
    cli_text(out, answer);
    buf_add_c(out, cli_colour("off"));
    buf_addf(out, " by row %lld, ", (long long)number_of(row, "number"));
    cli_text(out, text_of(row, "id"));
    buf_add_c(out, ": ");
    cli_text(out, text_of(row, "text"));
    buf_add_char(out, '\n');
}

void show_admission(const cJSON *admission, struct buf *out)
{
    struct str sender = text_of(admission, "sender");
    bool local = false;

    (void)json_get_bool(admission, "local", &local);
    label(out, "speaker");
    cli_text(out, sender.len > 0 ? sender : STR_LIT("(no name)"));
    buf_add_c(out, " on channel ");
    cli_text(out, text_of(admission, "channel"));
    buf_addf(out, "%s, by ", local ? " (local: the request carried the key)" : "");
    cli_text(out, text_of(admission, "entry"));
    buf_add_char(out, '\n');
    label(out, "message");
    add_row(admission, out);
}

/* The value as JSON on one line; strings of an array without their quotes. */
static void add_value(const cJSON *value, struct buf *out)
{
    char *text;

    if (cJSON_IsArray(value)) {
        for (const cJSON *e = value->child; e != NULL; e = e->next) {
            buf_add_c(out, e == value->child ? "" : ", ");
            add_value(e, out);
        }
        return;
    }
    if (cJSON_IsString(value)) {
        cli_text(out, str_c(value->valuestring));
        return;
    }
    if (cJSON_IsObject(value)) {
        for (const cJSON *e = value->child; e != NULL; e = e->next) {
            buf_add_c(out, e == value->child ? "" : ", ");
            cli_text(out, str_c(e->string));
            buf_add_char(out, ' ');
            add_value(e, out);
        }
        return;
    }
    text = cJSON_PrintUnformatted(value);
    cli_text(out, str_c(text));
    cJSON_free(text);
}

static void show_sandbox(const cJSON *call, struct buf *out)
{
    const cJSON *sandbox = json_get(call, "sandbox");

    for (const cJSON *e = cJSON_IsObject(sandbox) ? sandbox->child : NULL; e != NULL;
         e = e->next) {
        label(out, e->string);
        add_value(e, out);
        buf_add_char(out, '\n');
    }
}

static void show_times(const cJSON *call, struct buf *out)
{
    const cJSON *t = json_get(call, "times_ms");

    if (t == NULL) {
        return;
    }
    label(out, "times");
    buf_addf(out, "%lld ms: queue %lld, start %lld, run %lld\n",
             (long long)number_of(t, "total"), (long long)number_of(t, "queue"),
             (long long)number_of(t, "start"), (long long)number_of(t, "run"));
}

static struct str shown(struct str s)
{
    return str_n(s.ptr, s.len < SHOWN_MAX ? s.len : SHOWN_MAX);
}

static void show_head(const cJSON *call, struct buf *out)
{
    const cJSON *args = json_get(call, "args");
    char *text = args != NULL ? cJSON_PrintUnformatted(args) : NULL;

    buf_addf(out, "%stool%s ", cli_colour("bold"), cli_colour("off"));
    cli_text(out, text_of(call, "tool"));
    buf_add_char(out, ' ');
    cli_text(out, text != NULL ? shown(str_c(text)) : STR_LIT("{}"));
    buf_add_char(out, '\n');
    cJSON_free(text);
}

void show_call(const cJSON *call, bool verbose, struct buf *out)
{
    struct str log = text_of(call, "log");
    bool ok = false;

    (void)json_get_bool(call, "ok", &ok);
    show_head(call, out);
    if (verbose || !ok) {
        label(out, "verdict");
        add_row(call, out);
    }
    if (verbose) {
        show_sandbox(call, out);
        cli_indent(out, "  log       ", shown(log));
    }
    if (ok) {
        cli_indent(out, "  result    ", shown(text_of(call, "result")));
    } else {
        label(out, "failed");
        cli_text(out, text_of(call, "cause"));
        buf_add_char(out, '\n');
        cli_indent(out, "  error     ", shown(text_of(call, "error")));
    }
    if (verbose) {
        show_times(call, out);
    }
}
