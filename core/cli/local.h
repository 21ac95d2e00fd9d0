/* Tool calls without a gateway: the runtime opened for one command. Private to core/cli. */
#ifndef SOULACY_CLI_LOCAL_H
#define SOULACY_CLI_LOCAL_H

#include "cli/command.h"
#include "runtime/runtime.h"

/* The agent a command means: asked NULL gives the only one, or `assistant`. The id is
 * copied into the arena. ST_NOT_FOUND lists those there are. */
enum status local_agent(const struct agent_snapshot *agents, const char *asked,
                        struct arena *a, const char **id,
                        struct error *err) SY_MUST_CHECK;

struct local_call {
    const char *agent, *tool;
    struct str args;    /* JSON object, or empty */
    int64_t timeout_ms; /* 0: the configuration's */
    bool show_log;      /* log lines to stderr as they come */
};

/* One call through tools.run. ST_OK: out has the report, *failed says whether it is an
 * error line ({"code":..,"message":..}) of the operation instead. */
enum status local_run(struct runtime *r, const struct local_call *call, struct buf *out,
                      bool *failed, struct error *err) SY_MUST_CHECK;

#endif
