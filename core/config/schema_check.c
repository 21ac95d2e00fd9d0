/* Arguments against rules. In: compiled rules and the arguments as JSON text. Out: yes,
 * or one line for the model that names the place and what is wanted. Pure and bounded:
 * whatever rules and arguments are, it ends after a fixed number of steps, and then the
 * answer is no. */
#include "config/schema.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)256 * 1024 * 1024)
#define STEPS_MAX 2000000U
#define CANON_MAX ((size_t)16 * 1024 * 1024)
#define DEPTH_MAX 200U /* rules open at once: 64 levels of value, a few rules each */
#define NAME_SHOWN 64
#define PATTERN_STEPS 100

struct checker {
    const struct schema *s;
    struct arena *arena;
    struct error *err;
    size_t steps, depth;
    unsigned quiet;    /* above 0: a failure is no message (anyOf, not) */
    enum status fatal; /* ST_OK, or why no answer can be given */
};

static struct str clip(struct str s)
{
    return s.len <= NAME_SHOWN ? s : str_n(s.ptr, utf8_cut(s, NAME_SHOWN));
}

static bool is_word(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                    c == '-' || (c >= '0' && c <= '9');
        if (!fine) {
            return false;
        }
    }
    return s.len != 0;
}

/* arguments.list[3].name */
static void put_path(const struct jvalue *v, struct buf *out)
{
    if (v->up == NULL) {
        buf_add_c(out, "arguments");
        return;
    }
    put_path(v->up, out);
    if (v->up->kind == J_ARRAY) {
        buf_addf(out, "[%zu]", v->index);
    } else if (is_word(v->key)) {
        buf_addf(out, ".%.*s", STR_ARG(clip(v->key)));
    } else {
        buf_addf(out, "[\"%.*s\"]", STR_ARG(clip(v->key)));
    }
}

/* Report that v is wrong: "PATH: WHAT"; name (may be NULL) is put behind the path. */
static bool fail_at(struct checker *x, const struct jvalue *v, const struct str *name,
                    const char *what)
{
    if (x->quiet != 0 || x->fatal != ST_OK) {
        return false;
    }
    struct buf path;
    buf_init(&path, 16384);
    put_path(v, &path);
    if (name != NULL) {
        bool word = is_word(*name);
        buf_addf(&path, word ? ".%.*s" : "[\"%.*s\"]", STR_ARG(clip(*name)));
    }
    error_set(x->err, ST_INVALID, "%s: %s", path.ptr, what);
    buf_done(&path);
    return false;
}

static bool give_up(struct checker *x, enum status st, const char *why)
{
    if (x->fatal == ST_OK) {
        x->fatal = error_set(x->err, st, "arguments: %s", why);
    }
    return false;
}

static bool spend(struct checker *x, size_t steps)
{
    x->steps += steps;
    return x->steps <= STEPS_MAX ||
           give_up(x, ST_INVALID, "too large to be checked against this tool's schema");
}

/* ---- one value ------------------------------------------------------------------------ */

static unsigned types_of(const struct jvalue *v)
{
    struct decimal d;
    switch (v->kind) {
    case J_NULL:
        return T_NULL;
    case J_BOOL:
        return T_BOOLEAN;
    case J_STRING:
        return T_STRING;
    case J_ARRAY:
        return T_ARRAY;
    case J_OBJECT:
        return T_OBJECT;
    case J_NUMBER:
        break;
    }
    decimal_parse(v->text, &d);
    return decimal_is_integer(&d) ? T_NUMBER | T_INTEGER : T_NUMBER;
}

static bool wrong_type(struct checker *x, const struct jvalue *v, unsigned types)
{
    static const char *const names[] = {"null",     "true or false", "a whole number",
                                        "a number", "a string",      "a list",
                                        "an object"};
    struct buf b;
    buf_init(&b, 256);
    for (unsigned i = 0; i < 7; i++) {
        if ((types & (1U << i)) != 0) {
            buf_addf(&b, "%s%s", b.len == 0 ? "must be " : " or ", names[i]);
        }
    }
    fail_at(x, v, NULL, b.ptr);
    buf_done(&b);
    return false;
}

static bool check_type(struct checker *x, const struct rule *r, const struct jvalue *v)
{
    return r->types == 0 || (types_of(v) & r->types) != 0 || wrong_type(x, v, r->types);
}

/* The canonical text of v in the arena; ptr NULL on failure. */
static struct str canon_of(struct checker *x, const struct jvalue *v)
{
    struct buf b;
    buf_init(&b, CANON_MAX);
    enum status st = jvalue_canon(v, x->arena, &b);
    char *copy = st == ST_OK ? arena_dup(x->arena, buf_str(&b)) : NULL;
    struct str out = str_n(copy, copy != NULL ? b.len : 0);
    bool paid = spend(x, b.len / 16 + 1);
    buf_done(&b);
    if (st == ST_TOO_LARGE) {
        give_up(x, ST_INVALID, "too large to be checked against this tool's schema");
    } else if (copy == NULL) {
        give_up(x, ST_NOMEM, "out of memory");
    }
    return paid ? out : STR_NONE;
}

static bool check_values(struct checker *x, const struct rule *r, const struct jvalue *v)
{
    if (r->nvalues == 0 && !r->constant) {
        return true;
    }
    struct str canon = canon_of(x, v);
    if (canon.ptr == NULL || !spend(x, r->nvalues)) {
        return false;
    }
    bool hit = r->nvalues == 0;
    for (size_t i = 0; i < r->nvalues && !hit; i++) {
        hit = str_eq(canon, r->values[i]);
    }
    if (hit && (!r->constant || str_eq(canon, r->value))) {
        return true;
    }
    struct buf b;
    buf_init(&b, 1024);
    if (hit) {
        buf_addf(&b, "must be %.*s", STR_ARG(clip(r->value_shown)));
    }
    for (size_t i = 0; i < r->nvalues && !hit && b.len < 300; i++) {
        buf_addf(&b, "%s%.*s", i == 0 ? "must be one of " : ", ",
                 STR_ARG(clip(r->shown[i])));
    }
    if (b.len >= 300) {
        buf_add_c(&b, ", ...");
    }
    fail_at(x, v, NULL, b.ptr);
    buf_done(&b);
    return false;
}

static bool check_bound(struct checker *x, const struct bound *b, const struct jvalue *v,
                        bool fine, const char *words)
{
    if (!b->set || fine) {
        return true;
    }
    struct buf text;
    buf_init(&text, 256);
    buf_addf(&text, "%s %.*s", words, STR_ARG(clip(b->text)));
    fail_at(x, v, NULL, text.ptr);
    buf_done(&text);
    return false;
}

static bool check_number(struct checker *x, const struct rule *r, const struct jvalue *v)
{
    struct decimal d;
    decimal_parse(v->text, &d);
    const struct bound *min = &r->min;
    const struct bound *max = &r->max;
    return check_bound(x, min, v, !min->set || decimal_compare(&d, &min->value) >= 0,
                       "must be at least") &&
           check_bound(x, max, v, !max->set || decimal_compare(&d, &max->value) <= 0,
                       "must be at most") &&
           check_bound(x, &r->above, v,
                       !r->above.set || decimal_compare(&d, &r->above.value) > 0,
                       "must be above") &&
           check_bound(x, &r->below, v,
                       !r->below.set || decimal_compare(&d, &r->below.value) < 0,
                       "must be below") &&
           check_bound(x, &r->step, v,
                       !r->step.set || decimal_is_multiple(&d, &r->step.value),
                       "must be a multiple of");
}

static bool check_count(struct checker *x, const struct jvalue *v, size_t n, int64_t min,
                        int64_t max, const char *what)
{
    bool few = min >= 0 && (uint64_t)n < (uint64_t)min;
    bool many = max >= 0 && (uint64_t)n > (uint64_t)max;
    if (!few && !many) {
        return true;
    }
    struct buf b;
    buf_init(&b, 256);
    buf_addf(&b, "must have at %s %lld %s, has %zu", few ? "least" : "most",
             (long long)(few ? min : max), what, n);
    fail_at(x, v, NULL, b.ptr);
    buf_done(&b);
    return false;
}

static bool check_pattern(struct checker *x, const struct rule *r, const struct jvalue *v)
{
    if (r->pattern == NULL) {
        return true;
    }
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(r->pattern, NULL);
    if (data == NULL) {
        return give_up(x, ST_NOMEM, "out of memory");
    }
    struct str s = v->text.len != 0 ? v->text : STR_LIT("");
    int hit = pcre2_match(r->pattern, (PCRE2_SPTR)s.ptr, s.len, 0, PCRE2_NO_UTF_CHECK,
                          data, x->s->limits);
    pcre2_match_data_free(data);
    if (hit == PCRE2_ERROR_NOMEMORY) {
        return give_up(x, ST_NOMEM, "out of memory");
    }
    if (!spend(x, PATTERN_STEPS + s.len / 16)) {
        return false;
    }
    if (hit >= 0) {
        return true;
    }
    struct buf b;
    buf_init(&b, 512);
    if (hit == PCRE2_ERROR_NOMATCH) {
        buf_addf(&b, "must match the pattern %.*s",
                 STR_ARG(str_n(r->pattern_text.ptr, utf8_cut(r->pattern_text, 200))));
        fail_at(x, v, NULL, b.ptr);
    } else {
        give_up(x, ST_INVALID,
                "a text takes too long to match the pattern of its schema");
    }
    buf_done(&b);
    return false;
}

static bool check_string(struct checker *x, const struct rule *r, const struct jvalue *v)
{
    if (r->min_length >= 0 || r->max_length >= 0) {
        size_t n = utf8_count(v->text);
        if (!spend(x, n / 64) ||
            !check_count(x, v, n, r->min_length, r->max_length, "characters")) {
            return false;
        }
    }
    return check_pattern(x, r, v);
}

static int by_bytes(const void *a, const void *b)
{
    const struct str *s = a;
    const struct str *t = b;
    size_t n = s->len < t->len ? s->len : t->len;
    int order = n != 0 ? memcmp(s->ptr, t->ptr, n) : 0;
    return order != 0 ? order : (s->len > t->len) - (s->len < t->len);
}

static bool check_unique(struct checker *x, const struct jvalue *v)
{
    struct str *texts = arena_array(x->arena, v->n + 1, sizeof(*texts));
    size_t n = 0;
    if (texts == NULL) {
        return give_up(x, ST_NOMEM, "out of memory");
    }
    for (const struct jvalue *c = v->first; c != NULL; c = c->next) {
        texts[n] = canon_of(x, c);
        if (texts[n++].ptr == NULL) {
            return false;
        }
    }
    qsort(texts, n, sizeof(*texts), by_bytes);
    for (size_t i = 1; i < n; i++) {
        if (str_eq(texts[i - 1], texts[i])) {
            return fail_at(x, v, NULL, "must not contain a value twice");
        }
    }
    return true;
}

/* ---- values in values ------------------------------------------------------------------ */

static bool unknown_property(struct checker *x, const struct rule *r,
                             const struct jvalue *v)
{
    size_t best = SIZE_MAX;
    struct str near = STR_NONE;
    for (size_t i = 0; i < r->nprops && x->quiet == 0; i++) {
        size_t distance = str_distance(v->key, r->props[i].name);
        if (distance < best && distance <= 1 + v->key.len / 3) {
            best = distance;
            near = r->props[i].name;
        }
    }
    struct buf b;
    buf_init(&b, 512);
    buf_add_c(&b, "is no argument of this tool");
    if (v->up->up != NULL) {
        buf_clear(&b);
        buf_add_c(&b, "is not known here");
    }
    if (near.len != 0) {
        buf_addf(&b, ", did you mean %.*s?", STR_ARG(clip(near)));
    }
    fail_at(x, v, NULL, b.ptr);
    buf_done(&b);
    return false;
}

static bool check_required(struct checker *x, const struct rule *r,
                           const struct jvalue *v)
{
    for (size_t i = 0; i < r->nrequired; i++) {
        const struct jvalue *c = v->first;
        size_t steps = 1;
        while (c != NULL && !str_eq(c->key, r->required[i])) {
            c = c->next;
            steps++;
        }
        if (!spend(x, steps)) {
            return false;
        }
        if (c == NULL) {
            return fail_at(x, v, &r->required[i], "is required");
        }
    }
    return true;
}

/* A rule for a value; declared as a member so that the cycle rule -> member -> rule needs
 * no forward declaration of a function. */
typedef bool check_fn(struct checker *x, const struct rule *r, const struct jvalue *v,
                      const void *self);
struct recursion {
    check_fn *check;
};

static bool again(struct checker *x, const struct rule *r, const struct jvalue *v,
                  const struct recursion *self)
{
    return r == NULL || self->check(x, r, v, self);
}

static bool check_object(struct checker *x, const struct rule *r, const struct jvalue *v,
                         const struct recursion *self)
{
    if (!check_count(x, v, v->n, r->min_props, r->max_props, "members") ||
        !check_required(x, r, v)) {
        return false;
    }
    if (r->nprops == 0 && r->additional == NULL) {
        return true;
    }
    for (const struct jvalue *c = v->first; c != NULL; c = c->next) {
        size_t at = schema_property(r, c->key);
        const struct rule *next = at != SIZE_MAX ? r->props[at].rule : r->additional;
        if (!spend(x, 1)) {
            return false;
        }
        if (at == SIZE_MAX && next != NULL && next->never) {
            return unknown_property(x, r, c);
        }
        if (!again(x, next, c, self)) {
            return false;
        }
    }
    return true;
}

static bool check_array(struct checker *x, const struct rule *r, const struct jvalue *v,
                        const struct recursion *self)
{
    if (!check_count(x, v, v->n, r->min_items, r->max_items, "items")) {
        return false;
    }
    for (const struct jvalue *c = v->first; c != NULL && r->items != NULL; c = c->next) {
        if (!spend(x, 1) || !again(x, r->items, c, self)) {
            return false;
        }
    }
    return !r->unique || check_unique(x, v);
}

static size_t count_matches(struct checker *x, const struct rule_list *l,
                            const struct jvalue *v, size_t enough,
                            const struct recursion *self)
{
    size_t n = 0;
    x->quiet++;
    for (size_t i = 0; i < l->n && n < enough && x->fatal == ST_OK; i++) {
        n += again(x, l->items[i], v, self) ? 1 : 0;
    }
    x->quiet--;
    return n;
}

/* Which form was meant? The one of the value's type, when there is just one. */
static bool no_form(struct checker *x, const struct rule_list *l, const struct jvalue *v,
                    const char *what, const struct recursion *self)
{
    unsigned have = types_of(v);
    unsigned types = 0;
    const struct rule *meant = NULL;
    size_t fitting = 0;
    for (size_t i = 0; i < l->n; i++) {
        unsigned wanted = l->items[i]->types;
        if (wanted == 0 || (wanted & have) != 0) {
            fitting++;
            meant = l->items[i];
        }
        types |= wanted;
    }
    if (fitting == 0) {
        return wrong_type(x, v, types);
    }
    if (fitting == 1 && x->quiet == 0) {
        return again(x, meant, v, self); /* once more, for its message */
    }
    return fail_at(x, v, NULL, what);
}

static bool check_combined(struct checker *x, const struct rule *r,
                           const struct jvalue *v, const struct recursion *self)
{
    for (size_t i = 0; i < r->all.n; i++) {
        if (!again(x, r->all.items[i], v, self)) {
            return false;
        }
    }
    if (r->any.n == 1 && !again(x, r->any.items[0], v, self)) {
        return false;
    }
    if (r->any.n > 1 && count_matches(x, &r->any, v, 1, self) == 0) {
        return no_form(x, &r->any, v, "has none of the forms allowed here (anyOf)", self);
    }
    if (r->one.n != 0) {
        size_t n = count_matches(x, &r->one, v, 2, self);
        if (n == 0) {
            return no_form(x, &r->one, v, "has none of the forms allowed here (oneOf)",
                           self);
        }
        if (n > 1) {
            return fail_at(x, v, NULL,
                           "has more than one of the forms allowed here (oneOf)");
        }
    }
    if (r->negated != NULL) {
        struct rule *item[1] = {r->negated};
        struct rule_list l = {item, 1};
        if (count_matches(x, &l, v, 1, self) != 0) {
            return fail_at(x, v, NULL, "has a form that is excluded here (not)");
        }
    }
    return again(x, r->ref, v, self);
}

static bool check_kind(struct checker *x, const struct rule *r, const struct jvalue *v,
                       const struct recursion *self)
{
    switch (v->kind) {
    case J_NUMBER:
        return check_number(x, r, v);
    case J_STRING:
        return check_string(x, r, v);
    case J_ARRAY:
        return check_array(x, r, v, self);
    case J_OBJECT:
        return check_object(x, r, v, self);
    case J_NULL:
    case J_BOOL:
        break;
    }
    return true;
}

static bool check_rule(struct checker *x, const struct rule *r, const struct jvalue *v,
                       const void *self)
{
    if (r->never) {
        return fail_at(x, v, NULL, "must not be given");
    }
    if (x->fatal != ST_OK || !spend(x, 1)) {
        return false;
    }
    if (x->depth == DEPTH_MAX) {
        return give_up(x, ST_INVALID, "nested too deeply for this tool's schema");
    }
    x->depth++;
    bool ok = check_type(x, r, v) && check_values(x, r, v) && check_kind(x, r, v, self) &&
              check_combined(x, r, v, self);
    x->depth--;
    return ok;
}

enum status schema_check(const struct schema *s, struct str args, struct error *err)
{
    struct jvalue *v = NULL;
    struct arena *a = arena_new(ARENA_MAX);
    if (a == NULL) {
        return error_set(err, ST_NOMEM, "arguments: out of memory");
    }
    struct checker x = {.s = s, .arena = a, .err = err, .fatal = ST_OK};
    struct recursion self = {check_rule};
    enum status st = jvalue_parse(args, a, &v, err);
    if (st == ST_OK && v->kind != J_OBJECT) {
        st = error_set(err, ST_INVALID, "arguments: must be an object");
    } else if (st == ST_OK) {
        bool ok = check_rule(&x, s->root, v, &self);
        st = x.fatal != ST_OK ? x.fatal : ok ? ST_OK : ST_INVALID;
    } else if (st == ST_INVALID) {
        error_context(err, "arguments");
    }
    arena_free(a);
    return st;
}
