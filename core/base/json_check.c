/* The strict check of JSON text (RFC 8259 and what it leaves open), and raw members. In:
 * bytes from anywhere. Out: yes, or what is wrong at which byte. Iterative: depth costs
 * one small frame of a fixed array. The keys of open objects are kept to find duplicates
 * and are sorted when their object ends: n log n in the bytes of keys, also for keys
 * that a stranger chose. Never changes text, never reads behind its end. */
#include "base/json.h"

#include "base/json_key.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_CEILING 512 /* whatever the caller asks for; cJSON's own limit is 1000 */
#define NUMBER_MAX 63     /* cJSON takes a number of at most 63 bytes */
#define KEYS_INSIDE 48    /* so many keys cost no allocation */

struct frame {
    char closer;      /* '}' or ']' */
    size_t first_key; /* keys below this one belong to the objects around it */
};

struct scan {
    struct str text;
    size_t at;
    struct error *err;
    struct str *keys; /* what stands between the quotes; `inside`, or from the heap */
    size_t key_count, key_cap, depth, max_depth;
    struct str inside[KEYS_INSIDE];
    struct frame frames[DEPTH_CEILING];
};

static enum status bad(const struct scan *s, size_t at, const char *what)
{
    return error_set(s->err, ST_INVALID, "JSON: %s at byte %zu", what, at);
}

/* The byte at the cursor; '\0' at the end (a real NUL is refused everywhere too). */
static char peek(const struct scan *s)
{
    return s->at < s->text.len ? s->text.ptr[s->at] : '\0';
}

static void skip_space(struct scan *s)
{
    for (char c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(s)) {
        s->at++;
    }
}

static enum status unexpected(const struct scan *s, const char *wanted)
{
    bool end = s->at >= s->text.len;
    return error_set(s->err, ST_INVALID, "JSON: %s expected%s at byte %zu", wanted,
                     end ? ", but the text ends" : "", s->at);
}

/* The escape at the cursor, which is on the backslash. */
static enum status scan_escape(struct scan *s)
{
    size_t start = s->at++;
    char c = peek(s);
    if (c != '\0' && strchr("\"\\/bfnrt", c) != NULL) {
        s->at++;
        return ST_OK;
    }
    if (c != 'u') {
        return bad(s, start, "bad escape");
    }
    s->at++;
    uint32_t code = 0;
    size_t n =
        json_unicode_escape(str_n(s->text.ptr + s->at, s->text.len - s->at), &code);
    if (n == 0) {
        return bad(s, start, "bad \\u escape or lone surrogate");
    }
    if (code == 0) {
        return bad(s, start, "NUL in a string");
    }
    s->at += n;
    return ST_OK;
}

/* The string at the cursor; inner is what stands between the quotes. */
static enum status scan_string(struct scan *s, struct str *inner)
{
    size_t start = s->at++;
    for (;;) {
        if (s->at >= s->text.len) {
            return bad(s, start, "string without end, begun");
        }
        char c = s->text.ptr[s->at];
        if (c == '"') {
            break;
        }
        if (c == '\\') {
            enum status st = scan_escape(s);
            if (st != ST_OK) {
                return st;
            }
        } else if ((unsigned char)c < 0x20) {
            return bad(s, s->at, "control byte in a string");
        } else {
            s->at++;
        }
    }
    *inner = str_n(s->text.ptr + start + 1, s->at - start - 1);
    s->at++;
    return ST_OK;
}

static size_t skip_digits(struct scan *s)
{
    size_t start = s->at;
    while (peek(s) >= '0' && peek(s) <= '9') {
        s->at++;
    }
    return s->at - start;
}

/* Whether the number is one that a double holds. */
static bool number_is_finite(struct str s)
{
    char copy[NUMBER_MAX + 1];
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    double v = strtod(copy, NULL);
    return v - v == 0; /* false for both infinities */
}

static enum status scan_number(struct scan *s)
{
    size_t start = s->at;
    if (peek(s) == '-') {
        s->at++;
    }
    bool zero = peek(s) == '0';
    size_t digits = skip_digits(s);
    if (digits == 0) {
        return unexpected(s, "digit");
    }
    if (zero && digits > 1) {
        return bad(s, start, "number with a leading zero");
    }
    if (peek(s) == '.') {
        s->at++;
        if (skip_digits(s) == 0) {
            return unexpected(s, "digit");
        }
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') {
            s->at++;
        }
        if (skip_digits(s) == 0) {
            return unexpected(s, "digit");
        }
    }
    struct str number = str_n(s->text.ptr + start, s->at - start);
    if (number.len > NUMBER_MAX) {
        return bad(s, start, "number of more than 63 bytes");
    }
    return number_is_finite(number) ? ST_OK : bad(s, start, "number out of range");
}

static int compare_for_sort(const void *a, const void *b)
{
    const struct str *x = a;
    const struct str *y = b;
    int order = json_key_compare(*x, *y, true);
    return order != 0 ? order : (x->ptr > y->ptr) - (x->ptr < y->ptr);
}

/* The object whose keys begin at first has ended: refuse duplicates, forget its keys. */
static enum status close_object(struct scan *s, size_t first)
{
    struct str *keys = s->keys + first;
    size_t n = s->key_count - first;
    s->key_count = first;
    if (n < 2) {
        return ST_OK;
    }
    qsort(keys, n, sizeof(*keys), compare_for_sort);
    for (size_t i = 1; i < n; i++) {
        if (json_key_compare(keys[i - 1], keys[i], true) == 0) {
            struct str shown = str_n(keys[i].ptr, utf8_cut(keys[i], 64));
            return error_set(s->err, ST_INVALID,
                             "JSON: duplicate key \"%.*s\" at byte %zu", STR_ARG(shown),
                             (size_t)(keys[i].ptr - s->text.ptr) - 1);
        }
    }
    return ST_OK;
}

static enum status remember_key(struct scan *s, struct str key)
{
    if (s->key_count == s->key_cap) {
        size_t cap;
        size_t bytes;
        if (!size_mul(s->key_cap, 2, &cap) || !size_mul(cap, sizeof(*s->keys), &bytes)) {
            return error_set(s->err, ST_TOO_LARGE, "JSON: too many keys");
        }
        struct str *old = s->keys == s->inside ? NULL : s->keys;
        struct str *more = mem_realloc(old, bytes);
        if (more == NULL) {
            return error_set(s->err, ST_NOMEM, "out of memory for the keys of JSON");
        }
        if (old == NULL) {
            memcpy(more, s->inside, sizeof(s->inside));
        }
        s->keys = more;
        s->key_cap = cap;
    }
    s->keys[s->key_count++] = key;
    return ST_OK;
}

static enum status scan_word(struct scan *s, const char *word)
{
    struct str rest = str_n(s->text.ptr + s->at, s->text.len - s->at);
    struct str wanted = str_c(word);
    if (!str_starts(rest, wanted)) {
        return unexpected(s, "value");
    }
    s->at += wanted.len;
    return ST_OK;
}

/* The key and the colon of a member; cursor on the first byte of the key. */
static enum status scan_key(struct scan *s)
{
    struct str key;
    if (peek(s) != '"') {
        return unexpected(s, "key");
    }
    enum status st = scan_string(s, &key);
    st = st == ST_OK ? remember_key(s, key) : st;
    if (st != ST_OK) {
        return st;
    }
    skip_space(s);
    if (peek(s) != ':') {
        return unexpected(s, "':'");
    }
    s->at++;
    return ST_OK;
}

/* '{' or '[' at the cursor. *done: it was empty, so a whole value has been read. */
static enum status open_container(struct scan *s, bool *done)
{
    if (s->depth == s->max_depth) {
        return bad(s, s->at, "nested too deep");
    }
    char closer = peek(s) == '{' ? '}' : ']';
    s->at++;
    skip_space(s);
    if (peek(s) == closer) {
        s->at++;
        *done = true;
        return ST_OK;
    }
    s->frames[s->depth++] = (struct frame){closer, s->key_count};
    return closer == '}' ? scan_key(s) : ST_OK;
}

/* The value at the cursor, or the beginning of one. */
static enum status scan_value(struct scan *s, bool *done)
{
    struct str ignored;
    skip_space(s);
    *done = true;
    char c = peek(s);
    switch (c) {
    case '{':
    case '[':
        *done = false;
        return open_container(s, done);
    case '"':
        return scan_string(s, &ignored);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return c == '-' || (c >= '0' && c <= '9') ? scan_number(s)
                                                  : unexpected(s, "value");
    }
}

/* Behind a whole value inside a container: a comma and perhaps a key, or the end of one
 * or more containers. On return a value follows, or depth is 0. */
static enum status scan_after_value(struct scan *s)
{
    while (s->depth != 0) {
        struct frame *f = &s->frames[s->depth - 1];
        skip_space(s);
        if (peek(s) == ',') {
            s->at++;
            skip_space(s);
            return f->closer == '}' ? scan_key(s) : ST_OK;
        }
        if (peek(s) != f->closer) {
            return unexpected(s, f->closer == '}' ? "',' or '}'" : "',' or ']'");
        }
        s->at++;
        s->depth--;
        if (f->closer == '}') {
            enum status st = close_object(s, f->first_key);
            if (st != ST_OK) {
                return st;
            }
        }
    }
    return ST_OK;
}

static enum status scan_text(struct scan *s)
{
    enum status st;
    do {
        bool done;
        st = scan_value(s, &done);
        if (st == ST_OK && done) {
            st = scan_after_value(s);
        }
    } while (st == ST_OK && s->depth != 0);
    if (st != ST_OK) {
        return st;
    }
    skip_space(s);
    return s->at == s->text.len ? ST_OK : bad(s, s->at, "something behind the value");
}

enum status json_check(struct str text, size_t max_depth, struct error *err)
{
    size_t good = utf8_valid_prefix(text);
    if (good != text.len) {
        return error_set(err, ST_INVALID, "JSON: invalid UTF-8 at byte %zu", good);
    }
    struct scan s; /* not zeroed as a whole: 9 KiB of frames and keys */
    s.text = text.len != 0 ? text : STR_LIT("");
    s.at = 0;
    s.err = err;
    s.keys = s.inside;
    s.key_count = 0;
    s.key_cap = KEYS_INSIDE;
    s.depth = 0;
    s.max_depth = max_depth < DEPTH_CEILING ? max_depth : DEPTH_CEILING;
    enum status st = scan_text(&s);
    if (s.keys != s.inside) {
        mem_free(s.keys);
    }
    return st;
}
