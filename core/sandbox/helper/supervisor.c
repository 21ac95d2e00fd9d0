/* In: a decoded plan and its descriptors. Out: a report line once the tool runs, one exit
 * record once it ended, then the end of this process, which says that nothing is left.
 * It starts nothing but the tool (and PID 1 of its namespaces) and never lives longer
 * than what it watches. */
#define _GNU_SOURCE /* PR_SET_CHILD_SUBREAPER */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_streams(struct run *r)
{
    for (int i = 0; i < 3; i++) {
        (void)close(r->fd[i]);
        r->fd[i] = -1;
    }
}

/* Both pipes are new and what is written is shorter than PIPE_BUF: this cannot block. A
 * gateway that is gone does not read it, which is no concern of ours. */
static void tell(int fd, const void *p, size_t n)
{
    if (write(fd, p, n) < 0) {
        return;
    }
}

/* The keeper may make the next spare now. */
static void tell_keeper(struct run *r)
{
    struct notice note = {getpid(), 1};

    if (r->started_fd >= 0) {
        tell(r->started_fd, &note, sizeof(note));
        (void)close(r->started_fd);
        r->started_fd = -1;
    }
}

static void tell_started(struct run *r)
{
    tell_keeper(r);
    run_describe(r);
    tell(r->fd[WIRE_REPORT], r->layers, strlen(r->layers));
    (void)close(r->fd[WIRE_REPORT]);
    r->fd[WIRE_REPORT] = -1;
}

static void tell_end(struct run *r, struct run_end end, bool deadline)
{
    struct wire_exit rec;

    memset(&rec, 0, sizeof(rec));
    rec.magic = WIRE_EXIT_MAGIC;
    rec.exit_code = -1;
    rec.deadline = deadline ? 1 : 0;
    if (end.ended && r->setup[0] == '\0') {
        if (WIFEXITED(end.status)) {
            rec.exit_code = WEXITSTATUS(end.status);
        } else if (WIFSIGNALED(end.status)) {
            rec.term_signal = WTERMSIG(end.status);
        }
        rec.cpu_ms = end.cpu_ms;
        rec.max_rss_bytes = end.max_rss_bytes;
    }
    (void)snprintf(rec.setup, sizeof(rec.setup), "%s", r->setup);
    (void)snprintf(rec.layers, sizeof(rec.layers), "%s", r->layers);
    tell(r->fd[WIRE_EXIT], &rec, sizeof(rec));
}

/* The tool is our own child. */
static void watch_tool(struct run *r)
{
    enum wake why = tree_wait(r->child, r->fd[WIRE_LIFELINE], -1, r->plan.deadline_ms);

    /* The group first: while its leader is not reaped, its number is its own. */
    (void)kill(-r->child, SIGKILL);
    if (why != WAKE_CHILD) {
        (void)kill(r->child, SIGKILL);
    }
    tell_end(r, tree_reap(r->child), why == WAKE_DEADLINE);
}

/* Take one note from PID 1. False: there will be no more. */
static bool take_note(struct run *r, int fd, struct run_end *end)
{
    struct note note;
    ssize_t n = read(fd, &note, sizeof(note));

    if (n < 0 && errno == EINTR) {
        return true;
    }
    if (n != (ssize_t)sizeof(note)) {
        return false;
    }
    if (note.kind == NOTE_STARTED) {
        r->limits_failed = note.limits_failed;
        tell_started(r);
        return true;
    }
    if (note.kind == NOTE_FAILED) {
        note.setup[sizeof(note.setup) - 1] = '\0';
        (void)snprintf(r->setup, sizeof(r->setup), "%s", note.setup);
    } else {
        *end = note.end;
    }
    return false;
}

/* The tool is the child of PID 1 of its namespaces, which is ours. */
static void watch_namespace(struct run *r, int notes)
{
    struct run_end end, first;
    enum wake why;

    memset(&end, 0, sizeof(end));
    for (;;) {
        why = tree_wait(r->child, r->fd[WIRE_LIFELINE], notes, r->plan.deadline_ms);
        if (why == WAKE_CHILD && end.ended) {
            break;
        }
        if (why == WAKE_NOTE && take_note(r, notes, &end)) {
            continue;
        }
        break;
    }
    if (why == WAKE_CHILD) {
        /* Its last note may still be in the pipe. */
        while (!end.ended && r->setup[0] == '\0' && take_note(r, notes, &end)) {
        }
    }
    if (end.ended || r->setup[0] != '\0') {
        tell_end(r, end, false);
        (void)kill(r->child, SIGKILL);
        (void)tree_reap(r->child);
        return;
    }
    (void)kill(r->child, SIGKILL);
    first = tree_reap(r->child);
    /* However PID 1 ended, the kernel killed the tool with it. */
    first.status = SIGKILL;
    tell_end(r, first, why == WAKE_DEADLINE);
}

static void run_plan(struct run *r)
{
    int notes;

    r->exec_path = r->plan.self ? "/proc/self/exe" : r->plan.argv[0];
    if (!work_make(r)) {
        return;
    }
    if (r->work[0] != '\0' && r->plan.level != LEVEL_NONE) {
        size_t i = 0;

        (void)snprintf(r->tmpdir_env, sizeof(r->tmpdir_env), "TMPDIR=%s", r->work);
        while (i < r->plan.nenv && strncmp(r->plan.env[i], "TMPDIR=", 7) != 0) {
            i++;
        }
        r->plan.env[i] = r->tmpdir_env;
        if (i == r->plan.nenv) {
            r->plan.nenv++;
            r->plan.env[r->plan.nenv] = NULL;
        }
    }
    if (r->plan.level == LEVEL_STRICT) {
        notes = ns_start(r);
        close_streams(r);
        if (notes >= 0) {
            watch_namespace(r, notes);
            (void)close(notes);
        }
        return;
    }
    if (start_tool(r)) {
        close_streams(r);
        tell_started(r);
        watch_tool(r);
    }
}

void supervise(struct run *r, const char *why)
{
    struct run_end nothing;

    memset(&nothing, 0, sizeof(nothing));
    r->work_root_fd = -1;
    r->child = -1;
    if (why != NULL) {
        (void)snprintf(r->setup, sizeof(r->setup), "plan: %s", why);
    } else if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        (void)run_fail(r, "subreaper", errno);
    } else {
        run_plan(r);
    }
    close_streams(r);
    tell_keeper(r);
    if (r->child < 0) {
        tell_end(r, nothing, false);
    }
    tree_clear();
    work_remove(r);
}
