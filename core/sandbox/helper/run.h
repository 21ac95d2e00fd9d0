/* One run inside its supervisor: the state and what the files of the helper offer each
 * other. The helper has no threads; a struct run belongs to the one process that works
 * on it, and for the moment of starting the tool also to the tool's process before exec,
 * which shares its parent's memory (CLONE_VM | CLONE_VFORK). */
#ifndef SOULACY_SPAWN_RUN_H
#define SOULACY_SPAWN_RUN_H

#include "sandbox/helper/hplan.h"

#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <linux/filter.h>

#define RUN_MAX_FILTER 512
#define RUN_STACK_BYTES (64 * 1024)
#define RUN_PATH_MAX 4096

/* Bits of run.limits_failed, in the order they are applied. */
enum limit_id { LIMIT_CORE, LIMIT_CPU, LIMIT_AS, LIMIT_FSIZE, LIMIT_NPROC, LIMIT_NOFILE };
#define LIMIT_COUNT 6

/* From a spare to the keeper. */
struct notice {
    int32_t pid;
    int32_t started;
};

struct run {
    struct hplan plan;
    int fd[WIRE_NFDS];
    int started_fd; /* a struct notice goes here when the tool runs or will not; -1 */
    /* The private work folder: its root stays open so that removal needs no path. */
    int work_root_fd;
    char work_name[40];
    char work[RUN_PATH_MAX];
    char tmpdir_env[RUN_PATH_MAX + 8];
    /* Facts about this machine. */
    int landlock_abi; /* 0: none */
    bool inside;      /* in the namespaces, root already exchanged, uid already dropped */
    struct sock_filter filter[RUN_MAX_FILTER];
    size_t nfilter;
    /* Outcome of the start. */
    const char *exec_path;
    uint32_t limits_failed;
    char setup[240]; /* not empty: not started, and why */
    char layers[512];
    pid_t child;
    unsigned char stack[RUN_STACK_BYTES] __attribute__((aligned(64)));
};

/* How a child ended, as wait4 tells it. */
struct run_end {
    bool ended;
    int status;
    int64_t cpu_ms;
    int64_t max_rss_bytes;
};

/* layers.c: "LEVEL: LAYER: cause" into run.setup, unless something is there. False. */
bool run_fail(struct run *r, const char *layer, int err);
bool run_fail_path(struct run *r, const char *layer, const char *path, int err);
/* run.layers from the plan and run.limits_failed. */
void run_describe(struct run *r);

bool limit_wanted(const struct hplan *plan, enum limit_id id);
/* Each on its own. False: one failed and the plan wants a refusal (run.setup says so). */
bool limits_apply(struct run *r);

/* landlock.c */
int landlock_version(void);
/* A ruleset for the plan, or -1 with run.setup. Opens its paths as the caller. */
int landlock_build(struct run *r);
int landlock_enter(int ruleset_fd);

/* filter.c: the seccomp program into run.filter. own_pid is used where Landlock cannot
 * scope signals. */
void filter_build(struct run *r, uint32_t own_pid);
int filter_enter(struct run *r);

/* ids.c */
bool ids_drop(struct run *r); /* all three of uid and gid, no groups, no way back */
int ids_borrow(const struct run *r); /* only the effective ones; 0 or errno */
void ids_return(const struct run *r);
bool ids_change(const struct run *r); /* does the plan ask for another identity? */

/* namespaces.c: start the first process of new namespaces, which builds the root, starts
 * the tool as PID 2 and tells over a pipe. */
enum note_kind { NOTE_STARTED = 1, NOTE_FAILED, NOTE_ENDED };
struct note {
    int32_t kind;
    uint32_t limits_failed;
    struct run_end end;
    char setup[240];
};
/* The read end of the pipe of notes, or -1 with run.setup. run.child is PID 1. */
int ns_start(struct run *r);

/* root.c: exchange the root for a minimal one. Inside new namespaces. */
bool root_build(struct run *r);

/* start.c: the tool itself. False: run.setup. Sets run.child. */
bool start_tool(struct run *r);

/* tree.c */
enum wake { WAKE_CHILD, WAKE_LIFELINE, WAKE_DEADLINE, WAKE_NOTE };
/* Reap orphans until the child ended (it is left as a zombie), the lifeline closed, the
 * deadline passed or note_fd is readable. */
enum wake tree_wait(pid_t child, int lifeline, int note_fd, int64_t deadline_ms);
void tree_prepare(void); /* signal state that tree_wait needs */
struct run_end tree_reap(pid_t child);
/* Kill and reap all that is below this process, until nothing is. */
void tree_clear(void);

/* workdir.c */
bool work_make(struct run *r);
void work_remove(struct run *r);

/* supervisor.c: everything of one run, from a decoded plan to nothing left. why: the
 * plan could not be read. */
void supervise(struct run *r, const char *why);

/* probe_child.c */
int probe_main(int argc, char **argv);

#endif
