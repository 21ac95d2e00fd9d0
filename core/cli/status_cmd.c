/* status: what the running gateway says of itself. Not ready is a failure. */
#include "cli/gateway.h"

#include <string.h>

#define OUT_MAX ((size_t)4 * 1024 * 1024)

static struct str text_of(const cJSON *obj, const char *key)
{
    struct str s = STR_NONE;

    (void)json_get_str(obj, key, &s);
    return s;
}

static void mark(struct buf *out, bool ok)
{
    buf_addf(out, "%s%-9s%s", cli_colour(ok ? "green" : "red"), ok ? "ok" : "FAILED",
             cli_colour("off"));
}

static void show_probe(const cJSON *probe, struct buf *out)
{
    struct str level = text_of(probe, "isolation"), problem = text_of(probe, "problem");

    if (level.len == 0) {
        level = text_of(probe, "level");
    }
    if (level.len > 0) {
        buf_add_c(out, "isolation ");
        cli_text(out, level);
        buf_add_c(out, ", proved by a probe child ");
    }
    cli_text(out, problem);
}

static void show_plugins(const cJSON *plugins, struct buf *out)
{
    for (const cJSON *p = plugins->child; p != NULL; p = p->next) {
        struct str health = text_of(p, "health");

        buf_addf(out, "  %-10s ", "plugin");
        mark(out, !str_eq_c(health, "down"));
        buf_add_char(out, ' ');
        cli_text(out, text_of(p, "kind"));
        buf_add_char(out, ' ');
        cli_text(out, text_of(p, "name"));
        buf_add_c(out, ", ");
        cli_text(out, text_of(p, "state"));
        buf_add_c(out, ", ");
        cli_text(out, health);
        buf_add_char(out, ' ');
        cli_text(out, text_of(p, "detail"));
        buf_add_char(out, '\n');
    }
}

static void show_parts(const cJSON *parts, struct buf *out)
{
    for (const cJSON *p = parts != NULL ? parts->child : NULL; p != NULL; p = p->next) {
        bool ok = true;

        if (cJSON_IsArray(p)) {
            show_plugins(p, out);
            continue;
        }
        (void)json_get_bool(p, "ok", &ok);
        buf_addf(out, "  %-10s ", p->string);
        mark(out, ok);
        buf_add_char(out, ' ');
        cli_text(out, text_of(p, "detail"));
        if (json_get(p, "probe") != NULL) {
            show_probe(json_get(p, "probe"), out);
        }
        buf_add_char(out, '\n');
    }
}

static void show(const struct gateway *g, const cJSON *doc, struct buf *out)
{
    struct str version = text_of(doc, "version");
    int64_t up = 0, pid = 0, runs = 0;
    bool open = false, ready = true;

    buf_addf(out, "gateway at %s", g->base);
    if (version.len > 0) {
        buf_add_c(out, ", soulacy ");
        cli_text(out, version);
    }
    if (json_get_i64(doc, "pid", &pid) && json_get_i64(doc, "uptime_ms", &up) &&
        json_get_i64(doc, "runs_active", &runs)) {
        buf_addf(out, ", pid %lld, up %lld s, %lld runs", (long long)pid,
                 (long long)(up / 1000), (long long)runs);
    }
    buf_add_char(out, '\n');
    if (json_get_bool(doc, "ready", &ready)) {
        buf_add_c(out, ready ? "  ready\n" : "  NOT READY\n");
    }
    if (json_get_bool(doc, "open_to_network", &open) && open) {
        buf_add_c(out, "  open to the network\n");
    }
    show_parts(json_get(doc, "parts"), out);
}

/* False when a part that the gateway needs has failed. */
static bool all_ok(const cJSON *doc)
{
    const cJSON *parts = json_get(doc, "parts");
    bool ok = true;

    if (json_get_bool(doc, "ready", &ok)) {
        return ok;
    }
    for (const cJSON *p = parts != NULL ? parts->child : NULL; p != NULL; p = p->next) {
        bool one = true;

        if (json_get_bool(p, "ok", &one) && !one) {
            return false;
        }
    }
    return true;
}

/* /api/v1/status; a gateway without that route is asked for its readiness, whose answer
 * is 503 when it is not ready. */
static enum cli_exit fetch(const struct gateway *g, struct http_answer *a)
{
    enum cli_exit result = gateway_send(g, "GET", "/api/v1/status", STR_NONE, a);

    if (result == CLI_DONE && a->status == 404) {
        http_answer_done(a);
        result = gateway_send(g, "GET", "/readyz", STR_NONE, a);
    }
    return result;
}

enum cli_exit cmd_status(struct cli *c)
{
    struct http_answer a = {0};
    struct gateway g;
    struct error err = {0};
    struct buf out;
    cJSON *doc = NULL;
    enum cli_exit result = gateway_find(c, &g);

    if (result != CLI_DONE || (result = fetch(&g, &a)) != CLI_DONE) {
        return result;
    }
    buf_init(&out, OUT_MAX);
    if ((a.status != 200 && a.status != 503) ||
        json_parse(buf_str(&a.body), &doc, &err) != ST_OK ||
        json_get(doc, "error") != NULL) {
        result = gateway_explain(&g, &a);
    } else {
        if (c->json) {
            buf_add_str(&out, buf_str(&a.body));
            buf_add_char(&out, '\n');
        } else {
            show(&g, doc, &out);
        }
        result = cli_print(c, &out);
        if (result == CLI_DONE && !all_ok(doc)) {
            result = CLI_FAILED;
        }
    }
    cJSON_Delete(doc);
    buf_done(&out);
    http_answer_done(&a);
    return result;
}
