/* Delivers after stop() has returned. */
#define BAD_DESTROY(b) \
    struct sy_message m = {.size = sizeof m, .text = {"hi", 2}}; \
    (void)(b)->channel->deliver((b)->host->ctx, &m, 1, NULL)
#include "skeleton.h"
