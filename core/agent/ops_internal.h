/* Shared inside the operations: one call in flight and how it ends. */
#ifndef SOULACY_AGENT_OPS_INTERNAL_H
#define SOULACY_AGENT_OPS_INTERNAL_H

#include "agent/fields.h"
#include "agent/ops.h"

/* One operation in flight. Belongs to the thread that works on it; op_finish ends it. */
struct op_call {
    struct op_call *next; /* list of active ones; the rest of the list is ops.c's */
    struct ops *ops;
    struct agent_core *core;
    uint64_t id;
    const char *name; /* static */
    char run_id[33];
    enum gate_entry entry;
    bool local, events;
    bool announced;  /* run_id, agent and session are set; guarded by the ops' lock */
    struct arena *a; /* copies of the request's texts */
    struct str args, peer, request_id, agent, session;
    cJSON *doc; /* args, parsed */
    struct event cancel;
    int64_t deadline_ms, begun_unix_ms;
    void *ctx;
    void (*line)(void *ctx, uint32_t kind, struct str json);
};

/* Error line with an HTTP status; field and verdict may be NULL. Ends the call. */
void op_fail(struct op_call *c, int http, const char *code, const char *message,
             const char *field, const struct verdict *v);
/* The same from an error: code and HTTP status follow its status. */
void op_fail_error(struct op_call *c, const struct error *err);
/* Result line; fails by itself when out failed. Ends the call. */
void op_result(struct op_call *c, const struct buf *out);
/* fields_read on the arguments; on failure the call has ended and false comes back. */
bool op_fields(struct op_call *c, const struct field *fields, size_t n);
/* A run in flight from now on: shown by status, found by chat.cancel, told to the caller
 * by the event {"type":"run","run_id":..,"agent_id":..,"session_id":..}. */
void op_announce(struct op_call *c);
/* False: the run was not found. */
bool ops_cancel_run(struct ops *o, struct str run_id);
/* "runs":[{...}] of what is in flight. */
void ops_runs_json(struct ops *o, struct buf *out);

/* The operations. Each ends the call, now or later. */
void op_chat(struct op_call *c);
void op_chat_cancel(struct op_call *c);
void op_tools_run(struct op_call *c);
void op_agents(struct op_call *c);
void op_agents_get(struct op_call *c);
void op_agents_tools(struct op_call *c);
void op_sessions(struct op_call *c);
void op_sessions_get(struct op_call *c);
void op_sessions_delete(struct op_call *c);
void op_status(struct op_call *c);

#endif
