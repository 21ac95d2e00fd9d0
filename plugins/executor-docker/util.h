/* Bytes that grow up to a limit, JSON text, error lines: what every file here needs. */
#ifndef SOULACY_DOCKER_UTIL_H
#define SOULACY_DOCKER_UTIL_H

#include <soulacy/executor.h>

#include <stdbool.h>

/* Owned bytes with a limit. A failure sticks: check `bad` once, at the end. p ends in a
 * NUL that n does not count, and is NULL while nothing was added. */
struct bytes {
    char *p;
    size_t n, cap, max;
    bool bad;
};

void bytes_init(struct bytes *b, size_t max);
void bytes_done(struct bytes *b);
void bytes_clear(struct bytes *b);
void bytes_add(struct bytes *b, const void *data, size_t len);
void bytes_text(struct bytes *b, const char *text);
__attribute__((format(printf, 2, 3))) void bytes_fmt(struct bytes *b, const char *fmt,
                                                     ...);
/* A JSON string with its quotes. Bytes over 0x7f pass: the text is UTF-8. */
void bytes_json(struct bytes *b, const char *text, size_t len);

/* A copy that ends in NUL; NULL: out of memory. Free with free(). */
char *util_copy(const char *text, size_t len);

/* Fill err (may be NULL) with one line without control bytes; the status back. */
__attribute__((format(printf, 3, 4))) sy_status util_fail(struct sy_error *err,
                                                          sy_status st, const char *fmt,
                                                          ...);

/* Decimal digits only, nothing else in the text. False: not a number, or over max. */
bool util_number(const char *text, size_t len, uint64_t max, uint64_t *out);

#endif
