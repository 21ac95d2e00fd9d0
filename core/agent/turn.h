/* One turn: history and a message in, model and tools in a loop, a reply out. Starts only
 * from an admitted message. */
#ifndef SOULACY_AGENT_TURN_H
#define SOULACY_AGENT_TURN_H

#include "agent/dispatch.h"

#define TURN_REPLY_MAX ((size_t)4 * 1024 * 1024)

/* What one request may lower (security-rules 10). */
struct turn_overrides {
    int64_t max_turns; /* 0: the agent's own */
    bool no_tools;     /* tool_choice: none */
};

struct turn {
    const struct admitted *message;
    const struct verdict *admission;
    const struct agent_snapshot *agents;
    struct str user, username;
    struct turn_overrides overrides;
    const char *run_id;
    int64_t deadline_ms; /* monotonic; over it too the run ends, CLOCK_NEVER: none */
    const struct event *cancel;
    void *ctx;
    /* One event as a line of JSON: token, tool_call, tool_log, tool_result. Called on
     * the turn's thread and on workers, one at a time. May be NULL. */
    void (*event)(void *ctx, struct str json);
};

/* Run it and write the result object to out: {"reply":..,"session_id":..,"run_id":..,
 * "stop":..,"usage":{..},"admission":{..},"tool_calls":[..]}. ST_CANCELLED, ST_TIMEOUT,
 * ST_IO (history cannot be stored), ...: err has a short line for the user. */
enum status turn_run(struct agent_core *core, const struct turn *t, struct buf *out,
                     struct error *err) SY_MUST_CHECK;

#endif
