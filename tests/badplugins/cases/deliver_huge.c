/* Delivers a text of more bytes than there is memory. */
#define BAD_START(b) \
    struct sy_message m = {.size = sizeof m, .text = {"x", SIZE_MAX / 2}}; \
    (void)(b)->channel->deliver((b)->host->ctx, &m, 1, NULL)
#include "skeleton.h"
