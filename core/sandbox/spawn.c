/* In: plans. Out: children, as descriptors. Starts the helper with posix_spawn, sends it
 * each plan with the far ends of six pipes, restarts it once when it died. It never
 * forks, and it never waits for a tool except in child_reap. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC's family: SOCK_CLOEXEC, prctl */
#include "sandbox/spawn.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "sandbox/spawn_self.h"
#include "sandbox/wire_encode.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEND_TIMEOUT_MS 5000
#define SUPPORT_TIMEOUT_MS 10000
#define NOBODY 65534u

struct support {
    bool known;
    struct error why;
};

struct spawn {
    char *helper_path;
    struct log *log;
    pthread_mutex_t lock; /* socket, pid, restarts, first */
    int socket;
    pid_t pid;
    int restarts;
    struct child *first;
    pthread_mutex_t support_lock; /* supports; held while a test child runs */
    struct support supports[3][2];
};

struct child {
    struct spawn *owner;       /* NULL once spawn_close ran */
    struct child *next, *prev; /* under owner->lock */
    atomic_int lifeline;
    atomic_int in;
    int out, err, exit_fd;
    pthread_mutex_t lock; /* report, layers */
    int report;
    size_t nlayers;
    bool told;
    char layers[512];
};

/* posix_spawn shares memory with the child until exec, so this is safe and cheap however
 * many threads and pages the gateway has. */
static int spawn_process(const char *path, int sock, pid_t *pid)
{
    char *argv[] = {(char[]){"soulacy-spawn"}, NULL};
    char *env[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int rc = posix_spawn_file_actions_init(&fa);

    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attr);
    if (rc != 0) {
        posix_spawn_file_actions_destroy(&fa);
        return rc;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    rc = posix_spawn_file_actions_adddup2(&fa, sock, WIRE_SOCKET_FD);
    rc =
        rc != 0 ? rc : posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    rc =
        rc != 0 ? rc : posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    rc = rc != 0 ? rc : posix_spawnattr_setsigmask(&attr, &none);
    rc = rc != 0 ? rc : posix_spawnattr_setsigdefault(&attr, &all);
    rc = rc != 0 ? rc
                 : posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
                                                       POSIX_SPAWN_SETSIGDEF);
    rc = rc != 0 ? rc : posix_spawn(pid, path, &fa, &attr, argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&fa);
    return rc;
}

static enum status start_helper(struct spawn *s, struct error *err)
{
    const int bytes = 2 * WIRE_PLAN_MAX;
    int pair[2];
    int rc;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return error_set_errno(err, ST_IO, errno, "spawn: socket");
    }
    /* Room for one whole plan; the default is just about that. */
    (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    rc = spawn_process(s->helper_path, pair[1], &s->pid);
    io_close(&pair[1]);
    if (rc != 0) {
        io_close(&pair[0]);
        s->pid = -1;
        return error_set_errno(err, ST_IO, rc, "spawn: cannot start %s", s->helper_path);
    }
    s->socket = pair[0];
    return ST_OK;
}

/* Under the lock. The socket's end is the helper's end: its spare goes when it goes. */
static void stop_helper(struct spawn *s)
{
    io_close(&s->socket);
    if (s->pid > 0) {
        /* It is going anyway, unless somebody stopped it. */
        (void)kill(s->pid, SIGKILL);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        s->pid = -1;
    }
}

static bool peer_is_gone(const struct spawn *s)
{
    struct pollfd p = {s->socket, 0, 0};

    return s->socket < 0 ||
           (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0);
}

/* Under the lock. */
static enum status ensure_helper(struct spawn *s, struct error *err)
{
    if (!peer_is_gone(s)) {
        return ST_OK;
    }
    stop_helper(s);
    if (s->restarts >= 1) {
        return error_set(err, ST_IO, "spawn: the helper died again");
    }
    s->restarts++;
    log_line(s->log, LOG_ERROR, "spawn", "the helper died; starting it again");
    return start_helper(s, err);
}

enum status spawn_open(const char *helper_path, struct log *log, struct spawn **out,
                       struct error *err)
{
    struct spawn *s = mem_zalloc(sizeof(*s));
    enum status st;

    if (s == NULL) {
        return error_set(err, ST_NOMEM, "spawn: out of memory");
    }
    s->socket = -1;
    s->pid = -1;
    s->log = log;
    s->helper_path = mem_strdup(helper_path);
    if (s->helper_path == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        mem_free(s->helper_path);
        mem_free(s);
        return error_set(err, ST_NOMEM, "spawn: out of memory");
    }
    if (pthread_mutex_init(&s->support_lock, NULL) != 0) {
        pthread_mutex_destroy(&s->lock);
        mem_free(s->helper_path);
        mem_free(s);
        return error_set(err, ST_NOMEM, "spawn: out of memory");
    }
    st = start_helper(s, err);
    if (st != ST_OK) {
        spawn_close(s);
        return st;
    }
    *out = s;
    return ST_OK;
}

void spawn_close(struct spawn *s)
{
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    for (struct child *c = s->first; c != NULL; c = c->next) {
        child_kill(c);
        c->owner = NULL;
    }
    s->first = NULL;
    stop_helper(s);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_destroy(&s->support_lock);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->helper_path);
    mem_free(s);
}

bool spawn_alive(struct spawn *s)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = ensure_helper(s, NULL);
    pthread_mutex_unlock(&s->lock);
    return st == ST_OK;
}

void spawn_harden_self(void)
{
    struct rlimit core = {0, 1};

    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* Hard 1, not 0: children get 1, which a core_pattern with a pipe respects. */
    if (setrlimit(RLIMIT_CORE, &core) != 0) {
        core.rlim_max = 0;
        (void)setrlimit(RLIMIT_CORE, &core);
    }
}

/* 1: sent; 0: no room, wait; -1: the helper is gone; -2: errno says. */
static int try_send(int sock, struct str message, const int fds[WIRE_NFDS])
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * WIRE_NFDS)];
    char *bytes = NULL;
    struct iovec iov;
    struct msghdr msg;
    struct cmsghdr *c;
    ssize_t n;

    memcpy(&bytes, &message.ptr, sizeof(bytes)); /* iovec is not const */
    iov = (struct iovec){bytes, message.len};
    memset(&msg, 0, sizeof(msg));
    memset(control, 0, sizeof(control));
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control;
    msg.msg_controllen = sizeof(control);
    c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * WIRE_NFDS);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * WIRE_NFDS);
    do {
        n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) {
        return 1;
    }
    if (errno == EAGAIN || errno == ETOOMANYREFS) {
        return 0;
    }
    return errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN ? -1 : -2;
}

static enum status send_plan(struct spawn *s, struct str message,
                             const int fds[WIRE_NFDS], struct child *c, struct error *err)
{
    int64_t deadline_ms = clock_mono_ms() + SEND_TIMEOUT_MS;
    enum status st;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        int rc;

        st = s->socket >= 0 ? ST_OK : ensure_helper(s, err);
        if (st != ST_OK) {
            break;
        }
        rc = try_send(s->socket, message, fds);
        if (rc == 1) {
            c->owner = s;
            c->next = s->first;
            if (s->first != NULL) {
                s->first->prev = c;
            }
            s->first = c;
            break;
        }
        if (rc == -2) {
            st = error_set_errno(err, ST_IO, errno, "spawn: sending a plan");
            break;
        }
        if (rc == -1) {
            st = ensure_helper(s, err);
            if (st != ST_OK) {
                break;
            }
            continue;
        }
        /* Everyone else would have to wait for the same thing, so under the lock. */
        if (io_wait(s->socket, POLLOUT, -1, deadline_ms) == ST_TIMEOUT) {
            st = error_set(err, ST_IO, "spawn: the helper does not answer");
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static void child_free(struct child *c)
{
    if (c == NULL) {
        return;
    }
    child_kill(c);
    child_close_stdin(c);
    io_close(&c->out);
    io_close(&c->err);
    io_close(&c->exit_fd);
    io_close(&c->report);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static struct child *child_new(void)
{
    struct child *c = mem_zalloc(sizeof(*c));

    if (c == NULL || pthread_mutex_init(&c->lock, NULL) != 0) {
        mem_free(c);
        return NULL;
    }
    atomic_init(&c->lifeline, -1);
    atomic_init(&c->in, -1);
    c->out = c->err = c->exit_fd = c->report = -1;
    return c;
}

/* Our ends into c, theirs into far. Whatever was opened is closed by the caller. */
static enum status make_pipes(struct child *c, int far[WIRE_NFDS], struct error *err)
{
    int in = -1, lifeline = -1;
    enum status st = io_pipe(&far[WIRE_STDIN], &in, err);

    atomic_store(&c->in, in);
    st = st == ST_OK ? io_pipe(&c->out, &far[WIRE_STDOUT], err) : st;
    st = st == ST_OK ? io_pipe(&c->err, &far[WIRE_STDERR], err) : st;
    st = st == ST_OK ? io_pipe(&far[WIRE_LIFELINE], &lifeline, err) : st;
    atomic_store(&c->lifeline, lifeline);
    st = st == ST_OK ? io_pipe(&c->report, &far[WIRE_REPORT], err) : st;
    st = st == ST_OK ? io_pipe(&c->exit_fd, &far[WIRE_EXIT], err) : st;
    st = st == ST_OK ? io_nonblock(in, err) : st;
    st = st == ST_OK ? io_nonblock(c->out, err) : st;
    st = st == ST_OK ? io_nonblock(c->err, err) : st;
    st = st == ST_OK ? io_nonblock(c->report, err) : st;
    return st == ST_OK ? io_nonblock(c->exit_fd, err) : st;
}

static enum status child_start(struct spawn *s, const struct spawn_plan *plan, bool self,
                               struct child **out, struct error *err)
{
    int far[WIRE_NFDS] = {-1, -1, -1, -1, -1, -1};
    struct child *c = NULL;
    struct buf message;
    enum status st;

    buf_init(&message, SPAWN_PLAN_MAX);
    st = wire_encode(plan, self, &message, err);
    if (st != ST_OK) {
        goto out;
    }
    c = child_new();
    if (c == NULL) {
        st = error_set(err, ST_NOMEM, "spawn: out of memory");
        goto out;
    }
    st = make_pipes(c, far, err);
    if (st == ST_OK) {
        st = send_plan(s, buf_str(&message), far, c, err);
    }
    if (st == ST_OK) {
        *out = c;
        c = NULL;
    }
out:
    for (int i = 0; i < WIRE_NFDS; i++) {
        io_close(&far[i]);
    }
    child_free(c);
    buf_wipe(&message); /* it holds the tool's environment */
    return st;
}

enum status spawn_child(struct spawn *s, const struct spawn_plan *plan,
                        struct child **out, struct error *err)
{
    return child_start(s, plan, false, out, err);
}

enum status spawn_child_self(struct spawn *s, const struct spawn_plan *plan,
                             struct child **out, struct error *err)
{
    return child_start(s, plan, true, out, err);
}

int child_stdin(const struct child *c)
{
    return atomic_load(&c->in);
}

int child_stdout(const struct child *c)
{
    return c->out;
}

int child_stderr(const struct child *c)
{
    return c->err;
}

int child_exit_fd(const struct child *c)
{
    return c->exit_fd;
}

static void close_once(atomic_int *fd)
{
    int mine = atomic_exchange(fd, -1);

    io_close(&mine);
}

void child_close_stdin(struct child *c)
{
    close_once(&c->in);
}

void child_kill(struct child *c)
{
    close_once(&c->lifeline);
}

/* The line of JSON ends where the pipe ends. */
static void read_report(struct child *c)
{
    while (c->report >= 0) {
        ssize_t n = io_read(c->report, c->layers + c->nlayers,
                            sizeof(c->layers) - 1 - c->nlayers);

        if (n < 0) {
            return;
        }
        if (n == 0) {
            io_close(&c->report);
            c->told = c->nlayers > 0;
            return;
        }
        c->nlayers += (size_t)n;
    }
}

enum status child_layers(struct child *c, char *text, size_t cap)
{
    enum status st = ST_BUSY;

    pthread_mutex_lock(&c->lock);
    read_report(c);
    if (c->told) {
        (void)snprintf(text, cap, "%s", c->layers);
        st = ST_OK;
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

static void unlink_child(struct child *c)
{
    struct spawn *s = c->owner;

    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        s->first = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    pthread_mutex_unlock(&s->lock);
}

/* The record, then end of file. ST_TIMEOUT when the deadline comes first. */
static enum status await_end(struct child *c, int64_t deadline_ms, struct wire_exit *rec,
                             size_t *got)
{
    char rest[64] = {0};

    *got = 0;
    for (;;) {
        bool room = *got < sizeof(*rec);
        ssize_t n = io_read(c->exit_fd, room ? (char *)rec + *got : rest,
                            room ? sizeof(*rec) - *got : sizeof(rest));

        if (n == 0) {
            return ST_OK;
        }
        if (n > 0) {
            *got += room ? (size_t)n : 0;
            continue;
        }
        if (errno != EAGAIN) {
            return ST_IO;
        }
        if (io_wait(c->exit_fd, POLLIN, -1, deadline_ms) == ST_TIMEOUT) {
            return ST_TIMEOUT;
        }
    }
}

static void fill_exit(const struct wire_exit *rec, size_t got, struct spawn_exit *out)
{
    memset(out, 0, sizeof(*out));
    out->exit_code = -1;
    if (got != sizeof(*rec) || rec->magic != WIRE_EXIT_MAGIC) {
        (void)snprintf(out->setup, sizeof(out->setup),
                       "spawn: the helper or the supervisor ended without an answer");
        return;
    }
    out->exit_code = rec->exit_code;
    out->term_signal = rec->term_signal;
    out->cpu_ms = rec->cpu_ms;
    out->max_rss_bytes = rec->max_rss_bytes;
    out->deadline = rec->deadline != 0;
    (void)snprintf(out->setup, sizeof(out->setup), "%.239s", rec->setup);
    (void)snprintf(out->layers, sizeof(out->layers), "%.511s", rec->layers);
}

enum status child_reap(struct child *c, int64_t deadline_ms, struct spawn_exit *out)
{
    struct wire_exit rec;
    size_t got = 0;
    enum status st;

    if (c == NULL) {
        return ST_OK;
    }
    child_kill(c);
    child_close_stdin(c);
    st = await_end(c, deadline_ms, &rec, &got);
    if (out != NULL) {
        fill_exit(&rec, got, out);
    }
    unlink_child(c);
    child_free(c);
    return st;
}

/* Really start a child at that level: what it meets is what a tool would meet. */
static enum status ask_support(struct spawn *s, enum isolation level, bool network,
                               struct error *why)
{
    const char *argv[] = {"/soulacy-spawn", "--probe", "true"};
    bool root = geteuid() == 0;
    struct spawn_plan p = {.argv = argv,
                           .nargv = 3,
                           .isolation = level,
                           .network = network,
                           .uid = root ? NOBODY : SPAWN_KEEP_ID,
                           .gid = root ? NOBODY : SPAWN_KEEP_ID,
                           .cpu_seconds = SPAWN_NO_LIMIT,
                           .mem_bytes = SPAWN_NO_LIMIT,
                           .open_files = SPAWN_NO_LIMIT,
                           .file_bytes = SPAWN_NO_LIMIT,
                           .processes = SPAWN_NO_LIMIT,
                           .deadline_ms = clock_mono_ms() + SUPPORT_TIMEOUT_MS};
    struct spawn_exit end;
    struct child *c = NULL;
    enum status st = spawn_child_self(s, &p, &c, why);

    if (st != ST_OK) {
        return st;
    }
    st = io_wait(child_exit_fd(c), POLLIN, -1, p.deadline_ms);
    if (child_reap(c, p.deadline_ms + SUPPORT_TIMEOUT_MS, &end) != ST_OK || st != ST_OK) {
        return error_set(why, ST_TIMEOUT, "spawn: no answer from the helper");
    }
    if (end.setup[0] != '\0') {
        return error_set(why, ST_UNSUPPORTED, "%s", end.setup);
    }
    if (end.exit_code != 0) {
        return error_set(why, ST_UNSUPPORTED, "%s: a test child ended with %d, signal %d",
                         level == ISOLATION_STRICT ? "strict" : "restricted",
                         end.exit_code, end.term_signal);
    }
    return ST_OK;
}

enum status spawn_supports(struct spawn *s, enum isolation level, bool network,
                           struct error *why)
{
    struct support *known = &s->supports[level][network ? 1 : 0];
    enum status st;

    pthread_mutex_lock(&s->support_lock);
    if (!known->known) {
        memset(&known->why, 0, sizeof(known->why));
        known->why.status =
            level == ISOLATION_NONE ? ST_OK : ask_support(s, level, network, &known->why);
        /* A helper that did not answer says nothing about the machine. */
        known->known = known->why.status == ST_OK || known->why.status == ST_UNSUPPORTED;
    }
    st = known->why.status;
    if (why != NULL) {
        *why = known->why;
    }
    pthread_mutex_unlock(&s->support_lock);
    return st;
}
