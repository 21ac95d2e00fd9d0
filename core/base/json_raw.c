/* The raw text of a member of a JSON object, so that numbers above 2^53 and the very
 * bytes that were approved travel on unchanged. In: text that passed json_check, and a
 * key. Out: a view into it. Never reads behind the end, also when the text was not
 * checked (it then answers ST_INVALID or ST_NOT_FOUND). */
#include "base/json.h"

#include "base/json_key.h"

#include <string.h>

static size_t skip_space(struct str s, size_t at)
{
    while (at < s.len && s.ptr[at] != '\0' && strchr(" \t\n\r", s.ptr[at]) != NULL) {
        at++;
    }
    return at;
}

/* Index behind the string that begins at `at`, or SIZE_MAX. */
static size_t skip_string(struct str s, size_t at)
{
    for (at++; at < s.len; at++) {
        if (s.ptr[at] == '"') {
            return at + 1;
        }
        at += s.ptr[at] == '\\';
    }
    return SIZE_MAX;
}

/* Index behind the value that begins at `at`, or SIZE_MAX. */
static size_t skip_value(struct str s, size_t at)
{
    size_t depth = 0;
    do {
        if (at >= s.len) {
            return SIZE_MAX;
        }
        char c = s.ptr[at];
        if (c == '"') {
            at = skip_string(s, at);
            continue;
        }
        if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) {
                return SIZE_MAX;
            }
            depth--;
        } else if (depth == 0) {
            /* A number or a word runs up to the next delimiter. */
            size_t start = at;
            while (at < s.len && strchr(",]}: \t\n\r", s.ptr[at]) == NULL) {
                at++;
            }
            return at != start ? at : SIZE_MAX;
        }
        at++;
    } while (depth != 0 && at != SIZE_MAX);
    return at;
}

enum status json_raw_member(struct str text, const char *key, struct str *out)
{
    size_t at = skip_space(text, 0);
    if (at >= text.len || text.ptr[at] != '{') {
        return ST_INVALID;
    }
    for (at = skip_space(text, at + 1); at < text.len && text.ptr[at] == '"';) {
        size_t key_end = skip_string(text, at);
        if (key_end == SIZE_MAX) {
            return ST_INVALID;
        }
        struct str inner = str_n(text.ptr + at + 1, key_end - at - 2);
        at = skip_space(text, key_end);
        if (at >= text.len || text.ptr[at] != ':') {
            return ST_INVALID;
        }
        at = skip_space(text, at + 1);
        size_t end = skip_value(text, at);
        if (end == SIZE_MAX) {
            return ST_INVALID;
        }
        if (json_key_compare(inner, str_c(key), false) == 0) {
            *out = str_n(text.ptr + at, end - at);
            return ST_OK;
        }
        at = skip_space(text, end);
        if (at < text.len && text.ptr[at] == ',') {
            at = skip_space(text, at + 1);
        }
    }
    return at < text.len && text.ptr[at] == '}' ? ST_NOT_FOUND : ST_INVALID;
}
