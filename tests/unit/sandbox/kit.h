/* What the sandbox tests share: a temporary folder that any user can reach, with copies
 * of the helper and the payload; plans; runs. Tests run as whoever starts them and, when
 * that is root, once more as nobody. */
#ifndef SOULACY_TESTS_SANDBOX_KIT_H
#define SOULACY_TESTS_SANDBOX_KIT_H

#include "support/test.h"

#include "base/buf.h"
#include "sandbox/spawn.h"

#define KIT_NOBODY 65534u
#define KIT_DEADLINE_MS 20000

struct kit {
    char dir[128];     /* 0755 */
    char helper[160];  /* copy, executable by all */
    char payload[160]; /* likewise */
    char work[160];    /* a work_root, 1777 */
    char secret[160];  /* a file the plan does not name, 0666 */
    struct spawn *spawn;
};

struct kit_run {
    struct buf out, err;
    struct spawn_exit end;
    char layers[512];
};

/* The whole of a test program's main. tests run with a struct kit as their state. */
int kit_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
             size_t ntests);

/* A plan for `payload verb args...`: no limits, a deadline; above none as nobody when
 * root. argv must live as long as the plan. */
struct spawn_plan kit_plan(const struct kit *k, enum isolation level, const char **argv);
/* argv for kit_plan: {payload, words..., NULL}. */
const char **kit_argv(const struct kit *k, const char *w1, const char *w2, const char *w3,
                      const char *w4, const char *storage[8]);

/* Run to the end: stdin closed at once, both streams whole. */
void kit_run(struct kit *k, const struct spawn_plan *p, struct kit_run *out);
void kit_run_done(struct kit_run *r);
/* Run payload with up to four words at a level; the first line of its stdout. */
void kit_say(struct kit *k, enum isolation level, bool network, const char *w1,
             const char *w2, const char *w3, const char *w4, char out[256]);
/* Wait until stdout holds text. */
void kit_await(const struct child *c, const char *text);
/* How many processes have token in their command line. */
size_t kit_processes(const char *token);
size_t kit_open_fds(void);
size_t kit_entries(const char *dir);

#endif
