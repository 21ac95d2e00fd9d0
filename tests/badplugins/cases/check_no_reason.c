/* Fails without a word when the core lacks a service. */
#include <soulacy/channel.h>

static sy_status mute_create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                             size_t ncfg, void **out, struct sy_error *err);

#define BAD_CREATE mute_create
#include "skeleton.h"

static sy_status mute_create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                             size_t ncfg, void **out, struct sy_error *err)
{
    sy_status st = bad_create(host, cfg, ncfg, out, err);
    if (st == SY_OK) {
        bad_destroy(*out);
        *out = NULL;
    }
    return SY_E_IO;
}
