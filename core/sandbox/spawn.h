/* The core's side of soulacy-spawn, the small single-threaded program that starts every
 * child of the gateway. The core never forks; it sends a plan and gets descriptors.
 *
 * For each child the helper forks a supervisor. It holds the read end of a lifeline whose
 * other end only the gateway has; when that closes (cancel, or the gateway died, however),
 * or the deadline passes, or the child has ended, it kills everything below it, reaps it,
 * removes the private work folder and goes. */
#ifndef SOULACY_SANDBOX_SPAWN_H
#define SOULACY_SANDBOX_SPAWN_H

#include "base/error.h"
#include "base/log.h"
#include "config/config.h"

#define SPAWN_NO_LIMIT UINT64_MAX
#define SPAWN_KEEP_ID UINT32_MAX
#define SPAWN_PLAN_MAX (192 * 1024) /* bytes of one encoded plan */

struct spawn_path {
    const char *path; /* absolute */
    bool writable;
};

/* What one child is to be. Everything is borrowed for the call. */
struct spawn_plan {
    const char *const *argv; /* argv[0] absolute */
    size_t nargv;
    const char *const *env; /* "NAME=value": the whole environment */
    size_t nenv;
    const char *cwd; /* absolute; NULL: the work folder if there is one, else "/" */
    enum isolation isolation;
    bool limits_must_hold; /* a failed rlimit refuses; always so above ISOLATION_NONE */
    bool network;          /* above none: inet sockets allowed */
    uint32_t uid, gid;     /* whom to become, SPAWN_KEEP_ID = stay */
    uint64_t cpu_seconds, mem_bytes, open_files, file_bytes, processes;
    const struct spawn_path *paths; /* above none: what may be seen besides the system's
                                       own library folders (interpreter, tool, extras) */
    size_t npaths;
    const char *work_root; /* folder in which a private work folder is made and removed;
                              NULL: none. Above none it is also TMPDIR */
    int64_t deadline_ms;   /* monotonic, CLOCK_NEVER = none */
};

struct spawn_exit {
    int exit_code;   /* -1 when it did not exit by itself */
    int term_signal; /* 0 when it exited by itself */
    int64_t cpu_ms;  /* of the tool and its waited-for children */
    int64_t max_rss_bytes;
    bool deadline;    /* the supervisor's deadline ended it */
    char setup[240];  /* not empty: could not be started; names the layer and the cause */
    char layers[512]; /* one line of JSON, e.g. {"isolation":"strict","limits":{...},
                          "layers":["setsid","rlimits","landlock:7",...]} */
};

/* Oldest Landlock that restricted and strict run on; below it they refuse. */
#define SPAWN_MIN_LANDLOCK 1

struct spawn;
struct child;

/* Once, early in main: not dumpable (no ptrace, no /proc/PID/mem or environ for others of
 * the same user) and no core file. */
void spawn_harden_self(void);

/* Start the helper. Call before any thread exists. helper_path: absolute. */
enum status spawn_open(const char *helper_path, struct log *log, struct spawn **out,
                       struct error *err) SY_MUST_CHECK;
/* Kills all children (the helper ends at end of file). NULL is fine. */
void spawn_close(struct spawn *s);
/* False when the helper died and its one restart failed too. [any] */
bool spawn_alive(struct spawn *s);

/* Ask for a child. [any]. ST_OK: asked; a layer that fails shows at child_exit_fd. ST_IO:
 * no helper. ST_TOO_LARGE: plan over SPAWN_PLAN_MAX. ST_INVALID: plan not well formed. */
enum status spawn_child(struct spawn *s, const struct spawn_plan *plan,
                        struct child **out, struct error *err) SY_MUST_CHECK;

/* Descriptors, non-blocking, owned by the child object. -1 once closed. */
int child_stdin(const struct child *c);
int child_stdout(const struct child *c);
int child_stderr(const struct child *c);
/* Readable once the tool ended or could not be started. */
int child_exit_fd(const struct child *c);
void child_close_stdin(struct child *c);
/* Layers in force: ST_OK, or ST_BUSY while not told yet. text gets a line of JSON. */
enum status child_layers(struct child *c, char *text, size_t cap) SY_MUST_CHECK;
/* Close the lifeline: the supervisor kills the tree. Returns at once. [any] */
void child_kill(struct child *c);
/* Kill if alive, wait until the supervisor is gone (nothing of the tree is left), free c.
 * ST_TIMEOUT: still there at the deadline; c is freed all the same, the supervisor goes
 * on killing by itself. out may be NULL. */
enum status child_reap(struct child *c, int64_t deadline_ms,
                       struct spawn_exit *out) SY_MUST_CHECK;

/* What this machine can do, asked once: Landlock ABI, seccomp, user namespaces.
 * *why names the first layer that is missing for the level, or is "". */
enum status spawn_supports(struct spawn *s, enum isolation level, bool network,
                           struct error *why) SY_MUST_CHECK;

#endif
