/* In: instances the loader made. Out: the list of them, their states, and the bracket
 * around every call into one: a call is let through only while the instance is started
 * and not condemned, and stop() waits for those in flight. It never frees what a thread
 * of a plugin may still touch. */
#include "plugin/internal.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status plugin_registry_new(const struct plugin_registry_config *cfg,
                                struct plugin_registry **out, struct error *err)
{
    struct plugin_registry *r = mem_zalloc(sizeof *r);
    if (r == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    r->cfg = *cfg;
    r->control = pthread_self();
    enum status st = ST_OK;
    if (cfg->plugin_dir == NULL) {
        st = plugin_default_dir(&r->plugin_dir, err);
    } else {
        r->plugin_dir = mem_strdup(cfg->plugin_dir);
        st = r->plugin_dir != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
    }
    if (st != ST_OK) {
        mem_free(r);
        return st;
    }
    *out = r;
    return ST_OK;
}

static void copy_text(char *to, size_t cap, const char *from)
{
    size_t n = strnlen(from, cap - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

struct plugin_instance *plugin_instance_new(const struct plugin_registry *r,
                                            const struct plugin_entry *e,
                                            const struct plugin_file *f,
                                            struct error *err)
{
    struct plugin_instance *p = mem_zalloc(sizeof *p);
    if (p == NULL) {
        goto fail;
    }
    p->path = mem_strdup(f->path);
    if (p->path == NULL || pthread_mutex_init(&p->lock, NULL) != 0) {
        goto fail;
    }
    if (cond_init(&p->idle) != ST_OK) {
        (void)pthread_mutex_destroy(&p->lock);
        goto fail;
    }
    p->magic = PLUGIN_MAGIC;
    p->entry = *e;
    p->own = f->own;
    copy_text(p->name, sizeof p->name, e->p.name);
    copy_text(p->version, sizeof p->version, e->p.version);
    (void)snprintf(p->part, sizeof p->part, "plugin %s", p->name);
    p->services = r->cfg.services;
    p->nservices = r->cfg.nservices;
    p->control = r->control;
    memcpy(p->slots, r->cfg.slots, sizeof p->slots);
    p->grace_ms = r->cfg.grace_ms > 0 ? r->cfg.grace_ms : 1000;
    p->stop_ms = r->cfg.stop_ms > 0 ? r->cfg.stop_ms : 5000;
    p->log = r->cfg.log;
    p->on_condemned = r->cfg.condemned;
    p->condemned_ctx = r->cfg.condemned_ctx;
    plugin_host_init(p);
    return p;
fail:
    if (p != NULL) {
        mem_free(p->path);
    }
    mem_free(p);
    (void)error_set(err, ST_NOMEM, "out of memory");
    return NULL;
}

void plugin_instance_free(struct plugin_instance *p)
{
    if (p == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    bool keep = p->given_up || p->late || p->upcalls > 0;
    p->log = NULL;
    p->on_condemned = NULL;
    (void)pthread_mutex_unlock(&p->lock);
    if (keep) {
        return; /* a thread of the plugin may come back: a small leak beats a crash */
    }
    (void)pthread_cond_destroy(&p->idle);
    (void)pthread_mutex_destroy(&p->lock);
    p->magic = 0;
    mem_free(p->path);
    mem_free(p);
}

enum status plugin_registry_add(struct plugin_registry *r, struct plugin_instance *p,
                                struct error *err)
{
    if (r->n == r->cap) {
        size_t cap = r->cap == 0 ? 8 : r->cap * 2;
        struct plugin_instance **items = mem_array(cap, sizeof *items);
        if (items == NULL) {
            return error_set(err, ST_NOMEM, "out of memory");
        }
        if (r->n > 0) {
            memcpy(items, r->items, r->n * sizeof *items);
        }
        mem_free(r->items);
        r->items = items;
        r->cap = cap;
    }
    r->items[r->n++] = p;
    return ST_OK;
}

void plugin_set_state(struct plugin_instance *p, enum plugin_state s)
{
    (void)pthread_mutex_lock(&p->lock);
    p->state = s;
    (void)pthread_mutex_unlock(&p->lock);
}

enum status plugin_start(struct plugin_instance *p, struct error *err)
{
    struct sy_error e = plugin_error_slot();
    (void)pthread_mutex_lock(&p->lock);
    bool ready = p->state == PLUGIN_LOADED && !p->condemned;
    if (ready) {
        p->state = PLUGIN_STARTING;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (!ready) {
        return error_set(err, ST_INVALID, "plugin %s: not in a state to be started",
                         p->name);
    }
    sy_status st = p->entry.p.kind == SY_KIND_CHANNEL ? p->channel.start(p->self, &e)
                                                      : p->executor.start(p->self, &e);
    if (st == SY_OK) {
        plugin_set_state(p, PLUGIN_STARTED);
        return ST_OK;
    }
    enum status res = plugin_take_error(p, "start()", st, &e, err);
    plugin_set_state(p, PLUGIN_FAILED);
    (void)error_context(err, "plugin %s", p->name);
    return res;
}

/* Wait until *calls has fallen to 0; false when it did not in time. Lock is held. */
static bool wait_none(struct plugin_instance *p, const uint32_t *calls)
{
    int64_t deadline = clock_mono_ms() + p->stop_ms;
    while (*calls > 0) {
        if (!cond_wait_until(&p->idle, &p->lock, deadline) && *calls > 0) {
            return false;
        }
    }
    return true;
}

/* A call never came back: nothing of the plugin is touched any more. */
static void give_up(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->state = PLUGIN_FAILED;
    p->given_up = true;
    (void)pthread_mutex_unlock(&p->lock);
    plugin_misbehaved(p, "a call into it did not return in %lld ms: given up",
                      (long long)p->stop_ms);
}

/* From the last call into it on it may not call either. */
static void seal(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->state = PLUGIN_STOPPED;
    bool idle = wait_none(p, &p->follows);
    bool busy = p->upcalls > 0;
    p->stop_done = idle;
    p->late = p->late || busy;
    (void)pthread_mutex_unlock(&p->lock);
    if (!idle) {
        give_up(p);
    } else if (busy) {
        plugin_misbehaved(p, "a thread of it was in the core when stop() returned");
    }
}

void plugin_stop(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    bool started = p->state == PLUGIN_STARTED;
    bool idle = true;
    if (started) {
        p->state = PLUGIN_STOPPING;
        idle = wait_none(p, &p->downcalls);
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (!started) {
        return;
    }
    if (!idle) {
        give_up(p);
        return;
    }
    if (p->entry.p.kind == SY_KIND_CHANNEL) {
        p->channel.stop(p->self);
    } else {
        p->executor.stop(p->self);
    }
    seal(p);
}

/* Destroy what may be, and free. */
static void end_instance(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    bool destroy = !p->given_up && wait_none(p, &p->follows);
    (void)pthread_mutex_unlock(&p->lock);
    if (destroy) {
        p->entry.p.destroy(p->self);
    }
    (void)pthread_mutex_lock(&p->lock);
    p->state = p->state == PLUGIN_FAILED ? PLUGIN_FAILED : PLUGIN_STOPPED;
    p->stop_done = true;
    p->given_up = !destroy;
    (void)pthread_mutex_unlock(&p->lock);
    plugin_instance_free(p);
}

void plugin_registry_free(struct plugin_registry *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = r->n; i > 0; i--) {
        plugin_stop(r->items[i - 1]);
    }
    for (size_t i = r->n; i > 0; i--) {
        end_instance(r->items[i - 1]);
    }
    mem_free(r->items);
    mem_free(r->plugin_dir);
    mem_free(r);
}

const char *plugin_state_name(enum plugin_state s)
{
    switch (s) {
    case PLUGIN_CREATING:
        return "creating";
    case PLUGIN_LOADED:
        return "loaded";
    case PLUGIN_STARTING:
        return "starting";
    case PLUGIN_STARTED:
        return "started";
    case PLUGIN_STOPPING:
        return "stopping";
    case PLUGIN_STOPPED:
        return "stopped";
    case PLUGIN_FAILED:
        return "failed";
    }
    return "unknown";
}

struct plugin_instance *plugin_find(const struct plugin_registry *r, uint32_t kind,
                                    const char *name)
{
    for (size_t i = 0; i < r->n; i++) {
        struct plugin_instance *p = r->items[i];
        if ((kind == 0 || p->entry.p.kind == kind) && strcmp(p->name, name) == 0) {
            return p;
        }
    }
    return NULL;
}

size_t plugin_count(const struct plugin_registry *r)
{
    return r->n;
}

struct plugin_instance *plugin_at(const struct plugin_registry *r, size_t i)
{
    return i < r->n ? r->items[i] : NULL;
}

const char *plugin_name(const struct plugin_instance *p)
{
    return p->name;
}

const char *plugin_version(const struct plugin_instance *p)
{
    return p->version;
}

const char *plugin_path(const struct plugin_instance *p)
{
    return p->path;
}

uint32_t plugin_kind(const struct plugin_instance *p)
{
    return p->entry.p.kind;
}

bool plugin_is_own(const struct plugin_instance *p)
{
    return p->own;
}

enum plugin_state plugin_state(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    enum plugin_state s = p->state;
    (void)pthread_mutex_unlock(&p->lock);
    return s;
}

bool plugin_condemned(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    bool yes = p->condemned;
    (void)pthread_mutex_unlock(&p->lock);
    return yes;
}

uint64_t plugin_breaches(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    uint64_t n = p->breaches;
    (void)pthread_mutex_unlock(&p->lock);
    return n;
}

int32_t plugin_health(struct plugin_instance *p, char text[256])
{
    (void)pthread_mutex_lock(&p->lock);
    int32_t health = p->health;
    memcpy(text, p->health_text, sizeof p->health_text);
    if (p->condemned || p->state != PLUGIN_STARTED) {
        health = SY_HEALTH_DOWN;
        copy_text(text, 256,
                  p->condemned ? "stopped for misbehaviour"
                               : plugin_state_name(p->state));
    }
    (void)pthread_mutex_unlock(&p->lock);
    return health;
}

void plugin_slot_set(struct plugin_instance *p, enum plugin_slot slot, void *value)
{
    p->slots[slot] = value;
}

void *plugin_slot(const struct plugin_instance *p, enum plugin_slot slot)
{
    return p->slots[slot];
}

void plugin_misbehaved(struct plugin_instance *p, const char *fmt, ...)
{
    char rule[384];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(rule, sizeof rule, fmt, ap);
    va_end(ap);
    (void)pthread_mutex_lock(&p->lock);
    p->breaches++;
    uint64_t n = p->breaches;
    bool now = n > PLUGIN_MAX_BREACHES && !p->condemned;
    p->condemned = p->condemned || now;
    struct log *log = p->log;
    void (*tell)(void *, struct plugin_instance *) = now ? p->on_condemned : NULL;
    void *tell_ctx = p->condemned_ctx;
    (void)pthread_mutex_unlock(&p->lock);
    if (n <= PLUGIN_MAX_BREACHES) {
        log_line(log, LOG_WARN, p->part, "plugin misbehaving: %s", rule);
    } else if (now) {
        log_line(log, LOG_ERROR, p->part,
                 "plugin misbehaving: more than %d breaches: "
                 "it is stopped",
                 PLUGIN_MAX_BREACHES);
    }
    if (tell != NULL) {
        tell(tell_ctx, p);
    }
}

enum status plugin_downcall_begin(struct plugin_instance *p, bool run, struct error *err)
{
    (void)pthread_mutex_lock(&p->lock);
    enum status st = ST_OK;
    if (p->condemned) {
        st = ST_CANCELLED;
        (void)error_set(err, st, "plugin %s: stopped for misbehaviour", p->name);
    } else if (p->state != PLUGIN_STARTED) {
        st = ST_CANCELLED;
        (void)error_set(err, st, "plugin %s: %s", p->name, plugin_state_name(p->state));
    } else if (run && p->runs >= p->executor.max_parallel) {
        st = ST_BUSY;
        (void)error_set(err, st, "executor %s allows %u runs at once", p->name,
                        p->executor.max_parallel);
    } else {
        p->downcalls++;
        p->runs += run ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return st;
}

void plugin_downcall_end(struct plugin_instance *p, bool run)
{
    (void)pthread_mutex_lock(&p->lock);
    p->runs -= run ? 1 : 0;
    p->downcalls--;
    if (p->downcalls == 0) {
        (void)pthread_cond_broadcast(&p->idle);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

bool plugin_call_begin(struct plugin_instance *p, enum plugin_call why)
{
    if (why == PLUGIN_CALL_WORK) {
        struct error ignored;
        return plugin_downcall_begin(p, false, &ignored) == ST_OK;
    }
    (void)pthread_mutex_lock(&p->lock);
    bool may = p->state == PLUGIN_STARTING || p->state == PLUGIN_STARTED ||
               p->state == PLUGIN_STOPPING;
    p->follows += may ? 1 : 0;
    (void)pthread_mutex_unlock(&p->lock);
    return may;
}

void plugin_call_end(struct plugin_instance *p, enum plugin_call why)
{
    if (why == PLUGIN_CALL_WORK) {
        plugin_downcall_end(p, false);
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    p->follows--;
    if (p->follows == 0) {
        (void)pthread_cond_broadcast(&p->idle);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void plugin_check_deadline(struct plugin_instance *p, const char *what,
                           int64_t deadline_ms)
{
    if (deadline_ms != CLOCK_NEVER && clock_mono_ms() > deadline_ms + p->grace_ms) {
        plugin_misbehaved(p, "%s returned after its deadline", what);
    }
}
