/* The gateway put together. The only place that knows all the parts. */
#ifndef SOULACY_RUNTIME_H
#define SOULACY_RUNTIME_H

#include "agent/core.h"
#include "agent/ops.h"
#include "sandbox/readiness.h"
#include "server/server.h"

struct runtime;

enum runtime_mode {
    RUNTIME_TOOLS, /* agents, gate, sandbox and executors: `tool run`, no listener */
    RUNTIME_SERVE  /* everything */
};

/* Open all parts of the mode. cfg is taken over when it succeeds. Must be called before any
 * thread exists. */
enum status runtime_open(enum runtime_mode mode, struct config *cfg,
                         const struct config_env *env, struct runtime **out,
                         struct error *err) SY_MUST_CHECK;
/* Serve until SIGTERM or SIGINT (drain and return ST_OK), or until a part that cannot be
 * done without is gone. */
enum status runtime_serve(struct runtime *r, struct error *err) SY_MUST_CHECK;
void runtime_close(struct runtime *r); /* NULL is fine */

struct ops *runtime_ops(struct runtime *r);
struct agent_core *runtime_core(struct runtime *r);
struct readiness *runtime_readiness(struct runtime *r);
const char *runtime_url(struct runtime *r, char out[128]);

/* Folder of the program's parts: PREFIX of PREFIX/bin/soulacy, from /proc/self/exe. */
enum status runtime_prefix(char **out, struct error *err) SY_MUST_CHECK;

#endif
