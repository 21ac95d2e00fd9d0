/* In: a run, inside its new user and mount namespaces. Out: a new root on a small tmpfs
 * that shows the system's programs and libraries and the plan's paths read-only, the work
 * folder and writable paths, four devices, a fresh /proc, and little of /etc; the old
 * root is gone. Sources are taken as mount descriptors before the change, so no path is
 * looked up twice. It never shows a device, setuid bit or submount more than the source. */
#define _GNU_SOURCE /* pivot_root, syscall */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Own names: <linux/mount.h> and <sys/mount.h> contradict each other. */
#define NR_OPEN_TREE 428
#define NR_MOVE_MOUNT 429
#define NR_MOUNT_SETATTR 442
#define TREE_CLONE 1U
#define TREE_CLOEXEC ((unsigned)O_CLOEXEC)
#define EMPTY_PATH 0x1000U
#define RECURSIVE 0x8000U
#define MOVE_FROM_EMPTY 4U
#define ATTR_RDONLY 1ULL
#define ATTR_NOSUID 2ULL
#define ATTR_NODEV 4ULL
#define ATTR_NOEXEC 8ULL

struct mount_change {
    uint64_t set, clear, propagation, userns_fd;
};

#define MAX_TREES (WIRE_MAX_PATHS + 48)

struct tree {
    const char *path; /* in the new root */
    int fd;           /* -1: a link to target */
    bool is_dir;
    char target[64];
};

struct trees {
    size_t n;
    struct tree at[MAX_TREES];
};

static bool tree_take(struct run *r, struct trees *t, const char *from, const char *path,
                      uint64_t attr, bool must)
{
    struct mount_change change = {attr | ATTR_NOSUID, 0, 0, 0};
    struct tree *tree = &t->at[t->n];
    struct stat st;
    int fd =
        (int)syscall(NR_OPEN_TREE, AT_FDCWD, from, TREE_CLONE | TREE_CLOEXEC | RECURSIVE);

    if (fd < 0) {
        return !must && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)
                   ? true
                   : run_fail_path(r, "bind", from, errno);
    }
    if (t->n == MAX_TREES) {
        return run_fail_path(r, "bind", from, E2BIG);
    }
    if (fstat(fd, &st) != 0 || syscall(NR_MOUNT_SETATTR, fd, "", EMPTY_PATH | RECURSIVE,
                                       &change, sizeof(change)) != 0) {
        return run_fail_path(r, "bind", from, errno);
    }
    tree->path = path;
    tree->fd = fd;
    tree->is_dir = S_ISDIR(st.st_mode);
    t->n++;
    return true;
}

/* /bin and its like: folders, or links into /usr. */
static bool take_system(struct run *r, struct trees *t)
{
    static const char *const dirs[] = {"/usr",   "/bin",   "/sbin",  "/lib",
                                       "/lib32", "/lib64", "/libx32"};

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        struct tree *tree = &t->at[t->n];
        ssize_t n = readlink(dirs[i], tree->target, sizeof(tree->target) - 1);

        if (n > 0) {
            tree->target[n] = '\0';
            tree->path = dirs[i];
            tree->fd = -1;
            t->n++;
        } else if (!tree_take(r, t, dirs[i], dirs[i], ATTR_RDONLY | ATTR_NODEV, i == 0)) {
            return false;
        }
    }
    return true;
}

static bool take_etc(struct run *r, struct trees *t)
{
    static const char *const always[] = {"/etc/ld.so.cache", "/etc/alternatives",
                                         "/etc/localtime", NULL};
    static const char *const net[] = {"/etc/resolv.conf",
                                      "/etc/hosts",
                                      "/etc/host.conf",
                                      "/etc/gai.conf",
                                      "/etc/services",
                                      "/etc/protocols",
                                      "/etc/ssl/certs",
                                      "/etc/ssl/openssl.cnf",
                                      "/etc/ca-certificates",
                                      "/etc/pki/tls/certs",
                                      NULL};
    const uint64_t attr = ATTR_RDONLY | ATTR_NODEV | ATTR_NOEXEC;

    for (size_t i = 0; always[i] != NULL; i++) {
        if (!tree_take(r, t, always[i], always[i], attr, false)) {
            return false;
        }
    }
    for (size_t i = 0; r->plan.network && net[i] != NULL; i++) {
        if (!tree_take(r, t, net[i], net[i], attr, false)) {
            return false;
        }
    }
    return true;
}

static bool take_all(struct run *r, struct trees *t)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/urandom",
                                          "/dev/random"};
    const struct hplan *p = &r->plan;

    if (!take_system(r, t) || !take_etc(r, t)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        if (!tree_take(r, t, devices[i], devices[i], ATTR_RDONLY | ATTR_NOEXEC, i < 3)) {
            return false;
        }
    }
    for (size_t i = 0; i < p->npaths; i++) {
        uint64_t attr = ATTR_NODEV | (p->paths[i].writable ? 0 : ATTR_RDONLY);

        if (!tree_take(r, t, p->paths[i].path, p->paths[i].path, attr, true)) {
            return false;
        }
    }
    if (r->work[0] != '\0' && !tree_take(r, t, r->work, r->work, ATTR_NODEV, true)) {
        return false;
    }
    if (p->self) {
        return true; /* copied later: its mount belongs to the namespace we came from */
    }
    /* What is under /usr is there already; this is for an interpreter elsewhere whose
     * file alone was named. */
    if (strncmp(p->argv[0], "/usr/", 5) != 0 && strncmp(p->argv[0], "/bin/", 5) != 0 &&
        strncmp(p->argv[0], "/sbin/", 6) != 0) {
        return tree_take(r, t, p->argv[0], p->argv[0], ATTR_RDONLY | ATTR_NODEV, false);
    }
    return true;
}

/* A small tmpfs that lives and dies with the namespace, entered and made the root. /usr
 * exists everywhere and has been taken; it is only a place to hang it on. */
static bool new_root(struct run *r)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return run_fail(r, "private mounts", errno);
    }
    if (mount("sandbox", "/usr", "tmpfs", MS_NOSUID | MS_NODEV,
              "size=64m,nr_inodes=16k,mode=0755") != 0 ||
        chdir("/usr") != 0) {
        return run_fail(r, "tmpfs", errno);
    }
    if (mkdir("proc", 0555) != 0 ||
        mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
        return run_fail(r, "proc", errno);
    }
    if (syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 ||
        chdir("/") != 0) {
        return run_fail(r, "pivot_root", errno);
    }
    return true;
}

/* Folders above path, each if missing. What cannot be made shows when it is needed. */
static void make_parents(const char *path)
{
    char part[RUN_PATH_MAX];

    for (size_t i = 1; i < sizeof(part) - 1 && path[i] != '\0'; i++) {
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            (void)mkdir(part, 0755);
        }
    }
}

static bool put_tree(struct run *r, struct tree *tree)
{
    make_parents(tree->path);
    if (tree->fd < 0) {
        return symlink(tree->target, tree->path) == 0
                   ? true
                   : run_fail_path(r, "link", tree->path, errno);
    }
    if (tree->is_dir) {
        (void)mkdir(tree->path, 0755);
    } else {
        int fd = open(tree->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

        if (fd >= 0) {
            (void)close(fd);
        }
    }
    if (syscall(NR_MOVE_MOUNT, tree->fd, "", AT_FDCWD, tree->path, MOVE_FROM_EMPTY) !=
        0) {
        return run_fail_path(r, "bind", tree->path, errno);
    }
    (void)close(tree->fd);
    return true;
}

static bool put_text(struct run *r, const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int err = errno;

    if (fd >= 0) {
        (void)close(fd);
    }
    return ok ? true : run_fail_path(r, "file", path, err);
}

/* Our own program, for the probe. self_fd was opened before the change of root. */
static bool put_self(struct run *r, int self_fd)
{
    int out = open("/.probe", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
    bool ok = out >= 0 && self_fd >= 0;
    ssize_t n = 1;

    while (ok && n > 0) {
        n = sendfile(out, self_fd, NULL, 1 << 20);
        ok = n >= 0;
    }
    if (!ok) {
        (void)run_fail_path(r, "file", "/.probe", errno);
    }
    if (out >= 0) {
        (void)close(out);
    }
    return ok;
}

/* So that looking oneself up works and tells nothing about the host. */
static bool put_names(struct run *r)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "sandbox:x:%u:%u:sandbox:/tmp:/usr/sbin/nologin\n",
                   (unsigned)getuid(), (unsigned)getgid());
    if (!put_text(r, "/etc/passwd", text)) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "sandbox:x:%u:\n", (unsigned)getgid());
    return put_text(r, "/etc/group", text) &&
           put_text(r, "/etc/nsswitch.conf",
                    "passwd: files\ngroup: files\nhosts: files dns\n");
}

static bool put_scratch(struct run *r)
{
    static const char *const dirs[] = {"/tmp", "/dev", "/dev/shm", "/etc"};
    static const struct {
        const char *to, *path;
    } links[] = {{"/proc/self/fd", "/dev/fd"},
                 {"/proc/self/fd/0", "/dev/stdin"},
                 {"/proc/self/fd/1", "/dev/stdout"},
                 {"/proc/self/fd/2", "/dev/stderr"}};

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        if (mkdir(dirs[i], i == 0 || i == 2 ? 0700 : 0755) != 0) {
            return run_fail_path(r, "folder", dirs[i], errno);
        }
    }
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        if (symlink(links[i].to, links[i].path) != 0) {
            return run_fail_path(r, "link", links[i].path, errno);
        }
    }
    return true;
}

bool root_build(struct run *r)
{
    struct trees t;
    int self_fd = -1;

    t.n = 0;
    if (r->plan.self) {
        self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (self_fd < 0) {
            return run_fail_path(r, "file", "/proc/self/exe", errno);
        }
    }
    if (!take_all(r, &t) || !new_root(r) || !put_scratch(r)) {
        return false;
    }
    for (size_t i = 0; i < t.n; i++) {
        if (!put_tree(r, &t.at[i])) {
            return false;
        }
    }
    return put_names(r) && (self_fd < 0 || put_self(r, self_fd));
}
