/* In: the constant that a plugin exports, and what the core expects of it. Out: a copy
 * that the plugin cannot change any more, or one line that says what is wrong. Pure: it
 * calls nothing in the plugin and reads no further than the sizes it was told. */
#include "plugin/internal.h"

#include "base/utf8.h"

#include <string.h>

#define REQUIRED_SIZE (offsetof(struct sy_plugin, query) + sizeof(void *))
#define KEY_NAME_MAX 64
#define HELP_MAX 1024
#define FALLBACK_MAX 4096

/* Keys the core itself reads in a channel's mapping. */
static const char *const channel_keys[] = {"enabled",          "trigger_phrase",
                                           "ignore_groups",    "allow_local",
                                           "allowed_user_ids", "allowed_chat_ids"};

static const struct {
    const char *name;
    uint32_t kind;
} reserved[] = {
    {"process", SY_KIND_EXECUTOR}, {"pool", SY_KIND_EXECUTOR},
    {"docker", SY_KIND_EXECUTOR},  {"ssh", SY_KIND_EXECUTOR},
    {"http", SY_KIND_CHANNEL},     {"whatsapp", SY_KIND_CHANNEL},
};

bool plugin_reserved_name(const char *name, uint32_t *kind)
{
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (strcmp(reserved[i].name, name) == 0) {
            *kind = reserved[i].kind;
            return true;
        }
    }
    return false;
}

static const char *plugin_kind_name(uint32_t kind)
{
    return kind == SY_KIND_CHANNEL ? "a channel" : "an executor";
}

/* A lower-case letter, then letters, digits and `also`; at most max bytes. */
static bool name_ok(const char *name, size_t max, char also)
{
    size_t n = strnlen(name, max + 1);
    if (n == 0 || n > max || name[0] < 'a' || name[0] > 'z') {
        return false;
    }
    for (size_t i = 1; i < n; i++) {
        bool letter = name[i] >= 'a' && name[i] <= 'z';
        bool digit = name[i] >= '0' && name[i] <= '9';
        if (!letter && !digit && name[i] != also) {
            return false;
        }
    }
    return true;
}

static bool text_ok(const char *text, size_t max)
{
    size_t n = strnlen(text, max + 1);
    return n <= max && utf8_valid(str_n(text, n));
}

/* The start of a name that is wrong, for people. */
static void printable(const char *name, char out[PLUGIN_NAME_MAX + 1])
{
    size_t n = strnlen(name, PLUGIN_NAME_MAX);
    for (size_t i = 0; i < n; i++) {
        out[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
    }
    out[n] = '\0';
}

static enum status check_shape(const struct sy_plugin *p,
                               const struct plugin_expect *want, struct error *err)
{
    if (p->min_host_minor > want->host_minor) {
        return error_set(err, ST_UNSUPPORTED,
                         "needs a core with ABI %u.%u, this one has %u.%u", SY_ABI_MAJOR,
                         p->min_host_minor, SY_ABI_MAJOR, want->host_minor);
    }
    if (p->min_host_minor > p->abi_minor) {
        return error_set(err, ST_INVALID,
                         "min_host_minor %u is above the minor it was built against, %u",
                         p->min_host_minor, p->abi_minor);
    }
    if (p->create == NULL || p->destroy == NULL || p->query == NULL) {
        const char *what = p->create == NULL    ? "create"
                           : p->destroy == NULL ? "destroy"
                                                : "query";
        return error_set(err, ST_INVALID, "its entry has no %s()", what);
    }
    if (p->kind != SY_KIND_CHANNEL && p->kind != SY_KIND_EXECUTOR) {
        return error_set(err, ST_UNSUPPORTED, "kind %u is unknown to this core", p->kind);
    }
    if (want->kind != 0 && p->kind != want->kind) {
        return error_set(err, ST_INVALID, "is %s, the configuration uses it as %s",
                         plugin_kind_name(p->kind), plugin_kind_name(want->kind));
    }
    return ST_OK;
}

static enum status check_name(const struct sy_plugin *p, const struct plugin_expect *want,
                              struct error *err)
{
    uint32_t kind = 0;
    if (p->name == NULL) {
        return error_set(err, ST_INVALID, "its entry has no name");
    }
    if (!name_ok(p->name, PLUGIN_NAME_MAX, '-')) {
        char shown[PLUGIN_NAME_MAX + 1];
        printable(p->name, shown);
        return error_set(err, ST_INVALID, "name '%s' is not [a-z][a-z0-9-]{0,31}", shown);
    }
    if (want->name != NULL && strcmp(want->name, p->name) != 0) {
        return error_set(err, ST_INVALID,
                         "is named '%s', the configuration names it '%s'", p->name,
                         want->name);
    }
    if (plugin_reserved_name(p->name, &kind) && (!want->own_dir || kind != p->kind)) {
        return error_set(err, ST_REFUSED,
                         "name '%s' is reserved for soulacy's own plugin", p->name);
    }
    for (size_t i = 0; i < want->ntaken; i++) {
        if (strcmp(want->taken[i], p->name) == 0) {
            return error_set(err, ST_CONFLICT,
                             "name '%s' is taken by a plugin loaded before", p->name);
        }
    }
    if (p->version == NULL || !text_ok(p->version, 64)) {
        return error_set(err, ST_INVALID,
                         "version is missing or no text of at most 64 bytes");
    }
    return ST_OK;
}

static bool key_is_cores(const struct sy_plugin *p, const char *name)
{
    size_t n = sizeof channel_keys / sizeof channel_keys[0];
    for (size_t i = 0; p->kind == SY_KIND_CHANNEL && i < n; i++) {
        if (strcmp(channel_keys[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static enum status check_key(const struct sy_plugin *p, size_t i, struct error *err)
{
    const struct sy_cfg_key *k = &p->keys[i];
    if (!name_ok(k->name, KEY_NAME_MAX, '_')) {
        return error_set(err, ST_INVALID, "key %zu: name is not [a-z][a-z0-9_]{0,63}", i);
    }
    if (key_is_cores(p, k->name)) {
        return error_set(err, ST_INVALID, "key '%s': the core's own key of every channel",
                         k->name);
    }
    for (size_t j = 0; j < i; j++) {
        if (strcmp(p->keys[j].name, k->name) == 0) {
            return error_set(err, ST_INVALID, "key '%s' is there twice", k->name);
        }
    }
    if (k->type < SY_CFG_STR || k->type > SY_CFG_JSON) {
        return error_set(err, ST_UNSUPPORTED, "key '%s': type %u is unknown to this core",
                         k->name, k->type);
    }
    if (k->required > 1 || (k->required == 1 && k->fallback != NULL)) {
        return error_set(err, ST_INVALID,
                         "key '%s': required is 0 or 1, and then without "
                         "a fallback",
                         k->name);
    }
    if (k->fallback != NULL &&
        (k->type == SY_CFG_SECRET || !text_ok(k->fallback, FALLBACK_MAX))) {
        return error_set(err, ST_INVALID, "key '%s': no fallback can be used for it",
                         k->name);
    }
    if (k->help == NULL || k->help[0] == '\0' || !text_ok(k->help, HELP_MAX)) {
        return error_set(err, ST_INVALID, "key '%s': help is missing or no text",
                         k->name);
    }
    return ST_OK;
}

static enum status check_keys(struct plugin_entry *e, struct error *err)
{
    e->nkeys = 0;
    if (e->p.keys == NULL) {
        return ST_OK;
    }
    for (size_t i = 0; e->p.keys[i].name != NULL; i++) {
        if (i >= PLUGIN_MAX_KEYS) {
            return error_set(err, ST_INVALID,
                             "more than %d keys, or no end of their table",
                             PLUGIN_MAX_KEYS);
        }
        enum status st = check_key(&e->p, i, err);
        if (st != ST_OK) {
            return st;
        }
        e->nkeys = i + 1;
    }
    return ST_OK;
}

enum status plugin_entry_check(const void *symbol, const struct plugin_expect *want,
                               struct plugin_entry *out, struct error *err)
{
    struct plugin_entry e;
    uint32_t size = 0;
    memset(&e, 0, sizeof e);
    memcpy(&size, symbol, sizeof size);
    if (size < REQUIRED_SIZE) {
        return error_set(err, ST_INVALID,
                         "its entry is %u bytes long, at least %zu are needed", size,
                         REQUIRED_SIZE);
    }
    memcpy(&e.p, symbol, size < sizeof e.p ? size : sizeof e.p);
    enum status st = check_shape(&e.p, want, err);
    if (st == ST_OK) {
        st = check_name(&e.p, want, err);
    }
    if (st == ST_OK) {
        st = check_keys(&e, err);
    }
    if (st == ST_OK) {
        *out = e;
    }
    return st;
}
