/* A send with an outcome that nobody knows. */
#define BAD_SEND(b, msg) \
    (void)(b); \
    (void)(msg); \
    out->outcome = 99
#include "skeleton.h"
