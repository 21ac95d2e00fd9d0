#define _GNU_SOURCE /* memfd_create and file seals */
/* In: a path or a bare name, and perhaps a digest. Out: an open descriptor of a regular
 * file whose owner and mode, and those of its folder, let nobody else change it; with a
 * digest, of a sealed copy of the bytes that were hashed. It never loads anything. */
#include "plugin/internal.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

#define FILE_MAX ((off_t)256 * 1024 * 1024)

enum status plugin_default_dir(char **out, struct error *err)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) {
        return error_set_errno(err, ST_IO, errno, "cannot tell where this program lies");
    }
    struct str prefix = str_n(exe, (size_t)n);
    for (int up = 0; up < 2; up++) {
        while (prefix.len > 0 && prefix.ptr[prefix.len - 1] != '/') {
            prefix.len--;
        }
        prefix.len -= prefix.len > 0 ? 1 : 0;
    }
    struct buf b;
    buf_init(&b, PATH_MAX);
    buf_add_str(&b, prefix);
    buf_add_c(&b, "/lib/soulacy");
    char *dir = buf_take(&b);
    buf_done(&b);
    if (dir == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    *out = dir;
    return ST_OK;
}

static bool exists(const char *dir, const char *kind, const char *name)
{
    struct stat st;
    struct buf b;
    buf_init(&b, PATH_MAX);
    buf_addf(&b, "%s/%s-%s.so", dir, kind, name);
    bool yes = buf_status(&b) == ST_OK && stat(b.ptr, &st) == 0;
    buf_done(&b);
    return yes;
}

/* KIND-NAME.so in plugin_dir for a bare name. */
static enum status bare_path(const char *dir, const struct plugin_spec *spec,
                             struct buf *path, struct error *err)
{
    uint32_t kind = spec->kind;
    for (const char *c = spec->path; *c != '\0'; c++) {
        bool ok = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-';
        if (!ok || c - spec->path >= PLUGIN_NAME_MAX) {
            return error_set(err, ST_INVALID,
                             "plugin '%.64s': neither an absolute path nor a bare name",
                             spec->path);
        }
    }
    if (kind == 0 && !plugin_reserved_name(spec->path, &kind)) {
        bool channel = exists(dir, "channel", spec->path);
        if (channel && exists(dir, "executor", spec->path)) {
            return error_set(
                err, ST_CONFLICT,
                "plugin '%s': both a channel and an executor of that name lie "
                "in %s",
                spec->path, dir);
        }
        kind = channel ? SY_KIND_CHANNEL : SY_KIND_EXECUTOR;
    }
    buf_addf(path, "%s/%s-%s.so", dir, kind == SY_KIND_CHANNEL ? "channel" : "executor",
             spec->path);
    return ST_OK;
}

/* Nobody but root or ourselves may be able to change it. */
static enum status check_owner(const struct stat *st, const char *what, struct error *err)
{
    if (st->st_uid != 0 && st->st_uid != geteuid()) {
        return error_set(err, ST_REFUSED,
                         "%s belongs to uid %u, neither root nor this user", what,
                         (unsigned)st->st_uid);
    }
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return error_set(err, ST_REFUSED, "%s is writable by %s (mode %04o)", what,
                         (st->st_mode & S_IWOTH) != 0 ? "others" : "its group",
                         (unsigned)(st->st_mode & 07777));
    }
    return ST_OK;
}

static enum status open_folder(const char *path, const char *plugin_dir, int *out,
                               bool *own, struct error *err)
{
    struct stat st, ours;
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): path is absolute */
    const char *slash = strrchr(path, '/');
    struct str dir = str_n(path, slash == path ? 1 : (size_t)(slash - path));
    char *copy = slash != NULL ? str_dup(dir) : NULL;
    if (copy == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): checked above */
    int fd = open(copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status res = ST_OK;
    if (fd < 0 || fstat(fd, &st) != 0) {
        res = error_set_errno(err, ST_IO, errno, "cannot open its folder");
    } else {
        res = check_owner(&st, "its folder", err);
        *own = stat(plugin_dir, &ours) == 0 && ours.st_dev == st.st_dev &&
               ours.st_ino == st.st_ino;
    }
    mem_free(copy);
    if (res != ST_OK) {
        io_close(&fd);
        return res;
    }
    *out = fd;
    return ST_OK;
}

static enum status open_file(int folder, const char *path, int *out, struct error *err)
{
    struct stat st;
    /* Non-blocking, lest a FIFO of that name hold the start; no link, since only this
     * folder was checked. */
    int fd = openat(folder, strrchr(path, '/') + 1,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP) {
        return error_set(err, ST_REFUSED, "is a symbolic link: name the file itself");
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        enum status res = error_set_errno(err, ST_IO, errno, "cannot be opened");
        io_close(&fd);
        return res;
    }
    enum status res = ST_OK;
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > FILE_MAX) {
        res = error_set(err, ST_INVALID, "is no regular file of 1 byte to 256 MiB");
    } else {
        res = check_owner(&st, "the file", err);
    }
    if (res != ST_OK) {
        io_close(&fd);
        return res;
    }
    *out = fd;
    return ST_OK;
}

static enum status copy_all(int from, int to, struct error *err)
{
    char block[65536];
    off_t total = 0;
    for (;;) {
        ssize_t n = io_read(from, block, sizeof block);
        if (n <= 0) {
            return n == 0 ? ST_OK : error_set_errno(err, ST_IO, errno, "cannot be read");
        }
        total += n;
        if (total > FILE_MAX) {
            return error_set(err, ST_INVALID, "grew while it was read");
        }
        enum status st = io_write_all(to, str_n(block, (size_t)n), -1, INT64_MAX, err);
        if (st != ST_OK) {
            return st;
        }
    }
}

/* A copy of the file that nothing can change any more. */
static enum status sealed_copy(int from, int *out, struct error *err)
{
    int fd = memfd_create("soulacy-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create("soulacy-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    if (fd < 0) {
        return error_set_errno(err, ST_IO, errno, "no sealed copy can be made");
    }
    enum status st = copy_all(from, fd, err);
    if (st == ST_OK &&
        fcntl(fd, F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        st = error_set_errno(err, ST_IO, errno, "its copy cannot be sealed");
    }
    if (st != ST_OK) {
        io_close(&fd);
        return st;
    }
    *out = fd;
    return ST_OK;
}

static enum status check_digest(int fd, const char *want, struct error *err)
{
    struct stat st;
    unsigned char digest[SHA256_LEN];
    char hex[SHA256_HEX];
    if (fstat(fd, &st) != 0 || st.st_size <= 0) {
        return error_set(err, ST_IO, "its copy is empty");
    }
    size_t len = (size_t)st.st_size;
    void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        return error_set_errno(err, ST_IO, errno, "cannot be mapped");
    }
    struct str bytes = str_n(map, len);
    enum status res = hash_sha256(&bytes, 1, digest, err);
    (void)munmap(map, len);
    if (res != ST_OK) {
        return res;
    }
    hash_hex(digest, hex);
    if (!str_eq_nocase(str_c(want), str_c(hex))) {
        return error_set(err, ST_REFUSED, "sha256 is %s, the configuration says %.64s",
                         hex, want);
    }
    return ST_OK;
}

static enum status open_checked(const char *plugin_dir, const struct plugin_spec *spec,
                                struct plugin_file *f, struct error *err)
{
    int folder = -1;
    int copy = -1;
    enum status st = open_folder(f->path, plugin_dir, &folder, &f->own, err);
    if (st != ST_OK) {
        return st;
    }
    st = open_file(folder, f->path, &f->fd, err);
    io_close(&folder);
    if (st != ST_OK || spec->sha256 == NULL) {
        return st;
    }
    st = sealed_copy(f->fd, &copy, err);
    if (st != ST_OK) {
        return st;
    }
    io_close(&f->fd);
    f->fd = copy;
    return check_digest(f->fd, spec->sha256, err);
}

enum status plugin_file_open(const char *plugin_dir, const struct plugin_spec *spec,
                             struct plugin_file *out, struct error *err)
{
    struct plugin_file f = {-1, false, NULL};
    struct buf path;
    enum status st = ST_OK;
    buf_init(&path, PATH_MAX - 1);
    if (spec->path[0] == '/') {
        buf_add_c(&path, spec->path);
    } else {
        st = bare_path(plugin_dir, spec, &path, err);
    }
    if (st == ST_OK && buf_status(&path) == ST_TOO_LARGE) {
        st = error_set(err, ST_INVALID, "plugin path is longer than %d bytes",
                       PATH_MAX - 1);
    }
    if (st == ST_OK) {
        f.path = buf_take(&path);
        if (f.path == NULL) {
            st = error_set(err, ST_NOMEM, "out of memory");
        }
    }
    buf_done(&path);
    if (st != ST_OK) {
        return st;
    }
    st = open_checked(plugin_dir, spec, &f, err);
    if (st != ST_OK) {
        (void)error_context(err, "%s", f.path);
        plugin_file_done(&f);
        return st;
    }
    *out = f;
    return ST_OK;
}

void plugin_file_done(struct plugin_file *f)
{
    if (f != NULL) {
        io_close(&f->fd);
        mem_free(f->path);
        f->path = NULL;
    }
}
