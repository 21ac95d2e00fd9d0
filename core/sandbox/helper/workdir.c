/* In: a run with a work_root. Out: a private folder in it, later its removal. Everything
 * goes through descriptors that follow no link and cross no mount, with the identity the
 * tool had, so a hostile tree costs no more than the tool itself could do. It never uses
 * recursion: sub-folders are moved up and emptied one level at a time. */
#define _GNU_SOURCE /* O_PATH, syscall */
#include "sandbox/helper/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <linux/openat2.h> is younger than some systems' headers. */
#define RESOLVE_NO_XDEV_ 0x01U
#define RESOLVE_NO_SYMLINKS_ 0x04U
struct how {
    uint64_t flags, mode, resolve;
};

struct entry { /* struct linux_dirent64 */
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

bool work_make(struct run *r)
{
    uint64_t id = 0;

    if (r->plan.work_root == NULL) {
        return true;
    }
    r->work_root_fd = open(r->plan.work_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->work_root_fd < 0) {
        return run_fail_path(r, "work folder", r->plan.work_root, errno);
    }
    if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
        return run_fail(r, "work folder", errno);
    }
    (void)snprintf(r->work_name, sizeof(r->work_name), "run-%016llx",
                   (unsigned long long)id);
    if (mkdirat(r->work_root_fd, r->work_name, 0700) != 0) {
        r->work_name[0] = '\0';
        return run_fail_path(r, "work folder", r->plan.work_root, errno);
    }
    if (ids_change(r) && geteuid() == 0 &&
        fchownat(r->work_root_fd, r->work_name, r->plan.uid, r->plan.gid,
                 AT_SYMLINK_NOFOLLOW) != 0) {
        return run_fail_path(r, "work folder", r->plan.work_root, errno);
    }
    (void)snprintf(r->work, sizeof(r->work), "%.4000s/%s", r->plan.work_root,
                   r->work_name);
    return true;
}

static int open_folder(int at, const char *name)
{
    struct how how = {O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
                      RESOLVE_NO_XDEV_ | RESOLVE_NO_SYMLINKS_};
    int fd = (int)syscall(SYS_openat2, at, name, &how, sizeof(how));

    if (fd < 0 && errno == EACCES) {
        struct stat st;

        /* Its owner may have taken its own rights away. */
        if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
            fchmodat(at, name, 0700, 0) == 0) {
            fd = (int)syscall(SYS_openat2, at, name, &how, sizeof(how));
        }
    }
    return fd;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Moving a folder writes its "..", so it must be writable for its owner. */
static void move_up(int fd, const char *name, int top, const char *up)
{
    if (renameat(fd, name, top, up) != 0 && errno == EACCES &&
        fchmodat(fd, name, 0700, 0) == 0) {
        (void)renameat(fd, name, top, up);
    }
}

/* One sub-folder: its files go, its folders move up into top. True: it is gone. */
static bool flatten(int top, const char *name, uint64_t *serial)
{
    _Alignas(struct entry) char text[4096];
    int fd = open_folder(top, name);
    long n;

    if (fd < 0) {
        return false;
    }
    (void)fchmod(fd, 0700);
    while ((n = syscall(SYS_getdents64, fd, text, sizeof(text))) > 0) {
        for (long at = 0; at < n;) {
            const struct entry *e = (const void *)(text + at);

            at += e->reclen;
            if (!is_dots(e->name) && unlinkat(fd, e->name, 0) != 0 &&
                (errno == EISDIR || errno == EPERM)) {
                char up[48];

                (void)snprintf(up, sizeof(up), ".soulacy-gone-%016llx",
                               (unsigned long long)(*serial)++);
                move_up(fd, e->name, top, up);
            }
        }
    }
    (void)close(fd);
    return unlinkat(top, name, AT_REMOVEDIR) == 0;
}

static void work_empty(int fd)
{
    _Alignas(struct entry) char text[4096];
    uint64_t serial = 0;
    bool progress = true;

    (void)fchmod(fd, 0700);
    while (progress) {
        long n;

        progress = false;
        if (lseek(fd, 0, SEEK_SET) != 0) {
            return;
        }
        while ((n = syscall(SYS_getdents64, fd, text, sizeof(text))) > 0) {
            for (long at = 0; at < n;) {
                const struct entry *e = (const void *)(text + at);

                at += e->reclen;
                if (is_dots(e->name)) {
                    continue;
                }
                if (unlinkat(fd, e->name, 0) == 0 || flatten(fd, e->name, &serial)) {
                    progress = true;
                }
            }
        }
    }
}

void work_remove(struct run *r)
{
    int fd;

    if (r->work_name[0] == '\0') {
        return;
    }
    /* Nothing in it: the usual case, one call. */
    if (unlinkat(r->work_root_fd, r->work_name, AT_REMOVEDIR) == 0) {
        return;
    }
    /* Opened before the identity changes: the way to it may be closed to the tool. */
    fd = open_folder(r->work_root_fd, r->work_name);
    if (fd >= 0) {
        if (ids_borrow(r) == 0) {
            work_empty(fd);
        }
        ids_return(r);
        (void)close(fd);
    }
    (void)unlinkat(r->work_root_fd, r->work_name, AT_REMOVEDIR);
}
