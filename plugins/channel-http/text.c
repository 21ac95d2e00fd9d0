/* Comes in: spans of the core. Goes out: JSON text, members of JSON objects as they are
 * written. Never checks JSON: what comes from a client goes to the core, which does. */
#include "text.h"

#include <stdlib.h>
#include <string.h>

struct sy_str span_c(const char *s)
{
    return (struct sy_str){s, strlen(s)};
}

bool span_is(struct sy_str s, const char *c)
{
    return s.len == strlen(c) && (s.len == 0 || memcmp(s.ptr, c, s.len) == 0);
}

void text_done(struct text *t)
{
    free(t->ptr);
    *t = (struct text){0};
}

void text_add(struct text *t, struct sy_str s)
{
    if (t->failed || s.len == 0) {
        return;
    }
    if (s.len > SIZE_MAX / 4 || t->len > SIZE_MAX / 4) {
        t->failed = true;
        return;
    }
    if (t->cap - t->len < s.len) {
        size_t cap = (t->len + s.len) * 2;
        char *grown = realloc(t->ptr, cap);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->ptr = grown;
        t->cap = cap;
    }
    memcpy(t->ptr + t->len, s.ptr, s.len);
    t->len += s.len;
}

void text_add_c(struct text *t, const char *s)
{
    text_add(t, span_c(s));
}

void text_add_string(struct text *t, struct sy_str s)
{
    static const char digits[] = "0123456789abcdef";
    text_add_c(t, "\"");
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20) {
            char escape[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15], 0};
            text_add_c(t, escape);
        } else {
            if (c == '"' || c == '\\') {
                text_add_c(t, "\\");
            }
            text_add(t, (struct sy_str){s.ptr + i, 1});
        }
    }
    text_add_c(t, "\"");
}

static size_t skip_blank(struct sy_str s, size_t i)
{
    while (i < s.len && strchr(" \t\r\n", s.ptr[i]) && s.ptr[i] != 0) {
        i++;
    }
    return i;
}

/* Behind the string that begins at i. */
static size_t skip_string(struct sy_str s, size_t i)
{
    for (i++; i < s.len && s.ptr[i] != '"'; i++) {
        if (s.ptr[i] == '\\') {
            i++;
        }
    }
    return i < s.len ? i + 1 : s.len;
}

/* Behind the value that begins at i, nested ones and all. */
static size_t skip_value(struct sy_str s, size_t i)
{
    size_t depth = 0;
    while (i < s.len) {
        char c = s.ptr[i];
        if (c == '"') {
            i = skip_string(s, i);
            if (depth == 0) {
                return i;
            }
            continue;
        }
        if (c == '{' || c == '[') {
            depth++;
        } else if ((c == ',' || c == '}' || c == ']') && depth == 0) {
            return i;
        } else if (c == '}' || c == ']') {
            depth--;
            if (depth == 0) {
                return i + 1;
            }
        }
        i++;
    }
    return i;
}

struct sy_str json_member(struct sy_str line, const char *key)
{
    size_t i = skip_blank(line, 0);
    if (i == line.len || line.ptr[i] != '{') {
        return (struct sy_str){0};
    }
    i++;
    for (;;) {
        i = skip_blank(line, i);
        if (i == line.len || line.ptr[i] != '"') {
            return (struct sy_str){0};
        }
        size_t name = i + 1;
        i = skip_string(line, i);
        struct sy_str found = {line.ptr + name, i > name ? i - name - 1 : 0};
        i = skip_blank(line, i);
        if (i == line.len || line.ptr[i] != ':') {
            return (struct sy_str){0};
        }
        i = skip_blank(line, i + 1);
        size_t start = i;
        i = skip_value(line, i);
        if (span_is(found, key)) {
            while (i > start && strchr(" \t\r\n", line.ptr[i - 1])) {
                i--;
            }
            return (struct sy_str){line.ptr + start, i - start};
        }
        i = skip_blank(line, i);
        if (i == line.len || line.ptr[i] != ',') {
            return (struct sy_str){0};
        }
        i++;
    }
}

int json_small(struct sy_str raw, int min, int max, int other)
{
    int n = 0;
    if (raw.len == 0 || raw.len > 6) {
        return other;
    }
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.ptr[i] < '0' || raw.ptr[i] > '9') {
            return other;
        }
        n = n * 10 + (raw.ptr[i] - '0');
    }
    return n >= min && n <= max ? n : other;
}
