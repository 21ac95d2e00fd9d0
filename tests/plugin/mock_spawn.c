#define _GNU_SOURCE /* pidfd_open by syscall, pipe2, waitid(P_PIDFD) */
/* In: launches of a test and the spawn calls of a plugin. Out: real children with three
 * pipes and a descriptor that tells their end, without any sandbox. Faults: a launch that
 * is not there, a child that is reaped twice or never. */
#include "plugin/mock_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct launch {
    struct sy_launch l;
    struct sy_str *argv;
    char **raw;
    bool retired;
};

struct child {
    struct sy_child c;
    pid_t pid; /* 0: could not be set up */
    char setup[240];
    bool reaped;
};

const struct sy_launch *mock_launch(struct mock_host *m, const char *const *argv,
                                    const char *preamble, uint64_t must)
{
    size_t n = 0;
    mock_lock(m);
    struct launch *l = mock_keep(&m->launches, calloc(1, sizeof *l));
    while (argv[n] != NULL) {
        n++;
    }
    l->argv = calloc(n, sizeof *l->argv);
    l->raw = calloc(n + 1, sizeof *l->raw);
    if (l->argv == NULL || l->raw == NULL) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        l->raw[i] = mock_printf(m, "%s", argv[i]);
        l->argv[i] = (struct sy_str){l->raw[i], strlen(l->raw[i])};
    }
    l->l.size = sizeof l->l;
    l->l.id = ++m->next_launch;
    const char *key = mock_printf(m, "%064llx", (unsigned long long)l->l.id);
    l->l.key = (struct sy_str){key, 64};
    l->l.must = must;
    l->l.argv = l->argv;
    l->l.nargv = n;
    const char *bytes = mock_printf(m, "%s", preamble != NULL ? preamble : "");
    l->l.preamble = (struct sy_str){bytes, strlen(bytes)};
    mock_unlock(m);
    return &l->l;
}

static struct launch *find_launch(struct mock_host *m, uint64_t id)
{
    for (size_t i = 0; i < m->launches.n; i++) {
        struct launch *l = m->launches.items[i];
        if (l->l.id == id) {
            return l;
        }
    }
    return NULL;
}

void mock_launch_retire(struct mock_host *m, const struct sy_launch *l)
{
    mock_lock(m);
    struct launch *found = find_launch(m, l->id);
    if (found != NULL) {
        found->retired = true;
    }
    mock_unlock(m);
}

void mock_spawn_fails(struct mock_host *m, int n, const char *text)
{
    mock_lock(m);
    m->spawn_fails = n;
    (void)snprintf(m->spawn_text, sizeof m->spawn_text, "%s", text);
    mock_unlock(m);
}

/* Descriptors of the child in order, ours non-blocking. */
static bool make_pipes(int child[3], int ours[3])
{
    for (int i = 0; i < 3; i++) {
        int p[2];
        if (pipe2(p, O_CLOEXEC) != 0) {
            return false;
        }
        child[i] = i == 0 ? p[0] : p[1];
        ours[i] = i == 0 ? p[1] : p[0];
        (void)fcntl(ours[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static pid_t start(const struct launch *l, const int child[3])
{
    pid_t pid = -1;
    char *env[] = {NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    for (int i = 0; i < 3; i++) {
        (void)posix_spawn_file_actions_adddup2(&files, child[i], i);
    }
    if (posix_spawn(&pid, l->raw[0], &files, &attr, l->raw, env) != 0) {
        pid = -1;
    }
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return pid;
}

static sy_status spawn(void *ctx, uint64_t launch_id, struct sy_child *out,
                       struct sy_error *err)
{
    struct mock_host *m = ctx;
    int theirs[3], ours[3];
    mock_lock(m);
    const struct launch *l = find_launch(m, launch_id);
    if (l == NULL || l->retired) {
        (void)snprintf(err->text, sizeof err->text, "launch %llu is not there",
                       (unsigned long long)launch_id);
        mock_unlock(m);
        return SY_E_INVALID;
    }
    struct child *c = mock_keep(&m->children, calloc(1, sizeof *c));
    bool fails = m->spawn_fails > 0;
    m->spawn_fails -= fails ? 1 : 0;
    m->spawned++;
    if (!make_pipes(theirs, ours)) {
        abort();
    }
    c->pid = fails ? 0 : start(l, theirs);
    for (int i = 0; i < 3; i++) {
        (void)close(theirs[i]);
    }
    if (c->pid <= 0) {
        c->pid = 0;
        (void)snprintf(c->setup, sizeof c->setup, "%s",
                       fails ? m->spawn_text : "exec failed");
    }
    c->c.size = sizeof c->c;
    c->c.id = ++m->next_child;
    c->c.stdin_fd = ours[0];
    c->c.stdout_fd = ours[1];
    c->c.stderr_fd = ours[2];
    c->c.exit_fd =
        c->pid > 0 ? (int)syscall(SYS_pidfd_open, c->pid, 0) : eventfd(1, EFD_CLOEXEC);
    *out = c->c;
    mock_unlock(m);
    return SY_OK;
}

static struct child *find_child(struct mock_host *m, uint64_t id)
{
    for (size_t i = 0; i < m->children.n; i++) {
        struct child *c = m->children.items[i];
        if (c->c.id == id && !c->reaped) {
            return c;
        }
    }
    return NULL;
}

static void kill_child(void *ctx, uint64_t child_id)
{
    struct mock_host *m = ctx;
    mock_lock(m);
    const struct child *c = find_child(m, child_id);
    if (c == NULL) {
        mock_fault(m, "kill: child %llu is not there", (unsigned long long)child_id);
    } else if (c->pid > 0) {
        (void)kill(-c->pid, SIGKILL);
    }
    mock_unlock(m);
}

static sy_status layers(void *ctx, uint64_t child_id, char *text, size_t cap)
{
    struct mock_host *m = ctx;
    mock_lock(m);
    bool there = find_child(m, child_id) != NULL;
    mock_unlock(m);
    (void)snprintf(text, cap, "{\"mock\":true}");
    return there ? SY_OK : SY_E_INVALID;
}

static void fill_exit(const struct child *c, int how, const struct rusage *use,
                      struct sy_child_exit *out)
{
    uint32_t size = out->size < sizeof *out ? out->size : (uint32_t)sizeof *out;
    struct sy_child_exit e;
    memset(&e, 0, sizeof e);
    e.size = size;
    e.exit_code = c->pid > 0 && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    e.term_signal = c->pid > 0 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    e.cpu_ms = c->pid > 0
                   ? (int64_t)use->ru_utime.tv_sec * 1000 + use->ru_utime.tv_usec / 1000 +
                         (int64_t)use->ru_stime.tv_sec * 1000 +
                         use->ru_stime.tv_usec / 1000
                   : -1;
    e.max_rss_bytes = c->pid > 0 ? (int64_t)use->ru_maxrss * 1024 : -1;
    (void)snprintf(e.setup, sizeof e.setup, "%s", c->setup);
    (void)snprintf(e.layers, sizeof e.layers, "{\"mock\":true}");
    memcpy(out, &e, size);
}

static sy_status reap(void *ctx, uint64_t child_id, int64_t deadline_ms,
                      struct sy_child_exit *out)
{
    struct mock_host *m = ctx;
    struct rusage use;
    int how = 0;
    (void)deadline_ms; /* a killed child of a test ends at once */
    mock_lock(m);
    struct child *c = find_child(m, child_id);
    if (c == NULL) {
        mock_fault(m, "reap: child %llu is not there", (unsigned long long)child_id);
        mock_unlock(m);
        return SY_E_INVALID;
    }
    c->reaped = true;
    mock_unlock(m);
    memset(&use, 0, sizeof use);
    if (c->pid > 0) {
        struct pollfd p = {.fd = c->c.exit_fd, .events = POLLIN};
        if (poll(&p, 1, 0) == 0) {
            (void)kill(-c->pid, SIGKILL);
        }
        while (wait4(c->pid, &how, 0, &use) < 0 && errno == EINTR) {
            continue;
        }
        (void)kill(-c->pid, SIGKILL); /* what it left behind */
    }
    (void)close(c->c.stdin_fd);
    (void)close(c->c.stdout_fd);
    (void)close(c->c.stderr_fd);
    (void)close(c->c.exit_fd);
    fill_exit(c, how, &use, out);
    mock_lock(m);
    mock_unlock(m);
    return SY_OK;
}

const struct sy_host_spawn mock_spawn_service = {.size = sizeof mock_spawn_service,
                                                 .spawn = spawn,
                                                 .kill = kill_child,
                                                 .layers = layers,
                                                 .reap = reap};

int mock_children(struct mock_host *m)
{
    int n = 0;
    mock_lock(m);
    for (size_t i = 0; i < m->children.n; i++) {
        const struct child *c = m->children.items[i];
        n += c->reaped ? 0 : 1;
    }
    mock_unlock(m);
    return n;
}

int mock_children_total(struct mock_host *m)
{
    mock_lock(m);
    int n = m->spawned;
    mock_unlock(m);
    return n;
}

void mock_spawn_done(struct mock_host *m)
{
    for (size_t i = 0; i < m->children.n; i++) {
        struct child *c = m->children.items[i];
        if (!c->reaped) {
            struct sy_child_exit e = {.size = sizeof e};
            (void)reap(m, c->c.id, 0, &e);
        }
        free(c);
    }
    for (size_t i = 0; i < m->launches.n; i++) {
        struct launch *l = m->launches.items[i];
        free(l->argv);
        free(l->raw);
        free(l);
    }
}

static int32_t sink_output(void *ctx, uint32_t stream, const void *data, size_t len)
{
    struct mock_sink *s = ctx;
    bool answer = stream == SY_STREAM_ANSWER;
    char *to = answer ? s->answer : s->log;
    size_t *n = answer ? &s->nanswer : &s->nlog;
    size_t room = sizeof s->answer - 1 - *n;
    size_t take = len < room ? len : room;
    if (take > 0) {
        memcpy(to + *n, data, take);
        *n += take;
        to[*n] = '\0';
    }
    return (s->enough > 0 && s->nanswer >= s->enough) ||
                   (s->enough_at != NULL && strstr(s->answer, s->enough_at) != NULL)
               ? 1
               : 0;
}

static void sink_started(void *ctx, struct sy_str text)
{
    struct mock_sink *s = ctx;
    s->started++;
    (void)snprintf(s->layers, sizeof s->layers, "%.*s", (int)text.len,
                   text.ptr != NULL ? text.ptr : "");
}

void mock_sink_init(struct mock_sink *s)
{
    memset(s, 0, sizeof *s);
    s->sink.size = sizeof s->sink;
    s->sink.ctx = s;
    s->sink.output = sink_output;
    s->sink.started = sink_started;
}
