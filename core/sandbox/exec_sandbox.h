/* `soulacy __exec-sandbox --cpu=N --mem=MB --nofile=N --fsize=MB [--env=NAME]... -- cmd
 * args...`: the documented re-exec. Pure argument parser and the run. */
#ifndef SOULACY_SANDBOX_EXEC_SANDBOX_H
#define SOULACY_SANDBOX_EXEC_SANDBOX_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define EXEC_SANDBOX_MAX_ENV 256

struct exec_sandbox_args {
    uint64_t cpu_seconds, mem_mb, nofile, fsize_mb; /* 0 = no limit */
    const char *env[EXEC_SANDBOX_MAX_ENV];          /* borrowed from argv */
    size_t nenv;
    char **command; /* NULL-terminated, borrowed from argv */
};

/* argv without program name and without "__exec-sandbox". Pure. */
enum status exec_sandbox_parse(int argc, char **argv, struct exec_sandbox_args *out,
                               struct error *err) SY_MUST_CHECK;
/* Parse, apply each limit on its own (a warning on stderr for one that fails), reduce the
 * environment to PATH, HOME, LANG, TMPDIR and the names given, execve. Returns only on
 * failure: 2 bad flags, 127 cannot exec. */
int exec_sandbox_main(int argc, char **argv, char **envp);

#endif
