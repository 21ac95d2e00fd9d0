/* The gateway's operations: one table for http (soulacy.host.gateway/1) and the command
 * line. Each takes one JSON object and answers with lines of JSON: events, then exactly one
 * result or error. docs/http-api.md describes them. */
#ifndef SOULACY_AGENT_OPS_H
#define SOULACY_AGENT_OPS_H

#include "agent/core.h"

#include <soulacy/channel.h>

#define OPS_MAX_ACTIVE 4096

struct ops;

struct ops_request {
    struct str op, args;   /* args: JSON text of one object; empty counts as {} */
    enum gate_entry entry; /* of tools.run; chat is ENTRY_CHAT */
    bool local;
    struct str peer, request_id;
    int64_t deadline_ms; /* 0: the operation's own */
    bool events;
    void *ctx;
    void (*line)(void *ctx, uint32_t kind, struct str json); /* as sy_gateway_call.line */
};

enum status ops_new(struct agent_core *core, struct ops **out,
                    struct error *err) SY_MUST_CHECK;
/* The lanes' pool must have been stopped before: nothing is in flight then. */
void ops_free(struct ops *o);
/* Cancel every operation in flight (shutdown). [any] */
void ops_cancel_all(struct ops *o);

/* As sy_host_gateway.call: on ST_OK a final line comes, perhaps before this returns. */
enum status ops_call(struct ops *o, const struct ops_request *req, uint64_t *id,
                     struct error *err) SY_MUST_CHECK;

/* The table for channel-http. Its instance's PLUGIN_SLOT_GATEWAY must hold the ops. */
const struct sy_host_gateway *ops_service(void);

#endif
