/* In: a run whose work folder exists. Out: the tool's process, with every layer the level
 * asks for, or run.setup. The new process shares this one's memory until it execs, so it
 * costs no copied pages and can leave its error where the parent sees it. It never
 * returns to the caller's stack. Order: executors' notes, "order of system calls". */
#define _GNU_SOURCE /* clone, close_range */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

static bool take_streams(struct run *r)
{
    for (int i = 0; i < 3; i++) {
        if (dup2(r->fd[i], i) < 0) {
            return run_fail(r, "streams", errno);
        }
    }
    /* All of ours are close-on-exec already; this is for what we were not told of. */
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0 && errno != ENOSYS &&
        errno != EINVAL) {
        return run_fail(r, "descriptors", errno);
    }
    return true;
}

static bool enter_folder(struct run *r)
{
    const char *cwd = r->plan.cwd;

    if (cwd == NULL) {
        cwd = r->work[0] != '\0' ? r->work : "/";
    }
    if (chdir(cwd) != 0) {
        return run_fail_path(r, "folder", cwd, errno);
    }
    if (r->plan.level != LEVEL_NONE) {
        (void)umask(077);
        if (r->work[0] != '\0' &&
            faccessat(AT_FDCWD, r->work, W_OK | X_OK, AT_EACCESS) != 0) {
            return run_fail_path(r, "work folder", r->work, errno);
        }
    }
    return true;
}

/* Ignored signals and the mask would survive exec. */
static void reset_signals(void)
{
    struct sigaction deflt;
    sigset_t none;

    memset(&deflt, 0, sizeof(deflt));
    deflt.sa_handler = SIG_DFL;
    (void)sigaction(SIGPIPE, &deflt, NULL);
    (void)sigaction(SIGCHLD, &deflt, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool confine(struct run *r)
{
    int ruleset = -1;
    int err;

    if (r->plan.level != LEVEL_NONE) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
            return run_fail(r, "no_new_privs", errno);
        }
        ruleset = landlock_build(r);
        if (ruleset < 0) {
            return false;
        }
    }
    if (!limits_apply(r)) {
        return false;
    }
    if (r->plan.level == LEVEL_NONE) {
        return true;
    }
    err = landlock_enter(ruleset);
    if (err != 0) {
        return run_fail(r, "landlock", err);
    }
    filter_build(r, (uint32_t)getpid());
    err = filter_enter(r);
    if (err != 0) {
        return run_fail(r, "seccomp", err);
    }
    return true;
}

static int child_main(void *arg)
{
    struct run *r = arg;

    if (!take_streams(r) || !ids_drop(r) || !enter_folder(r) || !confine(r)) {
        _exit(127);
    }
    reset_signals();
    /* Last, not first: a new session is a new group for the scheduler too, which has to
     * queue behind everything else on a busy machine. Until exec nothing can tell. */
    if (setsid() < 0) {
        (void)run_fail(r, "session", errno);
        _exit(127);
    }
    (void)execve(r->exec_path, r->plan.argv, r->plan.env);
    (void)run_fail_path(r, "exec", r->plan.argv[0], errno);
    _exit(127);
}

bool start_tool(struct run *r)
{
    pid_t pid = clone(child_main, r->stack + sizeof(r->stack),
                      CLONE_VM | CLONE_VFORK | SIGCHLD, r);

    if (pid < 0) {
        return run_fail(r, "process", errno);
    }
    r->child = pid;
    if (r->setup[0] != '\0') {
        (void)tree_reap(pid);
        r->child = -1;
        return false;
    }
    return true;
}
