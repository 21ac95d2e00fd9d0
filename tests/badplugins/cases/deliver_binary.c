/* Delivers a sender that is not UTF-8. */
#define BAD_START(b) \
    struct sy_message m = {.size = sizeof m, .sender = {"\xff\xfe", 2}}; \
    (void)(b)->channel->deliver((b)->host->ctx, &m, 1, NULL)
#include "skeleton.h"
