/* An entry of a later minor: what lies behind our members must not be read. */
#define BAD_OWN_ENTRY
#include "skeleton.h"

struct later_entry {
    struct sy_plugin now;
    unsigned char garbage[64];
};

/* The name that the loader asks for, with a type of our own. */
extern SY_EXPORT const struct later_entry later __asm__("soulacy_plugin_v1");
const struct later_entry later = {
    .now = {.size = sizeof(struct later_entry),
            .kind = BAD_KIND,
            .name = BAD_NAME,
            .version = "1",
            .create = bad_create,
            .destroy = bad_destroy,
            .query = bad_query},
    .garbage = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
