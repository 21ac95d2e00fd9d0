/* The operations put together for a test: a configuration, agents and a store in a folder
 * of its own, lanes, and a fake executor engine. Link agent_world.c and fake_exec.c. */
#ifndef SOULACY_TESTS_AGENT_WORLD_H
#define SOULACY_TESTS_AGENT_WORLD_H

#include "support/test.h"

#include "agent/ops.h"
#include "base/json.h"
#include "support/fake_exec.h"

#include <pthread.h>

struct agent_world {
    struct test_dir dir;
    struct config *cfg;
    struct config_env *env;
    struct pool *turns;
    struct exec exec;
    struct agent_core core;
    struct ops *ops;
    atomic_bool audit_fails;
    atomic_size_t audited;
};

/* soul: SOUL.yaml of the agent in agents/a; extra: lines of config.yaml, or "". */
struct agent_world *world_new(const char *soul, const char *extra);
void world_free(struct agent_world *w);
/* The agent's file is edited, and an operator lets it in. */
void world_edit(struct agent_world *w, const char *soul);
void world_reopen_store(struct agent_world *w);

/* One operation in flight, or ended. */
struct asked {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t id;
    char events[16384];  /* one a line */
    char run_id[64];     /* of the event "run" */
    char *final;         /* NULL until it is there */
    uint32_t kind;       /* SY_LINE_* of it */
    size_t finals, late; /* final lines; lines after the first of them */
    cJSON *json;         /* of final, after asked_wait */
};

/* Begin; the test waits for it and frees it. */
struct asked *world_ask(struct agent_world *w, const char *op, const char *args);
struct asked *world_ask_by(struct agent_world *w, const char *op, const char *args,
                           int64_t deadline_ms, bool local);
void asked_wait(struct asked *a);     /* for the final line */
void asked_wait_run(struct asked *a); /* for run_id */
/* Checks that there was one final line and nothing after it. */
void asked_free(struct asked *a);

/* Ask, wait and check: a result with these texts in it (NULL ends them) ... */
void world_says(struct agent_world *w, const char *op, const char *args, ...);
/* ... or an error with this status, code and field (NULL: none). */
void world_fails(struct agent_world *w, const char *op, const char *args, int status,
                 const char *code, const char *field);

#endif
