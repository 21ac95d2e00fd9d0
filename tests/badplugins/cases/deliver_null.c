/* Delivers no messages at all. */
#define BAD_START(b) (void)(b)->channel->deliver((b)->host->ctx, NULL, 1, NULL)
#include "skeleton.h"
