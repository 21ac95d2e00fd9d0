/* One line for people, filled in where the fault is found. */
#ifndef SOULACY_BASE_ERROR_H
#define SOULACY_BASE_ERROR_H

#include "base/status.h"

struct error {
    enum status status;
    int os_errno;   /* 0 when no system call was at fault */
    char text[512]; /* NUL-terminated, one line, no secrets; cut on a UTF-8 border */
};

/* Fill err (NULL is allowed) and return st, so that "return error_set(...)" reads well.
 * Control bytes in the result are replaced by '?'. */
enum status error_set(struct error *err, enum status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, and appends ": " and the text of os_errno. */
enum status error_set_errno(struct error *err, enum status st, int os_errno,
                            const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Put "context: " before the text that is there. Returns err's status
 * (ST_INTERNAL when err is NULL). */
enum status error_context(struct error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
