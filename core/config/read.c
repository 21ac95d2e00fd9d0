/* A mapping read by a table. In: the tree and the rows of known keys. Out: members of a
 * struct, and every problem at once. Pure. Never ignores a key: what the table does not
 * know is an error that names the nearest one. */
#include "config/keys.h"

#include <string.h>

#define NAME_MAX 64 /* longer than any key */

const struct key *key_find(const struct key_table *t, struct str path)
{
    for (size_t i = 0; i < t->n; i++) {
        if (str_eq_c(path, t->keys[i].path)) {
            return &t->keys[i];
        }
    }
    return NULL;
}

static bool is_inner(const struct key_table *t, struct str path)
{
    for (size_t i = 0; i < t->n; i++) {
        struct str known = str_c(t->keys[i].path);
        if (known.len > path.len && known.ptr[path.len] == '.' &&
            str_starts(known, path)) {
            return true;
        }
    }
    return false;
}

const struct yaml_node *key_node(const struct yaml_node *map, const char *path)
{
    struct str rest = str_c(path);
    struct str part;
    const struct yaml_node *at = map;
    while (at != NULL && str_split(&rest, '.', &part)) {
        if (at->kind != YAML_MAP) {
            return NULL;
        }
        const struct yaml_node *child = at->first;
        while (child != NULL && !str_eq(child->key, part)) {
            child = child->next;
        }
        at = child;
    }
    return at;
}

char *key_env_name(struct arena *a, const char *path)
{
    char *name = arena_printf(a, "SOULACY_%s", path);
    for (char *c = name; c != NULL && *c != '\0'; c++) {
        if (*c >= 'a' && *c <= 'z') {
            *c = (char)(*c - 'a' + 'A');
        } else if (*c == '.' || *c == '-') {
            *c = '_';
        }
    }
    return name;
}

void key_problem(struct reader *r, const struct yaml_node *node, const char *path,
                 const char *text)
{
    char *full = arena_printf(r->arena, "%s%s", r->prefix, path);
    char *env = full != NULL && node->origin == YAML_FROM_ENV && r->env_names
                    ? key_env_name(r->arena, full)
                    : NULL;
    problem_add(r->probs, false, node->pos, "%s: %s",
                env != NULL    ? env
                : full != NULL ? full
                               : path,
                text);
}

const char *key_nearest(struct str name, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        struct str known = str_c(names[i]);
        size_t distance = str_distance(name, known);
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    if (best_distance <= 1 + name.len / 3) {
        return best;
    }
    for (size_t i = 0; i < n; i++) {
        struct str known = str_c(names[i]);
        bool part = name.len >= 4 && name.len <= NAME_MAX &&
                    (str_find(known, name) != SIZE_MAX ||
                     (known.len >= 4 && str_find(name, known) != SIZE_MAX));
        if (part) {
            return names[i];
        }
    }
    return NULL;
}

char *key_abs_path(struct reader *r, const struct yaml_node *node, const char *path,
                   struct str value)
{
    struct str base = str_c(r->dir);
    if (value.len == 0) {
        char *empty = arena_dup(r->arena, STR_NONE);
        r->nomem = r->nomem || empty == NULL;
        return empty;
    }
    if (value.ptr[0] == '~') {
        if (value.len != 1 && value.ptr[1] != '/') {
            key_problem(r, node, path, "only ~/ is understood, not another user's home");
            return NULL;
        }
        if (r->home == NULL || r->home[0] != '/') {
            key_problem(r, node, path, "begins with ~/ but HOME is not set");
            return NULL;
        }
        base = str_c(r->home);
        value = str_n(value.ptr + 1, value.len - 1);
    } else if (value.ptr[0] == '/') {
        base = STR_NONE;
    }
    struct buf out;
    buf_init(&out, YAML_MAX_BYTES * 2);
    struct str parts[2] = {base, value};
    for (size_t i = 0; i < 2; i++) {
        struct str part;
        while (str_split(&parts[i], '/', &part)) {
            if (part.len != 0 && !str_eq_c(part, ".")) {
                buf_add_char(&out, '/');
                buf_add_str(&out, part);
            }
        }
    }
    if (out.len == 0) {
        buf_add_char(&out, '/');
    }
    char *copy = buf_status(&out) == ST_OK ? arena_dup(r->arena, buf_str(&out)) : NULL;
    r->nomem = r->nomem || copy == NULL;
    buf_done(&out);
    return copy;
}

/* The names that may stand where path stands: the next parts below its parent. */
static size_t sibling_names(struct reader *r, const struct key_table *t,
                            struct str parent, const char **names, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n && n < max; i++) {
        struct str known = str_c(t->keys[i].path);
        if ((t->keys[i].flags & KEY_FOREIGN) != 0) {
            continue;
        }
        if (parent.len != 0) {
            if (!str_starts(known, parent) || known.ptr[parent.len] != '.') {
                continue;
            }
            known = str_n(known.ptr + parent.len + 1, known.len - parent.len - 1);
        }
        size_t dot = str_find_char(known, '.');
        struct str part = dot == SIZE_MAX ? known : str_n(known.ptr, dot);
        bool seen = false;
        for (size_t j = 0; j < n && !seen; j++) {
            seen = str_eq_c(part, names[j]);
        }
        char *copy = seen ? NULL : arena_dup(r->arena, part);
        if (copy != NULL) {
            names[n++] = copy;
        }
    }
    return n;
}

/* A path of the table that ends in name, or has it as an inner part. */
static struct str path_named(const struct key_table *t, struct str name)
{
    for (size_t i = 0; i < t->n; i++) {
        struct str known = str_c(t->keys[i].path);
        struct str rest = known;
        struct str part;
        while (str_split(&rest, '.', &part)) {
            if (str_eq(part, name)) {
                return str_n(known.ptr, (size_t)(part.ptr - known.ptr) + part.len);
            }
        }
    }
    return STR_NONE;
}

static void unknown_key(struct reader *r, const struct key_table *t,
                        const struct yaml_node *node, struct str parent)
{
    const char *names[NAME_MAX];
    size_t n = sibling_names(r, t, parent, names, NAME_MAX);
    const char *near = key_nearest(node->key, names, n);
    struct buf text;
    buf_init(&text, 1024);
    buf_add_c(&text, "unknown key");
    const char *dot = parent.len != 0 ? "." : "";
    if (near != NULL) {
        buf_addf(&text, ", did you mean %s%.*s%s%s?", r->prefix, STR_ARG(parent), dot,
                 near);
    } else {
        struct str elsewhere = path_named(t, node->key);
        if (elsewhere.len != 0) {
            buf_addf(&text, ", did you mean %s%.*s?", r->prefix, STR_ARG(elsewhere));
        } else {
            buf_add_c(&text, "; known here:");
            for (size_t i = 0; i < n; i++) {
                buf_addf(&text, "%s %s", i == 0 ? "" : ",", names[i]);
            }
        }
    }
    size_t len = node->key.len < NAME_MAX ? node->key.len : NAME_MAX;
    problem_add(r->probs, false, node->key_pos, "%s%.*s%s%.*s: %s", r->prefix,
                STR_ARG(parent), dot, (int)len, node->key.ptr, text.ptr);
    buf_done(&text);
}

static void foreign_key(struct reader *r, const struct key *k,
                        const struct yaml_node *node)
{
    problem_add(r->probs, true, node->key_pos, "%s%s: accepted, without effect here%s%s",
                r->prefix, k->path, k->note != NULL ? ": " : "",
                k->note != NULL ? k->note : "");
}

/* A key that no row has: an error, unless it is someone else's. */
static void visit_unknown(struct reader *r, const struct key_table *t,
                          const struct yaml_node *n, struct str parent, const char *path)
{
    bool foreign =
        path != NULL && r->foreign != NULL && r->foreign(r->foreign_ctx, str_c(path));
    if (!t->open && !foreign) {
        unknown_key(r, t, n, parent);
    }
}

/* Look for keys nobody knows. Depth is bounded by the table's longest path. */
static void visit(struct reader *r, const struct key_table *t,
                  const struct yaml_node *map, struct str parent)
{
    for (const struct yaml_node *n = map->first; n != NULL && !r->nomem; n = n->next) {
        if (n->key.len > NAME_MAX || str_find_char(n->key, '.') != SIZE_MAX) {
            visit_unknown(r, t, n, parent, NULL);
            continue;
        }
        char *path = arena_printf(r->arena, "%.*s%s%.*s", STR_ARG(parent),
                                  parent.len != 0 ? "." : "", STR_ARG(n->key));
        if (path == NULL) {
            r->nomem = true;
            return;
        }
        const struct key *k = key_find(t, str_c(path));
        if (k != NULL && (k->flags & KEY_FOREIGN) != 0) {
            foreign_key(r, k, n);
        } else if (k == NULL && !is_inner(t, str_c(path))) {
            visit_unknown(r, t, n, parent, path);
        } else if (k == NULL && n->kind == YAML_MAP) {
            visit(r, t, n, str_c(path));
        } else if (k == NULL && n->kind != YAML_NULL) {
            key_problem(r, n, path, "must be a mapping");
        }
    }
}

void key_read_table(struct reader *r, const struct key_table *t,
                    const struct yaml_node *map, void *base)
{
    struct yaml_pos pos = {0, 0};
    if (map != NULL) {
        pos = map->pos;
        visit(r, t, map, STR_NONE);
    }
    for (size_t i = 0; i < t->n && !r->nomem; i++) {
        const struct key *k = &t->keys[i];
        if (k->type == K_GROUP || (k->flags & KEY_FOREIGN) != 0) {
            continue;
        }
        const struct yaml_node *node = key_node(map, k->path);
        if (node != NULL && node->kind == YAML_NULL) {
            if (k->type == K_OPT_LIST) {
                key_problem(r, node, k->path, "is empty: write [] for none");
            }
            node = NULL;
        }
        bool member = base != NULL && (k->flags & KEY_NODE) == 0;
        key_read_value(r, k, node, pos, member ? (char *)base + k->offset : NULL);
    }
}
