/* A command's words and options from its arguments. Pure. */
#ifndef SOULACY_CLI_ARGS_H
#define SOULACY_CLI_ARGS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define ARGS_MAX_OPTIONS 16
#define ARGS_MAX_WORDS 256

struct arg_option {
    const char *name;  /* without the dashes */
    const char *value; /* what it takes, as shown in help; NULL: nothing */
    const char *help;
};

struct args {
    const struct arg_option *options; /* of the command, ended by a NULL name */
    const char
        *values[ARGS_MAX_OPTIONS]; /* by index: NULL when not given, "" for flags */
    const char *words[ARGS_MAX_WORDS];
    size_t nwords;
};

/* options: ended by a NULL name, at most ARGS_MAX_OPTIONS. Everything is borrowed.
 * --name VALUE, --name=VALUE, --flag; "--" ends options. ST_INVALID says what is wrong
 * and names the nearest option. */
enum status args_parse(int argc, char **argv, const struct arg_option *options,
                       struct args *out, struct error *err) SY_MUST_CHECK;
/* Value of an option, NULL when it was not given. */
const char *args_value(const struct args *a, const char *name);
/* Of n names the nearest to word, or NULL when none is near. */
const char *args_nearest(const char *word, const char *const *names, size_t n);

#endif
