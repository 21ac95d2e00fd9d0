/* In: calls of a plugin into the core and what it hands over. Out: the instance behind
 * them and checked copies, or a counted breach. Nothing from a plugin is used before it
 * went through here: not its sizes, spans, text, nor its error lines. */
#include "plugin/internal.h"

#include "base/utf8.h"

#include <string.h>

#define ID_MAX 512
#define TEXT_MAX ((size_t)1024 * 1024)
#define SENDER_IDS_MAX 16
#define ATTACHMENTS_MAX 32
#define BATCH_MAX 1024
#define CAPTION_MAX 4096
/* A newer plugin's struct may be longer than ours, but not by so much. */
#define STRUCT_MAX 4096

/* May a call come in this state? */
static bool state_allows(const struct plugin_instance *p, enum plugin_when when)
{
    if (p->stop_done) {
        return false;
    }
    if (when != PLUGIN_FROM_START) {
        return true;
    }
    return p->state == PLUGIN_STARTING || p->state == PLUGIN_STARTED ||
           p->state == PLUGIN_STOPPING;
}

struct plugin_instance *plugin_upcall_begin(void *ctx, const char *what,
                                            enum plugin_when when)
{
    struct plugin_instance *p = ctx;
    if (p == NULL || p->magic != PLUGIN_MAGIC) {
        return NULL; /* whose it was cannot be told */
    }
    (void)pthread_mutex_lock(&p->lock);
    bool allowed = state_allows(p, when);
    bool late = p->stop_done;
    bool take = allowed && !p->condemned;
    if (late) {
        p->late = true;
    }
    if (take) {
        p->upcalls++;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (!allowed) {
        plugin_misbehaved(p,
                          late ? "%s: called after stop() had returned"
                               : "%s: called before start()",
                          what);
        return NULL;
    }
    if (take && when == PLUGIN_FROM_CREATE_CORE &&
        !pthread_equal(p->control, pthread_self())) {
        plugin_misbehaved(p, "%s: called off the control thread", what);
        plugin_upcall_end(p);
        return NULL;
    }
    return take ? p : NULL;
}

void plugin_upcall_end(struct plugin_instance *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->upcalls--;
    (void)pthread_mutex_unlock(&p->lock);
}

/* NULL, or what is wrong with the span. */
static const char *text_fault(struct sy_str s, size_t max)
{
    if (s.ptr == NULL && s.len > 0) {
        return "has a length but no bytes";
    }
    if (s.len > max) {
        return "is too long";
    }
    return utf8_valid(str_n(s.ptr, s.len)) ? NULL : "is not UTF-8";
}

bool plugin_check_text(struct plugin_instance *p, const char *what, struct sy_str s,
                       size_t max)
{
    const char *fault = text_fault(s, max);
    if (fault != NULL) {
        plugin_misbehaved(p, "%s %s", what, fault);
    }
    return fault == NULL;
}

bool plugin_take_struct(struct plugin_instance *p, const char *what, const void *in,
                        size_t required, void *out, size_t n)
{
    uint32_t size = 0;
    if (in == NULL) {
        plugin_misbehaved(p, "%s: NULL", what);
        return false;
    }
    memcpy(&size, in, sizeof size);
    if (size < required) {
        plugin_misbehaved(p, "%s: %u bytes long, at least %zu are needed", what, size,
                          required);
        return false;
    }
    memset(out, 0, n);
    memcpy(out, in, size < n ? size : n);
    return true;
}

/* One rule broken by an element of an array: told to the plugin and counted. */
static enum status element_fault(struct plugin_instance *p, const char *call, size_t i,
                                 const char *member, const char *fault, struct error *err)
{
    enum status st =
        error_set(err, ST_INVALID, "%s: item %zu: %s %s", call, i, member, fault);
    plugin_misbehaved(p, "%s: item %zu: %s %s", call, i, member, fault);
    return st;
}

static const char *attachment_fault(const struct sy_attachment *a)
{
    if (a->fd < 0 || a->kind > SY_MEDIA_VIDEO) {
        return "has no file, or an unknown kind";
    }
    const char *fault = text_fault(a->mime, ID_MAX);
    fault = fault == NULL ? text_fault(a->name, ID_MAX) : fault;
    return fault == NULL ? text_fault(a->caption, CAPTION_MAX) : fault;
}

static enum status check_message(struct plugin_instance *p, size_t i,
                                 const struct sy_message *m, struct error *err)
{
    const struct {
        const char *name;
        struct sy_str s;
        size_t max;
    } texts[] = {
        {"id", m->id, ID_MAX},
        {"account", m->account, ID_MAX},
        {"conversation", m->conversation, ID_MAX},
        {"sender", m->sender, ID_MAX},
        {"sender_name", m->sender_name, ID_MAX},
        {"agent", m->agent, ID_MAX},
        {"reply_to", m->reply_to, ID_MAX},
        {"text", m->text, TEXT_MAX},
    };
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        const char *fault = text_fault(texts[k].s, texts[k].max);
        if (fault != NULL) {
            return element_fault(p, "deliver", i, texts[k].name, fault, err);
        }
    }
    if (m->chat > SY_CHAT_GROUP) {
        return element_fault(p, "deliver", i, "chat", "is unknown", err);
    }
    if (m->nsender_ids > SENDER_IDS_MAX ||
        (m->nsender_ids > 0 && m->sender_ids == NULL)) {
        return element_fault(p, "deliver", i, "sender_ids", "are too many, or NULL", err);
    }
    for (size_t k = 0; k < m->nsender_ids; k++) {
        const char *fault = text_fault(m->sender_ids[k], ID_MAX);
        if (fault != NULL) {
            return element_fault(p, "deliver", i, "sender_ids", fault, err);
        }
    }
    if (m->nattachments > ATTACHMENTS_MAX ||
        (m->nattachments > 0 && m->attachments == NULL)) {
        return element_fault(p, "deliver", i, "attachments", "are too many, or NULL",
                             err);
    }
    for (size_t k = 0; k < m->nattachments; k++) {
        const char *fault = attachment_fault(&m->attachments[k]);
        if (fault != NULL) {
            return element_fault(p, "deliver", i, "attachments", fault, err);
        }
    }
    return ST_OK;
}

static enum status check_delivery(struct plugin_instance *p, size_t i,
                                  const struct sy_delivery *d, struct error *err)
{
    const struct {
        const char *name;
        struct sy_str s;
        size_t max;
    } texts[] = {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an element */
        {"transport_id", d->transport_id, ID_MAX},
        {"reference", d->reference, ID_MAX},
        {"account", d->account, ID_MAX},
        {"reason", d->reason, CAPTION_MAX},
    };
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        const char *fault = text_fault(texts[k].s, texts[k].max);
        if (fault != NULL) {
            return element_fault(p, "report", i, texts[k].name, fault, err);
        }
    }
    if (d->state < SY_DELIVERY_SENT || d->state > SY_DELIVERY_FAILED) {
        return element_fault(p, "report", i, "state", "is unknown", err);
    }
    return ST_OK;
}

/* Copy n elements whose stride is the size the first one gives into *out, width bytes
 * each. */
static enum status take_array(struct plugin_instance *p, const char *call, const void *in,
                              size_t n, size_t required, size_t width, struct arena *a,
                              char **out, struct error *err)
{
    uint32_t stride = 0;
    if (in == NULL || n == 0 || n > BATCH_MAX) {
        plugin_misbehaved(p, "%s: NULL, no items, or more than %d", call, BATCH_MAX);
        return error_set(err, ST_INVALID, "%s: NULL, no items, or more than %d", call,
                         BATCH_MAX);
    }
    memcpy(&stride, in, sizeof stride);
    if (stride < required || stride > STRUCT_MAX || stride % sizeof(void *) != 0) {
        plugin_misbehaved(p, "%s: items are %u bytes long, at least %zu are needed", call,
                          stride, required);
        return error_set(err, ST_INVALID, "%s: size of the items", call);
    }
    char *copy = arena_array(a, n, width);
    if (copy == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t size = 0;
        const char *item = (const char *)in + i * stride;
        memcpy(&size, item, sizeof size);
        if (size != stride) {
            return element_fault(p, call, i, "size", "differs from the first item's",
                                 err);
        }
        memcpy(copy + i * width, item, stride < width ? stride : width);
    }
    *out = copy;
    return ST_OK;
}

enum status plugin_take_messages(struct plugin_instance *p, const struct sy_message *in,
                                 size_t n, struct arena *a, struct sy_message **out,
                                 struct error *err)
{
    char *raw = NULL;
    enum status st =
        take_array(p, "deliver", in, n, sizeof *in, sizeof *in, a, &raw, err);
    if (st != ST_OK) {
        return st;
    }
    struct sy_message *copy = (void *)raw;
    for (size_t i = 0; i < n; i++) {
        st = check_message(p, i, &copy[i], err);
        if (st != ST_OK) {
            return st;
        }
    }
    *out = copy;
    return ST_OK;
}

enum status plugin_take_deliveries(struct plugin_instance *p,
                                   const struct sy_delivery *in, size_t n,
                                   struct arena *a, struct sy_delivery **out,
                                   struct error *err)
{
    char *raw = NULL;
    enum status st = take_array(p, "report", in, n, sizeof *in, sizeof *in, a, &raw, err);
    if (st != ST_OK) {
        return st;
    }
    struct sy_delivery *copy = (void *)raw;
    for (size_t i = 0; i < n; i++) {
        st = check_delivery(p, i, &copy[i], err);
        if (st != ST_OK) {
            return st;
        }
    }
    *out = copy;
    return ST_OK;
}

static sy_status crossing(enum status st)
{
    switch ((int)st) {
    case ST_NOT_FOUND:
    case ST_TOO_LARGE:
        return SY_E_INVALID;
    case ST_CONFLICT:
        return SY_E_REFUSED;
    default:
        return st > ST_OK || st < ST_INTERNAL ? SY_E_INTERNAL : (sy_status)st;
    }
}

sy_status plugin_give_error(const struct error *err, struct sy_error *out)
{
    if (out != NULL && out->size >= sizeof *out) {
        size_t n = strnlen(err->text, sizeof err->text);
        if (n > sizeof out->text - 1) {
            n = utf8_cut(str_n(err->text, n), sizeof out->text - 1);
        }
        out->os_errno = err->os_errno;
        memcpy(out->text, err->text, n);
        out->text[n] = '\0';
    }
    return crossing(err->status);
}

struct sy_error plugin_error_slot(void)
{
    struct sy_error e;
    memset(&e, 0, sizeof e);
    e.size = sizeof e;
    return e;
}

enum status plugin_take_error(struct plugin_instance *p, const char *what, sy_status st,
                              const struct sy_error *from, struct error *err)
{
    enum status res = (enum status)st;
    if (st > SY_OK) {
        plugin_misbehaved(p, "%s answered %d, which is no status", what, (int)st);
        res = ST_INTERNAL;
    } else if (st < SY_E_INTERNAL) {
        res = ST_INTERNAL; /* a later minor's value */
    }
    struct buf b;
    buf_init(&b, 512);
    utf8_append_visible(&b, str_n(from->text, strnlen(from->text, sizeof from->text)),
                        false);
    struct str text = buf_str(&b);
    (void)error_set(err, res, "%s failed: %.*s", what,
                    text.len > 0 ? (int)text.len : (int)sizeof "no reason given" - 1,
                    text.len > 0 ? text.ptr : "no reason given");
    if (err != NULL) {
        err->os_errno = from->os_errno;
    }
    buf_done(&b);
    return res;
}
