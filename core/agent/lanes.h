/* One lane a session: its jobs run one at a time and in order, different sessions run side
 * by side on the turns pool. A lane whose job has ended goes to the back, so that a busy
 * session does not starve the others. */
#ifndef SOULACY_AGENT_LANES_H
#define SOULACY_AGENT_LANES_H

#include "base/error.h"
#include "base/pool.h"
#include "base/str.h"

#define LANE_MAX_WAITING 32    /* jobs that wait in one lane */
#define LANES_MAX_WAITING 4096 /* jobs that wait in all of them */

struct lanes;

/* pool: max_queued must be at least LANES_MAX_WAITING; outlives the lanes. */
enum status lanes_new(struct pool *turns, struct lanes **out,
                      struct error *err) SY_MUST_CHECK;
/* Every job must have ended (stop the pool first). */
void lanes_free(struct lanes *l);
/* key empty: a lane of its own. ST_BUSY: the lane or the house is full. [any] */
enum status lanes_submit(struct lanes *l, struct str key, void (*fn)(void *arg),
                         void *arg) SY_MUST_CHECK;

#endif
