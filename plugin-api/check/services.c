/* In: calls of the plugin to the core's services. Out: plain answers, or a failure for
 * each k-th of them. State, threads and texts are checked by the core's own code. */
#include "check.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

bool check_fails(struct check *c)
{
    (void)pthread_mutex_lock(&c->lock);
    c->upcalls++;
    bool fails = c->fail_every > 0 && c->upcalls % c->fail_every == 0;
    (void)pthread_mutex_unlock(&c->lock);
    return fails;
}

struct plugin_instance *check_enter(void *ctx, const char *what, enum plugin_when when,
                                    struct check **c)
{
    struct plugin_instance *p = plugin_upcall_begin(ctx, what, when);
    if (p != NULL) {
        *c = plugin_slot(p, PLUGIN_SLOT_CHANNEL);
    }
    return p;
}

sy_status check_refuse(struct sy_error *err, sy_status st)
{
    const struct error e = {.status = ST_IO,
                            .text = "made to fail by soulacy-plugin-check"};
    (void)plugin_give_error(&e, err);
    return st;
}

static sy_status deliver(void *ctx, const struct sy_message *msgs, size_t n,
                         struct sy_error *err)
{
    struct check *c = NULL;
    struct error why = {.status = ST_OK};
    struct sy_message *copy = NULL;
    struct plugin_instance *p = check_enter(ctx, "deliver", PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return check_refuse(err, SY_E_INVALID);
    }
    struct arena *a = arena_new((size_t)8 * 1024 * 1024);
    if (a == NULL || plugin_take_messages(p, msgs, n, a, &copy, &why) != ST_OK) {
        (void)plugin_give_error(&why, err);
        arena_free(a);
        plugin_upcall_end(p);
        return SY_E_INVALID;
    }
    arena_free(a);
    plugin_upcall_end(p);
    return check_fails(c) ? check_refuse(err, SY_E_BUSY) : SY_OK;
}

static sy_status report(void *ctx, const struct sy_delivery *items, size_t n,
                        struct sy_error *err)
{
    struct check *c = NULL;
    struct error why = {.status = ST_OK};
    struct sy_delivery *copy = NULL;
    struct plugin_instance *p = check_enter(ctx, "report", PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return check_refuse(err, SY_E_INVALID);
    }
    struct arena *a = arena_new((size_t)1024 * 1024);
    bool ok = a != NULL && plugin_take_deliveries(p, items, n, a, &copy, &why) == ST_OK;
    arena_free(a);
    plugin_upcall_end(p);
    if (!ok) {
        (void)plugin_give_error(&why, err);
        return SY_E_INVALID;
    }
    return check_fails(c) ? check_refuse(err, SY_E_IO) : SY_OK;
}

static sy_status fetch(void *ctx, const struct sy_fetch *req, void *out_ctx,
                       int32_t (*out)(void *out_ctx, struct sy_str data),
                       struct sy_fetched *res, struct sy_error *err)
{
    struct check *c = NULL;
    struct sy_fetch f;
    struct plugin_instance *p = check_enter(ctx, "fetch", PLUGIN_FROM_CREATE, &c);
    if (p == NULL) {
        return check_refuse(err, SY_E_INVALID);
    }
    bool ok = plugin_take_struct(p, "fetch", req, sizeof f, &f, sizeof f) &&
              plugin_check_text(p, "fetch: url", f.url, 8192);
    if (ok && (f.nallowed_hosts == 0 || f.method == NULL)) {
        plugin_misbehaved(p, "fetch: no allowed_hosts, or no method");
        ok = false;
    }
    plugin_upcall_end(p);
    if (!ok) {
        return check_refuse(err, SY_E_INVALID);
    }
    res->sent = 1;
    res->retry_after_ms = -1;
    if (check_fails(c)) {
        return check_refuse(err, SY_E_IO);
    }
    res->status = 200;
    if (out != NULL) {
        (void)out(out_ctx, (struct sy_str){"{}", 2});
    }
    return SY_OK;
}

static sy_status gateway_call(void *ctx, const struct sy_gateway_call *call,
                              uint64_t *call_id, struct sy_error *err)
{
    struct check *c = NULL;
    struct sy_gateway_call g;
    struct plugin_instance *p = check_enter(ctx, "call", PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return check_refuse(err, SY_E_INVALID);
    }
    bool ok = plugin_take_struct(p, "call", call, sizeof g, &g, sizeof g) &&
              plugin_check_text(p, "call: op", g.op, 64);
    if (ok && g.line == NULL) {
        plugin_misbehaved(p, "call: no line()");
        ok = false;
    }
    plugin_upcall_end(p);
    if (!ok || check_fails(c)) {
        return check_refuse(err, ok ? SY_E_BUSY : SY_E_INVALID);
    }
    *call_id = 1;
    g.line(g.ctx, SY_LINE_RESULT, (struct sy_str){"{}", 2});
    return SY_OK;
}

static void gateway_cancel(void *ctx, uint64_t call_id)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, "cancel", PLUGIN_FROM_START, &c);
    (void)call_id;
    if (p != NULL) {
        plugin_upcall_end(p);
    }
}

static const struct sy_host_channel channel_service = {
    .size = sizeof channel_service, .deliver = deliver, .report = report};
static const struct sy_host_fetch fetch_service = {.size = sizeof fetch_service,
                                                   .fetch = fetch};
static const struct sy_host_gateway gateway_service = {
    .size = sizeof gateway_service, .call = gateway_call, .cancel = gateway_cancel};

const struct plugin_service *check_services(size_t *n)
{
    static const struct plugin_service services[] = {
        {SY_HOST_CHANNEL_ID, &channel_service},   {SY_HOST_HTTP_ID, &check_http_service},
        {SY_HOST_FETCH_ID, &fetch_service},       {SY_HOST_GATEWAY_ID, &gateway_service},
        {SY_HOST_SPAWN_ID, &check_spawn_service},
    };
    *n = sizeof services / sizeof services[0];
    return services;
}
