/* Between spawn.c and probe.c: a child that runs the helper's own program. */
#ifndef SOULACY_SANDBOX_SPAWN_SELF_H
#define SOULACY_SANDBOX_SPAWN_SELF_H

#include "sandbox/spawn.h"

/* As spawn_child; argv[0] is only a name, the program is the helper itself, which takes
 * "--probe" as its first argument. Visible in a strict root too. */
enum status spawn_child_self(struct spawn *s, const struct spawn_plan *plan,
                             struct child **out, struct error *err) SY_MUST_CHECK;

#endif
