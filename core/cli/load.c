/* The configuration of a command: found, read, its problems told. Changes nothing. */
#include "base/mem.h"
#include "cli/command.h"

#include <stdio.h>

static void tell(const struct problems *probs, bool warnings)
{
    struct buf text;

    buf_init(&text, (size_t)1024 * 1024);
    if (probs->nerrors > 0 || (warnings && probs->nwarnings > 0)) {
        problems_print(probs, &text);
        (void)fputs(text.ptr, stderr);
    }
    buf_done(&text);
}

enum cli_exit cli_config(struct cli *c, bool warnings)
{
    struct problems probs;
    struct error err = {0};
    char *path = NULL;
    enum status st = config_find(c->config_path, c->env, &path, &err);

    if (st != ST_OK) {
        return cli_misuse(c, "%s", err.text);
    }
    problems_init(&probs, c->arena, path != NULL ? path : "(no config.yaml)");
    st = config_load(path, c->env, &probs, &c->cfg, &err);
    tell(&probs, warnings);
    if (st != ST_OK) {
        (void)cli_fail(c, "%s", err.text);
    }
    mem_free(path);
    return st == ST_OK ? CLI_DONE : CLI_USAGE;
}

struct config *cli_take_config(struct cli *c)
{
    struct config *cfg = c->cfg;

    c->cfg = NULL;
    return cfg;
}
