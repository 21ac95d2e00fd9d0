/* Errors for people. In: a status, a format, perhaps an errno. Out: one line in a fixed
 * buffer. Never allocates, never fails, never leaves a control byte or half a character
 * in the text. */
#include "base/error.h"

#include "base/str.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX (sizeof(((struct error *)NULL)->text) - 1)

/* Make the first len bytes of text one clean line. was_cut: the end may be half a
 * character, which is dropped rather than shown as '?'. */
static void clean(char *text, size_t len, bool was_cut)
{
    size_t i = 0;
    while (i < len) {
        size_t good = utf8_valid_prefix(str_n(text + i, len - i));
        for (size_t end = i + good; i < end; i++) {
            if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) {
                text[i] = '?';
            }
        }
        if (i == len) {
            break;
        }
        if (was_cut && len - i < 4 && (unsigned char)text[i] >= 0xC0) {
            text[i] = '\0';
            break;
        }
        text[i++] = '?';
    }
}

/* Append to err->text, of which `at` bytes are in use; returns how many are then. By way
 * of a copy, since an argument may well be err->text itself. */
__attribute__((format(printf, 3, 0))) static size_t put(struct error *err, size_t at,
                                                        const char *fmt, va_list ap)
{
    char text[TEXT_MAX + 1];
    size_t room = TEXT_MAX - at;
    int n = vsnprintf(text, room + 1, fmt, ap);
    if (n < 0) {
        text[0] = '\0'; /* a wide character that the locale lacks */
    } else {
        bool was_cut = (size_t)n > room;
        clean(text, was_cut ? room : (size_t)n, was_cut);
    }
    size_t len = strlen(text);
    memcpy(err->text + at, text, len + 1);
    return at + len;
}

__attribute__((format(printf, 3, 4))) static size_t putf(struct error *err, size_t at,
                                                         const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t len = put(err, at, fmt, ap);
    va_end(ap);
    return len;
}

enum status error_set(struct error *err, enum status st, const char *fmt, ...)
{
    if (err == NULL) {
        return st;
    }
    err->status = st;
    err->os_errno = 0;
    va_list ap;
    va_start(ap, fmt);
    put(err, 0, fmt, ap);
    va_end(ap);
    return st;
}

enum status error_set_errno(struct error *err, enum status st, int os_errno,
                            const char *fmt, ...)
{
    if (err == NULL) {
        return st;
    }
    char reason[128];
    if (strerror_r(os_errno, reason, sizeof(reason)) != 0) {
        snprintf(reason, sizeof(reason), "error %d", os_errno);
    }
    err->status = st;
    err->os_errno = os_errno;
    va_list ap;
    va_start(ap, fmt);
    size_t len = put(err, 0, fmt, ap);
    va_end(ap);
    putf(err, len, ": %s", reason);
    return st;
}

enum status error_context(struct error *err, const char *fmt, ...)
{
    if (err == NULL) {
        return ST_INTERNAL;
    }
    char before[sizeof(err->text)];
    memcpy(before, err->text, sizeof(before));
    va_list ap;
    va_start(ap, fmt);
    size_t len = put(err, 0, fmt, ap);
    va_end(ap);
    putf(err, len, ": %s", before);
    return err->status;
}
