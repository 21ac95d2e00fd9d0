/* serve: the configuration in, a gateway until a signal says stop. */
#include "cli/command.h"
#include "runtime/runtime.h"

enum cli_exit cmd_serve(struct cli *c)
{
    struct runtime *r = NULL;
    struct error err = {0};
    enum cli_exit loaded = cli_config(c, true);
    enum status st;

    if (loaded != CLI_DONE) {
        return loaded;
    }
    st = runtime_open(RUNTIME_SERVE, c->cfg, c->env, &r, &err);
    if (st != ST_OK) {
        return cli_fail(c, "%s", err.text);
    }
    (void)cli_take_config(c);
    st = runtime_serve(r, &err);
    runtime_close(r);
    return st == ST_OK ? CLI_DONE : cli_fail(c, "%s", err.text);
}
