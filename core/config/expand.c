/* ${NAME} in values. In: the tree as parsed and the environment snapshot. Out: a deep
 * copy with every value replaced. Pure. Never looks at keys, never expands twice, never
 * puts a value into a message. */
#include "config/env.h"

#include "config/keys.h"

#define EXPANDED_MAX ((size_t)1024 * 1024) /* of one value */
#define TOTAL_MAX ((size_t)4 * 1024 * 1024)

/* The way from the root to a value, written out only for a message. */
struct where {
    const struct where *up; /* NULL at the root */
    const struct yaml_node *node;
    size_t index;
};

struct expander {
    struct arena *arena;
    const struct config_env *env;
    struct problems *probs;
    size_t total;
    bool nomem;
};

static void put_path(const struct where *w, struct buf *out)
{
    if (w->up == NULL) {
        return;
    }
    put_path(w->up, out);
    if (w->up->node->kind == YAML_SEQ) {
        buf_addf(out, "[%zu]", w->index);
        return;
    }
    struct str key = w->node->key;
    buf_addf(out, "%s%.*s", out->len != 0 ? "." : "",
             STR_ARG(str_n(key.ptr, key.len < 64 ? key.len : 64)));
}

static void report(struct expander *x, const struct where *w, const char *what,
                   const char *name)
{
    struct buf path;
    buf_init(&path, 16384);
    put_path(w, &path);
    problem_add(x->probs, false, w->node->pos, "%s: %s%s", path.ptr, what, name);
    buf_done(&path);
}

static bool is_name_char(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

/* Length of the variable name that s begins with. */
static size_t name_len(struct str s)
{
    size_t i = 0;
    while (i < s.len && is_name_char(s.ptr[i], i == 0)) {
        i++;
    }
    return i;
}

/* A value that went into the configuration may be a secret: it need not stay readable in
 * /proc/PID/environ. Does nothing to a snapshot of given strings. */
static void hide_in_block(const struct config_env *env, const char *name)
{
    static const char *const harmless[] = {"HOME", "PATH", "LANG",  "TMPDIR", "USER",
                                           "TZ",   "PWD",  "SHELL", "LOGNAME"};
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (str_eq_c(str_c(name), harmless[i])) {
            return;
        }
    }
    config_env_hide(env, name);
}

/* One ${...}: inside is what stands between the braces. */
static void put_variable(struct expander *x, const struct where *w, struct str inside,
                         struct buf *out)
{
    size_t len = name_len(inside);
    struct str rest = str_n(inside.ptr + len, inside.len - len);
    bool has_default = str_starts(rest, STR_LIT(":-"));
    if (len == 0 || (rest.len != 0 && !has_default)) {
        report(x, w, "${...} must be ${NAME} or ${NAME:-text}; a dollar is written $$",
               "");
        return;
    }
    char *name = arena_dup(x->arena, str_n(inside.ptr, len));
    if (name == NULL) {
        x->nomem = true;
        return;
    }
    const char *value = config_env_get(x->env, name);
    if (value != NULL) {
        buf_add_c(out, value);
        hide_in_block(x->env, name);
    } else if (has_default) {
        buf_add_str(out, str_n(rest.ptr + 2, rest.len - 2));
    } else {
        report(x, w, "unset or empty environment variable ", name);
    }
}

static void put_expanded(struct expander *x, const struct where *w, struct buf *out)
{
    struct str s = w->node->text;
    while (s.len != 0) {
        size_t at = str_find_char(s, '$');
        if (at == SIZE_MAX || at + 1 == s.len) {
            buf_add_str(out, s);
            return;
        }
        buf_add_str(out, str_n(s.ptr, at));
        s = str_n(s.ptr + at, s.len - at);
        size_t used = 1;
        if (s.ptr[1] == '$') {
            buf_add_char(out, '$');
            used = 2;
        } else if (s.ptr[1] == '{') {
            size_t end = str_find_char(s, '}');
            if (end == SIZE_MAX) {
                report(x, w, "${ without }; a dollar is written $$", "");
                return;
            }
            put_variable(x, w, str_n(s.ptr + 2, end - 2), out);
            used = end + 1;
        } else {
            buf_add_char(out, '$');
        }
        s = str_n(s.ptr + used, s.len - used);
    }
}

static void expand_scalar(struct expander *x, struct yaml_node *copy,
                          const struct where *w)
{
    if (str_find_char(copy->text, '$') == SIZE_MAX) {
        return;
    }
    size_t errors = x->probs->nerrors;
    struct buf out;
    buf_init(&out, EXPANDED_MAX);
    put_expanded(x, w, &out);
    if (buf_status(&out) == ST_TOO_LARGE) {
        report(x, w, "larger than 1 MiB", "");
    } else if (buf_status(&out) != ST_OK) {
        x->nomem = true;
    } else {
        x->total += out.len;
        if (x->total > TOTAL_MAX) {
            report(x, w, "values add up to more than 4 MiB", "");
        } else {
            char *text = arena_dup(x->arena, buf_str(&out));
            x->nomem = x->nomem || text == NULL;
            copy->text = str_n(text, text != NULL ? out.len : 0);
            copy->expanded = true;
        }
    }
    buf_wipe(&out);
    if (x->probs->nerrors != errors) {
        copy->kind = YAML_NULL; /* one error is enough: the value counts as absent */
    }
}

/* Depth is bounded by YAML_MAX_DEPTH. */
static struct yaml_node *copy_node(struct expander *x, const struct yaml_node *from,
                                   const struct where *up, size_t index)
{
    struct yaml_node *copy = arena_alloc(x->arena, sizeof(*copy));
    if (copy == NULL) {
        x->nomem = true;
        return NULL;
    }
    *copy = *from;
    copy->next = NULL;
    copy->first = NULL;
    if (from->key.len != 0) {
        char *key = arena_dup(x->arena, from->key);
        x->nomem = x->nomem || key == NULL;
        copy->key = str_n(key, key != NULL ? from->key.len : 0);
    }
    struct where here = {up, copy, index};
    char *text = arena_dup(x->arena, from->text);
    x->nomem = x->nomem || text == NULL;
    copy->text = str_n(text, text != NULL ? from->text.len : 0);
    if (from->kind == YAML_SCALAR && text != NULL) {
        expand_scalar(x, copy, &here);
    }
    struct yaml_node **tail = &copy->first;
    size_t i = 0;
    for (const struct yaml_node *c = from->first; c != NULL && !x->nomem; c = c->next) {
        *tail = copy_node(x, c, &here, i++);
        if (*tail != NULL) {
            tail = &(*tail)->next;
        }
    }
    return copy;
}

enum status config_expand(const struct yaml_node *from, struct arena *a,
                          const struct config_env *env, struct problems *probs,
                          struct yaml_node **out)
{
    struct expander x = {.arena = a, .env = env, .probs = probs};
    size_t errors = probs->nerrors;
    struct yaml_node *copy = copy_node(&x, from, NULL, 0);
    if (x.nomem || copy == NULL) {
        return ST_NOMEM;
    }
    *out = copy; /* also with problems, so that the rest can be checked */
    return probs->nerrors == errors ? ST_OK : ST_INVALID;
}
