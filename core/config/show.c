/* `config show`. In: a configuration. Out: every key with its value and where it came
 * from, as YAML or JSON. Never prints a secret, a header's value or a plugin's key whose
 * kind it does not know: "(set)" or "(not set)" stands for them. */
#include "config/env.h"
#include "config/keys.h"

#include "base/json.h"

#include <string.h>

struct shower {
    const struct config *cfg;
    struct buf *out;
    bool json, first;
};

static const char *origin_name(const struct yaml_node *n)
{
    if (n == NULL || n->kind == YAML_NULL || n->origin == YAML_FROM_DEFAULT) {
        return "default";
    }
    return n->origin == YAML_FROM_ENV ? "environment" : "file";
}

static void put_text(struct buf *b, const char *s)
{
    if (s == NULL) {
        buf_add_c(b, "null");
    } else {
        json_add_string(b, str_c(s));
    }
}

static void put_duration(struct buf *b, int64_t ms)
{
    if (ms % 1000 == 0) {
        buf_addf(b, "\"%llds\"", (long long)(ms / 1000));
    } else {
        buf_addf(b, "\"%lldms\"", (long long)ms);
    }
}

/* Lists; with names_only what is behind the name is left out. */
static void put_list(struct buf *b, const struct str_list *l, bool names_only)
{
    buf_add_char(b, '[');
    for (size_t i = 0; i < l->n; i++) {
        struct str item = str_c(l->items[i]);
        size_t name = 0;
        while (names_only && name < item.len && item.ptr[name] != ':' &&
               item.ptr[name] != '=') {
            name++;
        }
        buf_add_c(b, i == 0 ? "" : ", ");
        if (names_only) {
            struct buf text;
            buf_init(&text, YAML_MAX_BYTES * 2);
            buf_addf(&text, "%.*s: (set)", STR_ARG(str_n(item.ptr, name)));
            put_text(b, text.ptr);
            buf_done(&text);
        } else {
            json_add_string(b, item);
        }
    }
    buf_add_char(b, ']');
}

static void put_node(struct buf *b, const struct key *k, const struct yaml_node *n)
{
    bool set = n != NULL && n->kind != YAML_NULL;
    if (k->type == K_SECRET) {
        buf_add_c(b, set ? "\"(set)\"" : "\"(not set)\"");
    } else if (!set) {
        buf_add_c(b, "null");
    } else {
        struct buf json;
        buf_init(&json, YAML_MAX_BYTES * 2);
        struct yaml_node copy = *n;
        copy.quoted = n->quoted || k->type == K_STR || k->type == K_PATH;
        if (yaml_to_json(&copy, &json) == ST_OK) {
            buf_add_str(b, buf_str(&json));
        }
        buf_done(&json);
    }
}

/* base + offset holds the member of k. */
static void put_value(struct buf *b, const struct key *k, const void *at)
{
    const struct secret *secret = at;
    const struct str_list *list = at;
    char *text = NULL;
    int64_t number = 0;
    unsigned choice = 0;
    bool flag = false;
    switch (k->type) {
    case K_STR:
    case K_CHOICE:
    case K_PATH:
        memcpy(&text, at, sizeof(text));
        put_text(b, text);
        break;
    case K_ENUM:
        memcpy(&choice, at, sizeof(choice));
        put_text(b, k->choices[choice]);
        break;
    case K_INT:
        memcpy(&number, at, sizeof(number));
        buf_addf(b, "%lld", (long long)number);
        break;
    case K_DURATION:
        memcpy(&number, at, sizeof(number));
        put_duration(b, number);
        break;
    case K_BOOL:
        memcpy(&flag, at, sizeof(flag));
        buf_add_c(b, flag ? "true" : "false");
        break;
    case K_SECRET:
        buf_add_c(b, secret_is_set(secret) ? "\"(set)\"" : "\"(not set)\"");
        break;
    case K_LIST:
    case K_PATHS:
        put_list(b, list, false);
        break;
    case K_HEADERS:
    case K_ENVIRON:
        put_list(b, list, true);
        break;
    case K_DOUBLE:
    case K_OPT_LIST:
    case K_TREE:
    case K_GROUP:
        buf_add_c(b, "null");
        break;
    }
}

/* One line, once its value has been written to value. */
static void put_line(struct shower *x, const char *prefix, const char *path,
                     const struct buf *value, const char *origin)
{
    struct buf *b = x->out;
    if (!x->json) {
        buf_addf(b, "%s%s: %s # %s\n", prefix, path, value->ptr, origin);
        return;
    }
    struct buf name;
    buf_init(&name, 4096);
    buf_addf(&name, "%s%s", prefix, path);
    buf_add_c(b, x->first ? "" : ",");
    json_add_string(b, buf_str(&name));
    buf_addf(b, ":{\"value\":%s,\"from\":\"%s\"}", value->ptr, origin);
    x->first = false;
    buf_done(&name);
}

static void show_table(struct shower *x, const struct key_table *t, const char *prefix,
                       const struct yaml_node *map, const void *base)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct key *k = &t->keys[i];
        if (k->type == K_GROUP) {
            continue;
        }
        const struct yaml_node *n = key_node(map, k->path);
        struct buf value;
        buf_init(&value, YAML_MAX_BYTES * 8);
        if ((k->flags & KEY_NODE) != 0) {
            put_node(&value, k, n);
        } else {
            put_value(&value, k, (const char *)base + k->offset);
        }
        if (buf_status(&value) != ST_OK) {
            x->out->failed = buf_status(&value);
        }
        const char *origin = origin_name(n);
        if (k->type == K_SECRET && n == NULL && base != NULL &&
            strstr(value.ptr, "(set)")) {
            origin = "environment"; /* <NAME>_API_KEY */
        }
        put_line(x, prefix, k->path, &value, origin);
        buf_done(&value);
    }
}

static const struct yaml_node *entry(const struct shower *x, const char *group,
                                     const char *name)
{
    return yaml_get(key_node(x->cfg->root, group), name);
}

static void show_entry(struct shower *x, const char *group, const char *name,
                       const struct key_table *t, const void *base)
{
    struct buf prefix;
    buf_init(&prefix, 4096);
    buf_addf(&prefix, "%s.%s.", group, name);
    show_table(x, t, prefix.ptr, entry(x, group, name), base);
    buf_done(&prefix);
}

/* What only a plugin's table can type: names, no values. */
static void show_foreign(struct shower *x, const char *prefix,
                         const struct yaml_node *map, const struct key_table *known,
                         const struct key_table *more)
{
    struct buf value;
    buf_init(&value, 64);
    buf_add_c(&value, "\"(set)\"");
    for (const struct yaml_node *n = map != NULL ? map->first : NULL; n != NULL;
         n = n->next) {
        bool ours = (known != NULL && key_find(known, n->key) != NULL) ||
                    (more != NULL && key_find(more, n->key) != NULL);
        if (!ours && n->kind != YAML_NULL) {
            struct buf key;
            buf_init(&key, 4096);
            buf_addf(&key, "%.*s", STR_ARG(n->key));
            put_line(x, prefix, key.ptr, &value, origin_name(n));
            buf_done(&key);
        }
    }
    buf_done(&value);
}

static void show_channels(struct shower *x)
{
    const struct config *c = x->cfg;
    for (size_t i = 0; i < c->nchannels; i++) {
        const char *name = c->channels[i].name;
        bool whatsapp = strcmp(name, "whatsapp") == 0;
        show_entry(x, "channels", name, &config_channel_keys, &c->channels[i]);
        if (whatsapp) {
            show_entry(x, "channels", name, &config_whatsapp_keys, NULL);
        }
        struct buf prefix;
        buf_init(&prefix, 4096);
        buf_addf(&prefix, "channels.%s.", name);
        show_foreign(x, prefix.ptr, c->channels[i].node, &config_channel_keys,
                     whatsapp ? &config_whatsapp_keys : NULL);
        buf_done(&prefix);
    }
}

static void show_plugins(struct shower *x)
{
    const struct config *c = x->cfg;
    const struct yaml_node *list = key_node(c->root, "plugins");
    for (size_t i = 0; i < c->nplugins; i++) {
        struct buf value;
        struct buf path;
        buf_init(&value, YAML_MAX_BYTES * 8);
        buf_init(&path, 64);
        put_text(&value, c->plugins[i].path);
        buf_addf(&path, "plugins[%zu].path", i);
        put_line(x, "", path.ptr, &value, origin_name(list));
        buf_clear(&value);
        buf_add_c(&value, c->plugins[i].critical ? "true" : "false");
        buf_clear(&path);
        buf_addf(&path, "plugins[%zu].critical", i);
        put_line(x, "", path.ptr, &value, origin_name(list));
        buf_done(&value);
        buf_done(&path);
    }
    for (const struct yaml_node *n = c->plugins_config != NULL ? c->plugins_config->first
                                                               : NULL;
         n != NULL; n = n->next) {
        struct buf prefix;
        buf_init(&prefix, 4096);
        buf_addf(&prefix, "plugins_config.%.*s.", STR_ARG(n->key));
        show_foreign(x, prefix.ptr, n->kind == YAML_MAP ? n : NULL, NULL, NULL);
        buf_done(&prefix);
    }
}

enum status config_show(const struct config *c, bool json, struct buf *out)
{
    struct shower x = {.cfg = c, .out = out, .json = json, .first = true};
    if (json) {
        buf_add_char(out, '{');
    } else {
        buf_addf(out, "# %s\n", c->file != NULL ? c->file : "no configuration file");
    }
    show_table(&x, &config_keys, "", c->root, c);
    for (const struct yaml_node *n = c->executor.node != NULL ? c->executor.node->first
                                                              : NULL;
         n != NULL; n = n->next) {
        if (config_foreign_executor(c->root, n->key)) {
            struct yaml_node one = *n;
            struct yaml_node map = {.kind = YAML_MAP, .first = &one};
            one.next = NULL;
            show_foreign(&x, "executor.", &map, NULL, NULL);
        }
    }
    show_channels(&x);
    for (size_t i = 0; i < c->llm.nproviders; i++) {
        show_entry(&x, "llm.providers", c->llm.providers[i].name, &config_provider_keys,
                   &c->llm.providers[i]);
    }
    for (size_t i = 0; i < c->nmcp_servers; i++) {
        show_entry(&x, "mcp.servers", c->mcp_servers[i].name, &config_mcp_keys,
                   &c->mcp_servers[i]);
    }
    for (size_t i = 0; i < c->nkbs; i++) {
        show_entry(&x, "knowledge.bases", c->kbs[i].name, &config_kb_keys, &c->kbs[i]);
    }
    show_plugins(&x);
    if (json) {
        buf_add_c(out, "}\n");
    }
    return buf_status(out);
}

/* The value of one key as text, for comparison only: secrets in groups are in it. */
static enum status put_compared(const struct config *c, const struct key *k,
                                struct buf *out)
{
    const struct yaml_node *n = key_node(c->root, k->path);
    buf_init(out, YAML_MAX_BYTES * 16);
    if (k->type != K_GROUP) {
        put_value(out, k, (const char *)c + k->offset);
    } else if (n != NULL) {
        return yaml_to_json(n, out);
    }
    return buf_status(out);
}

enum status config_restart_key(const struct config *was, const struct config *now,
                               const char **path)
{
    *path = NULL;
    enum status st = ST_OK;
    for (size_t i = 0; i < config_keys.n && st == ST_OK && *path == NULL; i++) {
        const struct key *k = &config_keys.keys[i];
        struct buf a;
        struct buf b;
        if ((k->flags & KEY_RESTART) == 0) {
            continue;
        }
        st = put_compared(was, k, &a);
        enum status other = put_compared(now, k, &b);
        st = st != ST_OK ? st : other;
        if (st == ST_OK && !str_eq(buf_str(&a), buf_str(&b))) {
            *path = k->path;
        }
        buf_wipe(&a);
        buf_wipe(&b);
    }
    return st;
}
