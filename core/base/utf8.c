/* UTF-8 (RFC 3629, and Unicode's table 3-7 of well-formed sequences). In: bytes from
 * anywhere. Out: verdicts, lengths, and text made safe to show. Never reads behind the
 * end, never passes on an invalid byte, does no I/O. */
#include "base/utf8.h"

#define NO_CODE UINT32_MAX

/* Length of the well-formed sequence at p (n bytes left, n > 0), 0 if there is none. */
static size_t sequence(const unsigned char *p, size_t n, uint32_t *code)
{
    size_t len;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        len = 2;
        *code = p[0] & 0x1FU;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        len = 3;
        *code = p[0] & 0x0FU;
        low = p[0] == 0xE0 ? 0xA0 : low;   /* overlong */
        high = p[0] == 0xED ? 0x9F : high; /* surrogates */
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        len = 4;
        *code = p[0] & 0x07U;
        low = p[0] == 0xF0 ? 0x90 : low;   /* overlong */
        high = p[0] == 0xF4 ? 0x8F : high; /* above U+10FFFF */
    } else {
        return 0;
    }
    if (n < len || p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0U) != 0x80U) {
            return 0;
        }
        *code = *code << 6 | (p[i] & 0x3FU);
    }
    return len;
}

bool utf8_valid(struct str s)
{
    return utf8_valid_prefix(s) == s.len;
}

size_t utf8_valid_prefix(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t i = 0;
    while (i < s.len) {
        uint32_t code;
        size_t n = sequence(p + i, s.len - i, &code);
        if (n == 0) {
            break;
        }
        i += n;
    }
    return i;
}

size_t utf8_cut(struct str s, size_t n)
{
    if (n >= s.len) {
        return s.len;
    }
    while (n > 0 && ((unsigned char)s.ptr[n] & 0xC0U) == 0x80U) {
        n--;
    }
    return n;
}

size_t utf8_count(struct str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++) {
        count += ((unsigned char)s.ptr[i] & 0xC0U) != 0x80U;
    }
    return count;
}

void utf8_append_lossy(struct buf *out, struct str s)
{
    while (s.len != 0) {
        size_t good = utf8_valid_prefix(s);
        buf_add(out, s.ptr, good);
        if (good == s.len) {
            break;
        }
        buf_add(out, "\xEF\xBF\xBD", 3);
        s = str_n(s.ptr + good + 1, s.len - good - 1);
    }
}

/* Code points that move the cursor, change the direction or hide text. Joiners (U+200C,
 * U+200D) stay: several scripts and most emoji need them. */
static bool is_hidden(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x7F, 0x9F},     /* DEL and C1 */
        {0x61C, 0x61C},   /* Arabic letter mark */
        {0x200B, 0x200B}, /* zero width space */
        {0x200E, 0x200F}, /* LRM, RLM */
        {0x2028, 0x202E}, /* line and paragraph separator, embeddings, overrides */
        {0x2060, 0x206F}, /* invisible operators, isolates */
        {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}, /* tag characters */
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

void utf8_append_visible(struct buf *out, struct str s, bool keep_lines)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t i = 0;
    while (i < s.len) {
        uint32_t code = NO_CODE;
        size_t n = sequence(p + i, s.len - i, &code);
        if (n == 0 || (n == 1 && (code < 0x20 || code == 0x7F))) {
            if (keep_lines && n != 0 && (code == '\n' || code == '\t')) {
                buf_add_char(out, s.ptr[i]);
            } else {
                buf_addf(out, "\\x%02x", (unsigned)p[i]);
            }
            i++;
            continue;
        }
        if (is_hidden(code)) {
            buf_addf(out, "\\u{%x}", (unsigned)code);
        } else {
            buf_add(out, p + i, n);
        }
        i += n;
    }
}
