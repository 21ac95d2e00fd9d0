#define _GNU_SOURCE /* realpath, which POSIX has among its extensions */
/* plugin list and plugin check: files as the gateway's loader sees them, up to the
 * plugin's configuration. Makes no instance of any plugin. */
#include "base/mem.h"
#include "cli/command.h"
#include "config/plugin_values.h"
#include "plugin/plugin.h"
#include "runtime/runtime.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX ((size_t)4 * 1024 * 1024)

/* What the loader knows of a file when it comes to the configuration. */
struct look {
    struct cli *c;
    bool reached; /* file and entry passed every check */
    uint32_t kind;
    char name[PLUGIN_NAME_MAX + 1];
    const struct sy_cfg_key *keys;
    size_t nkeys;
    char problem[400]; /* of its configuration, or "" */
};

/* Called when file and entry are fine. The refusal ends the load before create(). */
static enum status at_values(void *ctx, uint32_t kind, const char *name,
                             const struct sy_cfg_key *keys, size_t nkeys,
                             struct arena *arena, const struct sy_cfg_value **out,
                             /* NOLINTNEXTLINE(readability-non-const-parameter) */
                             size_t *nout, struct error *err)
{
    struct look *l = ctx;
    struct sy_cfg_value *values = NULL;
    struct problems probs;
    size_t n = 0;

    *out = NULL;
    *nout = 0;
    l->reached = true;
    l->kind = kind;
    l->keys = keys; /* the file stays mapped */
    l->nkeys = nkeys;
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    problems_init(&probs, arena, l->c->cfg->file);
    if (config_plugin_values(l->c->cfg, name, kind, keys, arena, &probs, &values, &n) !=
            ST_OK &&
        probs.first != NULL) {
        (void)snprintf(l->problem, sizeof(l->problem), "%s", probs.first->text);
    }
    return error_set(err, ST_CANCELLED, "only looked at");
}

static enum status look_at(struct cli *c, const char *path, struct look *l,
                           struct error *err)
{
    struct plugin_registry_config cfg = {
        .plugin_dir = c->cfg->plugin_dir, .values = at_values, .values_ctx = l};
    struct plugin_spec spec = {.path = path};
    struct plugin_registry *r = NULL;
    enum status st;

    *l = (struct look){.c = c};
    st = plugin_registry_new(&cfg, &r, err);
    if (st == ST_OK) {
        st = plugin_load(r, &spec, NULL, err);
        plugin_registry_free(r);
    }
    return l->reached ? ST_OK : st;
}

static const char *kind_name(uint32_t kind)
{
    return kind == SY_KIND_CHANNEL ? "channel" : "executor";
}

static void show_look(const struct look *l, const char *path, bool json, struct buf *out)
{
    if (json) {
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "file", str_c(path));
        json_add_key_bool(out, "ok", true);
        json_add_key_string(out, "kind", str_c(kind_name(l->kind)));
        json_add_key_string(out, "name", str_c(l->name));
        json_add_key_string(out, "configuration",
                            l->problem[0] != '\0' ? str_c(l->problem) : STR_LIT("ok"));
        buf_add_char(out, '}');
        return;
    }
    buf_addf(out, "%-9s %-12s ", kind_name(l->kind), l->name);
    cli_text(out, str_c(path));
    buf_addf(out, "%s\n", l->problem[0] != '\0' ? "  (not configured)" : "");
}

static void show_keys(const struct look *l, struct buf *out)
{
    for (size_t i = 0; i < l->nkeys; i++) {
        const struct sy_cfg_key *k = &l->keys[i];

        buf_addf(out, "  %-22s ", k->name);
        cli_text(out, str_c(k->help));
        if (k->fallback != NULL) {
            buf_add_c(out, " (default ");
            cli_text(out, str_c(k->fallback));
            buf_add_char(out, ')');
        }
        buf_addf(out, "%s\n", k->required ? " (required)" : "");
    }
}

enum cli_exit cmd_plugin_check(struct cli *c)
{
    struct look l;
    struct error err = {0};
    struct buf out;
    char *path;
    enum cli_exit result = cli_config(c, false);

    if (result != CLI_DONE) {
        return result;
    }
    path = realpath(c->args.words[0], NULL);
    if (path == NULL) {
        return cli_fail(c, "%s: there is no such file", c->args.words[0]);
    }
    buf_init(&out, OUT_MAX);
    if (look_at(c, path, &l, &err) != ST_OK) {
        result = cli_fail(c, "%s", err.text);
    } else {
        show_look(&l, path, c->json, &out);
        if (c->json) {
            buf_add_char(&out, '\n');
        } else {
            show_keys(&l, &out);
            buf_add_c(&out, "file and entry are as the gateway wants them; "
                            "soulacy-plugin-check tries what it does\n");
        }
        result = cli_print(c, &out);
    }
    buf_done(&out);
    mem_free(path);
    return result;
}

/* ---- list ------------------------------------------------------------------------------- */

static enum status find_dir(struct cli *c, char **out, struct error *err)
{
    char *prefix = NULL;
    enum status st = ST_OK;

    if (c->cfg->plugin_dir != NULL) {
        *out = c->cfg->plugin_dir;
        return ST_OK;
    }
    st = runtime_prefix(&prefix, err);
    if (st == ST_OK) {
        *out = arena_printf(c->arena, "%s/lib/soulacy", prefix);
        st = *out != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
    }
    mem_free(prefix);
    return st;
}

static int only_so(const struct dirent *e)
{
    return str_ends(str_c(e->d_name), STR_LIT(".so")) ? 1 : 0;
}

/* False: a file the gateway would refuse. */
static bool list_one(struct cli *c, const char *path, struct buf *out)
{
    struct error err = {0};
    struct look l;

    if (path == NULL) {
        return false;
    }
    if (look_at(c, path, &l, &err) == ST_OK) {
        show_look(&l, path, c->json, out);
        return true;
    }
    if (c->json) {
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "file", str_c(path));
        json_add_key_bool(out, "ok", false);
        json_add_key_string(out, "error", str_c(err.text));
        buf_add_char(out, '}');
    } else {
        buf_add_c(out, "REFUSED   ");
        cli_text(out, str_c(err.text));
        buf_add_char(out, '\n');
    }
    return false;
}

static bool list_all(struct cli *c, const char *dir, struct buf *out)
{
    struct dirent **names = NULL;
    int n = scandir(dir, &names, only_so, alphasort);
    bool all = true;

    for (int i = 0; i < n; i++) {
        all = list_one(c, arena_printf(c->arena, "%s/%s", dir, names[i]->d_name), out) &&
              all;
        mem_free(names[i]);
    }
    mem_free(names);
    for (size_t i = 0; i < c->cfg->nplugins; i++) {
        if (c->cfg->plugins[i].path[0] == '/') {
            all = list_one(c, c->cfg->plugins[i].path, out) && all;
        }
    }
    if (n <= 0 && !c->json) {
        buf_addf(out, "no plugin in %s\n", dir);
    }
    return all;
}

enum cli_exit cmd_plugin_list(struct cli *c)
{
    struct error err = {0};
    struct buf out;
    char *dir = NULL;
    bool all;
    enum cli_exit result = cli_config(c, false);

    if (result != CLI_DONE) {
        return result;
    }
    if (find_dir(c, &dir, &err) != ST_OK) {
        return cli_fail(c, "%s", err.text);
    }
    buf_init(&out, OUT_MAX);
    buf_add_c(&out, c->json ? "[" : "");
    all = list_all(c, dir, &out);
    buf_add_c(&out, c->json ? "]\n" : "");
    result = cli_print(c, &out);
    buf_done(&out);
    return all ? result : CLI_FAILED;
}
