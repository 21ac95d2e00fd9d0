/* Keeps a pointer into a message that was only lent, and reads it at the next call. */
#include <stddef.h>

static const char *kept;

#define BAD_SEND(b, msg) \
    static volatile char seen; \
    (void)(b); \
    if (kept != NULL) { \
        seen = *kept; \
    } \
    (void)seen; \
    kept = (msg)->text.ptr
#include "skeleton.h"
