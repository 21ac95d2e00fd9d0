/* Shared inside the runtime: the gateway's parts and how they are made. */
#ifndef SOULACY_RUNTIME_INTERNAL_H
#define SOULACY_RUNTIME_INTERNAL_H

#include "runtime/runtime.h"

#define RUNTIME_MAX_LAUNCHES 256
#define RUNTIME_MAX_PROTECTED 64
#define RUNTIME_MAX_RELOADS 32
#define RUNTIME_SERVICES 3

struct runtime {
    enum runtime_mode mode;
    struct config *cfg;
    struct config
        *old[RUNTIME_MAX_RELOADS]; /* replaced by reloads; readers may still hold them */
    size_t nold;
    const struct config_env *env;
    char *prefix;
    struct log *log;
    struct spawn *spawn;
    struct metrics *metrics;
    struct store *store;
    struct audit *audit;
    struct agent_registry *agents;
    struct pool *http, *turns, *jobs;
    struct launches *launches;
    struct plugin_service services[RUNTIME_SERVICES];
    struct plugin_registry *plugins;
    struct exec *exec;
    struct lanes *lanes;
    struct ops *ops;
    struct server *server;
    struct readiness *readiness;
    struct agent_core core;
    char *base_env[5], *work_root;
    const char *protected_paths[RUNTIME_MAX_PROTECTED];
    char *protected_mem[RUNTIME_MAX_PROTECTED];
    struct event condemned;
    int signals; /* signalfd */
    int64_t started_ms;
};

/* facts.c: this machine, this user, the folders. In this order. */
enum status runtime_find_facts(struct runtime *r, struct error *err) SY_MUST_CHECK;

/* plugins.c */
enum status runtime_open_registry(struct runtime *r, struct error *err) SY_MUST_CHECK;
enum status runtime_load_plugins(struct runtime *r, struct error *err) SY_MUST_CHECK;
enum status runtime_start_plugins(struct runtime *r, struct error *err) SY_MUST_CHECK;
void runtime_stop_plugins(struct runtime *r);
void runtime_stop_condemned(struct runtime *r);

/* report.c: readiness and status, from any thread, without waiting. */
bool runtime_ready(void *ctx, bool detail, struct buf *out);
void runtime_status(void *ctx, struct buf *out);

#endif
