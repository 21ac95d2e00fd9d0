/* config check and config show: what the gateway would read, without a gateway. */
#include "base/mem.h"
#include "cli/command.h"

static enum cli_exit check_json(struct cli *c, const struct problems *probs,
                                const char *file)
{
    struct buf out;
    enum cli_exit result;

    buf_init(&out, (size_t)1024 * 1024);
    buf_add_char(&out, '{');
    json_add_key_bool(&out, "ok", probs->nerrors == 0);
    json_add_key_string(&out, "file", str_c(file));
    json_add_key(&out, "problems");
    buf_add_char(&out, '[');
    for (const struct problem *p = probs->first; p != NULL; p = p->next) {
        json_add_sep(&out);
        buf_add_char(&out, '{');
        json_add_key_bool(&out, "error", !p->warning);
        json_add_key_i64(&out, "line", p->pos.line);
        json_add_key_i64(&out, "column", p->pos.column);
        json_add_key_string(&out, "text", str_c(p->text));
        buf_add_char(&out, '}');
    }
    buf_add_c(&out, "]}\n");
    result = cli_print(c, &out);
    buf_done(&out);
    return result != CLI_DONE ? result : probs->nerrors == 0 ? CLI_DONE : CLI_USAGE;
}

static enum cli_exit check_text(struct cli *c, const struct problems *probs,
                                const char *file)
{
    struct buf out;
    enum cli_exit result;

    buf_init(&out, (size_t)1024 * 1024);
    problems_print(probs, &out);
    buf_addf(&out, "%s: %zu error%s, %zu warning%s\n", file, probs->nerrors,
             probs->nerrors == 1 ? "" : "s", probs->nwarnings,
             probs->nwarnings == 1 ? "" : "s");
    result = cli_print(c, &out);
    buf_done(&out);
    return result != CLI_DONE ? result : probs->nerrors == 0 ? CLI_DONE : CLI_USAGE;
}

enum cli_exit cmd_config_check(struct cli *c)
{
    struct problems probs;
    struct error err = {0};
    char *path = NULL;
    const char *file;
    enum status st = config_find(c->config_path, c->env, &path, &err);
    enum cli_exit result;

    if (st != ST_OK) {
        return cli_misuse(c, "%s", err.text);
    }
    file = path != NULL ? path : "(no config.yaml: defaults)";
    problems_init(&probs, c->arena, file);
    st = config_load(path, c->env, &probs, &c->cfg, &err);
    if (st != ST_OK && probs.nerrors == 0) {
        result = cli_fail(c, "%s", err.text); /* could not be read at all */
    } else {
        result = c->json ? check_json(c, &probs, file) : check_text(c, &probs, file);
    }
    mem_free(path);
    return result;
}

enum cli_exit cmd_config_show(struct cli *c)
{
    struct buf out;
    enum cli_exit result = cli_config(c, false);

    if (result != CLI_DONE) {
        return result;
    }
    buf_init(&out, (size_t)4 * 1024 * 1024);
    if (config_show(c->cfg, c->json, &out) != ST_OK) {
        result = cli_fail(c, "out of memory for the output");
    } else {
        if (out.len > 0 && out.ptr[out.len - 1] != '\n') {
            buf_add_char(&out, '\n');
        }
        result = cli_print(c, &out);
    }
    buf_done(&out);
    return result;
}
