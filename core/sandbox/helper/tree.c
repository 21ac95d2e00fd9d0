/* In: the child of a supervisor, its lifeline and deadline. Out: what happened first;
 * later, that nothing is left below the supervisor. As a subreaper it inherits every
 * orphan, so "no children" means the whole tree is gone. It never signals a process that
 * is not its descendant. */
#define _GNU_SOURCE /* ppoll */
#include "helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* SIGKILL to one process, and to the group it may lead: a group of that number can only
 * be its own work while it lives. SIGCONT first, for kernels that want it. */
static void kill_one(pid_t pid)
{
    (void)kill(pid, SIGCONT);
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

/* Kill the direct children; how many there were, -1 when that cannot be read. */
static int kill_children(void)
{
    char path[64], text[8192];
    const char *at = text;
    int fd, count = 0;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    /* A list cut off here goes on in the next round. */
    n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    if ((size_t)n == sizeof(text) - 1) {
        char *cut = strrchr(text, ' ');

        if (cut != NULL) {
            *cut = '\0';
        }
    }
    for (;;) {
        pid_t pid = next_number(&at);

        if (pid <= 0) {
            return count;
        }
        kill_one(pid);
        count++;
    }
}

void tree_clear(void)
{
    sigset_t chld;
    struct timespec pause = {0, 20 * 1000000L};

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
        if (kill_children() != 0) {
            /* Until one of them is gone, or for a moment: one may have been born that
             * this round did not see. */
            (void)sigtimedwait(&chld, NULL, &pause);
        }
    }
}
