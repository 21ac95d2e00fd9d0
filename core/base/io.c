#define _GNU_SOURCE /* pipe2: a pipe that is O_CLOEXEC from birth */
/* System calls with EINTR, deadlines and caps handled once. In: descriptors, paths,
 * deadlines. Out: bytes and a status. Never leaks a descriptor over exec, never waits
 * behind a deadline, never leaves half a file under its final name. */
#include "base/io.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_CHUNK 16384

void io_close(int *fd)
{
    if (*fd < 0) {
        return;
    }
    int keep = errno;
    /* Not repeated on EINTR: Linux has freed the number by then. */
    close(*fd);
    *fd = -1;
    errno = keep;
}

enum status io_pipe(int *read_fd, int *write_fd, struct error *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return error_set_errno(err, ST_IO, errno, "pipe");
    }
    *read_fd = fds[0];
    *write_fd = fds[1];
    return ST_OK;
}

enum status io_nonblock(int fd, struct error *err)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return error_set_errno(err, ST_IO, errno,
                               "cannot make a descriptor non-blocking");
    }
    return ST_OK;
}

enum status io_wait(int fd, short events, int cancel_fd, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd p[2] = {
            {.fd = fd, .events = events},
            {.fd = cancel_fd, .events = POLLIN},
        };
        int n = poll(p, 2, clock_poll_timeout(deadline_ms));
        if (n < 0 && errno != EINTR) {
            return ST_IO;
        }
        if (n > 0) {
            if (((p[0].revents | p[1].revents) & POLLNVAL) != 0) {
                return ST_IO;
            }
            return p[1].revents != 0 ? ST_CANCELLED : ST_OK;
        }
        /* Interrupted, or poll's own cap of one hour was reached. */
        if (deadline_ms != CLOCK_NEVER && clock_mono_ms() >= deadline_ms) {
            return ST_TIMEOUT;
        }
    }
}

enum status io_write_all(int fd, struct str data, int cancel_fd, int64_t deadline_ms,
                         struct error *err)
{
    while (data.len != 0) {
        enum status st = io_wait(fd, POLLOUT, cancel_fd, deadline_ms);
        if (st != ST_OK) {
            return error_set(err, st, "write: %s", status_name(st));
        }
        ssize_t n = write(fd, data.ptr, data.len);
        if (n < 0) {
            if (errno == EINTR || errno == EAGAIN) {
                continue;
            }
            return error_set_errno(err, ST_IO, errno, "write");
        }
        data = str_n(data.ptr + n, data.len - (size_t)n);
    }
    return ST_OK;
}

ssize_t io_read(int fd, void *p, size_t n)
{
    ssize_t got;
    do {
        got = read(fd, p, n);
    } while (got < 0 && errno == EINTR);
    return got;
}

enum status io_read_all(int fd, size_t max, struct buf *out, struct error *err)
{
    size_t start = out->len;
    enum status st = ST_OK;
    char *chunk = mem_alloc(READ_CHUNK);
    if (chunk == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for reading");
    }
    while (st == ST_OK) {
        ssize_t n = io_read(fd, chunk, READ_CHUNK);
        if (n == 0) {
            break;
        }
        if (n < 0) {
            st = error_set_errno(err, ST_IO, errno, "read");
        } else if ((size_t)n > max - (out->len - start)) {
            st = error_set(err, ST_TOO_LARGE, "larger than %zu bytes", max);
        } else {
            buf_add(out, chunk, (size_t)n);
            st = buf_status(out);
            if (st != ST_OK) {
                error_set(err, st, "read: %s", status_name(st));
            }
        }
    }
    /* The file may hold a key. */
    mem_wipe(chunk, READ_CHUNK);
    mem_free(chunk);
    if (st != ST_OK && out->len > start) {
        mem_wipe(out->ptr + start, out->len - start);
        out->len = start;
    }
    return st;
}

static enum status status_of_errno(int e)
{
    return e == ENOENT || e == ENOTDIR ? ST_NOT_FOUND : ST_IO;
}

enum status io_read_file(const char *path, size_t max, struct buf *out, struct error *err)
{
    /* O_NONBLOCK: opening a fifo must not hang; it means nothing for a regular file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return error_set_errno(err, status_of_errno(errno), errno, "%s", path);
    }
    struct stat sb;
    enum status st;
    if (fstat(fd, &sb) != 0) {
        st = error_set_errno(err, ST_IO, errno, "%s", path);
    } else if (!S_ISREG(sb.st_mode)) {
        st = error_set(err, ST_INVALID, "%s: not a regular file", path);
    } else {
        st = io_read_all(fd, max, out, err);
        if (st != ST_OK) {
            error_context(err, "%s", path);
        }
    }
    io_close(&fd);
    return st;
}

/* The folder of path, as written there ("." and "/" included). */
static void add_folder(struct buf *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        buf_add_c(out, ".");
    } else {
        buf_add(out, path, slash == path ? 1 : (size_t)(slash - path));
    }
}

/* A name beside path that nobody else picks, so that rename stays in one filesystem. */
static enum status name_beside(const char *path, struct buf *out, struct error *err)
{
    unsigned char salt[8];
    enum status st = io_random(salt, sizeof(salt), err);
    if (st != ST_OK) {
        return st;
    }
    add_folder(out, path);
    buf_add_c(out, "/.tmp-");
    buf_add_hex(out, salt, sizeof(salt));
    st = buf_status(out);
    return st == ST_OK ? st : error_set(err, st, "%s: %s", path, status_name(st));
}

static enum status write_and_sync(int fd, struct str data, mode_t mode, struct error *err)
{
    enum status st = io_write_all(fd, data, -1, CLOCK_NEVER, err);
    if (st != ST_OK) {
        return st;
    }
    /* Not through open: the mode asked for holds whatever the umask is. */
    if (fchmod(fd, mode) != 0 || fsync(fd) != 0) {
        return error_set_errno(err, ST_IO, errno, "fsync");
    }
    return ST_OK;
}

static enum status sync_folder_of(const char *path, struct error *err)
{
    struct buf folder;
    buf_init(&folder, strlen(path) + 1);
    add_folder(&folder, path);
    enum status st = buf_status(&folder);
    if (st != ST_OK) {
        error_set(err, st, "%s", status_name(st));
    } else {
        int fd = open(folder.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) != 0) {
            st = error_set_errno(err, ST_IO, errno, "fsync of %s", folder.ptr);
        }
        io_close(&fd);
    }
    buf_done(&folder);
    return st;
}

enum status io_write_file(const char *path, struct str data, mode_t mode,
                          struct error *err)
{
    struct buf temp;
    int fd = -1;
    buf_init(&temp, strlen(path) + 32);
    enum status st = name_beside(path, &temp, err);
    if (st != ST_OK) {
        goto out;
    }
    fd = open(temp.ptr, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        st = error_set_errno(err, status_of_errno(errno), errno, "%s", path);
        goto out;
    }
    st = write_and_sync(fd, data, mode, err);
    if (st == ST_OK && rename(temp.ptr, path) != 0) {
        st = error_set_errno(err, ST_IO, errno, "rename");
    }
    if (st != ST_OK) {
        unlink(temp.ptr);
        error_context(err, "%s", path);
        goto out;
    }
    st = sync_folder_of(path, err);
out:
    io_close(&fd);
    buf_done(&temp);
    return st;
}

/* One folder of the path; an existing one keeps its mode. */
static enum status make_folder(const char *path, mode_t mode, struct error *err)
{
    bool made = mkdir(path, mode & 0700) == 0;
    if (!made && errno != EEXIST) {
        return error_set_errno(err, ST_IO, errno, "mkdir %s", path);
    }
    /* A new one may not have been swapped for a link before it gets its mode. */
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0));
    if (fd < 0 && errno == EACCES && !made) {
        return ST_OK; /* somebody else's folder, which we may perhaps pass through */
    }
    enum status st = ST_OK;
    if (fd < 0 || (made && fchmod(fd, mode) != 0)) {
        st = error_set_errno(err, ST_IO, errno, "mkdir %s", path);
    }
    io_close(&fd);
    return st;
}

enum status io_mkdirs(const char *path, mode_t mode, struct error *err)
{
    if (path[0] != '/') {
        return error_set(err, ST_INVALID, "%s: not an absolute path", path);
    }
    char *copy = mem_strdup(path);
    if (copy == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for a path");
    }
    enum status st = ST_OK;
    for (size_t i = 1; st == ST_OK; i++) {
        if (copy[i] != '/' && copy[i] != '\0') {
            continue;
        }
        bool last = copy[i] == '\0';
        copy[i] = '\0';
        if (copy[i - 1] != '/' && copy[i - 1] != '\0') {
            st = make_folder(copy, mode, err);
        }
        if (last) {
            break;
        }
        copy[i] = '/';
    }
    mem_free(copy);
    return st;
}

enum status io_random(void *p, size_t n, struct error *err)
{
    unsigned char *at = p;
    while (n != 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return error_set_errno(err, ST_IO, errno, "getrandom");
        }
        at += got;
        n -= (size_t)got;
    }
    return ST_OK;
}

/* A descriptor 0 would make a zeroed struct event look open (and its event_done close
 * stdin), so in a process without stdin the next number is taken. */
enum status event_init(struct event *e, struct error *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd == 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        int zero = 0;
        io_close(&zero);
    }
    if (fd < 0) {
        return error_set_errno(err, ST_IO, errno, "eventfd");
    }
    e->fd = fd;
    return ST_OK;
}

void event_done(struct event *e)
{
    if (e != NULL && e->fd > 0) {
        io_close(&e->fd);
        e->fd = -1;
    }
}

void event_fire(struct event *e)
{
    static const uint64_t one = 1;
    int keep = errno;
    ssize_t n;
    do {
        n = write(e->fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
    errno = keep; /* may run in a signal handler */
}

bool event_fired(const struct event *e)
{
    return io_wait(e->fd, POLLIN, -1, 0) == ST_OK;
}

void event_clear(struct event *e)
{
    uint64_t count;
    /* EAGAIN means that it had not been fired. */
    (void)!io_read(e->fd, &count, sizeof(count));
}
