/* Views of bytes. In: views that live elsewhere. Out: smaller views, comparisons and
 * numbers. Never writes to what a view shows, never reads behind its end, never needs a
 * NUL; only str_dup allocates. */
#include "base/str.h"

#include "base/mem.h"

#include <string.h>

#define DISTANCE_MAX 64

struct str str_c(const char *s)
{
    return s != NULL ? (struct str){s, strlen(s)} : STR_NONE;
}

struct str str_n(const char *p, size_t n)
{
    return (struct str){p, n};
}

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool str_eq_c(struct str a, const char *b)
{
    return str_eq(a, str_c(b));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_n(s.ptr, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    if (suffix.len == 0) {
        return true; /* also for a NULL view, on which no arithmetic is allowed */
    }
    return s.len >= suffix.len &&
           memcmp(s.ptr + (s.len - suffix.len), suffix.ptr, suffix.len) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len != 0 && is_space(s.ptr[s.len - 1])) {
        s.len--;
    }
    while (s.len != 0 && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    return s;
}

size_t str_find_char(struct str s, char c)
{
    if (s.len == 0) {
        return SIZE_MAX;
    }
    const char *at = memchr(s.ptr, c, s.len);
    return at != NULL ? (size_t)(at - s.ptr) : SIZE_MAX;
}

size_t str_find(struct str s, struct str needle)
{
    if (needle.len == 0) {
        return 0;
    }
    for (size_t from = 0; s.len - from >= needle.len && from < s.len; from++) {
        struct str rest = str_n(s.ptr + from, s.len - from);
        size_t at = str_find_char(rest, needle.ptr[0]);
        if (at == SIZE_MAX || rest.len - at < needle.len) {
            return SIZE_MAX;
        }
        from += at;
        if (memcmp(s.ptr + from, needle.ptr, needle.len) == 0) {
            return from;
        }
    }
    return SIZE_MAX;
}

bool str_split(struct str *s, char sep, struct str *part)
{
    if (s->ptr == NULL) {
        return false;
    }
    size_t at = str_find_char(*s, sep);
    if (at == SIZE_MAX) { /* the last part; NULL marks "used up" */
        *part = *s;
        *s = STR_NONE;
        return true;
    }
    *part = str_n(s->ptr, at);
    *s = str_n(s->ptr + at + 1, s->len - at - 1);
    return true;
}

bool str_eq_secret(struct str a, struct str b)
{
    volatile unsigned char diff = a.len != b.len;
    for (size_t i = 0; i < b.len; i++) {
        /* The branch depends on the length of what the stranger sent, which he knows. */
        char x = i < a.len ? a.ptr[i] : '\0';
        diff = (unsigned char)(diff | (unsigned char)(x ^ b.ptr[i]));
    }
    return diff == 0;
}

enum status str_to_i64(struct str s, int64_t min, int64_t max, int64_t *out)
{
    bool negative = s.len != 0 && s.ptr[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == s.len) {
        return ST_INVALID;
    }
    int64_t v = 0; /* kept negative: INT64_MIN has no positive twin */
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return ST_INVALID;
        }
        int digit = s.ptr[i] - '0';
        if (v < (INT64_MIN + digit) / 10) {
            return ST_INVALID;
        }
        v = v * 10 - digit;
    }
    if (!negative) {
        if (v == INT64_MIN) {
            return ST_INVALID;
        }
        v = -v;
    }
    if (v < min || v > max) {
        return ST_INVALID;
    }
    *out = v;
    return ST_OK;
}

size_t str_distance(struct str a, struct str b)
{
    if (a.len > DISTANCE_MAX || b.len > DISTANCE_MAX) {
        return SIZE_MAX;
    }
    size_t row[DISTANCE_MAX + 1];
    for (size_t j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = diagonal + (a.ptr[i - 1] != b.ptr[j - 1] ? 1 : 0);
            diagonal = row[j];
            if (row[j] + 1 < best) {
                best = row[j] + 1;
            }
            if (row[j - 1] + 1 < best) {
                best = row[j - 1] + 1;
            }
            row[j] = best;
        }
    }
    return row[b.len];
}

char *str_dup(struct str s)
{
    return mem_dup(s.ptr, s.len);
}
