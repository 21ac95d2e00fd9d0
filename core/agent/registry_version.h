/* One accepted version of an agent, counted, and sets of them. Private to the registry. */
#ifndef SOULACY_AGENT_REGISTRY_VERSION_H
#define SOULACY_AGENT_REGISTRY_VERSION_H

#include "agent/registry.h"

#include <stdatomic.h>

struct tool_digest {
    char hex[65]; /* of the python_file as it was accepted; empty: it could not be read */
};

/* Immutable but for the count: shared by the registry and any number of snapshots. */
struct version {
    atomic_uint refs;
    struct soul *soul;
    struct tool_digest *tools; /* one for each soul->tools */
};

struct agent_snapshot {
    atomic_uint refs;
    uint64_t generation;
    struct version **agents; /* by id order */
    size_t nagents;
    struct arena *arena; /* of the texts below */
    struct agent_file_state *files;
    size_t nfiles;
};

/* Takes soul, also on failure. was NULL: the tool files as they are on disk now are
 * accepted; otherwise those that `was` accepted go on being the accepted ones. */
enum status version_new_take(struct soul *soul, const struct version *was,
                             struct version **out, struct error *err) SY_MUST_CHECK;
struct version *version_ref(struct version *v);
void version_unref(struct version *v); /* NULL is fine */
/* The first tool whose file is not the accepted one, or NULL. */
const struct soul_tool *version_changed_tool(const struct version *v);

/* Room for that many agents and files. */
struct agent_snapshot *snapshot_new(size_t max_agents, size_t max_files) SY_MUST_CHECK;

#endif
