/* The configuration's plugins in, instances that are loaded, started and stopped out: which
 * ones are needed, what services they are granted, what follows when one fails. */
#include "base/mem.h"
#include "config/plugin_values.h"
#include "runtime/internal.h"

#include <string.h>

static enum status plugin_values(void *ctx, uint32_t kind, const char *name,
                                 const struct sy_cfg_key *keys, size_t nkeys,
                                 struct arena *arena, const struct sy_cfg_value **out,
                                 size_t *nout, struct error *err)
{
    struct runtime *r = ctx;
    struct sy_cfg_value *values = NULL;
    struct problems probs;
    enum status st;

    (void)nkeys;
    problems_init(&probs, arena, r->cfg->file != NULL ? r->cfg->file : "(defaults)");
    st = config_plugin_values(r->cfg, name, kind, keys, arena, &probs, &values, nout);
    *out = values;
    if (st != ST_OK && probs.first != NULL) {
        const struct problem *p = probs.first;

        return error_set(err, st, "%s:%u:%u: %s", probs.file, p->pos.line, p->pos.column,
                         p->text);
    }
    return st == ST_OK ? ST_OK : error_set(err, st, "its configuration cannot be read");
}

static void on_condemned(void *ctx, struct plugin_instance *p)
{
    struct runtime *r = ctx;

    (void)p;
    event_fire(&r->condemned);
}

enum status runtime_open_registry(struct runtime *r, struct error *err)
{
    struct plugin_registry_config cfg = {.log = r->log,
                                         .plugin_dir = r->cfg->plugin_dir,
                                         .services = r->services,
                                         .nservices = RUNTIME_SERVICES,
                                         .slots = {[PLUGIN_SLOT_SPAWN] = r->launches,
                                                   [PLUGIN_SLOT_HTTP] = r->server,
                                                   [PLUGIN_SLOT_GATEWAY] = r->ops},
                                         .values = plugin_values,
                                         .values_ctx = r,
                                         .condemned = on_condemned,
                                         .condemned_ctx = r};

    r->services[0] = (struct plugin_service){SY_HOST_SPAWN_ID, launch_spawn_service()};
    r->services[1] = (struct plugin_service){SY_HOST_HTTP_ID, server_http_service()};
    r->services[2] = (struct plugin_service){SY_HOST_GATEWAY_ID, ops_service()};
    return plugin_registry_new(&cfg, &r->plugins, err);
}

/* Load one; `needed` says whether the gateway can do without it. */
static enum status load_one(struct runtime *r, const struct plugin_spec *spec,
                            bool needed, struct error *err)
{
    struct error why = {0};
    enum status st = plugin_load(r->plugins, spec, NULL, &why);

    if (st != ST_OK) {
        log_line(r->log, LOG_ERROR, "plugins", "%s", why.text);
        if (needed) {
            *err = why;
        }
        return needed ? st : ST_OK;
    }
    return ST_OK;
}

/* A backend that cannot keep what the configuration asks for is found out now, not at the
 * first call. */
static enum status check_enforces(struct runtime *r, const char *name, struct error *err)
{
    struct plugin_instance *p = plugin_find(r->plugins, SY_KIND_EXECUTOR, name);
    uint64_t missing =
        p != NULL ? plan_must(r->cfg) & ~plugin_executor_enforces(p) : UINT64_C(0);
    struct buf bits;

    if (missing == 0) {
        return ST_OK;
    }
    buf_init(&bits, 512);
    plugin_must_names(missing, &bits);
    (void)error_set(err, ST_REFUSED,
                    "executor %s cannot enforce what runtime.sandbox asks for: %s", name,
                    buf_str(&bits).ptr);
    buf_done(&bits);
    return ST_REFUSED;
}

static enum status load_executors(struct runtime *r, struct error *err)
{
    const struct config *c = r->cfg;
    struct plugin_spec spec = {.kind = SY_KIND_EXECUTOR};
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < c->executor.allowed_backends.n; i++) {
        const char *name = c->executor.allowed_backends.items[i];

        spec.path = spec.name = name;
        if (plugin_find(r->plugins, SY_KIND_EXECUTOR, name) == NULL) {
            st = load_one(r, &spec, strcmp(name, c->executor.backend) == 0, err);
        }
    }
    return st == ST_OK ? check_enforces(r, c->executor.backend, err) : st;
}

enum status runtime_load_plugins(struct runtime *r, struct error *err)
{
    const struct config *c = r->cfg;
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < c->nplugins; i++) {
        struct plugin_spec spec = {.path = c->plugins[i].path,
                                   .sha256 = c->plugins[i].sha256};

        st = load_one(r, &spec, c->plugins[i].critical, err);
    }
    if (st == ST_OK) {
        st = load_executors(r, err);
    }
    for (size_t i = 0; st == ST_OK && r->mode == RUNTIME_SERVE && i < c->nchannels; i++) {
        struct plugin_spec spec = {.path = c->channels[i].name,
                                   .kind = SY_KIND_CHANNEL,
                                   .name = c->channels[i].name};

        if (c->channels[i].enabled &&
            plugin_find(r->plugins, SY_KIND_CHANNEL, spec.name) == NULL) {
            st = load_one(r, &spec, false, err);
        }
    }
    return st;
}

enum status runtime_start_plugins(struct runtime *r, struct error *err)
{
    for (size_t i = 0; i < plugin_count(r->plugins); i++) {
        struct plugin_instance *p = plugin_at(r->plugins, i);
        struct error why = {0};

        if (r->mode != RUNTIME_SERVE && plugin_kind(p) != SY_KIND_EXECUTOR) {
            continue;
        }
        if (plugin_start(p, &why) != ST_OK) {
            log_line(r->log, LOG_ERROR, "plugins", "%s", why.text);
            if (strcmp(plugin_name(p), r->cfg->executor.backend) == 0 &&
                plugin_kind(p) == SY_KIND_EXECUTOR) {
                *err = why;
                return err->status;
            }
        }
    }
    return ST_OK;
}

void runtime_stop_plugins(struct runtime *r)
{
    for (size_t i = plugin_count(r->plugins); i > 0; i--) {
        plugin_stop(plugin_at(r->plugins, i - 1));
    }
}

void runtime_stop_condemned(struct runtime *r)
{
    event_clear(&r->condemned);
    for (size_t i = 0; i < plugin_count(r->plugins); i++) {
        struct plugin_instance *p = plugin_at(r->plugins, i);

        if (plugin_condemned(p) && plugin_state(p) == PLUGIN_STARTED) {
            log_line(r->log, LOG_ERROR, "plugins", "%s is stopped for misbehaving",
                     plugin_name(p));
            plugin_stop(p);
        }
    }
}
