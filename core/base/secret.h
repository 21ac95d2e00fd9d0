/* Bytes that must not be printed: no printer exists, freeing erases. */
#ifndef SOULACY_BASE_SECRET_H
#define SOULACY_BASE_SECRET_H

#include "base/str.h"

struct secret {
    char *ptr; /* NUL-terminated, or NULL when unset */
    size_t len;
};

enum status secret_set(struct secret *s, struct str value) SY_MUST_CHECK; /* copies */
void secret_done(struct secret *s);
bool secret_is_set(const struct secret *s); /* non-empty */
/* Constant-time comparison with what a stranger sent; false when unset. */
bool secret_matches(const struct secret *s, struct str candidate);
/* The one way to the bytes: grep for it. */
struct str secret_expose(const struct secret *s);

#endif
