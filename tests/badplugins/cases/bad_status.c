/* Answers with a number that is no status. */
#define BAD_SEND(b, msg) \
    (void)(b); \
    (void)(msg); \
    return 42
#include "skeleton.h"
