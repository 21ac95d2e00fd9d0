/* A plugin that does everything right, unless a case says otherwise: a case defines some
 * of the macros below and includes this file. BAD_EXECUTOR makes it an executor. */
#include <soulacy/channel.h>
#include <soulacy/executor.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#ifndef BAD_NAME
#define BAD_NAME "bad"
#endif
#ifndef BAD_ENTRY_SIZE
#define BAD_ENTRY_SIZE sizeof(struct sy_plugin)
#endif
#ifndef BAD_MIN_MINOR
#define BAD_MIN_MINOR 0
#endif
#ifndef BAD_KEYS
#define BAD_KEYS NULL
#endif
#ifndef BAD_CREATE
#define BAD_CREATE bad_create
#endif
#ifndef BAD_TABLE_SIZE
#define BAD_TABLE_SIZE(type) sizeof(type)
#endif

struct bad {
    const struct sy_host *host;
    const struct sy_host_channel *channel;
    const struct sy_host_spawn *spawn;
};

#ifndef BAD_CREATE_FAILS
#define BAD_CREATE_FAILS 0
#endif
/* Statements. */
#ifndef BAD_START
#define BAD_START(b) (void)(b)
#endif
#ifndef BAD_SEND
#define BAD_SEND(b, msg) (void)(b), (void)(msg)
#endif
#ifndef BAD_RUN
#define BAD_RUN(b, plan, sink) (void)(b), (void)(plan), (void)(sink)
#endif
#ifndef BAD_DESTROY
#define BAD_DESTROY(b) (void)(b)
#endif

static inline sy_status bad_create(const struct sy_host *host,
                                   const struct sy_cfg_value *cfg, size_t ncfg,
                                   void **out, struct sy_error *err)
{
    static const char reason[] = "no such account";
    struct bad *b = calloc(1, sizeof *b);
    (void)cfg;
    (void)ncfg;
    if (BAD_CREATE_FAILS || b == NULL) {
        free(b);
        memcpy(err->text, reason, sizeof reason);
        return SY_E_AUTH;
    }
    b->host = host;
    b->channel = host->service(host->ctx, SY_HOST_CHANNEL_ID);
    b->spawn = host->service(host->ctx, SY_HOST_SPAWN_ID);
    *out = b;
    return SY_OK;
}

static void bad_destroy(void *self)
{
    struct bad *b = self;
    BAD_DESTROY(b);
    free(b);
}

static sy_status bad_start(void *self, struct sy_error *err)
{
    struct bad *b = self;
    (void)err;
    BAD_START(b);
    return SY_OK;
}

static void bad_stop(void *self)
{
    (void)self;
}

#ifdef BAD_EXECUTOR
#ifndef BAD_ENFORCES
#define BAD_ENFORCES SY_MUST_KILL_TREE
#endif
static sy_status bad_run(void *self, const struct sy_plan *plan,
                         const struct sy_sink *sink, struct sy_result *out,
                         struct sy_error *err)
{
    struct bad *b = self;
    (void)err;
    BAD_RUN(b, plan, sink);
    out->exit_code = 0;
    return SY_OK;
}

static const struct sy_executor table = {.size = BAD_TABLE_SIZE(struct sy_executor),
                                         .max_parallel = 1,
                                         .enforces = BAD_ENFORCES,
                                         .start = bad_start,
                                         .stop = bad_stop,
                                         .run = bad_run};
#define BAD_ID SY_EXECUTOR_ID
#define BAD_KIND SY_KIND_EXECUTOR
#else
static sy_status bad_send(void *self, const struct sy_outgoing *msg, struct sy_sent *out,
                          struct sy_error *err)
{
    struct bad *b = self;
    (void)err;
    out->outcome = SY_SENT;
    BAD_SEND(b, msg);
    return SY_OK;
}

static const struct sy_channel table = {.size = BAD_TABLE_SIZE(struct sy_channel),
                                        .start = bad_start,
                                        .stop = bad_stop,
                                        .send = bad_send};
#define BAD_ID SY_CHANNEL_ID
#define BAD_KIND SY_KIND_CHANNEL
#endif

#ifndef BAD_QUERY_NULL
#define BAD_QUERY_NULL 0
#endif
static const void *bad_query(void *self, const char *id)
{
    (void)self;
    return !BAD_QUERY_NULL && strcmp(id, BAD_ID) == 0 ? &table : NULL;
}

#ifndef BAD_OWN_ENTRY
const struct sy_plugin soulacy_plugin_v1 = {.size = BAD_ENTRY_SIZE,
                                            .abi_minor = BAD_MIN_MINOR,
                                            .min_host_minor = BAD_MIN_MINOR,
                                            .kind = BAD_KIND,
                                            .name = BAD_NAME,
                                            .version = "1",
                                            .keys = BAD_KEYS,
                                            .create = BAD_CREATE,
                                            .destroy = bad_destroy,
                                            .query = bad_query};
#endif
