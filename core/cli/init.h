/* The parts of `init`. Private to core/cli. */
#ifndef SOULACY_CLI_INIT_H
#define SOULACY_CLI_INIT_H

#include "cli/command.h"

struct init {
    struct cli *c;
    char *dir;   /* absolute */
    char *share; /* PREFIX/share/soulacy/starter */
    int64_t port;
    char key[3 + 64 + 1];
    enum isolation level;
    bool probed;        /* level was found to work by running a tool under it */
    const char *python; /* value of runtime.python_bin */
    char why[3][400];   /* by level: why it does not work here, or "" */
};

/* ---- init_files.c ------------------------------------------------------------------ */

/* DIR/NAME in the command's arena; NULL when out of memory. */
char *init_path(const struct init *in, const char *name);
bool init_exists(const char *path); /* also a dangling link */
/* Folders, 0755, and the agent's files from the starter, 0644; what is there stays. */
enum status init_agents(const struct init *in, struct error *err) SY_MUST_CHECK;
/* The starter's config.yaml with the values of this workspace. */
enum status init_render(const struct init *in, struct buf *out,
                        struct error *err) SY_MUST_CHECK;
/* Made new with the mode and synced; ST_CONFLICT when the name is taken. */
enum status init_create(const char *path, struct str text, unsigned mode,
                        struct error *err) SY_MUST_CHECK;

/* ---- init_try.c -------------------------------------------------------------------- */

/* The strongest level at which the starter's own tool runs here; sets level, python,
 * probed and why. */
enum status init_choose(struct init *in, struct error *err) SY_MUST_CHECK;

#endif
