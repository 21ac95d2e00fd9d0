/* In: a verb and its arguments. Out: what happened, as text on stdout, or mischief. It is
 * the tool of the sandbox tests, static so that it runs in any root. */
#define _GNU_SOURCE /* syscall, memfd_create, F_OFD */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static long number(const char *s)
{
    long v = 0;

    while (*s >= '0' && *s <= '9') {
        v = v * 10 + (*s++ - '0');
    }
    return v;
}

/* One line: "ok" or the errno's number. */
static int said(long rc)
{
    if (rc >= 0) {
        (void)printf("ok\n");
    } else {
        (void)printf("%d\n", errno);
    }
    (void)fflush(stdout);
    return 0;
}

static void say(const char *text)
{
    (void)printf("%s\n", text);
    (void)fflush(stdout);
}

static int do_facts(void)
{
    gid_t groups[64];
    int n = getgroups(64, groups);

    (void)printf(
        "uid=%d gid=%d groups=%d session=%d group=%d ppid=%d nnp=%d seccomp=%d\n",
        (int)getuid(), (int)getgid(), n, getsid(0) == getpid(), getpgid(0) == getpid(),
        (int)getppid(), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
        prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
    (void)printf("pid=%d umask=%03o\n", (int)getpid(), (unsigned)umask(0));
    return 0;
}

static int do_fds(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            (void)printf("%d ", fd);
        }
    }
    return 0;
}

static void ignore_everything(void)
{
    for (int s = 1; s < 32; s++) {
        (void)signal(s, SIG_IGN);
    }
}

_Noreturn static void pause_for_ever(void)
{
    for (;;) {
        (void)pause();
    }
}

/* Two forks and a session of its own; stdout stays open; TERM and the like ignored. */
static int do_daemon(void)
{
    int ready[2];
    char byte;

    if (pipe(ready) != 0) {
        return 1;
    }
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0) {
            ignore_everything();
            (void)setsid();
            if (write(ready[1], "r", 1) == 1) {
                pause_for_ever();
            }
        }
        _exit(0);
    }
    (void)close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        return 1;
    }
    say("ready");
    return 0;
}

_Noreturn static void do_bomb(void)
{
    ignore_everything();
    say("ready");
    for (;;) {
        if (fork() == 0) {
            (void)setsid();
        }
    }
}

static int do_memory(size_t bytes)
{
    char *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return said(p == MAP_FAILED ? -1 : 0);
}

static int do_files(long n)
{
    long opened = 0;

    while (opened < n && dup(0) >= 0) {
        opened++;
    }
    (void)printf("%ld\n", opened);
    return 0;
}

static int do_write_bytes(long bytes)
{
    char block[4096] = {0};
    int fd = open("big", O_WRONLY | O_CREAT, 0600);
    long done = 0;

    if (fd < 0) {
        return said(-1);
    }
    (void)signal(SIGXFSZ, SIG_IGN);
    while (done < bytes) {
        long want =
            bytes - done < (long)sizeof(block) ? bytes - done : (long)sizeof(block);
        ssize_t n = write(fd, block, (size_t)want);

        if (n <= 0) {
            break;
        }
        done += n;
    }
    (void)printf("%ld\n", done);
    return 0;
}

static int do_forks(long n)
{
    long made = 0;

    while (made < n) {
        pid_t pid = fork();

        if (pid == 0) {
            pause_for_ever();
        }
        if (pid < 0) {
            break;
        }
        made++;
    }
    (void)printf("%ld\n", made);
    return 0;
}

_Noreturn static void do_spin(void)
{
    for (volatile unsigned long i = 0;; i++) {
    }
}

/* A folder that is hard to remove. */
static int do_tree(const char *outside)
{
    int fd = open("shut", O_RDONLY);

    (void)fd;
    for (int i = 0; i < 1500; i++) {
        if (mkdir("d", 0700) != 0 || chdir("d") != 0) {
            return said(-1);
        }
    }
    (void)mkfifo("pipe", 0600);
    if (symlink(outside, "link") != 0) {
        return said(-1);
    }
    fd = open("file", O_CREAT | O_WRONLY, 0);
    (void)close(fd);
    for (int i = 0; i < 1500; i++) {
        if (i == 700) {
            (void)chmod("d", 0);
        }
        if (chdir("..") != 0) {
            return said(-1);
        }
    }
    if (symlink(outside, "link") != 0) {
        return said(-1);
    }
    (void)mkdir("shut", 0700);
    (void)mkdir("shut/in", 0700);
    (void)chmod("shut", 0);
    (void)chmod(".", 0);
    return said(0);
}

static int do_dgram_pair(const char *path)
{
    struct sockaddr_un to;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) != 0) {
        return said(-1);
    }
    memset(&to, 0, sizeof(to));
    to.sun_family = AF_UNIX;
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    return said(sendto(fds[0], "x", 1, 0, (const struct sockaddr *)&to, sizeof(to)));
}

static int do_pair(int type)
{
    int fds[2];

    return said(socketpair(AF_UNIX, type, 0, fds));
}

static int do_memfd_exec(void)
{
    int fd = memfd_create("x", MFD_CLOEXEC);

    if (fd < 0) {
        return said(-1);
    }
    return said(write(fd, "x", 1));
}

static int do_kill_old(long pid)
{
    return said(kill((pid_t)pid, 0));
}

static int system_verbs(const char *v, int n, char **a)
{
    if (strcmp(v, "socket") == 0 && n == 3) {
        return said(socket((int)number(a[0]), (int)number(a[1]), (int)number(a[2])));
    }
    if (strcmp(v, "pair") == 0 && n == 1) {
        return do_pair((int)number(a[0]));
    }
    if (strcmp(v, "dgram_pair") == 0 && n == 1) {
        return do_dgram_pair(a[0]);
    }
    if (strcmp(v, "call") == 0 && n >= 1) {
        long arg[6] = {0};

        for (int i = 1; i < n && i < 7; i++) {
            arg[i - 1] = a[i][0] == '-' ? -number(a[i] + 1) : number(a[i]);
        }
        return said(
            syscall(number(a[0]), arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]));
    }
    if (strcmp(v, "memfd") == 0) {
        return do_memfd_exec();
    }
    if (strcmp(v, "kill") == 0 && n == 1) {
        return do_kill_old(number(a[0]));
    }
    if (strcmp(v, "kill_child") == 0) {
        pid_t pid = fork();

        if (pid == 0) {
            pause_for_ever();
        }
        return said(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid ? 0 : -1);
    }
    if (strcmp(v, "ptrace") == 0) {
        return said(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    }
    if (strcmp(v, "setuid") == 0) {
        return said(setuid(0));
    }
    return -1;
}

static int file_verbs(const char *v, int n, char **a)
{
    if (strcmp(v, "read") == 0 && n == 1) {
        char text[4096];
        int fd = open(a[0], O_RDONLY);
        ssize_t got = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

        return said(got);
    }
    if (strcmp(v, "list") == 0 && n == 1) {
        return said(open(a[0], O_RDONLY | O_DIRECTORY));
    }
    if (strcmp(v, "write") == 0 && n == 1) {
        int fd = open(a[0], O_WRONLY | O_CREAT, 0600);

        return said(fd >= 0 ? write(fd, "x", 1) : -1);
    }
    if (strcmp(v, "truncate") == 0 && n == 1) {
        return said(truncate(a[0], 0));
    }
    if (strcmp(v, "open_trunc") == 0 && n == 1) {
        return said(open(a[0], O_RDONLY | O_TRUNC));
    }
    if (strcmp(v, "link") == 0 && n == 2) {
        return said(link(a[0], a[1]));
    }
    if (strcmp(v, "via_link") == 0 && n == 1) {
        char text[64];
        int fd = symlink(a[0], "way") == 0 ? open("way", O_RDONLY) : -1;

        return said(fd >= 0 ? read(fd, text, sizeof(text)) : -1);
    }
    if (strcmp(v, "unlink") == 0 && n == 1) {
        return said(unlink(a[0]));
    }
    if (strcmp(v, "tree") == 0 && n == 1) {
        return do_tree(a[0]);
    }
    if (strcmp(v, "suid_copy") == 0) {
        int fd = open("suid", O_WRONLY | O_CREAT, 0755);

        return said(fd >= 0 ? fchmod(fd, 04755) : -1);
    }
    return -1;
}

static int limit_verbs(const char *v, int n, char **a)
{
    if (strcmp(v, "memory") == 0 && n == 1) {
        return do_memory((size_t)number(a[0]));
    }
    if (strcmp(v, "files") == 0 && n == 1) {
        return do_files(number(a[0]));
    }
    if (strcmp(v, "bytes") == 0 && n == 1) {
        return do_write_bytes(number(a[0]));
    }
    if (strcmp(v, "forks") == 0 && n == 1) {
        return do_forks(number(a[0]));
    }
    if (strcmp(v, "spin") == 0) {
        do_spin();
    }
    if (strcmp(v, "stubborn_spin") == 0) {
        ignore_everything();
        do_spin();
    }
    if (strcmp(v, "raise") == 0) {
        struct rlimit lim;

        (void)getrlimit(RLIMIT_NOFILE, &lim);
        lim.rlim_max += 1;
        return said(setrlimit(RLIMIT_NOFILE, &lim));
    }
    return -1;
}

static int process_verbs(const char *v)
{
    if (strcmp(v, "daemon") == 0) {
        return do_daemon();
    }
    if (strcmp(v, "bomb") == 0) {
        do_bomb();
    }
    if (strcmp(v, "wait") == 0) {
        ignore_everything();
        say("ready");
        pause_for_ever();
    }
    if (strcmp(v, "daemon_wait") == 0) {
        ignore_everything();
        (void)do_daemon();
        pause_for_ever();
    }
    if (strcmp(v, "stop") == 0) {
        say("ready");
        (void)kill(0, SIGSTOP);
        return 0;
    }
    if (strcmp(v, "stopped_child") == 0) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)setsid();
            (void)raise(SIGSTOP);
            pause_for_ever();
        }
        (void)waitpid(pid, NULL, WUNTRACED);
        say("ready");
        return 0;
    }
    if (strcmp(v, "abort") == 0) {
        abort();
    }
    return -1;
}

int main(int argc, char **argv)
{
    const char *v = argc > 1 ? argv[1] : "";
    int rc;

    if (strcmp(v, "exit") == 0 && argc > 2) {
        return (int)number(argv[2]);
    }
    if (strcmp(v, "cat") == 0) {
        char text[65536];
        ssize_t n;

        while ((n = read(0, text, sizeof(text))) > 0) {
            if (write(1, text, (size_t)n) != n) {
                return 1;
            }
        }
        return 0;
    }
    if (strcmp(v, "env") == 0) {
        for (char **e = environ; *e != NULL; e++) {
            say(*e);
        }
        return 0;
    }
    if (strcmp(v, "cwd") == 0) {
        char text[4096];

        say(getcwd(text, sizeof(text)) != NULL ? text : "?");
        return 0;
    }
    if (strcmp(v, "facts") == 0) {
        return do_facts();
    }
    if (strcmp(v, "fds") == 0) {
        return do_fds();
    }
    rc = limit_verbs(v, argc - 2, argv + 2);
    rc = rc >= 0 ? rc : file_verbs(v, argc - 2, argv + 2);
    rc = rc >= 0 ? rc : system_verbs(v, argc - 2, argv + 2);
    rc = rc >= 0 ? rc : process_verbs(v);
    return rc >= 0 ? rc : 99;
}
