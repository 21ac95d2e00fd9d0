/* In: the public headers. Out: one function for each struct that a plugin meets, so that
 * the debug information of this object is the whole ABI and abidiff can compare it with
 * the stored one. Never run. */
#include <soulacy/channel.h>
#include <soulacy/executor.h>

#define ANCHOR(type) \
    SY_EXPORT const void *anchor_##type(const struct type *p); \
    const void *anchor_##type(const struct type *p) \
    { \
        return p; \
    }

ANCHOR(sy_plugin)
ANCHOR(sy_host)
ANCHOR(sy_error)
ANCHOR(sy_cfg_value)
ANCHOR(sy_channel)
ANCHOR(sy_host_channel)
ANCHOR(sy_host_http)
ANCHOR(sy_host_fetch)
ANCHOR(sy_host_gateway)
ANCHOR(sy_route)
ANCHOR(sy_executor)
ANCHOR(sy_host_spawn)
ANCHOR(sy_launch)
