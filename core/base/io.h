/* System calls with EINTR, deadlines and caps handled once. Descriptors are born
 * O_CLOEXEC. Every deadline is monotonic ms (CLOCK_NEVER = none). */
#ifndef SOULACY_BASE_IO_H
#define SOULACY_BASE_IO_H

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

void io_close(int *fd); /* closes *fd once and makes it -1; -1 is fine; keeps errno */
enum status io_pipe(int *read_fd, int *write_fd, struct error *err) SY_MUST_CHECK;
enum status io_nonblock(int fd, struct error *err) SY_MUST_CHECK;

/* Wait for events (POLLIN, POLLOUT) on fd, or for cancel_fd (-1 = none) to become
 * readable. ST_OK, ST_TIMEOUT, ST_CANCELLED, ST_IO. POLLHUP counts as ready. */
enum status io_wait(int fd, short events, int cancel_fd,
                    int64_t deadline_ms) SY_MUST_CHECK;

/* Write all of it before the deadline (fd may be blocking or not; it is polled first;
 * use non-blocking descriptors where the peer may stall). */
enum status io_write_all(int fd, struct str data, int cancel_fd, int64_t deadline_ms,
                         struct error *err) SY_MUST_CHECK;
/* Like read(2) with EINTR handled: >0 bytes, 0 end, -1 errno. */
ssize_t io_read(int fd, void *p, size_t n);
/* Append everything up to the end of fd; ST_TOO_LARGE at max bytes. Regular files. */
enum status io_read_all(int fd, size_t max, struct buf *out,
                        struct error *err) SY_MUST_CHECK;
/* Open (O_NOFOLLOW off), require a regular file, read whole. */
enum status io_read_file(const char *path, size_t max, struct buf *out,
                         struct error *err) SY_MUST_CHECK;
/* Write to a temporary file in the same folder, fsync, rename over path, fsync folder. */
enum status io_write_file(const char *path, struct str data, mode_t mode,
                          struct error *err) SY_MUST_CHECK;
/* mkdir -p of an absolute path; new folders get mode. */
enum status io_mkdirs(const char *path, mode_t mode, struct error *err) SY_MUST_CHECK;
/* n random bytes from getrandom(2). */
enum status io_random(void *p, size_t n, struct error *err) SY_MUST_CHECK;

/* A one-shot event that any thread may fire and poll(2) can watch (eventfd). */
struct event {
    int fd;
};
enum status event_init(struct event *e, struct error *err) SY_MUST_CHECK;
void event_done(struct event *e);
void event_fire(struct event *e);        /* [any], async-signal-safe */
bool event_fired(const struct event *e); /* does not clear */
void event_clear(struct event *e);

#endif
