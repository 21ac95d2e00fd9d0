/* One tool call from its name to its outcome: gate, audit, source, plan, executor, audit.
 * The only way to a tool, for turns, tools.run and the command line alike. */
#ifndef SOULACY_AGENT_DISPATCH_H
#define SOULACY_AGENT_DISPATCH_H

#include "agent/core.h"

#define DISPATCH_LOG_MAX \
    ((size_t)64 * 1024) /* of a call's log lines kept for its report */

struct dispatch_call {
    const struct admitted *by;
    const struct agent_snapshot *agents; /* the snapshot by's agent is of */
    const struct catalog *tools;
    struct str call_id, name, args;
    struct str session;
    bool offered;
    const char *run_id;
    int64_t deadline_ms; /* of the whole run, monotonic */
    const struct event *cancel;
    void *ctx; /* may be NULL with the functions below */
    /* Verdict is known, nothing has run. args: what was judged. */
    void (*judged)(void *ctx, const struct dispatch_call *c, const struct verdict *v);
    void (*log)(void *ctx, const struct dispatch_call *c, struct str text);
};

struct call_report {
    struct verdict verdict;
    bool ran; /* an executor was asked */
    bool is_error;
    enum status status; /* why it did not run; ST_OK when it ran */
    struct str cause;   /* "ok", "denied", "arguments", "timeout", ...; static */
    struct buf text;    /* result, or the line for the model */
    struct buf log;     /* log lines, first DISPATCH_LOG_MAX bytes */
    char layers[512];   /* JSON, or "" */
    bool from_stock;
    uint32_t attempts;
    int64_t queue_ms, start_ms, run_ms, total_ms;
};

/* Always fills report; free it with call_report_done. */
void dispatch_call(struct agent_core *core, const struct dispatch_call *call,
                   struct call_report *report);
void call_report_done(struct call_report *r);
/* {"call_id":..,"tool":..,"args":..,"verdict":{..},"ok":..,"cause":..,...} */
void call_report_json(const struct dispatch_call *call, const struct call_report *r,
                      struct buf *out);
/* "verdict":"allow","row":{"number":7,"id":"allow","text":"..."} - members of an object */
void verdict_json(const struct verdict *v, struct buf *out);

#endif
