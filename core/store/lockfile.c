/* The lock on a state folder. In: a path. Out: a descriptor that holds the lock. Never
 * waits, never removes the file: that would let two holders lock two files of one name. */
#include "store/lockfile.h"

#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static enum status say_busy(int fd, const char *path, struct error *err)
{
    char text[32] = "";
    ssize_t n = io_read(fd, text, sizeof(text) - 1);
    struct str holder = str_trim(str_n(text, n > 0 ? (size_t)n : 0));
    int64_t pid;
    if (str_to_i64(holder, 1, INT32_MAX, &pid) == ST_OK) {
        return error_set(err, ST_BUSY, "%s: in use by process %d", path, (int)pid);
    }
    return error_set(err, ST_BUSY, "%s: in use by another process", path);
}

static enum status write_pid(int fd, const char *path, struct error *err)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0) {
        return error_set_errno(err, ST_IO, errno, "%s", path);
    }
    enum status st = io_write_all(fd, str_n(text, (size_t)n), -1, CLOCK_NEVER, err);
    if (st != ST_OK) {
        error_context(err, "%s", path);
    }
    return st;
}

enum status lockfile_take(const char *path, int *fd, struct error *err)
{
    int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (f < 0) {
        return error_set_errno(err, ST_IO, errno, "%s", path);
    }
    enum status st;
    if (flock(f, LOCK_EX | LOCK_NB) != 0) {
        st = errno == EWOULDBLOCK ? say_busy(f, path, err)
                                  : error_set_errno(err, ST_IO, errno, "%s", path);
    } else {
        st = write_pid(f, path, err);
    }
    if (st != ST_OK) {
        io_close(&f);
        return st;
    }
    *fd = f;
    return ST_OK;
}

void lockfile_release(int *fd)
{
    io_close(fd);
}
