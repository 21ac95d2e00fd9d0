/* In: the child of a supervisor, its lifeline and deadline. Out: what happened first;
 * later, that nothing is left below the supervisor. As a subreaper it inherits every
 * orphan, so "no children" means the whole tree is gone. It never signals a process that
 * is not its descendant. */
#define _GNU_SOURCE /* ppoll, SCHED_RESET_ON_FORK */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void on_child(int sig)
{
    (void)sig; /* only to interrupt ppoll */
}

void tree_prepare(void)
{
    struct sigaction act;
    sigset_t set;

    memset(&act, 0, sizeof(act));
    act.sa_handler = on_child;
    (void)sigaction(SIGCHLD, &act, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
}

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reap whoever ended, but leave the child itself a zombie: its number must stay taken
 * until its group has been killed. True: the child has ended. */
static bool reap_others(pid_t child)
{
    for (;;) {
        siginfo_t info;

        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0) {
            return false;
        }
        if (info.si_pid == child) {
            return true;
        }
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
}

enum wake tree_wait(pid_t child, int lifeline, int note_fd, int64_t deadline_ms)
{
    struct pollfd fds[2] = {{lifeline, POLLIN, 0}, {note_fd, POLLIN, 0}};
    sigset_t none;

    (void)sigemptyset(&none);
    for (;;) {
        struct timespec left, *wait = NULL;

        if (reap_others(child)) {
            return WAKE_CHILD;
        }
        if (deadline_ms != INT64_MAX) {
            int64_t ms = deadline_ms - now_ms();

            if (ms <= 0) {
                return WAKE_DEADLINE;
            }
            left.tv_sec = (time_t)(ms / 1000);
            left.tv_nsec = (long)(ms % 1000) * 1000000;
            wait = &left;
        }
        if (ppoll(fds, note_fd >= 0 ? 2 : 1, wait, &none) <= 0) {
            continue;
        }
        if (fds[1].revents != 0 && note_fd >= 0) {
            return WAKE_NOTE;
        }
        if (fds[0].revents != 0) {
            return WAKE_LIFELINE;
        }
    }
}

static int64_t ms_of(struct timeval t)
{
    return (int64_t)t.tv_sec * 1000 + t.tv_usec / 1000;
}

struct run_end tree_reap(pid_t child)
{
    struct run_end end;
    struct rusage use;
    pid_t got;

    memset(&end, 0, sizeof(end));
    memset(&use, 0, sizeof(use));
    do {
        got = wait4(child, &end.status, 0, &use);
    } while (got < 0 && errno == EINTR);
    end.ended = got == child;
    end.cpu_ms = ms_of(use.ru_utime) + ms_of(use.ru_stime);
    end.max_rss_bytes = (int64_t)use.ru_maxrss * 1024;
    return end;
}

/* SIGKILL to one process, stopped or not, and to the group it may lead: a group of that
 * number can only be its own work while it lives. */
static void kill_one(pid_t pid)
{
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
}

static pid_t next_number(const char **at)
{
    const char *p = *at;
    pid_t pid = 0;

    while (*p == ' ') {
        p++;
    }
    while (*p >= '0' && *p <= '9') {
        pid = pid * 10 + (*p - '0');
        p++;
    }
    *at = p;
    return pid;
}

#define TREE_MAX 2048 /* of one round; the rest is found in the next */

struct tree_list {
    pid_t pid[TREE_MAX];
    size_t n;
};

/* Append the direct children of pid. A list cut off here goes on in the next round. */
static void add_children(struct tree_list *l, pid_t pid)
{
    char path[64], text[8192];
    const char *at = text;
    int fd;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (n <= 0) {
        return;
    }
    text[n] = '\0';
    if ((size_t)n == sizeof(text) - 1) {
        char *cut = strrchr(text, ' ');

        if (cut != NULL) {
            *cut = '\0';
        }
    }
    while (l->n < TREE_MAX) {
        pid_t child = next_number(&at);

        if (child <= 0) {
            return;
        }
        l->pid[l->n++] = child;
    }
}

/* Stop everything below us, top down; a number that stands for the set. Stopping frees
 * no slot of a process limit, and what is stopped forks no more: so a fork bomb grows
 * into its limit and then stands still, which killing one by one never achieves. */
static uint64_t stop_all(struct tree_list *l)
{
    uint64_t sum = 0;

    l->n = 0;
    add_children(l, getpid());
    for (size_t i = 0; i < l->n; i++) {
        (void)kill(l->pid[i], SIGSTOP);
        sum += (uint64_t)l->pid[i] * (uint64_t)l->pid[i];
        add_children(l, l->pid[i]);
    }
    return sum + l->n;
}

/* Ahead of everything else, where we may: a bomb of sessions has a scheduling group for
 * each process and would leave us one part in hundreds. Not inherited. */
static void hurry(void)
{
    struct sched_param param = {.sched_priority = 1};

    (void)sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param);
}

static void kill_round(void)
{
    struct tree_list l;
    uint64_t before = stop_all(&l), now = stop_all(&l);

    /* Until nobody new was found; bounded, for what nothing holds. */
    for (int i = 0; before != now && i < 64; i++) {
        before = now;
        now = stop_all(&l);
    }
    for (size_t i = 0; i < l.n; i++) {
        kill_one(l.pid[i]);
    }
}

void tree_clear(void)
{
    sigset_t chld;
    struct timespec pause = {0, 20 * 1000000L};
    bool hurried = false;

    (void)sigemptyset(&chld);
    (void)sigaddset(&chld, SIGCHLD);
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);

        if (pid < 0 && errno == ECHILD) {
            return;
        }
        if (pid > 0) {
            continue;
        }
        if (!hurried) {
            hurry();
            hurried = true;
        }
        kill_round();
        /* Until one of them is gone, or for a moment: one may have been born that this
         * round did not see. */
        (void)sigtimedwait(&chld, NULL, &pause);
    }
}
