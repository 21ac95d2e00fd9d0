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
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Opens path below the folder at dir; -1 with errno. */
static int open_beneath(const char *dir, const char *rest)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd;

    if (dirfd < 0) {
        return -1;
    }
    fd = (int)syscall(SYS_openat2, dirfd, rest, &how, sizeof(how));
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

static enum status open_tool(const struct soul_tool *tool, const struct str_list *allowed,
                             int *out, struct error *err)
{
    struct stat st;
    int fd;

    if (allowed->n > 0) {
        fd = open_allowed(tool->python_file, allowed);
    } else {
        fd = open(tool->python_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    if (fd < 0 && (errno == EXDEV || errno == EACCES || errno == ELOOP) &&
        allowed->n > 0) {
        return error_set(
            err, ST_REFUSED,
            "tool %s: its python_file is not inside runtime.allowed_tool_dirs "
            "or cannot be read there",
            tool->name);
    }
    if (fd < 0) {
        return error_set_errno(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, errno,
                               "tool %s: cannot open its python_file", tool->name);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        io_close(&fd);
        return error_set(err, ST_REFUSED,
                         "tool %s: its python_file is not a regular file", tool->name);
    }
    *out = fd;
    return ST_OK;
}

/* Real folder of the opened file and its bare name. */
static enum status name_opened(int fd, struct source *s, struct error *err)
{
    char link[64], path[4096];
    ssize_t n;
    char *slash;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0 || (size_t)n >= sizeof(path) - 1) {
        return error_set_errno(err, ST_IO, errno, "cannot tell where the tool's file is");
    }
    path[n] = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL) {
        return error_set(err, ST_IO, "cannot tell where the tool's file is");
    }
    s->filename = mem_strdup(slash + 1);
    s->folder = mem_dup(path, slash == path ? 1 : (size_t)(slash - path));
    return s->filename != NULL && s->folder != NULL
               ? ST_OK
               : error_set(err, ST_NOMEM, "out of memory for a tool's source");
}

static enum status read_inline(const struct soul_tool *tool, struct source *s,
                               struct error *err)
{
    struct buf name;

    buf_init(&name, 256);
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
        st = name_opened(fd, s, err);
    }
    if (st == ST_OK) {
        st = io_read_all(fd, TOOL_SOURCE_MAX, &s->text, err);
        if (st != ST_OK) {
            (void)error_context(err, "tool %s: reading its python_file", tool->name);
        }
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
