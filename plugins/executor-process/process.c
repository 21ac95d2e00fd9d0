/* executor "process": a fresh local process for each call, started when the call comes.
 * Comes in: plans of the core. Goes out: bytes and an end. The process is made by the
 * core's spawn service from what the core planned; nothing is decided or weakened here. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

struct process {
    struct run_host host;
};

static sy_status process_create(const struct sy_host *host,
                                const struct sy_cfg_value *cfg, size_t ncfg, void **out,
                                struct sy_error *err)
{
    (void)cfg;
    (void)ncfg;
    const struct sy_host_spawn *spawn = host->service(host->ctx, SY_HOST_SPAWN_ID);
    if (spawn == NULL || !SY_HAS(spawn, struct sy_host_spawn, reap)) {
        return run_fail(err, SY_E_UNSUPPORTED, "this core offers no " SY_HOST_SPAWN_ID);
    }
    struct process *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return run_fail(err, SY_E_NOMEM, "out of memory");
    }
    p->host.host = host;
    p->host.spawn = spawn;
    *out = p;
    return SY_OK;
}

static void process_destroy(void *self)
{
    free(self);
}

static sy_status process_start(void *self, struct sy_error *err)
{
    (void)self;
    (void)err;
    return SY_OK;
}

static void process_stop(void *self)
{
    (void)self;
}

static sy_status process_run(void *self, const struct sy_plan *plan,
                             const struct sy_sink *sink, struct sy_result *out,
                             struct sy_error *err)
{
    const struct process *p = self;
    int64_t began_ms = p->host.host->now_ms(p->host.host->ctx);
    struct sy_child child = {.size = sizeof child};
    sy_status st = p->host.spawn->spawn(p->host.host->ctx, plan->launch->id, &child, err);
    if (st != SY_OK) {
        return st;
    }
    return run_child(&p->host, &child, 0, began_ms, plan, sink, out, err);
}

static const struct sy_executor process_executor = {
    .size = sizeof process_executor,
    .max_parallel = 64,
    .enforces = SY_MUST_FS_ROOT | SY_MUST_NO_NET | SY_MUST_MEM | SY_MUST_PIDS |
                SY_MUST_CPU_TIME | SY_MUST_NO_NEW_PRIV | SY_MUST_KILL_TREE |
                SY_MUST_FILES | SY_MUST_FILE_SIZE | SY_MUST_NAMESPACES,
    .start = process_start,
    .stop = process_stop,
    .run = process_run,
};

static const void *process_query(void *self, const char *id)
{
    (void)self;
    return strcmp(id, SY_EXECUTOR_ID) == 0 ? &process_executor : NULL;
}

SY_EXPORT const struct sy_plugin soulacy_plugin_v1 = {
    .size = sizeof soulacy_plugin_v1,
    .abi_minor = SY_ABI_MINOR,
    .min_host_minor = 0,
    .kind = SY_KIND_EXECUTOR,
    .name = "process",
    .version = "0.1.0",
    .keys = NULL,
    .create = process_create,
    .destroy = process_destroy,
    .query = process_query,
};
