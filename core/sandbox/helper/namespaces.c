/* In: a run at level strict. Out: PID 1 of new namespaces, which drops to the plan's
 * user, exchanges the root, starts the tool as PID 2, reaps what is orphaned and sends
 * notes to the supervisor. The kernel kills everything inside when it ends, and it ends
 * with the lifeline too, should the supervisor be gone. It never lets the tool hold a
 * capability of the new user namespace. */
#define _GNU_SOURCE /* CLONE_NEW*, unshare, sethostname */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool write_file(struct run *r, const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int err = 0;

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        err = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return err == 0 ? true : run_fail_path(r, "user namespace", path, err);
}

/* Our one user, mapped to itself: inside and outside agree on who owns a file. */
static bool map_ids(struct run *r, uid_t uid, gid_t gid)
{
    char text[64];
    bool ok;

    /* The map files belong to root for a process that cannot be looked into. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    ok = write_file(r, "/proc/self/setgroups", "deny");
    (void)snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)uid, (unsigned)uid);
    ok = ok && write_file(r, "/proc/self/uid_map", text);
    (void)snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)gid, (unsigned)gid);
    ok = ok && write_file(r, "/proc/self/gid_map", text);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (!ok) {
        return false;
    }
    if (syscall(SYS_setresgid, gid, gid, gid) != 0 ||
        syscall(SYS_setresuid, uid, uid, uid) != 0) {
        return run_fail(r, "uid", errno);
    }
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return true;
}

static void send_note(int fd, const struct note *note)
{
    if (write(fd, note, sizeof(*note)) < 0) {
        return; /* the supervisor is gone; so shall we be */
    }
}

static bool enter(struct run *r, uid_t uid, gid_t gid)
{
    if (uid == 0) {
        return run_fail(r, "uid: a root gateway must become another user", EPERM);
    }
    if (!map_ids(r, uid, gid)) {
        return false;
    }
    if (sethostname("sandbox", 7) != 0) {
        return run_fail(r, "host name", errno);
    }
    if (!root_build(r)) {
        return false;
    }
    r->inside = true;
    if (r->plan.self) {
        r->exec_path = "/.probe";
    }
    return start_tool(r);
}

static void init_main(struct run *r, int notes, uid_t uid, gid_t gid)
{
    struct note note;
    int lifeline = r->fd[WIRE_LIFELINE];

    (void)close(r->fd[WIRE_REPORT]);
    memset(&note, 0, sizeof(note));
    if (!enter(r, uid, gid)) {
        note.kind = NOTE_FAILED;
        (void)snprintf(note.setup, sizeof(note.setup), "%s", r->setup);
        send_note(notes, &note);
        _exit(1);
    }
    for (int i = 0; i < 3; i++) {
        (void)close(r->fd[i]);
    }
    note.kind = NOTE_STARTED;
    note.limits_failed = r->limits_failed;
    send_note(notes, &note);
    if (tree_wait(r->child, lifeline, -1, INT64_MAX) == WAKE_CHILD) {
        note.kind = NOTE_ENDED;
        note.end = tree_reap(r->child);
        send_note(notes, &note);
    }
    _exit(0);
}

/* The kernel says only that the lot failed: find out which one it was. */
static void name_missing(struct run *r, int flags, int err)
{
    static const struct {
        int flag;
        const char *name;
    } rows[] = {{CLONE_NEWUSER, "user namespace"}, {CLONE_NEWNS, "mount namespace"},
                {CLONE_NEWPID, "pid namespace"},   {CLONE_NEWIPC, "ipc namespace"},
                {CLONE_NEWUTS, "uts namespace"},   {CLONE_NEWCGROUP, "cgroup namespace"},
                {CLONE_NEWNET, "net namespace"}};
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if ((flags & rows[i].flag) != 0 && unshare(rows[i].flag) != 0) {
                _exit((int)i + 1);
            }
        }
        _exit(0);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
        WEXITSTATUS(status) > 0 &&
        (size_t)WEXITSTATUS(status) <= sizeof(rows) / sizeof(rows[0])) {
        (void)run_fail(r, rows[WEXITSTATUS(status) - 1].name, err);
        return;
    }
    (void)run_fail(r, "namespaces", err);
}

int ns_start(struct run *r)
{
    int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                CLONE_NEWCGROUP | (r->plan.network ? 0 : CLONE_NEWNET);
    uid_t uid = ids_change(r) ? r->plan.uid : geteuid();
    gid_t gid = ids_change(r) ? r->plan.gid : getegid();
    int notes[2];
    int err;
    long pid;

    if (pipe2(notes, O_CLOEXEC) != 0) {
        (void)run_fail(r, "pipe", errno);
        return -1;
    }
    /* The namespaces belong to the user the tool will be, not to root. */
    err = ids_borrow(r);
    if (err != 0) {
        ids_return(r);
        (void)run_fail(r, "uid", err);
        goto fail;
    }
    pid = syscall(SYS_clone, (long)flags | SIGCHLD, NULL, NULL, NULL, NULL);
    err = errno;
    if (pid == 0) {
        (void)close(notes[0]);
        init_main(r, notes[1], uid, gid);
    }
    if (pid < 0) {
        name_missing(r, flags, err);
    }
    ids_return(r);
    if (pid < 0) {
        goto fail;
    }
    r->child = (pid_t)pid;
    (void)close(notes[1]);
    return notes[0];
fail:
    (void)close(notes[0]);
    (void)close(notes[1]);
    return -1;
}
