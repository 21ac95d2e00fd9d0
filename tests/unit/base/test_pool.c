/* The pool: bounds, back-pressure, idle threads that end, stopping with work queued. No
 * sleeps: tasks wait on events, and ends are seen by thread counts in /proc. */
#include "support/test.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/pool.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

struct gate {
    struct event open;
    _Atomic int started, done;
};

static void wait_at_gate(void *arg)
{
    struct gate *g = arg;
    atomic_fetch_add(&g->started, 1);
    if (io_wait(g->open.fd, POLLIN, -1, CLOCK_NEVER) == ST_OK) {
        atomic_fetch_add(&g->done, 1);
    }
}

static void count(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static struct pool *make(size_t threads, size_t queued, int64_t idle_ms)
{
    struct pool_config cfg = {.name = "a-long-pool-name",
                              .max_threads = threads,
                              .max_queued = queued,
                              .idle_ms = idle_ms};
    struct pool *p = NULL;
    assert_int_equal(pool_new(&cfg, &p, NULL), ST_OK);
    return p;
}

/* Until the condition holds: there is nothing to wait on in a number, so yield. */
#define wait_for(condition) \
    do { \
        int64_t until_ = clock_mono_ms() + 20000; \
        while (!(condition) && clock_mono_ms() < until_) { \
            poll(NULL, 0, 1); \
        } \
        assert_true(condition); \
    } while (0)

static void bounds_and_back_pressure(void **state)
{
    (void)state;
    struct gate g = {0};
    assert_int_equal(event_init(&g.open, NULL), ST_OK);
    struct pool *p = make(2, 3, 0);
    for (int i = 0; i < 5; i++) { /* two run, three wait */
        assert_int_equal(pool_submit(p, wait_at_gate, &g), ST_OK);
    }
    assert_int_equal(pool_submit(p, wait_at_gate, &g), ST_BUSY);
    wait_for(atomic_load(&g.started) == 2);
    assert_int_equal(pool_active(p), 2);
    assert_int_equal(pool_queued(p), 3);
    assert_int_equal(pool_submit(p, wait_at_gate, &g), ST_BUSY);
    event_fire(&g.open);
    pool_stop(p);
    assert_int_equal(atomic_load(&g.done), 5);
    assert_int_equal(pool_submit(p, wait_at_gate, &g), ST_CANCELLED);
    assert_int_equal(pool_active(p), 0);
    pool_stop(p);
    pool_free(p);
    event_done(&g.open);
}

static void without_a_queue(void **state)
{
    (void)state;
    struct gate g = {0};
    assert_int_equal(event_init(&g.open, NULL), ST_OK);
    struct pool *p = make(1, 0, 0);
    assert_int_equal(pool_submit(p, wait_at_gate, &g), ST_OK);
    assert_int_equal(pool_submit(p, wait_at_gate, &g), ST_BUSY);
    event_fire(&g.open);
    bool again = false; /* the same thread takes the second */
    wait_for(again = again || pool_submit(p, wait_at_gate, &g) == ST_OK);
    pool_free(p);
    assert_int_equal(atomic_load(&g.done), 2);
    event_done(&g.open);
}

static size_t threads_now(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

static void idle_threads_end_and_come_back(void **state)
{
    (void)state;
    struct pool *p = make(4, 16, 1);
    _Atomic int n = 0;
    size_t before = threads_now();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pool_submit(p, count, &n), ST_OK);
        }
        wait_for(atomic_load(&n) == 4 * (round + 1));
        if (round % 5 == 0) {
            wait_for(threads_now() <= before);
        }
    }
    pool_free(p);
    wait_for(threads_now() <= before);
}

struct seen {
    char name[16];
    int term_blocked;
};

static void look(void *arg)
{
    struct seen *seen = arg;
    sigset_t mask;
    prctl(PR_GET_NAME, seen->name, 0, 0, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    seen->term_blocked = sigismember(&mask, SIGTERM);
}

static void threads_are_named_and_take_no_signals(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct pool *p = make(1, 1, 0);
    assert_int_equal(pool_submit(p, look, &seen), ST_OK);
    pool_free(p);
    assert_string_equal(seen.name, "a-long-pool-1");
    assert_int_equal(seen.term_blocked, 1);
}

struct submitter {
    struct pool *p;
    _Atomic int *n;
    int accepted;
};

static void *submit_many(void *arg)
{
    struct submitter *s = arg;
    for (int i = 0; i < 1000; i++) {
        s->accepted += pool_submit(s->p, count, s->n) == ST_OK;
    }
    return NULL;
}

static void each_accepted_task_runs_once(void **state)
{
    (void)state;
    _Atomic int n = 0;
    int accepted = 0;
    struct submitter s[3];
    pthread_t threads[3];
    struct pool *p = make(3, 8, 1);
    for (int i = 0; i < 3; i++) {
        s[i] = (struct submitter){p, &n, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &s[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        accepted += s[i].accepted;
    }
    pool_free(p);
    assert_true(accepted > 0);
    assert_int_equal(atomic_load(&n), accepted);
}

static void bad_configs_are_refused(void **state)
{
    (void)state;
    struct pool *p = NULL;
    struct error err;
    struct pool_config cfg = {.name = "x", .max_threads = 0};
    assert_int_equal(pool_new(&cfg, &p, &err), ST_INVALID);
    cfg.max_threads = 2;
    cfg.max_queued = SIZE_MAX;
    assert_int_equal(pool_new(&cfg, &p, &err), ST_INVALID);
    cfg.max_queued = SIZE_MAX / 2;
    assert_int_equal(pool_new(&cfg, &p, &err), ST_NOMEM);
    cfg.max_queued = 1;
    cfg.stack_bytes = 1;
    assert_int_equal(pool_new(&cfg, &p, &err), ST_INVALID);
    assert_null(p);
    /* A stack that no machine has: no thread starts, so nothing may be accepted. */
    cfg.stack_bytes = (size_t)1 << 60;
    assert_int_equal(pool_new(&cfg, &p, &err), ST_OK);
    assert_int_equal(pool_submit(p, count, NULL), ST_BUSY);
    assert_int_equal(pool_queued(p), 0);
    pool_free(p);
    pool_free(NULL);
}

static bool can_make(void)
{
    struct pool_config cfg = {.name = "x", .max_threads = 1, .max_queued = 1};
    struct pool *p = NULL;
    bool ok = pool_new(&cfg, &p, NULL) == ST_OK;
    pool_free(p);
    return ok;
}

static void sweep(void **state)
{
    (void)state;
    TEST_SWEEP(can_make());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_and_back_pressure),
        cmocka_unit_test(without_a_queue),
        cmocka_unit_test(idle_threads_end_and_come_back),
        cmocka_unit_test(threads_are_named_and_take_no_signals),
        cmocka_unit_test(each_accepted_task_runs_once),
        cmocka_unit_test(bad_configs_are_refused),
        cmocka_unit_test(sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
