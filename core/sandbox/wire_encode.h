/* The core's half of wire.h. */
#ifndef SOULACY_SANDBOX_WIRE_ENCODE_H
#define SOULACY_SANDBOX_WIRE_ENCODE_H

#include "base/buf.h"
#include "sandbox/spawn.h"
#include "sandbox/wire.h"

/* Append the message for plan to out (empty, with a maximum of SPAWN_PLAN_MAX). self: run
 * the helper's own program. */
enum status wire_encode(const struct spawn_plan *p, bool self, struct buf *out,
                        struct error *err) SY_MUST_CHECK;

#endif
