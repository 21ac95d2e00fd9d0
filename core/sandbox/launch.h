/* Launches in use: specs by key, with the ids that executors hold, and the spawn service
 * (soulacy.host.spawn/1) that turns an id into a sandboxed child. An executor can start
 * nothing but what the core planned. */
#ifndef SOULACY_SANDBOX_LAUNCH_H
#define SOULACY_SANDBOX_LAUNCH_H

#include "sandbox/plan.h"

#include <soulacy/executor.h>

struct launches;

/* preamble: first bytes for every launch's stdin (the harness); borrowed for good. */
enum status launches_new(struct spawn *spawn, struct str preamble, size_t max_launches,
                         struct launches **out, struct error *err) SY_MUST_CHECK;
void launches_free(struct launches *l);

/* The launch for a spec: the present one with that key, or a new one (the spec is copied).
 * At max_launches the least recently used idle one is retired first. The result is
 * counted: give it back with launch_release when the run is over. */
enum status launch_acquire(struct launches *l, const struct launch_spec *spec,
                           const struct sy_launch **out, struct error *err) SY_MUST_CHECK;
void launch_release(struct launches *l, const struct sy_launch *launch);
/* Called without a lock when a launch ends: executors drop stock of that id. */
void launches_on_retire(struct launches *l, void (*fn)(void *arg, uint64_t id),
                        void *arg);
/* Retire all (reload of configuration or interpreter). */
void launches_retire_all(struct launches *l);

/* The table granted to executors. Its ctx is the plugin instance's, whose
 * PLUGIN_SLOT_SPAWN holds the launches: the runtime sets it before the instance starts. */
const struct sy_host_spawn *launch_spawn_service(void);
/* What the service's functions call: kept here so that tests can call them directly. */
sy_status launch_spawn(struct launches *l, uint64_t launch_id, struct sy_child *out,
                       struct sy_error *err);
void launch_kill(struct launches *l, uint64_t child_id);
sy_status launch_layers(struct launches *l, uint64_t child_id, char *text, size_t cap);
sy_status launch_reap(struct launches *l, uint64_t child_id, int64_t deadline_ms,
                      struct sy_child_exit *out);
/* Children that were not reaped yet. */
size_t launches_children(struct launches *l);

#endif
