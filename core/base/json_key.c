/* Escaped JSON text, code point by code point. In: what stands between the quotes. Out:
 * code points and their order. Never copies, never reads behind the end, also when the
 * text is not valid. */
#include "base/json_key.h"

#include <string.h>

/* Four hex digits at p, or UINT32_MAX. */
static uint32_t hex4(const char *p, size_t n)
{
    if (n < 4) {
        return UINT32_MAX;
    }
    uint32_t v = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9') {
            v = v * 16 + (uint32_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            v = v * 16 + (uint32_t)(c - 'a' + 10);
        } else if (c >= 'A' && c <= 'F') {
            v = v * 16 + (uint32_t)(c - 'A' + 10);
        } else {
            return UINT32_MAX;
        }
    }
    return v;
}

size_t json_unicode_escape(struct str s, uint32_t *code)
{
    const char *p = s.ptr;
    size_t n = s.len;
    uint32_t v = hex4(p, n);
    if (v == UINT32_MAX || (v >= 0xDC00 && v <= 0xDFFF)) {
        return 0;
    }
    if (v < 0xD800 || v > 0xDFFF) {
        *code = v;
        return 4;
    }
    if (n < 10 || p[4] != '\\' || p[5] != 'u') {
        return 0;
    }
    uint32_t low = hex4(p + 6, n - 6);
    if (low < 0xDC00 || low > 0xDFFF) {
        return 0;
    }
    *code = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
    return 10;
}

/* The next code point of a non-empty text, which moves on. */
static uint32_t next_code(struct str *k, bool escaped)
{
    unsigned char c = (unsigned char)*k->ptr;
    uint32_t code = c;
    size_t n = 1;
    if (c == '\\' && escaped && k->len > 1) {
        static const char names[] = "\"\\/bfnrt";
        static const char values[] = "\"\\/\b\f\n\r\t";
        n = 2;
        if (k->ptr[1] == 'u') {
            n += json_unicode_escape(str_n(k->ptr + 2, k->len - 2), &code);
        } else {
            const char *at = strchr(names, k->ptr[1]);
            code = at != NULL ? (unsigned char)values[at - names] : c;
        }
    } else if (c >= 0xC0) {
        n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        n = n < k->len ? n : k->len;
        code = c & (0xFFU >> (n + 1));
        for (size_t i = 1; i < n; i++) {
            code = code << 6 | ((unsigned char)k->ptr[i] & 0x3FU);
        }
    }
    k->ptr += n;
    k->len -= n;
    return code;
}

int json_key_compare(struct str a, struct str b, bool b_escaped)
{
    while (a.len != 0 && b.len != 0) {
        uint32_t x = next_code(&a, true);
        uint32_t y = next_code(&b, b_escaped);
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    return (a.len != 0) - (b.len != 0);
}
