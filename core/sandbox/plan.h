/* call + policy -> exact limits. A plan is opaque, made here only, and only from an
 * approved call; a run starts only from a plan. Pure. */
#ifndef SOULACY_SANDBOX_PLAN_H
#define SOULACY_SANDBOX_PLAN_H

#include "base/error.h"
#include "sandbox/interpreter.h"
#include "sandbox/spawn.h"

struct approved; /* gate/gate.h */
struct plan;

/* The tool's text, read from the opened and checked file (tools/source.h) or inline. */
struct tool_source {
    struct str text;
    const char *filename; /* for tracebacks: a bare name */
    const char *folder; /* real path of the file's folder, shown read-only; NULL: none */
};

/* What the configuration and this machine give every plan. Borrowed by plan_build. */
struct plan_policy {
    const struct config *cfg;
    const struct interpreter *python;
    const char *bootstrap; /* the one-line program the interpreter starts with */
    const char *const *protected_paths; /* real paths of config, state, keys, plugins: a
                                           tool folder may not contain one */
    size_t nprotected;
    const char *work_root; /* folder for private work folders */
    bool root_gateway;
    uint32_t drop_uid, drop_gid; /* of runtime.sandbox.user */
    const char *const *base_env; /* "PATH=..", "HOME=..", "LANG=..", "TMPDIR=..": those of
                                    the gateway's environment that have a value */
    size_t nbase_env;
    int64_t max_timeout_ms; /* what is left of the whole run; a tool gets no more */
    const char *const
        *agent_env; /* "NAME=value" of the agent's `env` names with a value */
    size_t nagent_env;
};

/* What shapes the process, without anything of the call. */
struct launch_spec {
    const char *backend; /* executor plugin's name */
    enum isolation isolation;
    bool limits_must_hold, network;
    uint64_t must; /* SY_MUST_* */
    const char *const *argv;
    size_t nargv;
    const char *const *env; /* for local processes: the whole environment */
    size_t nenv;
    uint32_t uid, gid;
    uint64_t cpu_seconds, mem_bytes, open_files, file_bytes,
        processes; /* SPAWN_NO_LIMIT */
    const struct spawn_path *paths;
    size_t npaths;
    const char *work_root; /* NULL at ISOLATION_NONE */
    char key[65];          /* SHA-256 over all of the above, length-prefixed */
};

/* The one call. */
struct plan_call {
    const char *run_id; /* [a-z0-9], at most 32 */
    const char *agent_id;
    const char *tool_name;
    struct str source;    /* Python text, the very bytes that were checked */
    const char *filename; /* for tracebacks */
    const char *function;
    struct str args;        /* strict JSON text of one object */
    const char *const *env; /* agent's env: set in the process before tool code runs */
    size_t nenv;
    int64_t timeout_ms;
    uint32_t retries; /* 0 unless the tool asks */
    int64_t retry_backoff_ms;
    size_t max_output_bytes;
};

/* For a Python tool; everything is copied. ST_REFUSED names what cannot be
 * kept. */
enum status plan_build(const struct approved *call, const struct plan_policy *policy,
                       const struct tool_source *source, const char *run_id,
                       struct plan **out, struct error *err) SY_MUST_CHECK;
/* SY_MUST_* of every plan under this configuration: what a backend has to enforce. */
uint64_t plan_must(const struct config *cfg);
void plan_free(struct plan *p); /* wipes: it holds environment values */
const struct launch_spec *plan_launch(const struct plan *p);
const struct plan_call *plan_call(const struct plan *p);

#endif
