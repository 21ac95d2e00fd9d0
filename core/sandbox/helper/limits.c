/* In: a plan. Out: resource limits of the calling process. The CPU limit has its hard
 * value one second above the soft one, so that SIGXCPU tells a spent budget from a kill.
 * It never raises a limit above what the caller may. */
#define _GNU_SOURCE /* RLIMIT_NPROC, RLIMIT_AS */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct limit_row {
    const char *name;
    int resource;
};

static const struct limit_row *row_of(enum limit_id id)
{
    static const struct limit_row rows[LIMIT_COUNT] = {
        [LIMIT_CORE] = {"core", RLIMIT_CORE},
        [LIMIT_CPU] = {"cpu_seconds", RLIMIT_CPU},
        [LIMIT_AS] = {"memory", RLIMIT_AS},
        [LIMIT_FSIZE] = {"file_size", RLIMIT_FSIZE},
        [LIMIT_NPROC] = {"processes", RLIMIT_NPROC},
        [LIMIT_NOFILE] = {"open_files", RLIMIT_NOFILE}};

    return &rows[id];
}

static uint64_t value_of(const struct hplan *p, enum limit_id id)
{
    switch (id) {
    case LIMIT_CORE:
        /* 1, not 0: a core_pattern that pipes to a program ignores 0. No file of one
         * byte comes of it. */
        return 1;
    case LIMIT_CPU:
        return p->cpu_seconds;
    case LIMIT_AS:
        return p->mem_bytes;
    case LIMIT_FSIZE:
        return p->file_bytes;
    case LIMIT_NPROC:
        return p->processes;
    case LIMIT_NOFILE:
        return p->open_files;
    }
    return WIRE_NO_LIMIT;
}

static const char *limit_name(enum limit_id id)
{
    return row_of(id)->name;
}

bool limit_wanted(const struct hplan *plan, enum limit_id id)
{
    return value_of(plan, id) != WIRE_NO_LIMIT;
}

static int limit_apply(const struct hplan *plan, enum limit_id id)
{
    uint64_t value = value_of(plan, id);
    struct rlimit lim = {(rlim_t)value, (rlim_t)value};

    if (id == LIMIT_CORE) {
        struct rlimit now;

        /* Hygiene, not a promise: where 0 is in force already, it stays. */
        if (getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_max < value) {
            return 0;
        }
    }
    if (id == LIMIT_CPU) {
        lim.rlim_max = value < RLIM_INFINITY - 1 ? (rlim_t)value + 1 : (rlim_t)value;
    }
    return setrlimit((__rlimit_resource_t)row_of(id)->resource, &lim) == 0 ? 0 : errno;
}

bool limits_apply(struct run *r)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        enum limit_id id = (enum limit_id)i;
        int err = limit_wanted(&r->plan, id) ? limit_apply(&r->plan, id) : 0;

        if (err == 0) {
            continue;
        }
        if (r->plan.limits_must_hold) {
            char layer[48];

            (void)snprintf(layer, sizeof(layer), "limit %s", limit_name(id));
            return run_fail(r, layer, err);
        }
        r->limits_failed |= 1u << i;
        char line[120];
        int n =
            snprintf(line, sizeof(line), "soulacy: warning: limit %s not applied: %s\n",
                     limit_name(id), strerror(err));

        if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0) {
            continue; /* nobody reads it */
        }
    }
    return true;
}
