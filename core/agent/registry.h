/* The agents of agent_dirs: every SOUL.yaml one folder deep, or *.soul.yaml files directly
 * in an agent dir. Loaded whole, swapped atomically, a broken edit keeps the last good one.
 * Readers take a counted snapshot. */
#ifndef SOULACY_AGENT_REGISTRY_H
#define SOULACY_AGENT_REGISTRY_H

#include "base/log.h"
#include "config/soul.h"

struct agent_registry;
struct agent_snapshot; /* immutable set of agents of one moment */

/* State of one file, for status and doctor. */
struct agent_file_state {
    const char *file;
    const char *id;      /* of the version in force, or NULL */
    const char *problem; /* why the file on disk is not in force, or NULL */
    bool waits;          /* a valid edit grows authority: waits for an explicit reload */
};

/* Load all. With any broken or duplicate agent at start: problems say so (every one), the
 * good ones are loaded all the same. */
enum status agent_registry_new(const struct config *cfg, struct log *log,
                               struct problems *probs, struct agent_registry **out,
                               struct error *err) SY_MUST_CHECK;
void agent_registry_free(struct agent_registry *r);
/* Descriptor that becomes readable when files may have changed (inotify). */
int agent_registry_fd(const struct agent_registry *r);
/* Read what changed. grow: may new versions have more authority (SIGHUP, `soulacy
 * reload`)? Otherwise such a version waits. A new file counts as growth. A removed file
 * removes its agent. Logs each change once. Returns true when the set changed. [core] */
bool agent_registry_refresh(struct agent_registry *r, bool grow);
/* Use a new configuration for later loads (reload). */
void agent_registry_set_config(struct agent_registry *r, const struct config *cfg);

/* [any] */
struct agent_snapshot *agents_take(
    struct agent_registry *r); /* give back with agents_put */
void agents_put(struct agent_snapshot *s);
const struct soul *agents_find(const struct agent_snapshot *s, struct str id);
size_t agents_count(const struct agent_snapshot *s);
const struct soul *agents_at(const struct agent_snapshot *s, size_t i); /* by id order */
uint64_t agents_generation(const struct agent_snapshot *s);
/* Names are borrowed until the snapshot is put back. */
size_t agents_file_states(const struct agent_snapshot *s,
                          const struct agent_file_state **out);

/* The digest of a tool's python_file as it was when the agent was let in (start or an
 * explicit reload). Dispatch refuses a file whose bytes have another one. The empty text
 * when the file could not be read then: no file matches it. false: the tool has no file,
 * or soul is not of this snapshot. [any] */
bool agents_tool_digest(const struct agent_snapshot *s, const struct soul *soul,
                        const char *tool_name, char out[65]) SY_MUST_CHECK;

/* For tests: the clock that tells an editor's rename from a removal. */
void agent_registry_set_clock(struct agent_registry *r, int64_t (*now_ms)(void));

#endif
