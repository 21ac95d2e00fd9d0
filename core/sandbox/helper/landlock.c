/* In: a plan. Out: a Landlock domain: the system's programs and libraries and the plan's
 * paths to read, the work folder and the plan's writable paths to write, nothing else;
 * no TCP unless the plan has network; signals and abstract sockets only inside. Its
 * constants are defined here, since headers know only the version they were made for.
 * It never grants a path under /proc except the private one of strict. */
#define _GNU_SOURCE /* O_PATH, syscall */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_REFER (1ULL << 13)        /* 2 */
#define FS_TRUNCATE (1ULL << 14)     /* 3 */
#define FS_IOCTL_DEV (1ULL << 15)    /* 5 */
#define FS_RESOLVE_UNIX (1ULL << 16) /* 9 */
#define FS_ABI_1 ((1ULL << 13) - 1)
#define NET_TCP (3ULL)   /* bind, connect; 4 */
#define SCOPE_ALL (3ULL) /* abstract unix sockets, signals; 6 */

#define FS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
/* What can be granted on something that is no folder. */
#define FS_OF_FILE \
    (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define CREATE_VERSION 1U
#define RULE_PATH_BENEATH 1

struct ruleset_attr {
    uint64_t fs, net, scoped;
};

struct __attribute__((packed)) path_attr {
    uint64_t allowed;
    int32_t parent_fd;
};

/* From ABI to handled rights; those after 9 are not known here and not asked for. */
static struct ruleset_attr handled(int abi, bool network)
{
    struct ruleset_attr a = {FS_ABI_1, 0, 0};

    a.fs |= abi >= 2 ? FS_REFER : 0;
    a.fs |= abi >= 3 ? FS_TRUNCATE : 0;
    a.fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
    a.fs |= abi >= 9 ? FS_RESOLVE_UNIX : 0;
    a.net = abi >= 4 && !network ? NET_TCP : 0;
    a.scoped = abi >= 6 ? SCOPE_ALL : 0;
    return a;
}

static size_t attr_size(int abi)
{
    if (abi >= 6) {
        return sizeof(struct ruleset_attr);
    }
    return abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

int landlock_version(void)
{
    long v = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

    return v > 0 ? (int)v : 0;
}

struct builder {
    struct run *run;
    uint64_t handled;
    int ruleset;
};

/* must: absence is a failure. */
static bool grant(struct builder *b, const char *path, uint64_t rights, bool must)
{
    struct path_attr attr;
    struct stat st;
    int err = 0;
    int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0) {
        return must ? run_fail_path(b->run, "landlock", path, errno) : true;
    }
    if (fstat(fd, &st) != 0) {
        err = errno;
    } else {
        attr.allowed = rights & b->handled & (S_ISDIR(st.st_mode) ? ~0ULL : FS_OF_FILE);
        attr.parent_fd = fd;
        if (syscall(SYS_landlock_add_rule, b->ruleset, RULE_PATH_BENEATH, &attr, 0) !=
            0) {
            err = errno;
        }
    }
    (void)close(fd);
    return err == 0 ? true : run_fail_path(b->run, "landlock", path, err);
}

static bool grant_list(struct builder *b, const char *const *paths, uint64_t rights)
{
    for (size_t i = 0; paths[i] != NULL; i++) {
        if (!grant(b, paths[i], rights, false)) {
            return false;
        }
    }
    return true;
}

static bool grant_system(struct builder *b)
{
    static const char *const libs[] = {"/usr",    "/lib", "/lib64", "/lib32",
                                       "/libx32", "/bin", "/sbin",  NULL};
    static const char *const etc[] = {"/etc/ld.so.cache", "/etc/alternatives",
                                      "/etc/localtime", NULL};
    static const char *const net[] = {
        "/etc/resolv.conf",     "/etc/hosts",         "/etc/nsswitch.conf",
        "/etc/host.conf",       "/etc/gai.conf",      "/etc/services",
        "/etc/protocols",       "/etc/ssl/certs",     "/etc/ssl/openssl.cnf",
        "/etc/ca-certificates", "/etc/pki/tls/certs", NULL};
    static const char *const strict_read[] = {"/etc", "/proc", NULL};
    static const char *const strict_write[] = {"/tmp", "/dev/shm", NULL};
    static const char *const random[] = {"/dev/urandom", "/dev/random", "/dev/zero",
                                         NULL};
    const struct hplan *p = &b->run->plan;
    uint64_t write = ~(FS_IOCTL_DEV | FS_RESOLVE_UNIX);
    bool ok = grant_list(b, libs, FS_READ) && grant_list(b, etc, FS_READ) &&
              grant_list(b, random, FS_READ_FILE) &&
              grant(b, "/dev/null", FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE, false);

    if (ok && p->network) {
        ok = grant_list(b, net, FS_READ);
    }
    /* Only after the root was exchanged are these the tool's own. */
    if (ok && b->run->inside) {
        ok = grant_list(b, strict_read, FS_READ) && grant_list(b, strict_write, write);
    }
    return ok;
}

static bool grant_plan(struct builder *b)
{
    const struct hplan *p = &b->run->plan;
    uint64_t write = ~(FS_IOCTL_DEV | FS_RESOLVE_UNIX);

    for (size_t i = 0; i < p->npaths; i++) {
        if (!grant(b, p->paths[i].path, p->paths[i].writable ? write : FS_READ, true)) {
            return false;
        }
    }
    if (b->run->work[0] != '\0' && !grant(b, b->run->work, write, true)) {
        return false;
    }
    return grant(b, b->run->exec_path, FS_EXECUTE | FS_READ_FILE, false);
}

int landlock_build(struct run *r)
{
    int abi = r->landlock_abi;
    struct ruleset_attr attr;
    struct builder b;

    if (abi < WIRE_MIN_LANDLOCK) {
        (void)run_fail(r, "landlock", abi <= 0 ? EOPNOTSUPP : EPROTONOSUPPORT);
        return -1;
    }
    attr = handled(abi, r->plan.network);
    b.run = r;
    b.handled = attr.fs;
    b.ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi), 0);
    if (b.ruleset < 0) {
        (void)run_fail(r, "landlock", errno);
        return -1;
    }
    if (!grant_system(&b) || !grant_plan(&b)) {
        (void)close(b.ruleset);
        return -1;
    }
    return b.ruleset;
}

int landlock_enter(int ruleset_fd)
{
    int err = syscall(SYS_landlock_restrict_self, ruleset_fd, 0) == 0 ? 0 : errno;

    (void)close(ruleset_fd);
    return err;
}
