/* One decoded plan. Pointers point into the message, which must outlive it. */
#ifndef SOULACY_SPAWN_HPLAN_H
#define SOULACY_SPAWN_HPLAN_H

#include "sandbox/wire.h"

#include <stdbool.h>
#include <stddef.h>

enum level { LEVEL_NONE = 0, LEVEL_RESTRICTED = 1, LEVEL_STRICT = 2 };

struct hpath {
    const char *path;
    bool writable;
};

struct hplan {
    enum level level;
    bool limits_must_hold, network, self;
    uint32_t uid, gid;
    uint64_t cpu_seconds, mem_bytes, open_files, file_bytes, processes;
    int64_t deadline_ms;
    const char *cwd;       /* NULL: the work folder, else "/" */
    const char *work_root; /* NULL: none */
    size_t nargv, nenv, npaths;
    char *argv[WIRE_MAX_ARGV + 1];
    char *env[WIRE_MAX_ENV + 2]; /* one spare for TMPDIR */
    struct hpath paths[WIRE_MAX_PATHS];
};

/* Check and take apart a message of size bytes. False: not well formed, *why says what.
 * Pure. */
bool hplan_decode(char *message, size_t size, struct hplan *out, const char **why);

#endif
