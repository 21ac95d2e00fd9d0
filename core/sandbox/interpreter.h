/* The Python that runs tools, resolved once by asking it: a shim on PATH (pyenv and the
 * like) costs many times a real start, and restricted levels need to know what it reads. */
#ifndef SOULACY_SANDBOX_INTERPRETER_H
#define SOULACY_SANDBOX_INTERPRETER_H

#include "sandbox/spawn.h"

struct interpreter {
    char *path;            /* absolute, the real one */
    char *version;         /* "3.11.2" */
    struct str_list paths; /* prefixes, library folders: what it must be able to read */
};

/* Ask python_bin (a name looked up in PATH of base_env, or a path) where it really is.
 * Blocks until deadline_ms. The error names python_bin and what to do. */
enum status interpreter_query(struct spawn *s, const char *python_bin,
                              const char *const *base_env, size_t nbase_env,
                              int64_t deadline_ms, struct interpreter *out,
                              struct error *err) SY_MUST_CHECK;
void interpreter_done(struct interpreter *i);
/* The answer's text ("key value" lines) as a struct; pure. */
enum status interpreter_parse(struct str text, struct interpreter *out,
                              struct error *err) SY_MUST_CHECK;

#endif
