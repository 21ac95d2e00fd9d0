/* Adds a route and never answers. */
#include <soulacy/channel.h>

static void never(void *ctx, const struct sy_request *req)
{
    (void)ctx;
    (void)req;
}

#define BAD_START(b) \
    const struct sy_host_http *h = (b)->host->service((b)->host->ctx, SY_HOST_HTTP_ID); \
    const struct sy_route r = {.size = sizeof r, \
                               .auth = SY_AUTH_KEY, \
                               .method = "GET", \
                               .path = "/channels/bad/x", \
                               .handle = never}; \
    if (h != NULL) { \
        (void)h->add_route((b)->host->ctx, &r, err); \
    }
#include "skeleton.h"
