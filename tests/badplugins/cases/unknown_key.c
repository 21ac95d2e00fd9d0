/* Takes one key; the configuration of the test holds another. */
#include <soulacy/plugin.h>

static const struct sy_cfg_key keys[] = {
    {"token", SY_CFG_SECRET, 0, NULL, "The key of the account."},
    {NULL, 0, 0, NULL, NULL}};

#define BAD_KEYS keys
#include "skeleton.h"
