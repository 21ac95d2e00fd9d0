/* SOULACY_ variables into the tree. In: the tree and the environment snapshot. Out: the
 * same tree with values replaced or added, marked as coming from the environment. Pure.
 * Never guesses: a name that fits no key is a problem that names the nearest one. */
#include "config/env.h"

#include "config/keys.h"

#include "base/utf8.h"

#include <string.h>

#define PREFIX "SOULACY_"
#define NAMES_MAX 160

static char env_char(char c)
{
    if (c >= 'a' && c <= 'z') {
        return (char)(c - 'a' + 'A');
    }
    return c == '.' || c == '-' ? '_' : c;
}

/* Bytes of env that spell path: all of path, or 0. */
static size_t spelled(struct str env, struct str path)
{
    if (env.len < path.len) {
        return 0;
    }
    for (size_t i = 0; i < path.len; i++) {
        if (env.ptr[i] != env_char(path.ptr[i])) {
            return 0;
        }
    }
    return path.len;
}

static bool spells(struct str env, struct str path)
{
    return env.len == path.len && spelled(env, path) == path.len;
}

/* When env is path + "_" + rest: true, and rest. */
static bool spells_before(struct str env, struct str path, struct str *rest)
{
    if (path.len == 0 || spelled(env, path) == 0 || env.len <= path.len + 1 ||
        env.ptr[path.len] != '_') {
        return false;
    }
    *rest = str_n(env.ptr + path.len + 1, env.len - path.len - 1);
    return true;
}

static char *lower_dup(struct arena *a, struct str s)
{
    char *copy = arena_dup(a, s);
    for (char *c = copy; c != NULL && *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c - 'A' + 'a');
        }
    }
    return copy;
}

static struct yaml_node *child_of(struct yaml_node *map, struct str key)
{
    struct yaml_node *n = map->first;
    while (n != NULL && !str_eq(n->key, key)) {
        n = n->next;
    }
    return n;
}

static struct yaml_node *add_child(struct yaml_node *map, struct arena *a, struct str key)
{
    struct yaml_node *n = arena_alloc(a, sizeof(*n));
    char *copy = n != NULL ? arena_dup(a, key) : NULL;
    if (copy == NULL) {
        return NULL;
    }
    n->kind = YAML_NULL;
    n->key = str_n(copy, key.len);
    struct yaml_node **tail = &map->first;
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = n;
    return n;
}

struct yaml_node *config_node_make(struct yaml_node *root, struct arena *a,
                                   struct str path, bool *nomem)
{
    struct yaml_node *at = root;
    struct str part;
    while (str_split(&path, '.', &part)) {
        if (at->kind == YAML_NULL) {
            at->kind = YAML_MAP;
            at->first = NULL;
        }
        if (at->kind != YAML_MAP) {
            return NULL;
        }
        struct yaml_node *next = child_of(at, part);
        if (next == NULL) {
            next = add_child(at, a, part);
        }
        if (next == NULL) {
            *nomem = true;
            return NULL;
        }
        at = next;
    }
    return at;
}

/* Is name the plugin of key NAME_something? */
static bool owns(struct str name, struct str key)
{
    static const char *const ours[] = {"process", "pool", "docker", "ssh"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (str_eq_c(name, ours[i])) {
            return false;
        }
    }
    if (name.len == 0 || key.len < name.len + 2 || key.ptr[name.len] != '_') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (key.ptr[i] != (name.ptr[i] == '-' ? '_' : name.ptr[i])) {
            return false;
        }
    }
    return true;
}

bool config_foreign_executor(const struct yaml_node *root, struct str key)
{
    const struct yaml_node *backend = key_node(root, "executor.backend");
    if (backend != NULL && owns(backend->text, key)) {
        return true;
    }
    const struct yaml_node *allowed = key_node(root, "executor.allowed_backends");
    if (allowed == NULL) {
        return false;
    }
    for (const struct yaml_node *n = allowed->first; n != NULL; n = n->next) {
        if (owns(n->text, key)) {
            return true;
        }
    }
    struct str rest = allowed->kind == YAML_SCALAR ? allowed->text : STR_NONE;
    struct str part;
    while (str_split(&rest, ',', &part)) {
        if (owns(str_trim(part), key)) {
            return true;
        }
    }
    return false;
}

struct overrider {
    struct yaml_node *root;
    struct arena *arena;
    struct problems *probs;
    bool nomem;
};

static char *keep(struct overrider *o, char *path)
{
    o->nomem = o->nomem || path == NULL;
    return path;
}

/* The path among the keys that have a fixed one, or NULL. */
static char *fixed_path(struct overrider *o, struct str env)
{
    for (size_t i = 0; i < config_keys.n; i++) {
        const struct key *k = &config_keys.keys[i];
        bool list = strcmp(k->path, "plugins") == 0;
        if ((k->type != K_GROUP || list) && spells(env, str_c(k->path))) {
            return keep(o, arena_dup(o->arena, str_c(k->path)));
        }
    }
    return NULL;
}

/* The name of an entry below group that env begins with; the longest one. */
static struct str known_entry(struct overrider *o, const char *group, struct str env,
                              struct str *rest)
{
    struct str best = STR_NONE;
    struct str behind;
    static const char *const always[] = {"http", "whatsapp"};
    for (size_t i = 0; i < 2 && strcmp(group, "channels") == 0; i++) {
        if (spells_before(env, str_c(always[i]), &behind)) {
            best = str_c(always[i]);
            *rest = behind;
        }
    }
    const struct yaml_node *map = key_node(o->root, group);
    const struct yaml_node *n = map != NULL && map->kind == YAML_MAP ? map->first : NULL;
    for (; n != NULL; n = n->next) {
        if (n->key.len > best.len && spells_before(env, n->key, &behind)) {
            best = n->key;
            *rest = behind;
        }
    }
    return best;
}

static const char *row_spelled(const struct key_table *t, struct str env)
{
    for (size_t i = 0; i < t->n; i++) {
        if (spells(env, str_c(t->keys[i].path))) {
            return t->keys[i].path;
        }
    }
    return NULL;
}

/* The row whose name env ends with (behind a "_"); the longest one. */
static const char *row_at_end(const struct key_table *t, struct str env)
{
    const char *best = NULL;
    for (size_t i = 0; i < t->n; i++) {
        struct str name = str_c(t->keys[i].path);
        if (env.len < name.len + 2 || (best != NULL && strlen(best) >= name.len)) {
            continue;
        }
        size_t at = env.len - name.len;
        if (env.ptr[at - 1] == '_' && spells(str_n(env.ptr + at, name.len), name)) {
            best = t->keys[i].path;
        }
    }
    return best;
}

static char *group_path(struct overrider *o, const struct key_group *g, struct str env)
{
    struct str rest;
    struct str key;
    if (!spells_before(env, str_c(g->path), &rest)) {
        return NULL;
    }
    bool channels = strcmp(g->path, "channels") == 0;
    struct str name = known_entry(o, g->path, rest, &key);
    if (name.len != 0) {
        const char *row = row_spelled(g->keys, key);
        bool whatsapp = channels && str_eq_c(name, "whatsapp");
        if (row == NULL && whatsapp) {
            row = row_spelled(&config_whatsapp_keys, key);
        }
        const char *own = row;
        if (row == NULL && channels && !whatsapp && !str_eq_c(name, "http")) {
            own = keep(o, lower_dup(o->arena, key));
        }
        if (own != NULL) {
            return keep(
                o, arena_printf(o->arena, "%s.%.*s.%s", g->path, STR_ARG(name), own));
        }
    }
    const char *row = row_at_end(g->keys, rest);
    if (row == NULL || (channels && name.len != 0)) {
        return NULL;
    }
    char *entry =
        keep(o, lower_dup(o->arena, str_n(rest.ptr, rest.len - strlen(row) - 1)));
    return entry == NULL
               ? NULL
               : keep(o, arena_printf(o->arena, "%s.%s.%s", g->path, entry, row));
}

/* Paths that depend on names in the tree. */
static char *named_path(struct overrider *o, struct str env)
{
    struct str rest;
    struct str key;
    for (size_t i = 0; i < config_ngroups; i++) {
        char *path = group_path(o, &config_groups[i], env);
        if (path != NULL || o->nomem) {
            return path;
        }
    }
    bool plugins = spells_before(env, STR_LIT("plugins_config"), &rest);
    struct str name = plugins ? known_entry(o, "plugins_config", rest, &key) : STR_NONE;
    char *low = NULL;
    if (name.len != 0) {
        low = keep(o, lower_dup(o->arena, key));
        return low == NULL ? NULL
                           : keep(o, arena_printf(o->arena, "plugins_config.%.*s.%s",
                                                  STR_ARG(name), low));
    }
    if (spells_before(env, STR_LIT("executor"), &rest)) {
        low = keep(o, lower_dup(o->arena, rest));
        if (low != NULL && config_foreign_executor(o->root, str_c(low))) {
            return keep(o, arena_printf(o->arena, "executor.%s", low));
        }
    }
    return NULL;
}

static void unknown_name(struct overrider *o, struct str name)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    names[n++] = PREFIX "CONFIG_PATH";
    for (size_t i = 0; i < config_keys.n && n < NAMES_MAX; i++) {
        names[n] = key_env_name(o->arena, config_keys.keys[i].path);
        n += names[n] != NULL ? 1 : 0;
    }
    const char *near = key_nearest(name, names, n);
    problem_add(o->probs, false, (struct yaml_pos){0, 0},
                "%.*s (environment): no such setting%s%s%s",
                (int)(name.len < 128 ? name.len : 128), name.ptr,
                near != NULL ? ", did you mean " : "; see docs/configuration.md",
                near != NULL ? near : "", near != NULL ? "?" : "");
}

static void set_value(struct overrider *o, struct str path, const struct env_entry *e)
{
    struct yaml_node *n = config_node_make(o->root, o->arena, path, &o->nomem);
    if (n == NULL) {
        return; /* a parent is no mapping: the reader says so */
    }
    if (!utf8_valid(e->value)) {
        problem_add(o->probs, false, (struct yaml_pos){0, 0},
                    "%.*s (environment): not valid UTF-8", STR_ARG(e->name));
        return;
    }
    char *copy = arena_dup(o->arena, e->value);
    o->nomem = o->nomem || copy == NULL;
    n->kind = YAML_SCALAR;
    n->first = NULL;
    n->text = str_n(copy, copy != NULL ? e->value.len : 0);
    n->quoted = false;
    n->expanded = true;
    n->origin = YAML_FROM_ENV;
    n->pos = (struct yaml_pos){0, 0};
    n->key_pos = n->pos;
}

enum status config_override(struct yaml_node *root, struct arena *a,
                            const struct config_env *env, struct problems *probs)
{
    struct overrider o = {.root = root, .arena = a, .probs = probs};
    size_t errors = probs->nerrors;
    /* Fixed paths first: the names of others depend on executor.backend. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < config_env_count(env) && !o.nomem; i++) {
            const struct env_entry *e = config_env_at(env, i);
            if (!str_starts(e->name, STR_LIT(PREFIX)) || e->value.len == 0 ||
                str_eq_c(e->name, PREFIX "CONFIG_PATH")) {
                continue;
            }
            struct str suffix = str_n(e->name.ptr + 8, e->name.len - 8);
            char *fixed = fixed_path(&o, suffix);
            char *path =
                pass == 0 || fixed != NULL || o.nomem ? fixed : named_path(&o, suffix);
            if (path != NULL && (pass == 0) == (fixed != NULL)) {
                set_value(&o, str_c(path), e);
            } else if (path == NULL && pass == 1 && !o.nomem) {
                unknown_name(&o, e->name);
            }
        }
    }
    if (o.nomem) {
        return ST_NOMEM;
    }
    return probs->nerrors == errors ? ST_OK : ST_INVALID;
}
