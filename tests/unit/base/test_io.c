/* Descriptors, files, folders and events: happy, failing, at their caps, none leaked. */
#include "support/test.h"

#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static int setup(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* as the core does */
    return 0;
}

static void closing_keeps_errno(void **state)
{
    (void)state;
    int r = -1;
    int w = -1;
    assert_int_equal(io_pipe(&r, &w, NULL), ST_OK);
    assert_true((fcntl(r, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(w, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(io_nonblock(r, NULL), ST_OK);
    char c;
    assert_int_equal(io_read(r, &c, 1), -1);
    assert_int_equal(errno, EAGAIN);
    errno = EDOM;
    io_close(&r);
    io_close(&r);
    io_close(&w);
    assert_int_equal(errno, EDOM);
    assert_int_equal(r, -1);
    struct error err;
    assert_int_equal(io_nonblock(-1, &err), ST_IO);
    assert_int_equal(err.os_errno, EBADF);
}

static void waiting(void **state)
{
    (void)state;
    int r = -1;
    int w = -1;
    int cancel_r = -1;
    int cancel_w = -1;
    assert_int_equal(io_pipe(&r, &w, NULL), ST_OK);
    assert_int_equal(io_pipe(&cancel_r, &cancel_w, NULL), ST_OK);
    assert_int_equal(io_wait(r, POLLIN, cancel_r, 0), ST_TIMEOUT);
    assert_int_equal(io_wait(r, POLLIN, -1, clock_mono_ms() + 5), ST_TIMEOUT);
    assert_int_equal(io_wait(w, POLLOUT, cancel_r, 0), ST_OK);
    assert_int_equal(write(w, "x", 1), 1);
    assert_int_equal(io_wait(r, POLLIN, cancel_r, CLOCK_NEVER), ST_OK);
    assert_int_equal(write(cancel_w, "x", 1), 1);
    assert_int_equal(io_wait(r, POLLIN, cancel_r, CLOCK_NEVER), ST_CANCELLED);
    assert_int_equal(io_wait(-1, POLLIN, cancel_r, CLOCK_NEVER), ST_CANCELLED);
    int closed = w;
    io_close(&w);
    assert_int_equal(io_wait(r, POLLIN, -1, CLOCK_NEVER), ST_OK); /* byte, then hang-up */
    char c;
    assert_int_equal(io_read(r, &c, 1), 1);
    assert_int_equal(io_wait(r, POLLIN, -1, CLOCK_NEVER), ST_OK);
    assert_int_equal(io_read(r, &c, 1), 0);
    assert_int_equal(io_wait(closed, POLLIN, -1, CLOCK_NEVER), ST_IO);
    io_close(&r);
    io_close(&cancel_r);
    io_close(&cancel_w);
}

static void *read_slowly(void *arg)
{
    static char sink[65536];
    size_t total = 0;
    int fd = *(int *)arg;
    for (ssize_t n = io_read(fd, sink, sizeof(sink)); n > 0;
         n = io_read(fd, sink, sizeof(sink))) {
        total += (size_t)n;
    }
    return (void *)(uintptr_t)total;
}

static void writing_all(void **state)
{
    (void)state;
    size_t n = (size_t)1 << 20;
    char *big = calloc(1, n);
    int r = -1;
    int w = -1;
    struct error err;
    pthread_t reader;
    void *total = NULL;
    assert_non_null(big);
    assert_int_equal(io_pipe(&r, &w, NULL), ST_OK);
    assert_int_equal(io_nonblock(w, NULL), ST_OK);
    /* Nobody reads: the pipe fills up and the deadline holds. */
    assert_int_equal(io_write_all(w, str_n(big, n), -1, clock_mono_ms() + 10, &err),
                     ST_TIMEOUT);
    assert_int_equal(pthread_create(&reader, NULL, read_slowly, &r), 0);
    assert_int_equal(io_write_all(w, str_n(big, n), -1, CLOCK_NEVER, &err), ST_OK);
    io_close(&w);
    assert_int_equal(pthread_join(reader, &total), 0);
    assert_true((uintptr_t)total > n);
    io_close(&r);
    assert_int_equal(io_pipe(&r, &w, NULL), ST_OK);
    io_close(&r);
    assert_int_equal(io_write_all(w, STR_LIT("x"), -1, CLOCK_NEVER, &err), ST_IO);
    assert_int_equal(err.os_errno, EPIPE);
    assert_int_equal(io_write_all(w, STR_NONE, -1, CLOCK_NEVER, &err), ST_OK);
    io_close(&w);
    free(big);
}

static void reading_at_the_cap(void **state)
{
    (void)state;
    struct test_dir d;
    char path[PATH_MAX];
    struct buf b;
    struct error err;
    test_dir_make(&d);
    test_write_file(test_path(&d, "f", path), "0123456789");
    buf_init(&b, 100);
    buf_add_c(&b, "<");
    assert_int_equal(io_read_file(path, 10, &b, &err), ST_OK);
    assert_str_is(buf_str(&b), "<0123456789");
    assert_int_equal(io_read_file(path, 9, &b, &err), ST_TOO_LARGE);
    assert_str_is(buf_str(&b), "<0123456789"); /* unchanged */
    assert_non_null(strstr(err.text, "larger than 9 bytes"));
    assert_non_null(strstr(err.text, path));
    buf_done(&b);
    buf_init(&b, 9); /* the buffer's own maximum */
    assert_int_equal(io_read_file(path, 100, &b, &err), ST_TOO_LARGE);
    buf_done(&b);
    buf_init(&b, 100);
    assert_int_equal(io_read_file(test_path(&d, "none", path), 9, &b, &err),
                     ST_NOT_FOUND);
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(io_read_file(d.path, 9, &b, &err), ST_INVALID);
    assert_int_equal(mkfifo(test_path(&d, "fifo", path), 0600), 0);
    assert_int_equal(io_read_file(path, 9, &b, &err), ST_INVALID); /* and does not hang */
    assert_int_equal(io_read_file("/proc/self/mem", 9, &b, &err), ST_IO);
    assert_int_equal(io_read_file("/proc/self/status", 1 << 20, &b, NULL), ST_TOO_LARGE);
    buf_done(&b);
    test_dir_remove(&d);
}

static void writing_files(void **state)
{
    (void)state;
    struct test_dir d;
    char path[PATH_MAX];
    struct buf b;
    struct stat sb;
    struct error err;
    size_t fds = test_open_fds();
    mode_t mask = umask(0077);
    test_dir_make(&d);
    buf_init(&b, 100);
    test_path(&d, "f", path);
    assert_int_equal(io_write_file(path, STR_LIT("one"), 0644, &err), ST_OK);
    assert_int_equal(io_write_file(path, STR_LIT("two"), 0640, &err), ST_OK);
    assert_int_equal(io_read_file(path, 10, &b, &err), ST_OK);
    assert_str_is(buf_str(&b), "two");
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_mode & 07777, 0640);
    unlink(path);
    assert_int_equal(io_write_file(test_path(&d, "no/f", path), STR_LIT("x"), 0600, &err),
                     ST_NOT_FOUND);
    /* A folder is in the way: the temporary file is gone again, so rmdir succeeds. */
    assert_int_equal(mkdir(test_path(&d, "dir", path), 0700), 0);
    assert_int_equal(io_write_file(path, STR_LIT("x"), 0600, &err), ST_IO);
    assert_int_equal(err.os_errno, EISDIR);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(d.path), 0);
    assert_int_equal(io_write_file("/dev/full-of-nothing/x", STR_LIT("x"), 0600, &err),
                     ST_NOT_FOUND);
    umask(mask);
    buf_done(&b);
    assert_int_equal(test_open_fds(), fds);
}

static void relative_paths(void **state)
{
    (void)state;
    struct test_dir d;
    struct error err;
    char before[PATH_MAX];
    test_dir_make(&d);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(d.path), 0);
    assert_int_equal(io_write_file("plain", STR_LIT("x"), 0600, &err), ST_OK);
    assert_int_equal(unlink("plain"), 0);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(io_write_file("/proc/x", STR_LIT("x"), 0600, &err), ST_NOT_FOUND);
    test_dir_remove(&d);
}

static void making_folders(void **state)
{
    (void)state;
    struct test_dir d;
    char path[PATH_MAX];
    struct stat sb;
    struct error err;
    mode_t mask = umask(0077);
    test_dir_make(&d);
    test_path(&d, "a//b/c/", path);
    assert_int_equal(io_mkdirs(path, 0755, &err), ST_OK);
    assert_int_equal(io_mkdirs(path, 0700, &err), ST_OK); /* there already: mode kept */
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_mode & 07777, 0755);
    umask(mask);
    assert_int_equal(io_mkdirs("a/b", 0755, &err), ST_INVALID);
    assert_int_equal(io_mkdirs("", 0755, &err), ST_INVALID);
    assert_int_equal(io_mkdirs("/", 0755, &err), ST_OK);
    test_write_file(test_path(&d, "file", path), "x");
    assert_int_equal(io_mkdirs(test_path(&d, "file/sub", path), 0755, &err), ST_IO);
    assert_int_equal(io_mkdirs("/proc/nothing/x", 0755, &err), ST_IO);
    assert_int_equal(symlink("a", test_path(&d, "link", path)), 0);
    assert_int_equal(io_mkdirs(test_path(&d, "link/z", path), 0755, &err), ST_OK);
    assert_int_equal(stat(test_path(&d, "a/z", path), &sb), 0);
    test_dir_remove(&d);
}

static void random_bytes_differ(void **state)
{
    (void)state;
    unsigned char a[600] = {0};
    unsigned char b[600] = {0};
    assert_int_equal(io_random(a, sizeof(a), NULL), ST_OK);
    assert_int_equal(io_random(b, sizeof(b), NULL), ST_OK);
    assert_memory_not_equal(a, b, sizeof(a));
    assert_memory_not_equal(a + 570, (unsigned char[30]){0}, 30);
    assert_int_equal(io_random(a, 0, NULL), ST_OK);
}

static void *fire(void *arg)
{
    event_fire(arg);
    return NULL;
}

static void events(void **state)
{
    (void)state;
    struct event e = {0};
    event_done(&e); /* zeroed: must not close stdin */
    assert_true(fcntl(0, F_GETFD) >= 0 || errno == EBADF);
    event_done(NULL);
    assert_int_equal(event_init(&e, NULL), ST_OK);
    assert_true((fcntl(e.fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_false(event_fired(&e));
    event_clear(&e);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, fire, &e), 0);
    assert_int_equal(io_wait(e.fd, POLLIN, -1, CLOCK_NEVER), ST_OK);
    pthread_join(t, NULL);
    event_fire(&e);
    assert_true(event_fired(&e));
    assert_true(event_fired(&e));
    event_clear(&e);
    assert_false(event_fired(&e));
    event_done(&e);
    event_done(&e);
    assert_int_equal(e.fd, -1);
}

static void running_out_of_descriptors(void **state)
{
    (void)state;
    struct rlimit before;
    struct error err;
    struct event e = {-1};
    int r = -1;
    int w = -1;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum status event_st = event_init(&e, &err);
    int event_errno = err.os_errno;
    enum status pipe_st = io_pipe(&r, &w, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(event_st, ST_IO);
    assert_int_equal(event_errno, EMFILE);
    assert_int_equal(pipe_st, ST_IO);
    assert_int_equal(r, -1);
}

/* Without stdin a new descriptor would be 0, which a zeroed struct event means as none. */
static void an_event_is_never_descriptor_0(void **state)
{
    (void)state;
    int keep = fcntl(0, F_DUPFD_CLOEXEC, 3);
    close(0);
    struct event e = {0};
    assert_int_equal(event_init(&e, NULL), ST_OK);
    int fd = e.fd;
    bool zero_is_free = fcntl(0, F_GETFD) < 0;
    event_done(&e);
    if (keep >= 0) {
        assert_int_equal(dup2(keep, 0), 0);
        close(keep);
    }
    assert_true(fd > 0);
    assert_true(zero_is_free);
}

static bool can_read_and_write(const struct test_dir *d)
{
    char path[PATH_MAX];
    struct buf b;
    buf_init(&b, 100);
    test_path(d, "a", path);
    bool ok = io_mkdirs(path, 0700, NULL) == ST_OK;
    test_path(d, "a/f", path);
    ok = ok && io_write_file(path, STR_LIT("text"), 0600, NULL) == ST_OK;
    ok = ok && io_read_file(path, 100, &b, NULL) == ST_OK;
    buf_done(&b);
    return ok;
}

static void sweep(void **state)
{
    (void)state;
    struct test_dir d;
    size_t fds = test_open_fds();
    test_dir_make(&d);
    TEST_SWEEP(can_read_and_write(&d));
    test_dir_remove(&d);
    assert_int_equal(test_open_fds(), fds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_keeps_errno),
        cmocka_unit_test(waiting),
        cmocka_unit_test(writing_all),
        cmocka_unit_test(reading_at_the_cap),
        cmocka_unit_test(writing_files),
        cmocka_unit_test(relative_paths),
        cmocka_unit_test(making_folders),
        cmocka_unit_test(random_bytes_differ),
        cmocka_unit_test(events),
        cmocka_unit_test(running_out_of_descriptors),
        cmocka_unit_test(an_event_is_never_descriptor_0),
        cmocka_unit_test(sweep),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
