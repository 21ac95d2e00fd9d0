/* What the system hardly ever does: calls that fail or are interrupted. The linker's
 * --wrap sends the calls of the modules under test through here; a plan says which one
 * of them fails. */
#include "support/test.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <pthread.h>

/* The nth next call of this name fails once with this error. */
static struct {
    const char *call;
    int nth;
    int error;
} plan;

static void fail_next(const char *call, int nth, int error)
{
    plan.call = call;
    plan.nth = nth;
    plan.error = error;
}

static bool fails(const char *call)
{
    if (plan.call == NULL || strcmp(call, plan.call) != 0 || --plan.nth > 0) {
        return false;
    }
    plan.call = NULL;
    errno = plan.error;
    return true;
}

#define WRAP(type, name, parameters, arguments, failure) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters \
    { \
        return fails(#name) ? (failure) : __real_##name arguments; \
    }

WRAP(int, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms), -1)
WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), -1)
WRAP(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), -1)
WRAP(ssize_t, getrandom, (void *p, size_t n, unsigned f), (p, n, f), -1)
WRAP(int, fsync, (int fd), (fd), -1)
WRAP(int, fstat, (int fd, struct stat *sb), (fd, sb), -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
WRAP(int, pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), (m, a),
     EAGAIN)
WRAP(int, pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), (c, a),
     EAGAIN)
WRAP(int, pthread_condattr_init, (pthread_condattr_t * a), (a), ENOMEM)
WRAP(int, pthread_attr_init, (pthread_attr_t * a), (a), ENOMEM)
WRAP(EVP_MD_CTX *, EVP_MD_CTX_new, (void), (), NULL)
WRAP(int, EVP_DigestUpdate, (EVP_MD_CTX * c, const void *p, size_t n), (c, p, n), 0)
WRAP(unsigned char *, HMAC,
     (const EVP_MD *md, const void *k, int kn, const unsigned char *d, size_t n,
      unsigned char *out, unsigned *len),
     (md, k, kn, d, n, out, len), NULL)

static void interrupted_calls_go_on(void **state)
{
    (void)state;
    int r = -1;
    int w = -1;
    char c = 0;
    assert_int_equal(io_pipe(&r, &w, NULL), ST_OK);
    fail_next("write", 1, EINTR);
    assert_int_equal(io_write_all(w, STR_LIT("a"), -1, CLOCK_NEVER, NULL), ST_OK);
    fail_next("write", 1, EAGAIN);
    assert_int_equal(io_write_all(w, STR_LIT("b"), -1, CLOCK_NEVER, NULL), ST_OK);
    fail_next("poll", 1, EINTR);
    assert_int_equal(io_wait(r, POLLIN, -1, CLOCK_NEVER), ST_OK);
    fail_next("read", 1, EINTR);
    assert_int_equal(io_read(r, &c, 1), 1);
    assert_int_equal(c, 'a');
    fail_next("getrandom", 1, EINTR);
    assert_int_equal(io_random(&c, 1, NULL), ST_OK);
    io_close(&r);
    io_close(&w);
    struct event e;
    assert_int_equal(event_init(&e, NULL), ST_OK);
    fail_next("write", 1, EINTR);
    event_fire(&e);
    assert_true(event_fired(&e));
    event_done(&e);
}

static void failing_calls_are_told(void **state)
{
    (void)state;
    char c;
    struct error err;
    struct test_dir d;
    char path[PATH_MAX];
    struct buf b;
    test_dir_make(&d);
    test_path(&d, "f", path);
    buf_init(&b, 100);
    size_t fds = test_open_fds();
    fail_next("poll", 1, ENOMEM);
    assert_int_equal(io_wait(0, POLLIN, -1, 0), ST_IO);
    fail_next("getrandom", 1, ENOSYS);
    assert_int_equal(io_random(&c, 1, &err), ST_IO);
    static const struct {
        const char *call;
        int nth;
    } writes[] = {{"getrandom", 1}, {"write", 1}, {"fchmod", 1}, {"fsync", 1}};
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        fail_next(writes[i].call, writes[i].nth, EIO);
        assert_int_equal(io_write_file(path, STR_LIT("text"), 0600, &err), ST_IO);
        assert_int_equal(err.os_errno, EIO);
        assert_int_not_equal(unlink(path), 0); /* neither the file */
    }
    assert_int_equal(rmdir(d.path), 0); /* nor a temporary one is left */
    assert_int_equal(mkdir(d.path, 0700), 0);
    fail_next("fsync", 2, EIO); /* the folder's: the file is there, but not surely */
    assert_int_equal(io_write_file(path, STR_LIT("text"), 0600, &err), ST_IO);
    assert_int_equal(io_write_file(path, STR_LIT("text"), 0600, &err), ST_OK);
    fail_next("fstat", 1, EIO);
    assert_int_equal(io_read_file(path, 100, &b, &err), ST_IO);
    fail_next("read", 2, EIO); /* after the first bytes: they are taken back */
    assert_int_equal(io_read_file(path, 100, &b, &err), ST_IO);
    assert_int_equal(b.len, 0);
    fail_next("fchmod", 1, EPERM);
    assert_int_equal(io_mkdirs(test_path(&d, "sub", path), 0700, &err), ST_IO);
    assert_int_equal(test_open_fds(), fds);
    buf_done(&b);
    test_dir_remove(&d);
}

static void no_locks(void **state)
{
    (void)state;
    static const struct pool_config cfg = {.name = "x", .max_threads = 1};
    struct pool *p = NULL;
    struct log *l = NULL;
    struct test_dir d;
    char path[PATH_MAX];
    size_t fds = test_open_fds();
    fail_next("pthread_mutex_init", 1, 0);
    assert_null(queue_new(1));
    fail_next("pthread_cond_init", 1, 0);
    assert_null(queue_new(1));
    fail_next("pthread_condattr_init", 1, 0);
    assert_null(queue_new(1));
    static const struct {
        const char *call;
        int nth;
    } calls[] = {{"pthread_attr_init", 1},
                 {"pthread_cond_init", 1},
                 {"pthread_cond_init", 2},
                 {"pthread_mutex_init", 1}};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        fail_next(calls[i].call, calls[i].nth, 0);
        assert_int_equal(pool_new(&cfg, &p, NULL), ST_NOMEM);
        assert_null(p);
    }
    test_dir_make(&d);
    fail_next("pthread_mutex_init", 1, 0);
    assert_int_equal(log_open(LOG_INFO, LOG_JSON, test_path(&d, "l", path), &l, NULL),
                     ST_NOMEM);
    assert_null(l);
    test_dir_remove(&d);
    assert_int_equal(test_open_fds(), fds);
}

static void no_digests(void **state)
{
    (void)state;
    unsigned char out[SHA256_LEN] = {1};
    struct str part = STR_LIT("x");
    struct error err;
    fail_next("EVP_MD_CTX_new", 1, 0);
    assert_int_equal(hash_sha256(&part, 1, out, &err), ST_NOMEM);
    fail_next("EVP_DigestUpdate", 1, 0);
    assert_int_equal(hash_sha256(&part, 1, out, &err), ST_INTERNAL);
    assert_int_equal(out[0], 1); /* outputs are written on success only */
    fail_next("HMAC", 1, 0);
    assert_int_equal(hash_hmac_sha256(part, part, out, &err), ST_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupted_calls_go_on),
        cmocka_unit_test(failing_calls_are_told),
        cmocka_unit_test(no_locks),
        cmocka_unit_test(no_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
