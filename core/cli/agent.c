/* agent list and agent check: agent files as the gateway would take them, without one. */
#include "agent/registry.h"
#include "cli/command.h"
#include "tools/catalog.h"
#include "tools/source.h"

#include <stdio.h>

#define OUT_MAX ((size_t)8 * 1024 * 1024)

static void agent_line(const struct soul *s, bool json, struct buf *out)
{
    if (json) {
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "id", str_c(s->id));
        json_add_key_string(out, "description", str_c(s->description));
        json_add_key_string(out, "file", str_c(s->file));
        json_add_key_bool(out, "enabled", s->enabled);
        json_add_key_bool(out, "system", s->system);
        json_add_key_i64(out, "tools", (int64_t)s->ntools);
        buf_add_char(out, '}');
        return;
    }
    buf_addf(out, "%-20s %zu tool%s%s%s  ", s->id, s->ntools, s->ntools == 1 ? "" : "s",
             s->system ? ", system" : "", s->enabled ? "" : ", disabled");
    cli_text(out, str_c(s->file));
    buf_add_char(out, '\n');
}

static void list(const struct agent_snapshot *agents, const struct problems *probs,
                 bool json, struct buf *out)
{
    buf_add_c(out, json ? "{\"agents\":[" : "");
    for (size_t i = 0; i < agents_count(agents); i++) {
        agent_line(agents_at(agents, i), json, out);
    }
    if (json) {
        buf_add_c(out, "],\"problems\":[");
        for (const struct problem *p = probs->first; p != NULL; p = p->next) {
            json_add_sep(out);
            buf_add_char(out, '{');
            json_add_key_bool(out, "error", !p->warning);
            json_add_key_string(out, "text", str_c(p->text));
            buf_add_char(out, '}');
        }
        buf_add_c(out, "]}\n");
    } else if (agents_count(agents) == 0) {
        buf_add_c(out, "no agents\n");
    }
}

enum cli_exit cmd_agent_list(struct cli *c)
{
    struct agent_registry *registry = NULL;
    struct agent_snapshot *agents;
    struct problems probs;
    struct error err = {0};
    struct buf out;
    enum cli_exit result = cli_config(c, false);

    if (result != CLI_DONE) {
        return result;
    }
    problems_init(&probs, c->arena, "agents");
    if (agent_registry_new(c->cfg, NULL, &probs, &registry, &err) != ST_OK) {
        return cli_fail(c, "%s", err.text);
    }
    agents = agents_take(registry);
    buf_init(&out, OUT_MAX);
    list(agents, &probs, c->json, &out);
    result = cli_print(c, &out);
    if (!c->json) {
        for (const struct problem *p = probs.first; p != NULL; p = p->next) {
            (void)fprintf(stderr, "%s: %s\n", p->warning ? "warning" : "error", p->text);
        }
    }
    buf_done(&out);
    agents_put(agents);
    agent_registry_free(registry);
    return probs.nerrors > 0 ? CLI_FAILED : result;
}

/* ---- check ------------------------------------------------------------------------------ */

/* What the gateway would find out when a tool is called: is its file there? */
static enum status check_sources(struct cli *c, const struct soul *soul,
                                 struct error *err)
{
    static const struct str_list anywhere = {NULL, 0};
    const struct str_list *allowed =
        c->cfg != NULL ? &c->cfg->runtime.allowed_tool_dirs : &anywhere;
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < soul->ntools; i++) {
        struct source src = {0};

        st = source_read(&soul->tools[i], allowed, &src, err);
        source_done(&src);
    }
    return st;
}

static bool check_one(struct cli *c, const char *file, struct buf *out)
{
    struct problems probs;
    struct soul *soul = NULL;
    struct catalog tools;
    struct error err = {0};
    enum status st;

    problems_init(&probs, c->arena, file);
    st = soul_load(file, c->cfg, &probs, &soul, &err);
    if (st == ST_OK) {
        st = catalog_build(soul, c->arena, &tools, &err);
    }
    if (st == ST_OK) {
        st = check_sources(c, soul, &err);
    }
    if (c->json) {
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "file", str_c(file));
        json_add_key_bool(out, "ok", st == ST_OK);
        json_add_key_string(out, "id", soul != NULL ? str_c(soul->id) : STR_NONE);
        json_add_key(out, "problems");
        buf_add_char(out, '[');
        for (const struct problem *p = probs.first; p != NULL; p = p->next) {
            json_add_sep(out);
            buf_add_char(out, '{');
            json_add_key_bool(out, "error", !p->warning);
            json_add_key_i64(out, "line", p->pos.line);
            json_add_key_i64(out, "column", p->pos.column);
            json_add_key_string(out, "text", str_c(p->text));
            buf_add_char(out, '}');
        }
        buf_add_char(out, ']');
        if (st != ST_OK && probs.nerrors == 0) {
            json_add_key_string(out, "error", str_c(err.text));
        }
        buf_add_char(out, '}');
    } else {
        problems_print(&probs, out);
        if (st != ST_OK && probs.nerrors == 0) {
            buf_addf(out, "%s: error: %s\n", file, err.text);
        }
        buf_addf(out, "%s: %s\n", file, st == ST_OK ? "ok" : "not accepted");
    }
    soul_free(soul);
    return st == ST_OK;
}

enum cli_exit cmd_agent_check(struct cli *c)
{
    struct buf out;
    bool all = true;
    enum cli_exit result = cli_config(c, false);

    if (result != CLI_DONE) {
        return result;
    }
    buf_init(&out, OUT_MAX);
    buf_add_c(&out, c->json ? "[" : "");
    for (size_t i = 0; i < c->args.nwords; i++) {
        all = check_one(c, c->args.words[i], &out) && all;
    }
    buf_add_c(&out, c->json ? "]\n" : "");
    result = cli_print(c, &out);
    buf_done(&out);
    return all ? result : CLI_FAILED;
}
