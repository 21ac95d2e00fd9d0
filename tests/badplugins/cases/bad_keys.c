/* Claims a key that belongs to the core. */
#include <soulacy/plugin.h>

static const struct sy_cfg_key keys[] = {
    {"allowed_user_ids", SY_CFG_LIST, 0, NULL, "Who may write."},
    {NULL, 0, 0, NULL, NULL}};

#define BAD_KEYS keys
#include "skeleton.h"
