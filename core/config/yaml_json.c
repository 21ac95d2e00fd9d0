/* A YAML tree as strict JSON. In: nodes. Out: JSON text. Plain scalars become numbers,
 * booleans and null by the YAML 1.2 core rules, everything else stays text. Pure. Never
 * prints a number JSON does not know (hexadecimal, .inf, +1): those stay text. */
#include "config/yaml.h"

#include "base/json.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(struct str s, size_t i)
{
    while (i < s.len && is_digit(s.ptr[i])) {
        i++;
    }
    return i;
}

/* Exactly JSON's grammar of numbers. */
static bool is_json_number(struct str s)
{
    size_t i = 0;
    if (i < s.len && s.ptr[i] == '-') {
        i++;
    }
    size_t start = i;
    i = skip_digits(s, i);
    if (i == start || (s.ptr[start] == '0' && i != start + 1)) {
        return false;
    }
    if (i < s.len && s.ptr[i] == '.') {
        size_t fraction = i + 1;
        i = skip_digits(s, fraction);
        if (i == fraction) {
            return false;
        }
    }
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        i++;
        if (i < s.len && (s.ptr[i] == '+' || s.ptr[i] == '-')) {
            i++;
        }
        size_t exponent = i;
        i = skip_digits(s, exponent);
        if (i == exponent) {
            return false;
        }
    }
    return i == s.len;
}

static bool is_one_of(struct str s, const char *a, const char *b, const char *c)
{
    return str_eq_c(s, a) || str_eq_c(s, b) || str_eq_c(s, c);
}

static void put_scalar(const struct yaml_node *n, struct buf *out)
{
    if (!n->quoted && is_one_of(n->text, "true", "True", "TRUE")) {
        buf_add_c(out, "true");
    } else if (!n->quoted && is_one_of(n->text, "false", "False", "FALSE")) {
        buf_add_c(out, "false");
    } else if (!n->quoted && is_json_number(n->text)) {
        buf_add_str(out, n->text);
    } else {
        json_add_string(out, n->text);
    }
}

/* Depth is bounded by YAML_MAX_DEPTH. */
static void put_node(const struct yaml_node *n, struct buf *out)
{
    switch (n->kind) {
    case YAML_NULL:
        buf_add_c(out, "null");
        return;
    case YAML_SCALAR:
        put_scalar(n, out);
        return;
    case YAML_SEQ:
    case YAML_MAP:
        break;
    }
    bool map = n->kind == YAML_MAP;
    buf_add_char(out, map ? '{' : '[');
    for (const struct yaml_node *c = n->first; c != NULL; c = c->next) {
        if (c != n->first) {
            buf_add_char(out, ',');
        }
        if (map) {
            json_add_string(out, c->key);
            buf_add_char(out, ':');
        }
        put_node(c, out);
    }
    buf_add_char(out, map ? '}' : ']');
}

enum status yaml_to_json(const struct yaml_node *n, struct buf *out)
{
    put_node(n, out);
    return buf_status(out);
}
