/* JSON text to a tree. In: text, checked for strictness first. Out: nodes in an arena
 * that know their raw bytes and their place. Pure. Never turns a number into a double. */
#include "config/jvalue.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct parser {
    const char *p, *end;
    struct arena *arena;
    bool nomem;
};

static void skip_space(struct parser *x)
{
    while (x->p < x->end &&
           (*x->p == ' ' || *x->p == '\t' || *x->p == '\n' || *x->p == '\r')) {
        x->p++;
    }
}

static unsigned hex4(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        unsigned digit = c <= '9'   ? (unsigned)(c - '0')
                         : c <= 'F' ? (unsigned)(c - 'A') + 10U
                                    : (unsigned)(c - 'a') + 10U;
        v = v * 16U + digit;
    }
    return v;
}

static size_t put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0U | c >> 6);
        out[1] = (char)(0x80U | (c & 0x3FU));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0U | c >> 12);
        out[1] = (char)(0x80U | (c >> 6 & 0x3FU));
        out[2] = (char)(0x80U | (c & 0x3FU));
        return 3;
    }
    out[0] = (char)(0xF0U | c >> 18);
    out[1] = (char)(0x80U | (c >> 12 & 0x3FU));
    out[2] = (char)(0x80U | (c >> 6 & 0x3FU));
    out[3] = (char)(0x80U | (c & 0x3FU));
    return 4;
}

/* One escape at p (behind the backslash); returns the bytes read. json_check has made
 * sure that it is whole and that surrogates come in pairs. */
static size_t put_escape(const char *p, char *out, size_t *n)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    if (*p != 'u') {
        const char *at = strchr(from, *p);
        out[(*n)++] = at != NULL ? to[at - from] : *p;
        return 1;
    }
    unsigned c = hex4(p + 1);
    size_t used = 5;
    if (c >= 0xD800 && c < 0xDC00) {
        c = 0x10000U + ((c - 0xD800U) << 10) + (hex4(p + 7) - 0xDC00U);
        used = 11;
    }
    *n += put_utf8(out + *n, c);
    return used;
}

static struct str parse_string(struct parser *x)
{
    const char *start = ++x->p;
    bool escaped = false;
    while (*x->p != '"') {
        escaped = escaped || *x->p == '\\';
        x->p += *x->p == '\\' ? 2 : 1;
    }
    size_t len = (size_t)(x->p - start);
    x->p++;
    if (!escaped) {
        return str_n(start, len);
    }
    char *out = arena_alloc(x->arena, len + 1); /* escapes only shrink */
    if (out == NULL) {
        x->nomem = true;
        return STR_NONE;
    }
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        if (start[i] == '\\') {
            i += 1 + put_escape(start + i + 1, out, &n);
        } else {
            out[n++] = start[i++];
        }
    }
    return str_n(out, n);
}

static void parse_plain(struct parser *x, struct jvalue *v)
{
    const char *start = x->p;
    while (x->p < x->end && strchr(" \t\r\n,]}", *x->p) == NULL) {
        x->p++;
    }
    v->text = str_n(start, (size_t)(x->p - start));
    switch (*start) {
    case 't':
    case 'f':
        v->kind = J_BOOL;
        v->truth = *start == 't';
        break;
    case 'n':
        v->kind = J_NULL;
        break;
    default:
        v->kind = J_NUMBER;
        break;
    }
}

/* Depth is bounded by json_check. */
static struct jvalue *parse_value(struct parser *x, const struct jvalue *up)
{
    struct jvalue *v = arena_alloc(x->arena, sizeof(*v));
    if (v == NULL) {
        x->nomem = true;
        return NULL;
    }
    v->up = up;
    const char *start = x->p;
    char open = *x->p;
    if (open == '"') {
        v->kind = J_STRING;
        v->text = parse_string(x);
    } else if (open != '{' && open != '[') {
        parse_plain(x, v);
    } else {
        v->kind = open == '{' ? J_OBJECT : J_ARRAY;
        char close = open == '{' ? '}' : ']';
        struct jvalue **tail = &v->first;
        x->p++;
        skip_space(x);
        while (*x->p != close && !x->nomem) {
            struct str key = STR_NONE;
            if (open == '{') {
                key = parse_string(x);
                skip_space(x);
                x->p++; /* ':' */
                skip_space(x);
            }
            struct jvalue *child = parse_value(x, v);
            if (child == NULL) {
                return NULL;
            }
            child->key = key;
            child->index = v->n++;
            *tail = child;
            tail = &child->next;
            skip_space(x);
            if (*x->p == ',') {
                x->p++;
                skip_space(x);
            }
        }
        x->p++;
    }
    v->raw = str_n(start, (size_t)(x->p - start));
    return x->nomem ? NULL : v;
}

enum status jvalue_parse(struct str text, struct arena *a, struct jvalue **out,
                         struct error *err)
{
    enum status st = json_check(text, JSON_MAX_DEPTH, err);
    if (st != ST_OK) {
        return st;
    }
    struct parser x = {.p = text.ptr, .end = text.ptr + text.len, .arena = a};
    skip_space(&x);
    struct jvalue *v = parse_value(&x, NULL);
    if (v == NULL) {
        return error_set(err, ST_NOMEM, "JSON: out of memory");
    }
    *out = v;
    return ST_OK;
}

const struct jvalue *jvalue_get(const struct jvalue *object, const char *key)
{
    if (object == NULL || object->kind != J_OBJECT) {
        return NULL;
    }
    for (const struct jvalue *c = object->first; c != NULL; c = c->next) {
        if (str_eq_c(c->key, key)) {
            return c;
        }
    }
    return NULL;
}

static int by_key(const void *a, const void *b)
{
    const struct jvalue *const *x = a;
    const struct jvalue *const *y = b;
    struct str k = (*x)->key;
    struct str l = (*y)->key;
    size_t n = k.len < l.len ? k.len : l.len;
    int order = n != 0 ? memcmp(k.ptr, l.ptr, n) : 0;
    return order != 0 ? order : (k.len > l.len) - (k.len < l.len);
}

static void put_bytes(struct buf *out, struct str s)
{
    buf_addf(out, "%zu:", s.len);
    buf_add_str(out, s);
}

/* Depth is bounded by json_check. */
enum status jvalue_canon(const struct jvalue *v, struct arena *a, struct buf *out)
{
    struct decimal d;
    switch (v->kind) {
    case J_NULL:
    case J_BOOL:
        buf_add_str(out, v->text);
        return buf_status(out);
    case J_NUMBER:
        decimal_parse(v->text, &d);
        decimal_canon(&d, out);
        return buf_status(out);
    case J_STRING:
        buf_add_char(out, 's');
        put_bytes(out, v->text);
        return buf_status(out);
    case J_ARRAY:
    case J_OBJECT:
        break;
    }
    const struct jvalue **order = arena_array(a, v->n + 1, sizeof(*order));
    if (order == NULL) {
        return ST_NOMEM;
    }
    size_t n = 0;
    for (const struct jvalue *c = v->first; c != NULL; c = c->next) {
        order[n++] = c;
    }
    bool object = v->kind == J_OBJECT;
    if (object) {
        qsort(order, n, sizeof(*order), by_key);
    }
    buf_add_char(out, object ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        if (object) {
            put_bytes(out, order[i]->key);
        }
        enum status st = jvalue_canon(order[i], a, out);
        if (st != ST_OK) {
            return st;
        }
        buf_add_char(out, ',');
    }
    buf_add_char(out, object ? '}' : ']');
    return buf_status(out);
}
