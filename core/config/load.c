/* config.yaml to struct config. In: a file or its text, and the environment snapshot.
 * Out: typed values, or every problem at once. config_load alone touches the file system.
 * Never prints a value, never keeps a half-read configuration. */
#include "config/env.h"

#include "config/checks.h"
#include "config/keys.h"

#include "base/io.h"
#include "base/mem.h"

#include <string.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)64 * 1024 * 1024)
#define PATH_BYTES 4096

struct loader {
    struct config *cfg;
    struct reader reader;
    const struct config_env *env;
};

/* Views in a tree point into our own arena, so they may be erased. */
static void wipe_str(struct str s)
{
    char *p = NULL;
    memcpy(&p, &s.ptr, sizeof(p));
    mem_wipe(p, p != NULL ? s.len : 0);
}

static void wipe_tree(const struct yaml_node *n)
{
    for (; n != NULL; n = n->next) {
        wipe_str(n->text);
        wipe_tree(n->first);
    }
}

static void wipe_list(struct str_list l)
{
    for (size_t i = 0; i < l.n; i++) {
        mem_wipe(l.items[i], strlen(l.items[i]));
    }
}

void config_free(struct config *c)
{
    if (c == NULL) {
        return;
    }
    secret_done(&c->server.api_key);
    secret_done(&c->search.api_key);
    for (size_t i = 0; i < c->llm.nproviders; i++) {
        secret_done(&c->llm.providers[i].api_key);
        wipe_list(c->llm.providers[i].extra_headers);
    }
    for (size_t i = 0; i < c->nmcp_servers; i++) {
        wipe_list(c->mcp_servers[i].env);
        wipe_list(c->mcp_servers[i].headers);
    }
    wipe_tree(c->root);
    arena_free(c->arena);
    mem_free(c);
}

/* The entries of a group as an array of zeroed structs; *n of them. NULL: none, or out
 * of memory. Entries that are no mapping are problems; they keep their place. */
static void *group_array(struct loader *l, const char *path, size_t size, size_t extra,
                         const struct yaml_node **first)
{
    struct reader *r = &l->reader;
    const struct yaml_node *map = key_node(l->cfg->root, path);
    size_t n = extra;
    *first = NULL;
    if (map != NULL && map->kind != YAML_MAP && map->kind != YAML_NULL) {
        key_problem(r, map, path, "must be a mapping of names");
    } else if (map != NULL) {
        *first = map->first;
        for (const struct yaml_node *i = map->first; i != NULL; i = i->next) {
            n++;
        }
    }
    void *array = arena_array(r->arena, n + 1, size);
    r->nomem = r->nomem || array == NULL;
    return array;
}

/* Point the reader at one entry. False when its name or its kind is wrong. */
static bool open_entry(struct loader *l, const char *group, const struct yaml_node *n,
                       const char *note, char **name)
{
    struct reader *r = &l->reader;
    const char *bad = check_entry_name(n->key);
    if (bad != NULL) {
        problem_add(r->probs, false, n->key_pos, "%s: the name of an entry %s", group,
                    bad);
        return false;
    }
    *name = arena_dup(r->arena, n->key);
    char *prefix = arena_printf(r->arena, "%s.%.*s.", group, STR_ARG(n->key));
    if (*name == NULL || prefix == NULL) {
        r->nomem = true;
        return false;
    }
    if (n->kind != YAML_MAP && n->kind != YAML_NULL) {
        problem_add(r->probs, false, n->pos, "%s.%s: must be a mapping", group, *name);
        return false;
    }
    if (note != NULL) {
        problem_add(r->probs, true, n->key_pos, "%s.%s: accepted; %s", group, *name,
                    note);
    }
    r->prefix = prefix;
    return true;
}

static const struct yaml_node *map_of(const struct yaml_node *n)
{
    return n != NULL && n->kind == YAML_MAP ? n : NULL;
}

/* The keys a channel may have: core's, and whose plugin is known, the plugin's. */
static struct key_table channel_table(struct loader *l, const char *name)
{
    struct key_table t = config_channel_keys;
    t.open = strcmp(name, "http") != 0 && strcmp(name, "whatsapp") != 0;
    if (strcmp(name, "whatsapp") != 0) {
        return t;
    }
    size_t own = config_whatsapp_keys.n;
    struct key *rows = arena_array(l->reader.arena, t.n + own, sizeof(*rows));
    if (rows == NULL) {
        l->reader.nomem = true;
        return t;
    }
    memcpy(rows, t.keys, t.n * sizeof(*rows));
    memcpy(rows + t.n, config_whatsapp_keys.keys, own * sizeof(*rows));
    return (struct key_table){rows, t.n + own, false};
}

static void read_channel(struct loader *l, const struct yaml_node *n, char *name)
{
    struct config_channel *c = &l->cfg->channels[l->cfg->nchannels++];
    c->name = name;
    c->node = map_of(n);
    c->enabled = strcmp(name, "http") == 0;
    struct key_table t = channel_table(l, name);
    if (!l->reader.nomem) {
        key_read_table(&l->reader, &t, c->node, c);
    }
}

static void read_channels(struct loader *l)
{
    static const char *const always[] = {"http", "whatsapp"};
    const struct yaml_node *first;
    char *name = NULL;
    l->cfg->channels = group_array(l, "channels", sizeof(*l->cfg->channels), 2, &first);
    for (const struct yaml_node *n = first; n != NULL && !l->reader.nomem; n = n->next) {
        if (open_entry(l, "channels", n, NULL, &name)) {
            read_channel(l, n, name);
        }
    }
    for (size_t i = 0; i < 2 && !l->reader.nomem; i++) {
        if (config_channel(l->cfg, always[i]) == NULL) {
            name = arena_dup(l->reader.arena, str_c(always[i]));
            l->reader.nomem = l->reader.nomem || name == NULL;
            l->reader.prefix = "channels.";
            if (name != NULL) {
                read_channel(l, NULL, name);
            }
        }
    }
    l->reader.prefix = "";
}

static void read_providers(struct loader *l)
{
    const struct yaml_node *first;
    struct config *c = l->cfg;
    const struct key_group *g = &config_groups[1];
    c->llm.providers = group_array(l, g->path, sizeof(*c->llm.providers), 0, &first);
    for (const struct yaml_node *n = first; n != NULL && !l->reader.nomem; n = n->next) {
        char *name = NULL;
        if (open_entry(l, g->path, n, g->note, &name)) {
            struct config_provider *p = &c->llm.providers[c->llm.nproviders++];
            p->name = name;
            key_read_table(&l->reader, g->keys, map_of(n), p);
        }
    }
    l->reader.prefix = "";
}

static void read_mcp(struct loader *l)
{
    const struct yaml_node *first;
    struct config *c = l->cfg;
    const struct key_group *g = &config_groups[2];
    c->mcp_servers = group_array(l, g->path, sizeof(*c->mcp_servers), 0, &first);
    for (const struct yaml_node *n = first; n != NULL && !l->reader.nomem; n = n->next) {
        char *name = NULL;
        if (open_entry(l, g->path, n, g->note, &name)) {
            struct config_mcp_server *s = &c->mcp_servers[c->nmcp_servers++];
            s->name = name;
            key_read_table(&l->reader, g->keys, map_of(n), s);
        }
    }
    l->reader.prefix = "";
}

static void read_kbs(struct loader *l)
{
    const struct yaml_node *first;
    struct config *c = l->cfg;
    const struct key_group *g = &config_groups[3];
    c->kbs = group_array(l, g->path, sizeof(*c->kbs), 0, &first);
    for (const struct yaml_node *n = first; n != NULL && !l->reader.nomem; n = n->next) {
        char *name = NULL;
        if (open_entry(l, g->path, n, g->note, &name)) {
            struct config_kb *k = &c->kbs[c->nkbs++];
            k->name = name;
            key_read_table(&l->reader, g->keys, map_of(n), k);
        }
    }
    l->reader.prefix = "";
}

/* A path with a slash becomes absolute; without one it is a name for plugin_dir. */
static void fix_plugin_path(struct loader *l, const struct yaml_node *n,
                            struct config_plugin *p)
{
    struct str path = str_c(p->path);
    if (path.len == 0) {
        return;
    }
    if (path.ptr[0] == '~' || str_find_char(path, '/') != SIZE_MAX) {
        char *full = key_abs_path(&l->reader, n, "path", path);
        p->path = full != NULL ? full : p->path;
        return;
    }
    if (check_plugin_name(path) != NULL) {
        key_problem(&l->reader, n, "path",
                    "must be a path with a / or the name of a plugin of this program");
    }
}

/* Entry i of the list; text is what it says when it is no mapping. */
static void read_plugin(struct loader *l, size_t i, const struct yaml_node *item,
                        struct str text)
{
    struct reader *r = &l->reader;
    struct config_plugin *p = &l->cfg->plugins[l->cfg->nplugins++];
    char *prefix = arena_printf(r->arena, "plugins[%zu].", i);
    r->nomem = r->nomem || prefix == NULL;
    r->prefix = prefix != NULL ? prefix : "";
    if (item->kind == YAML_MAP) {
        key_read_table(r, &config_plugin_keys, item, p);
    } else if (item->kind == YAML_SCALAR) {
        p->path = arena_dup(r->arena, text);
        r->nomem = r->nomem || p->path == NULL;
    } else {
        key_problem(r, item, "path", "is required");
    }
    if (!r->nomem) {
        fix_plugin_path(l, item, p);
    }
    r->prefix = "";
}

static void read_plugins(struct loader *l)
{
    struct config *c = l->cfg;
    struct reader *r = &l->reader;
    const struct yaml_node *list = key_node(c->root, "plugins");
    if (list == NULL || list->kind == YAML_NULL) {
        return;
    }
    struct str *names = NULL;
    size_t n = 0;
    bool texts = key_list_items(r->arena, list, &names, &n, &r->nomem);
    if (!texts && list->kind != YAML_SEQ) {
        key_problem(r, list, "plugins", "must be a list of {path, sha256, critical}");
        return;
    }
    for (const struct yaml_node *i = list->first; !texts && i != NULL; i = i->next) {
        n++;
    }
    c->plugins = arena_array(r->arena, n + 1, sizeof(*c->plugins));
    r->nomem = r->nomem || c->plugins == NULL;
    const struct yaml_node *at = list->first;
    for (size_t i = 0; i < n && !r->nomem; i++) {
        const struct yaml_node *item = at != NULL ? at : list;
        read_plugin(l, i, item, texts ? names[i] : item->text);
        at = at != NULL ? at->next : NULL;
    }
}

/* plugins_config: a mapping of mappings, read by the loader through plugin_values.h. */
static void read_plugins_config(struct loader *l)
{
    const struct yaml_node *first;
    char *name = NULL;
    (void)group_array(l, "plugins_config", 1, 0, &first);
    for (const struct yaml_node *n = first; n != NULL && !l->reader.nomem; n = n->next) {
        if (open_entry(l, "plugins_config", n, NULL, &name) &&
            check_plugin_name(n->key) != NULL) {
            problem_add(l->reader.probs, false, n->key_pos, "plugins_config: %s",
                        check_plugin_name(n->key));
        }
    }
    l->reader.prefix = "";
    l->cfg->plugins_config = map_of(key_node(l->cfg->root, "plugins_config"));
}

/* A variable's text where the key wants a list or mapping of any shape: YAML again. */
static void parse_env_tree(struct loader *l, struct yaml_node *n)
{
    struct yaml_node *tree = NULL;
    struct problems inner;
    problems_init(&inner, l->reader.arena, NULL);
    enum status st = yaml_parse(n->text, l->reader.arena, &inner, &tree);
    l->reader.nomem = l->reader.nomem || st == ST_NOMEM;
    if (st == ST_OK && (tree->kind == YAML_MAP || tree->kind == YAML_SEQ)) {
        n->kind = tree->kind;
        n->first = tree->first;
    }
}

/* The node of a key that is kept for a plugin: made with the fallback when it is absent
 * and there is one, else NULL. */
static struct yaml_node *node_of(struct loader *l, const struct key *k, const char *path)
{
    struct reader *r = &l->reader;
    const struct yaml_node *there = key_node(l->cfg->root, path);
    bool absent = there == NULL || there->kind == YAML_NULL;
    if (absent && k->fallback == NULL) {
        return NULL;
    }
    struct yaml_node *n =
        config_node_make(l->cfg->root, r->arena, str_c(path), &r->nomem);
    if (n != NULL && absent) {
        char *copy = arena_dup(r->arena, str_c(k->fallback)); /* erased with the tree */
        r->nomem = r->nomem || copy == NULL;
        n->kind = YAML_SCALAR;
        n->text = str_c(copy);
        n->origin = YAML_FROM_DEFAULT;
    }
    return n;
}

/* What plugins read from the tree: absolute paths, and core's defaults put in. */
static void complete_nodes(struct loader *l, const struct key_table *t,
                           const char *prefix)
{
    struct reader *r = &l->reader;
    for (size_t i = 0; i < t->n && !r->nomem; i++) {
        const struct key *k = &t->keys[i];
        if ((k->flags & KEY_NODE) == 0) {
            continue;
        }
        char *path = arena_printf(r->arena, "%s%s", prefix, k->path);
        struct yaml_node *n = path != NULL ? node_of(l, k, path) : NULL;
        r->nomem = r->nomem || path == NULL;
        if (n == NULL) {
            continue;
        }
        if (k->type == K_TREE && n->origin == YAML_FROM_ENV) {
            parse_env_tree(l, n);
        }
        /* A default below a home that is not there stays as it is: nobody asked for it. */
        bool homeless = n->origin == YAML_FROM_DEFAULT && r->home == NULL &&
                        str_starts(n->text, STR_LIT("~"));
        if (k->type == K_PATH && n->kind == YAML_SCALAR && !homeless) {
            char *full = key_abs_path(r, n, path, n->text);
            n->text = full != NULL ? str_c(full) : n->text;
        }
    }
}

static bool foreign_key(const void *ctx, struct str path)
{
    const struct loader *l = ctx;
    struct str executor = STR_LIT("executor.");
    return str_starts(path, executor) &&
           config_foreign_executor(
               l->cfg->root, str_n(path.ptr + executor.len, path.len - executor.len));
}

static void read_all(struct loader *l)
{
    struct config *c = l->cfg;
    struct reader *r = &l->reader;
    r->foreign = foreign_key;
    r->foreign_ctx = l;
    complete_nodes(l, &config_whatsapp_keys, "channels.whatsapp.");
    key_read_table(r, &config_keys, c->root, c);
    r->foreign = NULL;
    if (!r->nomem) {
        complete_nodes(l, &config_keys, "");
        c->executor.node = map_of(key_node(c->root, "executor"));
    }
    void (*const groups[])(struct loader *) = {read_channels, read_providers,
                                               read_mcp,      read_kbs,
                                               read_plugins,  read_plugins_config};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]) && !r->nomem; i++) {
        groups[i](l);
    }
}

/* NULL: out of memory. */
static struct config *new_config(const char *file, const char *dir)
{
    struct config *c = mem_zalloc(sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    c->arena = arena_new(ARENA_MAX);
    c->dir = c->arena != NULL ? arena_dup(c->arena, str_c(dir)) : NULL;
    if (c->dir != NULL && file != NULL) {
        c->file = arena_dup(c->arena, str_c(file));
    }
    if (c->dir == NULL || (file != NULL && c->file == NULL)) {
        config_free(c);
        return NULL;
    }
    return c;
}

/* Text to c->root. ST_OK also with problems, as long as there is a tree. */
static enum status build_tree(struct config *c, struct str text,
                              const struct config_env *env, struct problems *probs)
{
    struct arena *raw_arena = arena_new(ARENA_MAX);
    struct yaml_node *raw = NULL;
    if (raw_arena == NULL) {
        return ST_NOMEM;
    }
    enum status st = yaml_parse(text, raw_arena, probs, &raw);
    if (st == ST_OK && raw->kind != YAML_MAP) {
        problem_add(probs, false, raw->pos, "must be a mapping of keys");
        st = ST_INVALID;
    }
    if (st == ST_OK) {
        st = config_expand(raw, c->arena, env, probs, &c->root);
        wipe_tree(raw);
        if (st != ST_NOMEM) {
            st = config_override(c->root, c->arena, env, probs);
        }
        st = st == ST_NOMEM ? st : ST_OK;
    }
    arena_free(raw_arena);
    return st;
}

static enum status finish(struct config *c, enum status st, struct problems *probs,
                          struct config **out, struct error *err)
{
    const char *file = c->file != NULL ? c->file : "configuration";
    problems_sort(probs);
    if (st == ST_OK && probs->nerrors == 0) {
        *out = c;
        return ST_OK;
    }
    if (probs->nerrors != 0) {
        st = ST_INVALID;
        error_set(err, st, "%s: %zu error%s", file, probs->nerrors,
                  probs->nerrors == 1 ? "" : "s");
    } else {
        error_set(err, st, "%s: %s", file, status_name(st));
    }
    config_free(c);
    return st;
}

static enum status load_text(struct str text, const char *file, const char *dir,
                             const struct config_env *env, struct problems *probs,
                             struct config **out, struct error *err)
{
    struct config *c = new_config(file, dir);
    if (c == NULL) {
        return error_set(err, ST_NOMEM, "configuration: out of memory");
    }
    const char *home = config_env_get(env, "HOME");
    c->home = home != NULL ? arena_dup(c->arena, str_c(home)) : NULL;
    enum status st = home != NULL && c->home == NULL ? ST_NOMEM : ST_OK;
    if (st == ST_OK) {
        st = build_tree(c, text, env, probs);
    }
    if (st == ST_OK) {
        struct loader l = {.cfg = c, .env = env};
        l.reader = (struct reader){.arena = c->arena,
                                   .probs = probs,
                                   .dir = c->dir,
                                   .home = c->home,
                                   .prefix = "",
                                   .env_names = true};
        read_all(&l);
        st = l.reader.nomem ? ST_NOMEM : ST_OK;
    }
    if (st == ST_OK) {
        st = config_check(c, env, probs, file != NULL);
    }
    return finish(c, st, probs, out, err);
}

enum status config_parse(struct str text, const char *dir, const struct config_env *env,
                         struct problems *probs, struct config **out, struct error *err)
{
    return load_text(text, NULL, dir, env, probs, out, err);
}

/* Absolute text of path in a; without looking at the file system but for the working
 * directory. NULL: out of memory, or there is none. */
static char *absolute(struct arena *a, const char *path)
{
    char cwd[PATH_BYTES];
    if (path[0] == '/') {
        return arena_dup(a, str_c(path));
    }
    if (getcwd(cwd, sizeof(cwd)) == NULL) {
        return NULL;
    }
    return arena_printf(a, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
}

static enum status load_file(const char *path, struct arena *a,
                             const struct config_env *env, struct problems *probs,
                             struct config **out, struct error *err)
{
    struct buf text;
    buf_init(&text, YAML_MAX_BYTES + 1);
    char *file = absolute(a, path);
    char *slash = file != NULL ? strrchr(file, '/') : NULL;
    char *dir =
        slash != NULL
            ? arena_dup(a, str_n(file, slash == file ? 1 : (size_t)(slash - file)))
            : NULL;
    enum status st =
        dir != NULL ? ST_OK : error_set(err, ST_NOMEM, "%s: no memory", path);
    if (st == ST_OK) {
        st = io_read_file(path, YAML_MAX_BYTES, &text, err);
    }
    if (st == ST_TOO_LARGE) {
        problem_add(probs, false, (struct yaml_pos){0, 0}, "larger than 1 MiB");
        st = error_set(err, ST_INVALID, "%s: larger than 1 MiB", path);
    }
    if (st == ST_OK) {
        st = load_text(buf_str(&text), file, dir, env, probs, out, err);
    }
    buf_wipe(&text);
    return st;
}

enum status config_load(const char *path, const struct config_env *env,
                        struct problems *probs, struct config **out, struct error *err)
{
    struct arena *a = arena_new(65536);
    if (a == NULL) {
        return error_set(err, ST_NOMEM, "configuration: out of memory");
    }
    enum status st;
    if (path != NULL) {
        st = load_file(path, a, env, probs, out, err);
    } else {
        char *cwd = absolute(a, ".");
        if (cwd != NULL && strlen(cwd) > 2) {
            cwd[strlen(cwd) - 2] = '\0'; /* the "/." */
        }
        st = cwd == NULL ? error_set(err, ST_IO, "configuration: no working directory")
                         : load_text(STR_LIT(""), NULL, cwd, env, probs, out, err);
    }
    arena_free(a);
    return st;
}

const struct config_channel *config_channel(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->nchannels; i++) {
        if (strcmp(c->channels[i].name, name) == 0) {
            return &c->channels[i];
        }
    }
    return NULL;
}

const struct config_provider *config_provider(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->llm.nproviders; i++) {
        if (strcmp(c->llm.providers[i].name, name) == 0) {
            return &c->llm.providers[i];
        }
    }
    return NULL;
}
