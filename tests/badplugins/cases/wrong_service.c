/* Asks for the operations of the gateway and for local processes, and dies of getting
 * either: no channel but our own may have them. */
#include <soulacy/channel.h>
#include <soulacy/executor.h>
#define BAD_START(b) \
    if ((b)->host->service((b)->host->ctx, SY_HOST_GATEWAY_ID) != NULL || \
        (b)->host->service((b)->host->ctx, SY_HOST_SPAWN_ID) != NULL) { \
        abort(); \
    } \
    (void)(b)->host->service((b)->host->ctx, NULL)
#include "skeleton.h"
