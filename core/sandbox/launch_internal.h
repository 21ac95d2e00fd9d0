/* What launch.c (the launches) and launch_spawn.c (their children) share. */
#ifndef SOULACY_SANDBOX_LAUNCH_INTERNAL_H
#define SOULACY_SANDBOX_LAUNCH_INTERNAL_H

#include "base/arena.h"
#include "sandbox/launch.h"

#include <pthread.h>

#define LAUNCH_CHILDREN_MAX 4096
#define LAUNCH_FREE_REAP_MS 5000

struct launch_entry {
    struct sy_launch launch; /* first: a pointer to it is a pointer to the entry */
    struct launch_spec spec;
    struct arena *arena;
    struct launch_entry *next;
    size_t users;
    uint64_t last_used;
    bool retired; /* not found by key any more; goes with its last user */
};

struct launch_child {
    uint64_t id;
    struct child *child;
};

struct launches {
    struct spawn *spawn;
    struct str preamble;
    size_t max_launches;
    void (*retire_fn)(void *arg, uint64_t id);
    void *retire_arg;
    pthread_mutex_t lock; /* guards all below */
    struct launch_entry *first;
    size_t count; /* of those not retired */
    uint64_t next_id, clock;
    struct launch_child *children; /* LAUNCH_CHILDREN_MAX places */
    size_t nchildren;
};

#endif
