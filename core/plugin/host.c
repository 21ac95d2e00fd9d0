/* In: what a plugin says through struct sy_host. Out: log lines under its name, its
 * health, and the service tables its kind is granted. Deny by default: an id that has no
 * row in `grants` is given to nobody. */
#include "plugin/internal.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <string.h>

#define LINE_MAX_BYTES 4096

/* The whole policy on services. `only`: a name, and the file must be our own. */
static const struct {
    const char *id;
    uint32_t kind;
    const char *only;
} grants[] = {
    {SY_HOST_CHANNEL_ID, SY_KIND_CHANNEL, NULL},
    {SY_HOST_HTTP_ID, SY_KIND_CHANNEL, NULL},
    {SY_HOST_FETCH_ID, SY_KIND_CHANNEL, NULL},
    {SY_HOST_SPAWN_ID, SY_KIND_EXECUTOR, NULL},
    {SY_HOST_GATEWAY_ID, SY_KIND_CHANNEL, "http"},
};

static bool granted(const struct plugin_instance *p, const char *id)
{
    for (size_t i = 0; i < sizeof grants / sizeof grants[0]; i++) {
        if (strcmp(grants[i].id, id) == 0 && grants[i].kind == p->entry.p.kind) {
            return grants[i].only == NULL ||
                   (p->own && strcmp(grants[i].only, p->name) == 0);
        }
    }
    return false;
}

/* The first cap bytes of what a plugin says, fit for a terminal, never half a character. */
static void visible(struct sy_str s, size_t cap, struct buf *out)
{
    struct str view = str_n(s.ptr, s.len);
    if (view.len > cap) {
        view.len = cap;
        for (int i = 0; i < 3 && ((unsigned char)s.ptr[view.len] & 0xC0) == 0x80; i++) {
            view.len--;
        }
    }
    utf8_append_visible(out, view, false);
}

static bool span_ok(struct plugin_instance *p, const char *what, struct sy_str s)
{
    if (s.ptr == NULL && s.len > 0) {
        plugin_misbehaved(p, "%s: a length but no bytes", what);
        return false;
    }
    return true;
}

static void host_log(void *ctx, int32_t level, struct sy_str line)
{
    struct buf b;
    struct plugin_instance *p = plugin_upcall_begin(ctx, "log", PLUGIN_FROM_CREATE);
    if (p == NULL) {
        return;
    }
    if (span_ok(p, "log", line)) {
        enum log_level at =
            level >= LOG_DEBUG && level <= LOG_ERROR ? (enum log_level)level : LOG_INFO;
        buf_init(&b, (size_t)8 * LINE_MAX_BYTES);
        visible(line, LINE_MAX_BYTES, &b);
        log_line(p->log, at, p->part, "%.*s", STR_ARG(buf_str(&b)));
        buf_done(&b);
    }
    plugin_upcall_end(p);
}

static const void *host_service(void *ctx, const char *id)
{
    const void *table = NULL;
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "service", PLUGIN_FROM_CREATE_CORE);
    if (p == NULL) {
        return NULL;
    }
    if (id == NULL || strnlen(id, 65) > 64) {
        plugin_misbehaved(p, "service: no id, or one over 64 bytes");
    } else if (granted(p, id)) {
        for (size_t i = 0; i < p->nservices; i++) {
            if (strcmp(p->services[i].id, id) == 0) {
                table = p->services[i].table;
            }
        }
    }
    plugin_upcall_end(p);
    return table;
}

static void host_health(void *ctx, int32_t state, struct sy_str text)
{
    struct buf b;
    struct plugin_instance *p = plugin_upcall_begin(ctx, "health", PLUGIN_FROM_CREATE);
    if (p == NULL) {
        return;
    }
    if (state < SY_HEALTH_OK || state > SY_HEALTH_DOWN) {
        plugin_misbehaved(p, "health: state %d is unknown", (int)state);
    } else if (span_ok(p, "health", text)) {
        buf_init(&b, sizeof p->health_text - 1);
        visible(text, 120, &b);
        struct str s = buf_str(&b);
        (void)pthread_mutex_lock(&p->lock);
        p->health = state;
        memcpy(p->health_text, s.ptr, s.len);
        p->health_text[s.len] = '\0';
        (void)pthread_mutex_unlock(&p->lock);
        buf_done(&b);
    }
    plugin_upcall_end(p);
}

static int64_t host_now_ms(void *ctx)
{
    (void)ctx;
    return clock_mono_ms();
}

void plugin_host_init(struct plugin_instance *p)
{
    p->host.size = sizeof p->host;
    p->host.abi_minor = SY_ABI_MINOR;
    p->host.ctx = p;
    p->host.log = host_log;
    p->host.service = host_service;
    p->host.health = host_health;
    p->host.now_ms = host_now_ms;
}
