/* JSON out. In: keys and values. Out: text appended to a buf, whose sticky failure tells
 * of any trouble. Never writes invalid UTF-8, a raw control byte or a stray comma. */
#include "base/json.h"

#include "base/utf8.h"

/* Escape one piece of valid UTF-8. */
static void add_escaped(struct buf *b, struct str s)
{
    size_t plain = 0; /* where text that needs no escape began */
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) {
            continue;
        }
        buf_add(b, s.ptr + plain, i - plain);
        plain = i + 1;
        if (c == '"' || c == '\\') {
            buf_add_char(b, '\\');
            buf_add_char(b, (char)c);
        } else if (c == '\n') {
            buf_add(b, "\\n", 2);
        } else if (c == '\t') {
            buf_add(b, "\\t", 2);
        } else if (c == '\r') {
            buf_add(b, "\\r", 2);
        } else {
            buf_addf(b, "\\u%04x", (unsigned)c);
        }
    }
    if (plain < s.len) {
        buf_add(b, s.ptr + plain, s.len - plain);
    }
}

void json_add_string(struct buf *b, struct str s)
{
    buf_add_char(b, '"');
    while (s.len != 0) {
        size_t good = utf8_valid_prefix(s);
        add_escaped(b, str_n(s.ptr, good));
        if (good == s.len) {
            break;
        }
        buf_add(b, "\xEF\xBF\xBD", 3);
        s = str_n(s.ptr + good + 1, s.len - good - 1);
    }
    buf_add_char(b, '"');
}

void json_add_sep(struct buf *b)
{
    if (b->len == 0) {
        return;
    }
    char last = b->ptr[b->len - 1];
    if (last != '{' && last != '[' && last != ':') {
        buf_add_char(b, ',');
    }
}

void json_add_key(struct buf *b, const char *key)
{
    json_add_sep(b);
    json_add_string(b, str_c(key));
    buf_add_char(b, ':');
}

void json_add_key_string(struct buf *b, const char *key, struct str s)
{
    json_add_key(b, key);
    json_add_string(b, s);
}

void json_add_key_i64(struct buf *b, const char *key, int64_t v)
{
    json_add_key(b, key);
    buf_addf(b, "%lld", (long long)v);
}

void json_add_key_bool(struct buf *b, const char *key, bool v)
{
    json_add_key(b, key);
    buf_add_c(b, v ? "true" : "false");
}

void json_add_key_raw(struct buf *b, const char *key, struct str json)
{
    json_add_key(b, key);
    buf_add_str(b, json.len != 0 ? json : STR_LIT("null"));
}
