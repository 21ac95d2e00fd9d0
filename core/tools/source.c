#define _GNU_SOURCE /* O_PATH, syscall(2) for openat2 */
/* A tool's file name in, its bytes out. What is checked is the opened file, and the bytes
 * read from it are the ones that run. Never follows a link out of an allowed folder. */
#include "tools/source.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define OPEN_TRIES 64 /* openat2 says EAGAIN while somebody renames on the way */

/* Opens path below the folder at dir; -1 with errno. */
static int open_beneath(const char *dir, const char *rest)
{
    struct open_how how = {.flags = OPEN_FLAGS,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;

    if (dirfd < 0) {
        return -1;
    }
    errno = EAGAIN;
    for (int i = 0; i < OPEN_TRIES && fd < 0 && errno == EAGAIN; i++) {
        fd = (int)syscall(SYS_openat2, dirfd, rest, &how, sizeof(how));
    }
    io_close(&dirfd);
    return fd;
}

/* The part of path behind dir, or NULL when path does not begin with it. */
static const char *behind(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    while (n > 0 && dir[n - 1] == '/') {
        n--;
    }
    if (strncmp(path, dir, n) != 0 || path[n] != '/') {
        return NULL;
    }
    path += n;
    while (*path == '/') {
        path++;
    }
    return path;
}

static int open_allowed(const char *path, const struct str_list *allowed)
{
    errno = EACCES;
    for (size_t i = 0; i < allowed->n; i++) {
        const char *rest = behind(path, allowed->items[i]);
        int fd = rest != NULL ? open_beneath(allowed->items[i], rest) : -1;

        if (fd >= 0) {
            return fd;
        }
    }
    return -1;
}

/* The file's bare name: where it lies is not the model's business. */
static const char *bare(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static enum status open_tool(const struct soul_tool *tool, const struct str_list *allowed,
                             int *out, struct error *err)
{
    const char *name = bare(tool->python_file);
    int fd = allowed->n > 0 ? open_allowed(tool->python_file, allowed)
                            : open(tool->python_file, OPEN_FLAGS);

    if (fd >= 0) {
        *out = fd;
        return ST_OK;
    }
    if (allowed->n > 0 && (errno == EXDEV || errno == EACCES || errno == ELOOP)) {
        return error_set(err, ST_REFUSED,
                         "tool %s: its python_file %s is not inside "
                         "runtime.allowed_tool_dirs or cannot be read there",
                         tool->name, name);
    }
    return error_set_errno(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, errno,
                           "tool %s: cannot open its python_file %s", tool->name, name);
}

/* A regular file, and none that the kernel makes up: those tell of the gateway. */
static enum status check_kind(const struct soul_tool *tool, int fd, struct error *err)
{
    struct statfs fs;
    struct stat st;

    if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0) {
        return error_set_errno(err, ST_IO, errno, "tool %s: its python_file %s",
                               tool->name, bare(tool->python_file));
    }
    if (!S_ISREG(st.st_mode) || fs.f_type == PROC_SUPER_MAGIC ||
        fs.f_type == SYSFS_MAGIC) {
        return error_set(err, ST_REFUSED,
                         "tool %s: its python_file %s is not a regular file", tool->name,
                         bare(tool->python_file));
    }
    return ST_OK;
}

/* Real folder of the opened file and its bare name. */
static enum status name_opened(int fd, struct source *s, struct error *err)
{
    static const char mark[] = " (deleted)";
    char link[64], path[4096];
    struct stat st;
    struct str name;
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0 || (size_t)n >= sizeof(path) - 1 || path[0] != '/') {
        return error_set_errno(err, ST_IO, errno, "cannot tell where the tool's file is");
    }
    path[n] = '\0';
    name = str_c(bare(path));
    s->folder = mem_dup(path, name.ptr - path > 1 ? (size_t)(name.ptr - path - 1) : 1);
    /* replaced by an editor since it was opened: not part of the name */
    if (fstat(fd, &st) == 0 && st.st_nlink == 0 && str_ends(name, str_c(mark))) {
        name.len -= sizeof(mark) - 1;
    }
    s->filename = mem_dup(name.ptr, name.len);
    return s->filename != NULL && s->folder != NULL
               ? ST_OK
               : error_set(err, ST_NOMEM, "out of memory for a tool's source");
}

static enum status read_inline(const struct soul_tool *tool, struct source *s,
                               struct error *err)
{
    struct buf name;

    buf_init(&name, 4096);
    buf_addf(&name, "%s.py", tool->name);
    buf_add_c(&s->text, tool->inline_src);
    s->filename = buf_take(&name);
    buf_done(&name);
    if (s->filename == NULL || buf_status(&s->text) != ST_OK) {
        return error_set(err, ST_NOMEM, "out of memory for a tool's source");
    }
    return ST_OK;
}

static enum status read_file(const struct soul_tool *tool, const struct str_list *allowed,
                             struct source *s, struct error *err)
{
    int fd = -1;
    enum status st = open_tool(tool, allowed, &fd, err);

    if (st == ST_OK) {
        st = check_kind(tool, fd, err);
    }
    if (st == ST_OK) {
        st = io_read_all(fd, TOOL_SOURCE_MAX, &s->text, err);
        if (st != ST_OK) {
            (void)error_context(err, "tool %s: reading its python_file %s", tool->name,
                                bare(tool->python_file));
        }
    }
    if (st == ST_OK) {
        st = name_opened(fd, s, err);
    }
    io_close(&fd);
    return st;
}

enum status source_read(const struct soul_tool *tool, const struct str_list *allowed,
                        struct source *out, struct error *err)
{
    unsigned char digest[SHA256_LEN];
    struct source s = {0};
    struct str text;
    enum status st;

    buf_init(&s.text, TOOL_SOURCE_MAX + 1);
    st = tool->python_file != NULL ? read_file(tool, allowed, &s, err)
                                   : read_inline(tool, &s, err);
    text = buf_str(&s.text);
    if (st == ST_OK && (!utf8_valid(text) || memchr(text.ptr, 0, text.len) != NULL)) {
        st = error_set(err, ST_INVALID, "tool %s: its source is not UTF-8 text",
                       tool->name);
    }
    if (st == ST_OK) {
        st = hash_sha256(&text, 1, digest, err);
    }
    if (st != ST_OK) {
        source_done(&s);
        return st;
    }
    hash_hex(digest, s.digest);
    *out = s;
    return ST_OK;
}

void source_done(struct source *s)
{
    buf_done(&s->text);
    mem_free(s->filename);
    mem_free(s->folder);
    s->filename = NULL;
    s->folder = NULL;
}
