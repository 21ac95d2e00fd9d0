/* What every turn and every operation works with. Made once by the runtime, borrowed by
 * all of core/agent; members that an offline command does not need are NULL. */
#ifndef SOULACY_AGENT_CORE_H
#define SOULACY_AGENT_CORE_H

#include "agent/lanes.h"
#include "agent/registry.h"
#include "audit/audit.h"
#include "exec/exec.h"
#include "gate/gate.h"
#include "metrics/metrics.h"
#include "sandbox/plan.h"
#include "store/store.h"

#include <stdatomic.h>

struct agent_core {
    _Atomic(const struct config *)
        cfg; /* swapped on reload; old ones live till the end */
    const struct config_env *env;
    struct agent_registry *agents;
    struct store *store;
    struct exec *exec;
    struct audit *audit;
    struct metrics *metrics;
    struct log *log;
    struct lanes *lanes;

    const char *const *base_env; /* PATH, HOME, LANG, TMPDIR with their values */
    size_t nbase_env;
    const char *work_root;
    bool root_gateway;
    uint32_t drop_uid, drop_gid;
    const char *const *protected_paths;
    size_t nprotected;
    atomic_bool keyless_open; /* no key, and open to the network; follows a reload */

    /* The interpreter, asked for in the background; waits until it is known. ST_OK, or
     * the reason why there is none. */
    void *python_ctx;
    enum status (*python)(void *ctx, int64_t deadline_ms, const struct interpreter **out,
                          struct error *err);
    /* Parts of `status`: appends members to an object. May be NULL. */
    void *status_ctx;
    void (*status)(void *ctx, struct buf *out);
};

const struct config *core_config(const struct agent_core *c);
/* A new run id: 20 random characters of [a-z0-9]. */
enum status core_run_id(char out[33], struct error *err) SY_MUST_CHECK;

#endif
