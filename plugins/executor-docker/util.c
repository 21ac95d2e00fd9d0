/* Text and numbers. Comes in: bytes. Goes out: bytes within limits, error lines without
 * control bytes. It never grows over what it was told. */
#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bytes_init(struct bytes *b, size_t max)
{
    *b = (struct bytes){.max = max};
}

void bytes_done(struct bytes *b)
{
    free(b->p);
    *b = (struct bytes){.max = b->max};
}

void bytes_clear(struct bytes *b)
{
    b->n = 0;
    b->bad = false;
    if (b->p != NULL) {
        b->p[0] = '\0';
    }
}

/* Room for len more and a NUL. */
static bool reserve(struct bytes *b, size_t len)
{
    if (b->bad || len > b->max - b->n) {
        b->bad = true;
        return false;
    }
    size_t need = b->n + len + 1;
    if (need <= b->cap) {
        return true;
    }
    size_t cap = b->cap < 128 ? 256 : b->cap * 2;
    cap = cap < need ? need : cap;
    char *p = realloc(b->p, cap);
    if (p == NULL) {
        b->bad = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void bytes_add(struct bytes *b, const void *data, size_t len)
{
    if (reserve(b, len)) {
        if (len > 0) {
            memcpy(b->p + b->n, data, len);
        }
        b->n += len;
        b->p[b->n] = '\0';
    }
}

void bytes_text(struct bytes *b, const char *text)
{
    bytes_add(b, text, strlen(text));
}

void bytes_fmt(struct bytes *b, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line) {
        b->bad = true;
        return;
    }
    bytes_add(b, line, (size_t)n);
}

void bytes_json(struct bytes *b, const char *text, size_t len)
{
    bytes_add(b, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) {
            bytes_fmt(b, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\') {
                bytes_add(b, "\\", 1);
            }
            bytes_add(b, &c, 1);
        }
    }
    bytes_add(b, "\"", 1);
}

char *util_copy(const char *text, size_t len)
{
    char *p = malloc(len + 1);
    if (p != NULL) {
        if (len > 0) {
            memcpy(p, text, len);
        }
        p[len] = '\0';
    }
    return p;
}

sy_status util_fail(struct sy_error *err, sy_status st, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        err->os_errno = 0;
        for (char *c = err->text; *c != '\0'; c++) {
            if ((unsigned char)*c < 0x20 || *c == 0x7f) {
                *c = ' ';
            }
        }
    }
    return st;
}

bool util_number(const char *text, size_t len, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    if (len == 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    if (v > max) {
        return false;
    }
    *out = v;
    return true;
}
