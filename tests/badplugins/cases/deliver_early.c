/* Delivers before it was started. */
#include <soulacy/channel.h>

static sy_status early_create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                              size_t ncfg, void **out, struct sy_error *err);

#define BAD_CREATE early_create
#include "skeleton.h"

static sy_status early_create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                              size_t ncfg, void **out, struct sy_error *err)
{
    sy_status st = bad_create(host, cfg, ncfg, out, err);
    if (st == SY_OK) {
        struct sy_message m = {.size = sizeof m, .text = {"hi", 2}};
        struct bad *b = *out;
        (void)b->channel->deliver(host->ctx, &m, 1, NULL);
    }
    return st;
}
