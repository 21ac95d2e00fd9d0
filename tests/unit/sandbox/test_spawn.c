/* In: the helper and the payload. Out: what spawn.h promises, at every level: streams,
 * environment, folders, ends, deadlines, kills, restarts and that nothing is left. */
#define _GNU_SOURCE /* pthread, kill */
#include "kit.h"

#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define FOR_LEVELS(level) \
    for (enum isolation level = ISOLATION_NONE; level <= ISOLATION_STRICT; level++)

static void run_words(struct kit *k, enum isolation level, const char *w1, const char *w2,
                      struct kit_run *r)
{
    const char *words[8];
    struct spawn_plan p = kit_plan(k, level, kit_argv(k, w1, w2, NULL, NULL, words));

    kit_run(k, &p, r);
}

static void test_exit_codes(void **state)
{
    FOR_LEVELS(level)
    {
        struct kit_run r;

        run_words(*state, level, "exit", "37", &r);
        assert_string_equal(r.end.setup, "");
        assert_int_equal(r.end.exit_code, 37);
        assert_int_equal(r.end.term_signal, 0);
        assert_false(r.end.deadline);
        assert_true(r.end.max_rss_bytes > 0);
        kit_run_done(&r);
        run_words(*state, level, "abort", NULL, &r);
        assert_int_equal(r.end.exit_code, -1);
        assert_int_equal(r.end.term_signal, SIGABRT);
        kit_run_done(&r);
    }
}

static void test_layers_are_told(void **state)
{
    static const char *const marks[] = {"\"isolation\":\"none\"",
                                        "landlock:", "\"proc\""};

    FOR_LEVELS(level)
    {
        struct kit_run r;

        run_words(*state, level, "exit", "0", &r);
        assert_non_null(strstr(r.layers, marks[level]));
        assert_string_equal(r.layers, r.end.layers);
        kit_run_done(&r);
    }
}

static void test_environment_is_exact(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        static const char *const env[] = {"A=1", "TMPDIR=/nowhere", "B=x=y"};
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "env", NULL, NULL, NULL, words));
        struct kit_run r;
        char want[256];

        p.env = env;
        p.nenv = 3;
        kit_run(k, &p, &r);
        (void)snprintf(want, sizeof(want), "A=1\nTMPDIR=%s",
                       level == ISOLATION_NONE ? "/nowhere\nB=x=y\n" : k->work);
        assert_memory_equal(r.out.ptr, want, strlen(want));
        assert_non_null(strstr(r.out.ptr, "\nB=x=y\n"));
        kit_run_done(&r);
    }
}

static void test_tmpdir_is_added(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    struct spawn_plan p =
        kit_plan(k, ISOLATION_RESTRICTED, kit_argv(k, "env", NULL, NULL, NULL, words));
    struct kit_run r;

    p.nenv = 0;
    kit_run(k, &p, &r);
    assert_memory_equal(r.out.ptr, "TMPDIR=/", 8);
    kit_run_done(&r);
    p.work_root = NULL;
    kit_run(k, &p, &r);
    assert_int_equal(r.out.len, 0);
    kit_run_done(&r);
}

static void test_folder(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "cwd", NULL, NULL, NULL, words));
        struct kit_run r;

        kit_run(k, &p, &r);
        assert_memory_equal(r.out.ptr, k->work, strlen(k->work));
        kit_run_done(&r);
        p.cwd = "/usr";
        kit_run(k, &p, &r);
        assert_string_equal(r.out.ptr, "/usr\n");
        kit_run_done(&r);
        p.cwd = NULL;
        p.work_root = NULL;
        kit_run(k, &p, &r);
        assert_string_equal(r.out.ptr, "/\n");
        kit_run_done(&r);
        p.cwd = "/no/such/folder";
        kit_run(k, &p, &r);
        assert_non_null(strstr(r.end.setup, "folder: /no/such/folder: No such file"));
        kit_run_done(&r);
        assert_int_equal(kit_entries(k->work), 0);
    }
}

static void test_identity(void **state)
{
    FOR_LEVELS(level)
    {
        struct kit_run r;
        char want[96];
        bool drop = level != ISOLATION_NONE && geteuid() == 0;

        run_words(*state, level, "facts", NULL, &r);
        (void)snprintf(want, sizeof(want), "uid=%d gid=%d ",
                       drop ? (int)KIT_NOBODY : (int)getuid(),
                       drop ? (int)KIT_NOBODY : (int)getgid());
        assert_memory_equal(r.out.ptr, want, strlen(want));
        assert_non_null(strstr(r.out.ptr, "session=1 group=1"));
        assert_non_null(strstr(r.out.ptr, level == ISOLATION_NONE ? "nnp=0 seccomp=0"
                                                                  : "nnp=1 seccomp=2"));
        if (level != ISOLATION_NONE) {
            assert_non_null(strstr(r.out.ptr, "umask=077"));
        }
        if (level == ISOLATION_STRICT) {
            assert_non_null(strstr(r.out.ptr, "ppid=1 "));
            assert_non_null(strstr(r.out.ptr, "pid=2 "));
        }
        kit_run_done(&r);
    }
}

static void test_only_three_descriptors(void **state)
{
    FOR_LEVELS(level)
    {
        struct kit_run r;

        run_words(*state, level, "fds", NULL, &r);
        assert_string_equal(r.out.ptr, "0 1 2 ");
        kit_run_done(&r);
    }
}

/* Three megabytes through a tool that echoes, both ways at once. */
static void test_streams(void **state)
{
    struct kit *k = *state;
    const size_t total = 3 << 20;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "cat", NULL, NULL, NULL, words));
        struct child *c = NULL;
        static char text[65536];
        size_t sent = 0, got = 0;
        ssize_t n = 1;

        assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_OK);
        memset(text, 'x', sizeof(text));
        while (n != 0) {
            struct pollfd fds[2] = {{sent < total ? child_stdin(c) : -1, POLLOUT, 0},
                                    {child_stdout(c), POLLIN, 0}};

            assert_true(poll(fds, 2, KIT_DEADLINE_MS) > 0);
            if (fds[0].revents != 0) {
                n = write(child_stdin(c), text, sizeof(text));
                sent += n > 0 ? (size_t)n : 0;
                if (sent >= total) {
                    child_close_stdin(c);
                    assert_int_equal(child_stdin(c), -1);
                }
            }
            n = read(child_stdout(c), text, sizeof(text));
            got += n > 0 ? (size_t)n : 0;
        }
        assert_int_equal(sent, got);
        assert_int_equal(child_reap(c, clock_mono_ms() + KIT_DEADLINE_MS, NULL), ST_OK);
    }
}

static void expect_setup(struct kit *k, enum isolation level, const char *program,
                         const char *text)
{
    const char *argv[] = {program, NULL};
    struct spawn_plan p = kit_plan(k, level, argv);
    struct kit_run r;

    kit_run(k, &p, &r);
    assert_int_equal(r.end.exit_code, -1);
    assert_int_equal(r.end.term_signal, 0);
    if (strstr(r.end.setup, text) == NULL) {
        print_error("\"%s\" does not hold \"%s\"\n", r.end.setup, text);
        fail();
    }
    assert_string_equal(r.layers, "");
    kit_run_done(&r);
}

static void test_programs_that_do_not_start(void **state)
{
    struct kit *k = *state;
    char text[200];

    expect_setup(k, ISOLATION_NONE, "/no/such/program",
                 "none: exec: /no/such/program: No such file or directory");
    expect_setup(k, ISOLATION_RESTRICTED, "/no/such/program", "restricted: exec: ");
    expect_setup(k, ISOLATION_STRICT, "/no/such/program", "strict: exec: ");
    FOR_LEVELS(level)
    {
        expect_setup(k, level, k->secret, "Permission denied");
        expect_setup(k, level, "/usr", "Permission denied");
    }
    /* Executable, but not a program. */
    (void)snprintf(text, sizeof(text), "%s/garbage", k->dir);
    test_write_file(text, "garbage\n");
    assert_int_equal(chmod(text, 0755), 0);
    FOR_LEVELS(level)
    {
        expect_setup(k, level, text, "Exec format error");
    }
    assert_int_equal(unlink(text), 0);
}

static void test_paths_that_are_missing(void **state)
{
    struct kit *k = *state;

    for (int l = ISOLATION_RESTRICTED; l <= ISOLATION_STRICT; l++) {
        const char *words[8];
        struct spawn_path path = {"/no/such/path", false};
        struct spawn_plan p =
            kit_plan(k, (enum isolation)l, kit_argv(k, "exit", "0", NULL, NULL, words));
        struct kit_run r;

        p.paths = &path;
        p.npaths = 1;
        kit_run(k, &p, &r);
        assert_non_null(strstr(r.end.setup, "/no/such/path: No such file"));
        kit_run_done(&r);
        path.path = "/";
        kit_run(k, &p, &r);
        assert_non_null(strstr(r.end.setup, "plan: a path is not a plain absolute one"));
        kit_run_done(&r);
        path.path = "/proc";
        kit_run(k, &p, &r);
        assert_non_null(strstr(r.end.setup, "plan: "));
        kit_run_done(&r);
    }
}

static void test_root_must_drop(void **state)
{
    struct kit *k = *state;

    if (geteuid() != 0) {
        skip();
    }
    for (int l = ISOLATION_RESTRICTED; l <= ISOLATION_STRICT; l++) {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, (enum isolation)l, kit_argv(k, "exit", "0", NULL, NULL, words));
        struct kit_run r;

        p.uid = SPAWN_KEEP_ID;
        p.gid = SPAWN_KEEP_ID;
        kit_run(k, &p, &r);
        assert_non_null(strstr(r.end.setup, "a root gateway must become another user"));
        kit_run_done(&r);
        p.uid = 0;
        p.gid = 0;
        kit_run(k, &p, &r);
        assert_non_null(strstr(r.end.setup, "a root gateway must become another user"));
        kit_run_done(&r);
    }
}

static void test_deadline(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "wait", NULL, NULL, NULL, words));
        int64_t begin = clock_mono_ms();
        struct kit_run r;

        p.deadline_ms = begin + 150;
        kit_run(k, &p, &r);
        assert_true(r.end.deadline);
        assert_int_equal(r.end.term_signal, SIGKILL);
        assert_true(clock_mono_ms() - begin >= 150);
        kit_run_done(&r);
        /* Past before it began. */
        p.deadline_ms = begin - 1000;
        kit_run(k, &p, &r);
        assert_true(r.end.deadline);
        kit_run_done(&r);
    }
}

static void test_kill(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "wait", NULL, NULL, NULL, words));
        struct child *c = NULL;
        struct spawn_exit end;

        assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_OK);
        kit_await(c, "ready");
        child_kill(c);
        child_kill(c);
        assert_int_equal(child_reap(c, clock_mono_ms() + KIT_DEADLINE_MS, &end), ST_OK);
        assert_int_equal(end.term_signal, SIGKILL);
        assert_false(end.deadline);
    }
    assert_int_equal(child_reap(NULL, 0, NULL), ST_OK);
}

static void test_reap_may_time_out(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    struct spawn_plan p = kit_plan(
        k, ISOLATION_NONE, kit_argv(k, "wait", "token-timeout", NULL, NULL, words));
    struct child *c = NULL;

    assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_OK);
    kit_await(c, "ready");
    /* Already past; the record may or may not be quicker. */
    enum status st = child_reap(c, clock_mono_ms() - 1, NULL);
    assert_true(st == ST_TIMEOUT || st == ST_OK);
}

static void test_bad_plans(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    const char *bad_env[] = {"NOVALUE"};
    struct spawn_path path = {"relative", false};
    struct child *c = NULL;
    struct spawn_plan good =
        kit_plan(k, ISOLATION_NONE, kit_argv(k, "exit", "0", NULL, NULL, words));
    struct spawn_plan p = good;
    char *big = mem_alloc(SPAWN_PLAN_MAX + 1);
    const char *argv[] = {"/bin/true", big};

    p.nargv = 0;
    assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_INVALID);
    p = good;
    p.env = bad_env;
    p.nenv = 1;
    assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_INVALID);
    p = good;
    p.paths = &path;
    p.npaths = 1;
    assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_INVALID);
    p = good;
    p.cwd = "relative";
    assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_INVALID);
    p = good;
    p.uid = 5;
    p.gid = SPAWN_KEEP_ID;
    assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_INVALID);
    p = good;
    assert_non_null(big);
    memset(big, 'x', SPAWN_PLAN_MAX);
    big[SPAWN_PLAN_MAX] = '\0';
    p.argv = argv;
    p.nargv = 2;
    assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_TOO_LARGE);
    mem_free(big);
    assert_null(c);
}

/* The largest plan there can be arrives whole; the kernel takes 128 KiB per string. */
static void test_largest_plan(void **state)
{
    struct kit *k = *state;
    const size_t part = 97 * 1024;
    char *a = mem_alloc(part + 1);
    const char *argv[] = {k->payload, "exit", "5", a, a, NULL};
    struct spawn_plan p = kit_plan(k, ISOLATION_NONE, argv);
    struct kit_run r;

    assert_non_null(a);
    memset(a, 'x', part);
    a[part] = '\0';
    /* head + strings stay just below SPAWN_PLAN_MAX */
    a[SPAWN_PLAN_MAX / 2 - 400] = '\0';
    kit_run(k, &p, &r);
    assert_string_equal(r.end.setup, "");
    assert_int_equal(r.end.exit_code, 5);
    kit_run_done(&r);
    mem_free(a);
}

/* The keeper is the only process whose parent we are. */
static pid_t helper_pid(const struct kit *k)
{
    char path[64], text[64] = "";
    int fd;

    (void)k;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    io_close(&fd);
    return (pid_t)strtoimax(text, NULL, 10);
}

static void kill_helper(const struct kit *k)
{
    pid_t pid = helper_pid(k);
    siginfo_t info;

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void test_helper_is_restarted_once(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    struct spawn_plan p =
        kit_plan(k, ISOLATION_NONE, kit_argv(k, "wait", NULL, NULL, NULL, words));
    struct child *before = NULL, *c = NULL;
    struct error err;
    struct kit_run r;

    assert_true(spawn_alive(k->spawn));
    assert_int_equal(spawn_child(k->spawn, &p, &before, NULL), ST_OK);
    kit_await(before, "ready");
    kill_helper(k);
    run_words(k, ISOLATION_NONE, "exit", "4", &r);
    assert_int_equal(r.end.exit_code, 4);
    kit_run_done(&r);
    assert_true(spawn_alive(k->spawn));
    /* A child from before goes on under its own supervisor. */
    assert_int_equal(child_reap(before, clock_mono_ms() + KIT_DEADLINE_MS, NULL), ST_OK);
    kill_helper(k);
    while (spawn_alive(k->spawn)) {
        /* its spare is about to go as well */
    }
    assert_int_equal(spawn_child(k->spawn, &p, &c, &err), ST_IO);
    assert_false(spawn_alive(k->spawn));
}

static void test_no_helper(void **state)
{
    struct spawn *s = NULL;
    struct error err;

    (void)state;
    assert_int_equal(spawn_open("/no/such/helper", NULL, &s, &err), ST_IO);
    assert_non_null(strstr(err.text, "/no/such/helper"));
    assert_null(s);
    spawn_close(NULL);
}

static void test_close_kills(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    struct spawn_plan p = kit_plan(k, ISOLATION_NONE,
                                   kit_argv(k, "wait", "token-close", NULL, NULL, words));
    struct child *c = NULL;
    struct spawn *s = NULL;
    struct spawn_exit end;

    assert_int_equal(spawn_open(k->helper, NULL, &s, NULL), ST_OK);
    assert_int_equal(spawn_child(s, &p, &c, NULL), ST_OK);
    kit_await(c, "ready");
    spawn_close(s);
    assert_int_equal(io_wait(child_exit_fd(c), POLLIN, -1, p.deadline_ms), ST_OK);
    assert_int_equal(child_reap(c, p.deadline_ms, &end), ST_OK);
    assert_int_equal(end.term_signal, SIGKILL);
}

static void test_supports(void **state)
{
    struct kit *k = *state;
    struct error why;

    FOR_LEVELS(level)
    {
        assert_int_equal(spawn_supports(k->spawn, level, false, &why), ST_OK);
        assert_string_equal(why.text, "");
        assert_int_equal(spawn_supports(k->spawn, level, true, NULL), ST_OK);
    }
}

static bool one_run(struct kit *k)
{
    const char *words[8];
    struct spawn_plan p =
        kit_plan(k, ISOLATION_NONE, kit_argv(k, "exit", "0", NULL, NULL, words));
    struct child *c = NULL;

    if (spawn_child(k->spawn, &p, &c, NULL) != ST_OK) {
        assert_null(c);
        return false;
    }
    return child_reap(c, clock_mono_ms() + KIT_DEADLINE_MS, NULL) == ST_OK;
}

static bool one_open(struct kit *k)
{
    struct spawn *s = NULL;

    if (spawn_open(k->helper, NULL, &s, NULL) != ST_OK) {
        return false;
    }
    spawn_close(s);
    return true;
}

static void test_out_of_memory(void **state)
{
    struct kit *k = *state;
    size_t fds = kit_open_fds();

    TEST_SWEEP(one_run(k));
    TEST_SWEEP(one_open(k));
    assert_int_equal(kit_open_fds(), fds);
}

static void *many_runs(void *arg)
{
    struct kit *k = arg;
    uintptr_t bad = 0;

    for (int i = 0; i < 25; i++) {
        const char *words[8];
        enum isolation level = i % 5 == 0 ? ISOLATION_STRICT : ISOLATION_NONE;
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "exit", "9", NULL, NULL, words));
        struct child *c = NULL;
        struct spawn_exit end;

        if (spawn_child(k->spawn, &p, &c, NULL) != ST_OK ||
            io_wait(child_exit_fd(c), POLLIN, -1, p.deadline_ms) != ST_OK ||
            child_reap(c, p.deadline_ms, &end) != ST_OK || end.exit_code != 9) {
            bad++;
        }
    }
    return (void *)bad;
}

static void test_from_many_threads(void **state)
{
    pthread_t threads[8];

    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, many_runs, *state), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        void *bad = NULL;

        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
}

/* Ours only: other programs mount and unmount meanwhile. */
static size_t mounts(const struct kit *k)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[4096];
    size_t n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        bool ours =
            strstr(line, " tmpfs sandbox ") != NULL || strstr(line, k->dir) != NULL;

        n += ours ? 1 : 0;
    }
    (void)fclose(f);
    return n;
}

/* One in ten above none, so that it stays within its time. */
static void test_thousand_runs_leave_nothing(void **state)
{
    struct kit *k = *state;
    size_t fds;
    struct kit_run r;

    run_words(k, ISOLATION_NONE, "exit", "0", &r);
    kit_run_done(&r);
    fds = kit_open_fds();
    for (int i = 0; i < 1000; i++) {
        enum isolation level = i % 10 == 0   ? ISOLATION_RESTRICTED
                               : i % 10 == 1 ? ISOLATION_STRICT
                                             : ISOLATION_NONE;

        run_words(k, level, i % 7 == 0 ? "daemon" : "exit", "token-thousand", &r);
        assert_string_equal(r.end.setup, "");
        assert_int_equal(r.end.exit_code, 0);
        kit_run_done(&r);
    }
    assert_int_equal(kit_open_fds(), fds);
    assert_int_equal(mounts(k), 0);
    assert_int_equal(kit_processes("token-thousand"), 0);
    assert_int_equal(kit_entries(k->work), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_layers_are_told),
        cmocka_unit_test(test_environment_is_exact),
        cmocka_unit_test(test_tmpdir_is_added),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_only_three_descriptors),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_programs_that_do_not_start),
        cmocka_unit_test(test_paths_that_are_missing),
        cmocka_unit_test(test_root_must_drop),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_reap_may_time_out),
        cmocka_unit_test(test_bad_plans),
        cmocka_unit_test(test_largest_plan),
        cmocka_unit_test(test_helper_is_restarted_once),
        cmocka_unit_test(test_no_helper),
        cmocka_unit_test(test_close_kills),
        cmocka_unit_test(test_supports),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_from_many_threads),
        cmocka_unit_test(test_thousand_runs_leave_nothing),
    };

    return kit_main(argc, argv, "spawn", tests, sizeof(tests) / sizeof(tests[0]));
}
