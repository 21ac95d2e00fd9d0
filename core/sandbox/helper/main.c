/* soulacy-spawn. In: plans with their descriptors on the socket at WIRE_SOCKET_FD. Out:
 * one supervisor process per plan. The keeper forks one supervisor ahead of need; that
 * spare waits for a plan on the same socket, so that the fork and its page faults are
 * paid before the plan comes. The keeper never reads a plan and has no threads; when the
 * gateway's end closes both end. It never outlives the gateway by more than a moment. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC, pipe2 */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a spare works in: mapped by the spare itself, so the keeper stays small. */
struct desk {
    struct run run;
    char message[WIRE_PLAN_MAX + 1];
};

struct keeper {
    int taken[2]; /* a spare writes a struct notice when it took a plan, and once more */
    int alive[2]; /* the spare sees the keeper's end */
    pid_t spare;
    pid_t busy; /* took a plan and has not started its tool */
    int landlock_abi;
};

/* The next fork competes with the start of the tool for the processor, so it waits for
 * it, but not for long: a start may hang in a stuck file system. */
#define HOLD_MS 5

/* Bytes received, 0 at the end of the socket, -1 to try again. */
static ssize_t receive(struct desk *d, size_t *nfd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * (WIRE_NFDS + 2))];
    struct iovec iov = {d->message, sizeof(d->message)};
    struct msghdr msg;
    ssize_t n;

    memset(&msg, 0, sizeof(msg));
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control;
    msg.msg_controllen = sizeof(control);
    *nfd = 0;
    n = recvmsg(WIRE_SOCKET_FD, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN ? -1 : 0;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            size_t got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            int fds[WIRE_NFDS + 2];

            memcpy(fds, CMSG_DATA(c), got * sizeof(int));
            for (size_t i = 0; i < got; i++) {
                if (*nfd < WIRE_NFDS) {
                    d->run.fd[(*nfd)++] = fds[i];
                } else {
                    (void)close(fds[i]);
                }
            }
        }
    }
    return n;
}

/* Touch what a run will write, while nobody waits for it. */
static void warm_up(struct desk *d)
{
    volatile char *p = (volatile char *)d;
    const size_t page = 4096;

    for (size_t at = 0; at < sizeof(d->run) + 2 * page && at < sizeof(*d); at += page) {
        p[at] = 0;
    }
}

static void spare_main(struct keeper *k)
{
    struct pollfd fds[2] = {{WIRE_SOCKET_FD, POLLIN, 0}, {k->alive[0], POLLIN, 0}};
    struct desk *d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *why = NULL;
    struct notice note = {getpid(), 0};
    ssize_t n = -1;
    size_t nfd = 0;

    if (d == MAP_FAILED) {
        return;
    }
    (void)close(k->alive[1]);
    (void)close(k->taken[0]);
    tree_prepare();
    warm_up(d);
    d->run.landlock_abi = k->landlock_abi;
    while (n < 0) {
        if (poll(fds, 2, -1) < 0) {
            continue;
        }
        if (fds[1].revents != 0) {
            /* The keeper is gone. Whoever sends from now on is told so; a plan that came
             * before is still done. */
            (void)shutdown(WIRE_SOCKET_FD, SHUT_RD);
            n = receive(d, &nfd);
            break;
        }
        n = receive(d, &nfd);
    }
    if (n <= 0) {
        return;
    }
    if (write(k->taken[1], &note, sizeof(note)) < 0) {
        /* The keeper is gone: this plan is still done. */
        d->run.started_fd = -1;
    } else {
        d->run.started_fd = k->taken[1];
    }
    (void)close(WIRE_SOCKET_FD);
    (void)close(k->alive[0]);
    if (nfd != WIRE_NFDS) {
        return; /* not from our gateway; nobody could be told */
    }
    if (!hplan_decode(d->message, (size_t)n, &d->run.plan, &why)) {
        supervise(&d->run, why);
        return;
    }
    supervise(&d->run, NULL);
}

/* False: out of processes for the moment. */
static bool make_spare(struct keeper *k)
{
    pid_t pid = fork();

    if (pid < 0) {
        return false;
    }
    if (pid == 0) {
        spare_main(k);
        _exit(0);
    }
    k->spare = pid;
    return true;
}

static void reap_all(struct keeper *k)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        k->spare = pid == k->spare ? -1 : k->spare;
        k->busy = pid == k->busy ? -1 : k->busy;
    }
}

/* Whoever comes next needs another spare: at once when the tool runs. */
static void take_notice(struct keeper *k)
{
    struct notice note;

    if (read(k->taken[0], &note, sizeof(note)) != (ssize_t)sizeof(note)) {
        return;
    }
    if (note.pid == k->spare) {
        k->spare = -1;
        k->busy = note.pid;
    }
    if (note.started && note.pid == k->busy) {
        k->busy = -1;
    }
}

static int keep(struct keeper *k)
{
    struct pollfd fds[2] = {{WIRE_SOCKET_FD, 0, 0}, {k->taken[0], POLLIN, 0}};
    const struct timespec retry = {0, 50 * 1000000L}, hold = {0, HOLD_MS * 1000000L};
    sigset_t none;

    (void)sigemptyset(&none);
    for (;;) {
        bool needs = k->spare < 0 && k->busy < 0;
        const struct timespec *wait = needs && !make_spare(k) ? &retry : NULL;
        int n;

        wait = k->spare < 0 && k->busy >= 0 ? &hold : wait;
        fds[0].revents = 0;
        fds[1].revents = 0;
        n = ppoll(fds, 2, wait, &none);
        if (n == 0) {
            k->busy = -1;
        }
        if (n > 0 && (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
            return 0;
        }
        if (n > 0 && fds[1].revents != 0) {
            take_notice(k);
        }
        reap_all(k);
    }
}

static bool is_probe(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--probe") == 0;
}

int main(int argc, char **argv)
{
    struct keeper k;
    struct sigaction ignore;

    if (is_probe(argc, argv)) {
        return probe_main(argc, argv);
    }
    memset(&k, 0, sizeof(k));
    k.spare = -1;
    k.busy = -1;
    (void)setsid();
    if (syscall(SYS_close_range, WIRE_SOCKET_FD + 1U, ~0U, 0) != 0 && errno != ENOSYS) {
        return 1;
    }
    /* Plans carry secrets of tools: nobody of the same uid may look into this process. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return 1;
    }
    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, NULL);
    tree_prepare();
    if (pipe2(k.taken, O_CLOEXEC) != 0 || pipe2(k.alive, O_CLOEXEC) != 0 ||
        fcntl(WIRE_SOCKET_FD, F_SETFD, FD_CLOEXEC) != 0) {
        return 1;
    }
    k.landlock_abi = landlock_version();
    return keep(&k);
}
