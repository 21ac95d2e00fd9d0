/* The keywords of JSON Schema. In: one keyword of one schema. Out: its rule filled in, or
 * the first fault with its place. Pure. Never keeps a keyword that can't be enforced
 * without saying so (strict mode), never recurses: a schema inside becomes a rule that
 * waits in the list. */
#include "config/schema.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)1024 * 1024)
#define RULES_MAX 10000
#define PATTERN_MAX 4096
#define STEP_DIGITS_MAX 18

/* "parameters.properties.x" or the like: where v stands in the document. */
static void put_place(const struct jvalue *v, struct buf *out)
{
    if (v->up == NULL) {
        buf_add_char(out, '#');
        return;
    }
    put_place(v->up, out);
    if (v->up->kind == J_ARRAY) {
        buf_addf(out, "/%zu", v->index);
    } else {
        buf_addf(out, "/%.*s", STR_ARG(str_n(v->key.ptr, utf8_cut(v->key, 64))));
    }
}

void schema_fault(struct compiler *x, const struct jvalue *v, const char *what)
{
    if (x->status != ST_OK) {
        return;
    }
    struct buf place;
    buf_init(&place, 8192);
    put_place(v, &place);
    x->status = error_set(x->err, ST_INVALID, "%s: %s", place.ptr, what);
    buf_done(&place);
}

static void no_memory(struct compiler *x)
{
    if (x->status == ST_OK) {
        x->status = error_set(x->err, ST_NOMEM, "JSON Schema: out of memory");
    }
}

/* In lenient mode a keyword that makes no sense is left out. */
static void malformed(struct compiler *x, const struct jvalue *v, const char *what)
{
    if (!x->lenient) {
        schema_fault(x, v, what);
    }
}

/* The rule for a schema in the document, made when it is first asked for. */
struct rule *schema_rule_for(struct compiler *x, struct jvalue *v)
{
    if (v->mark != NULL) {
        return v->mark;
    }
    if (v->kind != J_OBJECT && v->kind != J_BOOL) {
        malformed(x, v, "must be a schema (an object, true or false)");
        return NULL;
    }
    if (++x->s->nrules > RULES_MAX) {
        schema_fault(x, v, "more than 10000 schemas");
        return NULL;
    }
    struct rule *r = arena_alloc(x->s->arena, sizeof(*r));
    if (r == NULL) {
        no_memory(x);
        return NULL;
    }
    r->source = v;
    r->never = v->kind == J_BOOL && !v->truth;
    r->min_length = r->max_length = -1;
    r->min_items = r->max_items = -1;
    r->min_props = r->max_props = -1;
    if (x->s->last != NULL) {
        x->s->last->next = r;
    }
    x->s->last = r;
    v->mark = r;
    return r;
}

void *schema_array(struct compiler *x, size_t n, size_t size)
{
    void *p = arena_array(x->s->arena, n + 1, size);
    if (p == NULL) {
        no_memory(x);
    }
    return p;
}

/* ---- keywords -------------------------------------------------------------------- */

static unsigned type_bit(struct str name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } types[] = {{"null", T_NULL},     {"boolean", T_BOOLEAN}, {"integer", T_INTEGER},
                 {"number", T_NUMBER}, {"string", T_STRING},   {"array", T_ARRAY},
                 {"object", T_OBJECT}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (str_eq_c(name, types[i].name)) {
            return types[i].bit;
        }
    }
    return 0;
}

static void on_type(struct compiler *x, struct rule *r, struct jvalue *v)
{
    const struct jvalue *item = v->kind == J_ARRAY ? v->first : v;
    unsigned types = 0;
    if (item == NULL) {
        malformed(x, v, "must name a type");
        return;
    }
    for (; item != NULL; item = v->kind == J_ARRAY ? item->next : NULL) {
        unsigned bit = item->kind == J_STRING ? type_bit(item->text) : 0;
        if (bit == 0) {
            malformed(x, item,
                      "must be null, boolean, integer, number, string, array or object");
            return;
        }
        types |= bit;
    }
    r->types = types;
}

static void on_values(struct compiler *x, struct rule *r, struct jvalue *v, bool constant)
{
    if (!constant && v->kind != J_ARRAY) {
        malformed(x, v, "must be a list of values");
        return;
    }
    if (!constant && v->first == NULL) {
        malformed(x, v, "must not be empty: nothing could match");
        return;
    }
    size_t n = constant ? 1 : v->n;
    struct str *canon = schema_array(x, n, sizeof(*canon));
    struct str *shown = schema_array(x, n, sizeof(*shown));
    if (canon == NULL || shown == NULL) {
        return;
    }
    const struct jvalue *item = constant ? v : v->first;
    for (size_t i = 0; i < n; i++, item = item->next) {
        struct buf text;
        buf_init(&text, TEXT_MAX * 4);
        char *copy = NULL;
        if (jvalue_canon(item, x->s->arena, &text) == ST_OK) {
            copy = arena_dup(x->s->arena, buf_str(&text));
        }
        canon[i] = str_n(copy, copy != NULL ? text.len : 0);
        shown[i] = item->raw;
        buf_done(&text);
        if (copy == NULL) {
            no_memory(x);
            return;
        }
    }
    if (constant) {
        r->constant = true;
        r->value = canon[0];
        r->value_shown = shown[0];
        return;
    }
    r->values = canon;
    r->shown = shown;
    r->nvalues = n;
}

static void on_bound(struct compiler *x, struct bound *b, struct jvalue *v)
{
    if (v->kind != J_NUMBER) {
        malformed(x, v, "must be a number");
        return;
    }
    decimal_parse(v->text, &b->value);
    b->text = v->text;
    b->set = true;
}

static void on_step(struct compiler *x, struct rule *r, struct jvalue *v)
{
    struct bound b = {.set = false};
    on_bound(x, &b, v);
    if (!b.set) {
        return;
    }
    if (b.value.zero || b.value.negative || b.value.n > STEP_DIGITS_MAX) {
        malformed(x, v, "must be above 0 with at most 18 digits");
        return;
    }
    r->step = b;
}

static void on_count(struct compiler *x, int64_t *out, struct jvalue *v)
{
    struct decimal d;
    if (v->kind == J_NUMBER) {
        decimal_parse(v->text, &d);
        if (!d.negative && decimal_is_integer(&d) && (d.zero || d.exp <= 15)) {
            int64_t n = 0;
            size_t digits = 0;
            for (size_t i = 0; i < d.digits.len; i++) {
                if (d.digits.ptr[i] != '.') {
                    n = n * 10 + (d.digits.ptr[i] - '0');
                    digits++;
                }
            }
            for (; !d.zero && (int64_t)digits < d.exp; digits++) {
                n *= 10;
            }
            *out = n;
            return;
        }
    }
    malformed(x, v, "must be a whole number of at least 0");
}

static void on_pattern(struct compiler *x, struct rule *r, struct jvalue *v)
{
    if (v->kind != J_STRING || v->text.len > PATTERN_MAX) {
        malformed(x, v, "must be a pattern of at most 4096 bytes");
        return;
    }
    int code = 0;
    PCRE2_SIZE at = 0;
    r->pattern = pcre2_compile((PCRE2_SPTR)v->text.ptr, v->text.len,
                               PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C |
                                   PCRE2_DOLLAR_ENDONLY,
                               &code, &at, x->pcre);
    r->pattern_text = v->text;
    if (r->pattern == NULL && code == PCRE2_ERROR_HEAP_FAILED) {
        no_memory(x);
    } else if (r->pattern == NULL) {
        char text[160] = "";
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
        struct buf b;
        buf_init(&b, 256);
        buf_addf(&b, "not a pattern: %s (at byte %zu)", text, (size_t)at);
        malformed(x, v, b.ptr);
        buf_done(&b);
    }
}

static void on_flag(struct compiler *x, bool *out, struct jvalue *v)
{
    if (v->kind == J_BOOL) {
        *out = v->truth;
    } else {
        malformed(x, v, "must be true or false");
    }
}

static int by_name(const void *a, const void *b)
{
    const struct property *p = a;
    const struct property *q = b;
    size_t n = p->name.len < q->name.len ? p->name.len : q->name.len;
    int order = n != 0 ? memcmp(p->name.ptr, q->name.ptr, n) : 0;
    return order != 0 ? order : (p->name.len > q->name.len) - (p->name.len < q->name.len);
}

size_t schema_property(const struct rule *r, struct str name)
{
    struct property wanted = {.name = name};
    const struct property *found =
        r->nprops != 0 ? bsearch(&wanted, r->props, r->nprops, sizeof(wanted), by_name)
                       : NULL;
    return found != NULL ? (size_t)(found - r->props) : SIZE_MAX;
}

static void on_properties(struct compiler *x, struct rule *r, struct jvalue *v)
{
    if (v->kind != J_OBJECT) {
        malformed(x, v, "must be an object of schemas");
        return;
    }
    r->props = schema_array(x, v->n, sizeof(*r->props));
    if (r->props == NULL) {
        return;
    }
    for (struct jvalue *c = v->first; c != NULL; c = c->next) {
        r->props[r->nprops++] = (struct property){c->key, schema_rule_for(x, c)};
    }
    qsort(r->props, r->nprops, sizeof(*r->props), by_name);
}

static void on_required(struct compiler *x, struct rule *r, struct jvalue *v)
{
    if (v->kind != J_ARRAY) {
        malformed(x, v, "must be a list of names");
        return;
    }
    r->required = schema_array(x, v->n, sizeof(*r->required));
    for (const struct jvalue *c = v->first; c != NULL && r->required != NULL;
         c = c->next) {
        if (c->kind != J_STRING) {
            malformed(x, c, "must be a name");
            return;
        }
        r->required[r->nrequired++] = c->text;
    }
}

static void on_list(struct compiler *x, struct rule_list *out, struct jvalue *v)
{
    if (v->kind != J_ARRAY || v->first == NULL) {
        malformed(x, v, "must be a list of at least one schema");
        return;
    }
    out->items = schema_array(x, v->n, sizeof(struct rule *));
    for (struct jvalue *c = v->first; c != NULL && out->items != NULL; c = c->next) {
        struct rule *r = schema_rule_for(x, c);
        if (r != NULL) {
            out->items[out->n++] = r;
        }
    }
}

/* Definitions are compiled even when nothing refers to them: a fault in one is a fault. */
static void on_definitions(struct compiler *x, struct jvalue *v)
{
    if (v->kind != J_OBJECT) {
        malformed(x, v, "must be an object of schemas");
        return;
    }
    for (struct jvalue *c = v->first; c != NULL; c = c->next) {
        (void)schema_rule_for(x, c);
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One part of a JSON pointer (RFC 6901, in a URI fragment): %XX, ~0, ~1. */
static struct str pointer_part(struct compiler *x, struct str part)
{
    char *out = arena_alloc(x->s->arena, part.len + 1);
    size_t n = 0;
    if (out == NULL) {
        no_memory(x);
        return STR_NONE;
    }
    for (size_t i = 0; i < part.len; i++) {
        char c = part.ptr[i];
        if (c == '%' && i + 2 < part.len && hex_digit(part.ptr[i + 1]) >= 0 &&
            hex_digit(part.ptr[i + 2]) >= 0) {
            c = (char)(hex_digit(part.ptr[i + 1]) * 16 + hex_digit(part.ptr[i + 2]));
            i += 2;
        } else if (c == '~' && i + 1 < part.len) {
            c = part.ptr[++i] == '1' ? '/' : '~';
        }
        out[n++] = c;
    }
    return str_n(out, n);
}

static struct jvalue *pointer_child(struct jvalue *v, struct str part)
{
    int64_t index = -1;
    if (v->kind == J_ARRAY && str_to_i64(part, 0, INT64_MAX, &index) != ST_OK) {
        return NULL;
    }
    for (struct jvalue *c = v->first; c != NULL; c = c->next) {
        bool hit = v->kind == J_ARRAY ? (int64_t)c->index == index : str_eq(c->key, part);
        if (hit) {
            return c;
        }
    }
    return NULL;
}

static void on_ref(struct compiler *x, struct rule *r, struct jvalue *v)
{
    if (v->kind != J_STRING || v->text.len == 0 || v->text.ptr[0] != '#') {
        malformed(x, v, "only references inside the same schema (#...) can be followed");
        return;
    }
    struct jvalue *at = x->doc;
    struct str rest = str_n(v->text.ptr + 1, v->text.len - 1);
    struct str part;
    if (rest.len != 0 && rest.ptr[0] != '/') {
        malformed(x, v, "must be # or a pointer such as #/$defs/name");
        return;
    }
    bool more =
        rest.len != 0 && str_split(&rest, '/', &part); /* what is before the '/' */
    while (more && at != NULL && str_split(&rest, '/', &part)) {
        at = pointer_child(at, pointer_part(x, part));
    }
    if (at == NULL) {
        malformed(x, v, "points to nothing in this schema");
        return;
    }
    r->ref = schema_rule_for(x, at);
}

/* ---- one schema -------------------------------------------------------------------- */

static bool is_annotation(struct str key)
{
    static const char *const names[] = {
        "title", "description", "default",    "examples", "format",   "$schema",
        "$id",   "$comment",    "deprecated", "readOnly", "writeOnly"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eq_c(key, names[i])) {
            return true;
        }
    }
    return false;
}

/* Keywords about numbers and lengths. False: none of them. */
static bool on_number_keyword(struct compiler *x, struct rule *r, struct jvalue *v)
{
    struct {
        const char *name;
        struct bound *bound;
        int64_t *count;
    } const words[] = {{"minimum", &r->min, NULL},
                       {"maximum", &r->max, NULL},
                       {"exclusiveMinimum", &r->above, NULL},
                       {"exclusiveMaximum", &r->below, NULL},
                       {"minLength", NULL, &r->min_length},
                       {"maxLength", NULL, &r->max_length},
                       {"minItems", NULL, &r->min_items},
                       {"maxItems", NULL, &r->max_items},
                       {"minProperties", NULL, &r->min_props},
                       {"maxProperties", NULL, &r->max_props}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!str_eq_c(v->key, words[i].name)) {
            continue;
        }
        if (words[i].bound != NULL) {
            on_bound(x, words[i].bound, v);
        } else if (words[i].count != NULL) {
            on_count(x, words[i].count, v);
        }
        return true;
    }
    return false;
}

/* Keywords that hold other schemas. False: none of them. */
static bool on_nested_keyword(struct compiler *x, struct rule *r, struct jvalue *v)
{
    if (str_eq_c(v->key, "properties")) {
        on_properties(x, r, v);
    } else if (str_eq_c(v->key, "additionalProperties")) {
        r->additional = schema_rule_for(x, v);
    } else if (str_eq_c(v->key, "items")) {
        r->items = schema_rule_for(x, v);
    } else if (str_eq_c(v->key, "allOf")) {
        on_list(x, &r->all, v);
    } else if (str_eq_c(v->key, "anyOf")) {
        on_list(x, &r->any, v);
    } else if (str_eq_c(v->key, "oneOf")) {
        on_list(x, &r->one, v);
    } else if (str_eq_c(v->key, "not")) {
        r->negated = schema_rule_for(x, v);
    } else if (str_eq_c(v->key, "$ref")) {
        on_ref(x, r, v);
    } else if (str_eq_c(v->key, "$defs") || str_eq_c(v->key, "definitions")) {
        on_definitions(x, v);
    } else {
        return false;
    }
    return true;
}

void schema_keyword(struct compiler *x, struct rule *r, struct jvalue *v)
{
    if (on_number_keyword(x, r, v) || on_nested_keyword(x, r, v) ||
        is_annotation(v->key)) {
        return;
    }
    if (str_eq_c(v->key, "type")) {
        on_type(x, r, v);
    } else if (str_eq_c(v->key, "enum")) {
        on_values(x, r, v, false);
    } else if (str_eq_c(v->key, "const")) {
        on_values(x, r, v, true);
    } else if (str_eq_c(v->key, "multipleOf")) {
        on_step(x, r, v);
    } else if (str_eq_c(v->key, "pattern")) {
        on_pattern(x, r, v);
    } else if (str_eq_c(v->key, "uniqueItems")) {
        on_flag(x, &r->unique, v);
    } else if (str_eq_c(v->key, "required")) {
        on_required(x, r, v);
    } else if (!x->lenient) {
        schema_fault(x, v, "this keyword cannot be enforced here");
    }
}
