/* config.yaml's part of one plugin, typed by the plugin's own table. In: the tree that
 * was read and the table. Out: values in the order of the table, or problems with their
 * places. Pure. Never hands a plugin what belongs to the core or to another plugin. */
#include "config/plugin_values.h"

#include "config/keys.h"

#include <string.h>

struct picker {
    const struct config *cfg;
    const char *name; /* of the plugin */
    uint32_t kind;
    const struct sy_cfg_key *keys;
    struct reader r;
    struct sy_cfg_value *values;
    size_t n;
};

static const struct sy_cfg_key *find_key(const struct picker *x, struct str name)
{
    const struct sy_cfg_key *k = x->keys;
    while (k != NULL && k->name != NULL && !str_eq_c(name, k->name)) {
        k++;
    }
    return k != NULL && k->name != NULL ? k : NULL;
}

static void unknown(struct picker *x, const struct yaml_node *n, struct str key)
{
    const char *names[64];
    size_t count = 0;
    for (const struct sy_cfg_key *k = x->keys; k != NULL && k->name != NULL; k++) {
        if (count < 64) {
            names[count++] = k->name;
        }
    }
    const char *near = key_nearest(key, names, count);
    struct buf text;
    buf_init(&text, 1024);
    buf_addf(&text, "no key of plugin %s", x->name);
    if (near != NULL) {
        buf_addf(&text, ", did you mean %s%s?", x->r.prefix, near);
    }
    struct yaml_node at = *n;
    at.pos = n->key_pos;
    char *path = arena_dup(x->r.arena, str_n(key.ptr, key.len < 64 ? key.len : 64));
    key_problem(&x->r, &at, path != NULL ? path : "", text.ptr);
    buf_done(&text);
}

static struct sy_str sy_text(struct str s)
{
    return (struct sy_str){s.ptr, s.len};
}

/* One list of the ABI from a list of ours. */
static void set_list(struct picker *x, struct sy_cfg_value *v, const struct str_list *l)
{
    struct sy_str *items = arena_array(x->r.arena, l->n + 1, sizeof(*items));
    if (items == NULL) {
        x->r.nomem = true;
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        items[i] = sy_text(str_c(l->items[i]));
    }
    v->list = items;
    v->nlist = l->n;
}

static void set_json(struct picker *x, struct sy_cfg_value *v, const struct yaml_node *n)
{
    struct buf json;
    struct yaml_node *tree = NULL;
    buf_init(&json, YAML_MAX_BYTES * 2);
    if (n->kind == YAML_SCALAR && n->origin != YAML_FROM_FILE) {
        struct problems inner;
        problems_init(&inner, x->r.arena, NULL);
        enum status st = yaml_parse(n->text, x->r.arena, &inner, &tree);
        x->r.nomem = x->r.nomem || st == ST_NOMEM;
        n = st == ST_OK ? tree : n;
    }
    char *text = NULL;
    if (n->kind != YAML_MAP && n->kind != YAML_SEQ) {
        key_problem(&x->r, n, v->key.ptr, "must be a mapping or a list");
    } else if (yaml_to_json(n, &json) == ST_TOO_LARGE) {
        key_problem(&x->r, n, v->key.ptr, "is too large");
    } else {
        text = buf_status(&json) == ST_OK ? arena_dup(x->r.arena, buf_str(&json)) : NULL;
        x->r.nomem = x->r.nomem || text == NULL;
    }
    v->s = (struct sy_str){text, text != NULL ? json.len : 0};
    buf_wipe(&json);
}

/* The row of core's own kind that reads this type. */
static struct key as_key(const struct sy_cfg_key *k)
{
    struct key row = {.path = k->name, .min = INT64_MIN, .max = INT64_MAX};
    row.type = k->type == SY_CFG_INT        ? K_INT
               : k->type == SY_CFG_BOOL     ? K_BOOL
               : k->type == SY_CFG_DURATION ? K_DURATION
               : k->type == SY_CFG_LIST     ? K_LIST
                                            : K_STR;
    row.min = k->type == SY_CFG_DURATION ? 0 : INT64_MIN;
    return row;
}

static void add_value(struct picker *x, const struct sy_cfg_key *k,
                      const struct yaml_node *n)
{
    struct sy_cfg_value *v = &x->values[x->n];
    struct key row = as_key(k);
    char *text = NULL;
    bool flag = false;
    struct str_list list = {NULL, 0};
    *v = (struct sy_cfg_value){.key = sy_text(str_c(k->name)), .type = k->type};
    switch (row.type) {
    case K_INT:
    case K_DURATION:
        key_read_value(&x->r, &row, n, n->pos, &v->i);
        break;
    case K_BOOL:
        key_read_value(&x->r, &row, n, n->pos, &flag);
        v->i = flag ? 1 : 0;
        break;
    case K_LIST:
        key_read_value(&x->r, &row, n, n->pos, &list);
        set_list(x, v, &list);
        break;
    case K_STR:
        if (k->type == SY_CFG_JSON) {
            set_json(x, v, n);
            break;
        }
        row.flags = KEY_NULLABLE;
        key_read_value(&x->r, &row, n, n->pos, &text);
        v->s = sy_text(str_c(text));
        break;
    case K_CHOICE:
    case K_ENUM:
    case K_DOUBLE:
    case K_SECRET:
    case K_PATH:
    case K_PATHS:
    case K_HEADERS:
    case K_ENVIRON:
    case K_OPT_LIST:
    case K_TREE:
    case K_GROUP:
        break;
    }
    x->n++; /* also when it is wrong: then it has been said, and nothing is handed out */
}

static bool has_value(const struct picker *x, const char *name)
{
    for (size_t i = 0; i < x->n; i++) {
        if (strcmp(x->values[i].key.ptr, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A value found in the file or the environment, under the plugin's own name for it. */
static void take(struct picker *x, const struct yaml_node *n, struct str name)
{
    const struct sy_cfg_key *k = find_key(x, name);
    if (k == NULL) {
        if (n->origin != YAML_FROM_DEFAULT) {
            unknown(x, n, name);
        }
        return;
    }
    if (n->kind == YAML_NULL || x->r.nomem) {
        return;
    }
    if (has_value(x, k->name)) {
        key_problem(&x->r, n, k->name, "is set in two places");
        return;
    }
    add_value(x, k, n);
}

static void from_channel(struct picker *x)
{
    const struct config_channel *ch = config_channel(x->cfg, x->name);
    x->r.prefix = arena_printf(x->r.arena, "channels.%s.", x->name);
    if (x->r.prefix == NULL || ch == NULL || ch->node == NULL) {
        x->r.nomem = x->r.nomem || x->r.prefix == NULL;
        return;
    }
    for (const struct yaml_node *n = ch->node->first; n != NULL; n = n->next) {
        if (key_find(&config_channel_keys, n->key) == NULL) {
            take(x, n, n->key);
        }
    }
}

/* The plugin's own part of executor.KEY, or false. */
static bool executor_key(const struct picker *x, struct str key, struct str *own)
{
    size_t len = strlen(x->name);
    if (key.len < len + 2 || key.ptr[len] != '_') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        char c = x->name[i] == '-' ? '_' : x->name[i];
        if (key.ptr[i] != c) {
            return false;
        }
    }
    *own = str_n(key.ptr + len + 1, key.len - len - 1);
    return true;
}

static void from_executor(struct picker *x)
{
    static const char *const shared[] = {"workers", "max_idle"};
    const int64_t values[] = {x->cfg->executor.workers, x->cfg->executor.max_idle};
    const struct yaml_node *map = x->cfg->executor.node;
    x->r.prefix = arena_printf(x->r.arena, "executor.%s_", x->name);
    if (x->r.prefix == NULL) {
        x->r.nomem = true;
        return;
    }
    for (const struct yaml_node *n = map != NULL ? map->first : NULL; n != NULL;
         n = n->next) {
        struct str own;
        if (executor_key(x, n->key, &own)) {
            take(x, n, own);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        const struct sy_cfg_key *k = find_key(x, str_c(shared[i]));
        if (k != NULL && k->type == SY_CFG_INT && !has_value(x, k->name)) {
            x->values[x->n++] = (struct sy_cfg_value){
                .key = sy_text(str_c(k->name)), .type = SY_CFG_INT, .i = values[i]};
        }
    }
}

static void from_plugins_config(struct picker *x)
{
    const struct yaml_node *map = yaml_get(x->cfg->plugins_config, x->name);
    if (map == NULL || map->kind != YAML_MAP) {
        return;
    }
    x->r.prefix = arena_printf(x->r.arena, "plugins_config.%s.", x->name);
    if (x->r.prefix == NULL) {
        x->r.nomem = true;
        return;
    }
    for (const struct yaml_node *n = map->first; n != NULL; n = n->next) {
        take(x, n, n->key);
    }
}

static void add_defaults(struct picker *x, const char *prefix)
{
    x->r.prefix = prefix;
    for (const struct sy_cfg_key *k = x->keys; k != NULL && k->name != NULL; k++) {
        if (x->r.nomem || has_value(x, k->name)) {
            continue;
        }
        struct yaml_node n = {
            .kind = YAML_SCALAR, .text = str_c(k->fallback), .origin = YAML_FROM_DEFAULT};
        if (k->fallback != NULL) {
            add_value(x, k, &n);
        } else if (k->required != 0) {
            key_problem(&x->r, &n, k->name, "is required");
        }
    }
}

enum status config_plugin_values(const struct config *c, const char *plugin_name,
                                 uint32_t kind, const struct sy_cfg_key *keys,
                                 struct arena *a, struct problems *probs,
                                 struct sy_cfg_value **out, size_t *n)
{
    struct picker x = {.cfg = c, .name = plugin_name, .kind = kind, .keys = keys};
    x.r = (struct reader){.arena = a,
                          .probs = probs,
                          .dir = c->dir,
                          .home = c->home,
                          .prefix = "",
                          .env_names = true};
    size_t errors = probs->nerrors;
    size_t count = 0;
    while (keys != NULL && keys[count].name != NULL) {
        count++;
    }
    x.values = arena_array(a, count + 1, sizeof(*x.values));
    if (x.values == NULL) {
        return ST_NOMEM;
    }
    if (kind == SY_KIND_CHANNEL) {
        from_channel(&x);
    } else if (kind == SY_KIND_EXECUTOR) {
        from_executor(&x);
    }
    const char *prefix = x.r.prefix;
    if (!x.r.nomem) {
        from_plugins_config(&x);
    }
    if (!x.r.nomem) {
        add_defaults(&x, prefix);
    }
    if (x.r.nomem) {
        return ST_NOMEM;
    }
    if (probs->nerrors != errors) {
        return ST_INVALID;
    }
    *out = x.values;
    *n = x.n;
    return ST_OK;
}
