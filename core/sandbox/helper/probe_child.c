/* In: "--probe" and NAME=VALUE arguments that say where the gateway's traps are. Out: one
 * JSON line per attempt: {"name":...,"got":"allowed"|"blocked"|"not_tried"}. It runs as a
 * tool would, tries what a tool must not manage, and leaves nothing changed where it does
 * manage. It never reads or writes anything that is not a trap or its own. */
#define _GNU_SOURCE /* unshare, MSG_FASTOPEN */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

enum got { BLOCKED, ALLOWED, NOT_TRIED };

struct traps {
    const char *canary, *unix_path, *unix_dgram, *abstract;
    int tcp_port, udp_port;
    pid_t gateway;
    uint64_t cpu, mem, files, file_bytes;
    bool work;
};

static void tell(const char *name, enum got got)
{
    static const char *const words[] = {"blocked", "allowed", "not_tried"};
    char line[120];
    int n = snprintf(line, sizeof(line), "{\"name\":\"%s\",\"got\":\"%s\"}\n", name,
                     words[got]);

    if (n > 0 && write(STDOUT_FILENO, line, (size_t)n) < 0) {
        _exit(1);
    }
}

static enum got said(bool allowed)
{
    return allowed ? ALLOWED : BLOCKED;
}

static enum got try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd < 0) {
        return BLOCKED;
    }
    (void)close(fd);
    return ALLOWED;
}

static enum got try_inet(int type, int proto, int port, bool fast_open)
{
    struct sockaddr_in to;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, proto);
    bool ok;

    if (fd < 0) {
        return errno == EPROTONOSUPPORT ? NOT_TRIED : BLOCKED;
    }
    memset(&to, 0, sizeof(to));
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (type == SOCK_STREAM && !fast_open) {
        ok = connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0;
    } else {
        ok = sendto(fd, "x", 1, fast_open ? MSG_FASTOPEN : 0,
                    (const struct sockaddr *)&to, sizeof(to)) == 1;
    }
    (void)close(fd);
    return said(ok);
}

/* name: a path, or with abstract a name in the abstract space. */
static socklen_t unix_address(struct sockaddr_un *to, const char *name, bool abstract)
{
    size_t n = strlen(name);

    memset(to, 0, sizeof(*to));
    to->sun_family = AF_UNIX;
    if (n + 1 >= sizeof(to->sun_path)) {
        n = sizeof(to->sun_path) - 2;
    }
    memcpy(to->sun_path + (abstract ? 1 : 0), name, n);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
}

static enum got try_unix(const char *name, bool abstract)
{
    struct sockaddr_un to;
    socklen_t len = unix_address(&to, name, abstract);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok;

    if (fd < 0) {
        return BLOCKED;
    }
    ok = connect(fd, (const struct sockaddr *)&to, len) == 0;
    (void)close(fd);
    return said(ok);
}

/* A pair of datagram sockets needs no socket(2) and sends anywhere. */
static enum got try_pair(const char *path)
{
    struct sockaddr_un to;
    socklen_t len = unix_address(&to, path, false);
    int fds[2];
    bool ok;

    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return BLOCKED;
    }
    ok = sendto(fds[0], "x", 1, 0, (const struct sockaddr *)&to, len) == 1;
    (void)close(fds[0]);
    (void)close(fds[1]);
    return said(ok);
}

static void try_sockets(const struct traps *t)
{
    tell("connect_tcp", try_inet(SOCK_STREAM, 0, t->tcp_port, false));
    tell("connect_mptcp", try_inet(SOCK_STREAM, IPPROTO_MPTCP, t->tcp_port, false));
    tell("tcp_fastopen", try_inet(SOCK_STREAM, 0, t->tcp_port, true));
    tell("udp", try_inet(SOCK_DGRAM, 0, t->udp_port, false));
    tell("unix_path", try_unix(t->unix_path, false));
    tell("unix_dgram_pair", try_pair(t->unix_dgram));
    tell("unix_abstract", try_unix(t->abstract, true));
}

/* In a child of its own, whose state does not matter afterwards. */
static enum got in_child(bool (*attempt)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(attempt() ? 1 : 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        return BLOCKED;
    }
    return said(WEXITSTATUS(status) == 1);
}

static bool attempt_ptrace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static bool attempt_namespace(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}

static bool attempt_raise(void)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_CORE, &lim) != 0 || lim.rlim_max == RLIM_INFINITY) {
        return true;
    }
    lim.rlim_max++;
    return setrlimit(RLIMIT_CORE, &lim) == 0;
}

static void try_processes(const struct traps *t)
{
    char path[64];

    tell("ptrace", in_child(attempt_ptrace));
    /* A file system nobody has: the right to mount is checked first. */
    tell("mount",
         said(mount("none", "/", "soulacy-none", 0, NULL) == 0 || errno == ENODEV));
    tell("new_namespace", in_child(attempt_namespace));
    tell("raise_limit", in_child(attempt_raise));
    tell("gain_privileges", said(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0));
    tell("kill_parent", said(kill(getppid(), 0) == 0));
    tell("kill_gateway", said(t->gateway > 0 && kill(t->gateway, 0) == 0));
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)t->gateway);
    tell("proc_gateway", try_open(path, O_RDONLY));
}

static void try_files(const struct traps *t)
{
    char path[RUN_PATH_MAX];
    enum got got;

    tell("read_canary", t->canary[0] != '\0' ? try_open(t->canary, O_RDONLY) : NOT_TRIED);
    (void)snprintf(path, sizeof(path), "%.4000s.written", t->canary);
    got = t->canary[0] != '\0' ? try_open(path, O_WRONLY | O_CREAT | O_EXCL) : NOT_TRIED;
    if (got == ALLOWED) {
        (void)unlink(path);
    }
    tell("write_outside", got);
    if (!t->work) {
        tell("own_work_folder", NOT_TRIED);
        return;
    }
    got = try_open("probe.file", O_RDWR | O_CREAT | O_EXCL);
    tell("own_work_folder",
         got == ALLOWED && unlink("probe.file") == 0 ? ALLOWED : BLOCKED);
}

static enum got over_memory(uint64_t limit)
{
    void *p;

    if (limit == WIRE_NO_LIMIT) {
        return NOT_TRIED;
    }
    p = mmap(NULL, (size_t)limit, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return BLOCKED;
    }
    (void)munmap(p, (size_t)limit);
    return ALLOWED;
}

static enum got over_files(uint64_t limit)
{
    if (limit == WIRE_NO_LIMIT || limit > 4096) {
        return NOT_TRIED; /* thousands of descriptors prove no more */
    }
    for (uint64_t i = 0; i <= limit; i++) {
        if (dup(STDOUT_FILENO) < 0) {
            return BLOCKED;
        }
    }
    return ALLOWED;
}

static enum got over_file_size(uint64_t limit, bool work)
{
    int fd;
    bool ok;

    if (limit == WIRE_NO_LIMIT || limit > INT64_MAX - 1 || !work) {
        return NOT_TRIED;
    }
    fd = open("probe.big", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return NOT_TRIED;
    }
    ok = ftruncate(fd, (off_t)limit + 1) == 0;
    (void)close(fd);
    (void)unlink("probe.big");
    return said(ok);
}

static void try_limits(const struct traps *t)
{
    struct rlimit lim;
    struct sigaction ignore;

    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGXFSZ, &ignore, NULL);
    /* Spending the budget would take its time; the kernel's word is as good here. */
    tell("over_cpu", t->cpu == WIRE_NO_LIMIT || getrlimit(RLIMIT_CPU, &lim) != 0
                         ? NOT_TRIED
                         : said(lim.rlim_cur != t->cpu));
    tell("over_memory", over_memory(t->mem));
    tell("over_file_size", over_file_size(t->file_bytes, t->work));
    tell("over_open_files", over_files(t->files)); /* last: it uses them up */
}

static uint64_t number(const char *s)
{
    uint64_t v = 0;

    while (*s >= '0' && *s <= '9') {
        v = v * 10 + (uint64_t)(*s++ - '0');
    }
    return v;
}

/* The value of argument NAME=..., or "". */
static const char *value_of(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);

    for (int i = 2; i < argc; i++) {
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=') {
            return argv[i] + n + 1;
        }
    }
    return "";
}

int probe_main(int argc, char **argv)
{
    struct traps t = {.canary = value_of(argc, argv, "canary"),
                      .unix_path = value_of(argc, argv, "unix"),
                      .unix_dgram = value_of(argc, argv, "dgram"),
                      .abstract = value_of(argc, argv, "abstract"),
                      .tcp_port = (int)number(value_of(argc, argv, "tcp")),
                      .udp_port = (int)number(value_of(argc, argv, "udp")),
                      .gateway = (pid_t)number(value_of(argc, argv, "gateway")),
                      .cpu = number(value_of(argc, argv, "cpu")),
                      .mem = number(value_of(argc, argv, "mem")),
                      .files = number(value_of(argc, argv, "files")),
                      .file_bytes = number(value_of(argc, argv, "fsize")),
                      .work = value_of(argc, argv, "work")[0] == '1'};

    if (argc == 3 && strcmp(argv[2], "true") == 0) {
        return 0;
    }
    try_files(&t);
    try_sockets(&t);
    try_processes(&t);
    try_limits(&t);
    return 0;
}
