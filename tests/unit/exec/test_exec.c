/* exec with a real helper, executor and Python: what is refused, cancel at each moment,
 * many at once, set-up failures, 200 calls that leave nothing, out of memory. */
#include "base/clock.h"
#include "parity/rig.h"
#include "support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static struct rig rig;

static int open_rig(void **state)
{
    (void)state;
    const struct rig_options opt = {.build_dir = TEST_BUILD_DIR,
                                    .backend = "process",
                                    .python = "/usr/bin/python3",
                                    .quiet = true};
    struct error err = {.text = ""};
    if (!rig_open(&rig, &opt, &err)) {
        print_error("%s\n", err.text);
        return 1;
    }
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void plan_of(struct plan *p, const char *source)
{
    rig_plan(&rig, p);
    p->call.source = str_c(source);
    fake_plan_key(p);
}

static void run(const struct plan *p, struct exec_outcome *o)
{
    exec_run(rig.exec, p, NULL, NULL, o);
}

static void expect(const struct plan *p, enum exec_cause cause, const char *text)
{
    struct exec_outcome o;
    run(p, &o);
    assert_int_equal(o.cause, cause);
    if (text != NULL) {
        assert_str_is(buf_str(&o.text), text);
    }
    exec_outcome_done(&o);
    assert_true(rig_settle(&rig));
    assert_int_equal(rig_leftovers(&rig), 0);
}

static void harness_texts(void **state)
{
    (void)state;
    struct str pre = exec_preamble();
    struct str h = exec_harness();
    char head[32];
    int n = snprintf(head, sizeof head, "%zu\n", h.len);
    assert_int_equal(pre.len, h.len + (size_t)n);
    assert_memory_equal(pre.ptr, head, (size_t)n);
    assert_null(strchr(exec_bootstrap(), '\''));
}

static void unknown_backend(void **state)
{
    (void)state;
    struct plan p;
    plan_of(&p, "def tool(): pass");
    p.launch.backend = "no-such";
    expect(
        &p, EXEC_UNAVAILABLE,
        "the tool was not run: executor 'no-such' is not available: no such executor is "
        "loaded");
}

static void must_that_is_not_enforced(void **state)
{
    (void)state;
    struct plan p;
    plan_of(&p, "def tool(): pass");
    p.launch.must |= UINT64_C(1) << 40;
    fake_plan_key(&p);
    expect(&p, EXEC_REFUSED,
           "the tool was not run: executor 'process' cannot enforce: bits 0x10000000000");
}

static void no_interpreter(void **state)
{
    (void)state;
    static const char *const paths[] = {"/nonexistent/python3", "/etc/passwd", "/usr"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct plan p;
        struct exec_outcome o;
        const char *argv[] = {paths[i], "-I"};
        plan_of(&p, "def tool(): pass");
        p.launch.argv = argv;
        p.launch.nargv = 2;
        fake_plan_key(&p);
        run(&p, &o);
        assert_int_equal(o.cause, EXEC_REFUSED);
        assert_null(strstr(o.text.ptr, "/nonexistent"));
        assert_null(strstr(o.text.ptr, "/etc"));
        exec_outcome_done(&o);
        assert_true(rig_settle(&rig));
    }
}

/* A script without an interpreter line: ENOEXEC. */
static void exec_format(void **state)
{
    (void)state;
    struct test_dir dir;
    char path[PATH_MAX];
    struct plan p;
    test_dir_make(&dir);
    test_write_file(test_path(&dir, "python3", path), "not a program\n");
    assert_int_equal(chmod(path, 0755), 0);
    const char *argv[] = {path};
    plan_of(&p, "def tool(): pass");
    p.launch.argv = argv;
    p.launch.nargv = 1;
    fake_plan_key(&p);
    expect(&p, EXEC_REFUSED, NULL);
    test_dir_remove(&dir);
}

/* An interpreter that is none: it ends without ever saying that it is up. */
static void not_python(void **state)
{
    (void)state;
    struct plan p;
    const char *argv[] = {"/bin/true"};
    plan_of(&p, "def tool(): pass");
    p.launch.argv = argv;
    p.launch.nargv = 1;
    fake_plan_key(&p);
    expect(&p, EXEC_NO_RESULT, NULL);
    const char *argv2[] = {"/bin/sleep", "1000"};
    p.launch.argv = argv2;
    p.launch.nargv = 2;
    p.call.timeout_ms = 300;
    fake_plan_key(&p);
    expect(&p, EXEC_TIMEOUT, "stopped: time limit of 300 ms reached");
}

static void cancelled_before_it_starts(void **state)
{
    (void)state;
    struct plan p;
    struct event cancel;
    struct exec_outcome o;
    plan_of(&p, "import time\ndef tool(): time.sleep(100)");
    assert_int_equal(event_init(&cancel, NULL), ST_OK);
    event_fire(&cancel);
    int64_t began = clock_mono_ms();
    exec_run(rig.exec, &p, &cancel, NULL, &o);
    assert_true(clock_mono_ms() - began < 2000);
    assert_int_equal(o.cause, EXEC_CANCELLED);
    exec_outcome_done(&o);
    event_done(&cancel);
    assert_true(rig_settle(&rig));
    assert_int_equal(rig_leftovers(&rig), 0);
}

static void cancelled_while_backing_off(void **state)
{
    (void)state;
    struct plan p;
    struct event cancel;
    struct exec_outcome o;
    plan_of(&p, "def tool(): 1 / 0");
    p.call.retries = 5;
    p.call.retry_backoff_ms = 60000;
    assert_int_equal(event_init(&cancel, NULL), ST_OK);
    event_fire(&cancel);
    int64_t began = clock_mono_ms();
    exec_run(rig.exec, &p, &cancel, NULL, &o);
    assert_true(clock_mono_ms() - began < 2000);
    exec_outcome_done(&o);
    event_done(&cancel);
    assert_true(rig_settle(&rig));
}

static void started_tells_layers(void *ctx, const char *layers)
{
    struct buf *b = ctx;
    buf_add_c(b, layers);
}

static void facts_of_a_run(void **state)
{
    (void)state;
    struct plan p;
    struct exec_outcome o;
    struct buf layers;
    buf_init(&layers, 4096);
    const struct exec_events ev = {.ctx = &layers, .started = started_tells_layers};
    plan_of(&p, "import time\ndef tool():\n    time.sleep(0.05)\n    return 'x'\n");
    p.launch.cpu_seconds = 7;
    fake_plan_key(&p);
    exec_run(rig.exec, &p, NULL, &ev, &o);
    assert_int_equal(o.cause, EXEC_OK);
    assert_int_equal(o.attempts, 1);
    assert_true(o.run_ms >= 45 && o.run_ms < 5000);
    assert_true(o.queue_ms >= 0 && o.start_ms >= 0);
    assert_non_null(strstr(o.layers, "none"));
    assert_string_equal(o.layers, layers.ptr);
    exec_outcome_done(&o);
    buf_done(&layers);
    assert_true(rig_settle(&rig));
}

struct job {
    struct plan plan;
    bool ok;
};

static void *run_job(void *arg)
{
    struct job *j = arg;
    struct exec_outcome o;
    for (int i = 0; i < 4; i++) {
        run(&j->plan, &o);
        j->ok = o.cause == EXEC_OK && str_eq_c(buf_str(&o.text), "42");
        exec_outcome_done(&o);
        if (!j->ok) {
            break;
        }
    }
    return NULL;
}

static void many_at_once(void **state)
{
    (void)state;
    struct job jobs[8];
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++) {
        plan_of(&jobs[i].plan, "def tool(): return 42");
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].ok);
    }
    assert_true(rig_settle(&rig));
    assert_int_equal(rig_leftovers(&rig), 0);
}

/* More calls than the executor has places for: the rest waits and then runs. */
static void more_than_places(void **state)
{
    (void)state;
    enum { N = 70 };
    struct job *jobs = calloc(N, sizeof *jobs);
    pthread_t threads[N];
    assert_non_null(jobs);
    for (size_t i = 0; i < N; i++) {
        plan_of(&jobs[i].plan, "def tool(): return 42");
        jobs[i].plan.call.timeout_ms = 60000;
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].ok);
    }
    free(jobs);
    assert_true(rig_settle(&rig));
}

static size_t files_in(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

/* SOULACY_TEST_CALLS=1000 in the slow run. */
static void calls_leave_nothing(void **state)
{
    (void)state;
    struct plan p;
    const char *want = getenv("SOULACY_TEST_CALLS");
    int64_t calls = 200;
    if (want != NULL) {
        assert_int_equal(str_to_i64(str_c(want), 1, 100000, &calls), ST_OK);
    }
    plan_of(&p, "import os\ndef tool():\n    if os.fork() == 0:\n        os.setsid()\n"
                "        os.execv('/bin/sleep', ['sleep', '1000'])\n    return 'x'\n");
    size_t fds = test_open_fds();
    size_t tasks = files_in("/proc/self/task");
    for (int64_t i = 0; i < calls; i++) {
        struct exec_outcome o;
        run(&p, &o);
        assert_int_equal(o.cause, EXEC_OK);
        exec_outcome_done(&o);
    }
    assert_true(rig_settle(&rig));
    assert_int_equal(rig_leftovers(&rig), 0);
    assert_int_equal(test_open_fds(), fds);
    assert_true(files_in("/proc/self/task") <= tasks + 4);
}

static bool run_short_of_memory(uint64_t n, const struct plan *p)
{
    struct exec_outcome o;
    mem_fail_after(n);
    run(p, &o);
    bool ok = o.cause == EXEC_OK && str_eq_c(buf_str(&o.text), "42");
    bool settled = rig_settle(&rig);
    mem_fail_after(0);
    exec_outcome_done(&o);
    assert_true(settled);
    return ok;
}

static void out_of_memory(void **state)
{
    (void)state;
    struct plan p;
    plan_of(&p, "def tool(): return 42");
    p.call.env = (const char *const[]){"A=1"};
    p.call.nenv = 1;
    uint64_t n = 1;
    while (!run_short_of_memory(n, &p)) {
        n++;
        assert_true(n < 300);
    }
    assert_true(n > 1);
    assert_int_equal(rig_leftovers(&rig), 0);
}

/* No descriptor left for a child: said so, nothing leaked, and the next call works. */
static void out_of_descriptors(void **state)
{
    (void)state;
    struct plan p;
    struct rlimit was;
    plan_of(&p, "def tool(): return 42");
    expect(&p, EXEC_OK, "42");
    size_t fds = test_open_fds();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (size_t spare = 0; spare < 10; spare++) {
        struct exec_outcome o;
        struct rlimit low = {.rlim_cur = (rlim_t)(fds - 3 + spare),
                             .rlim_max = was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        run(&p, &o);
        bool settled = rig_settle(&rig);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_true(settled);
        assert_true(o.cause == EXEC_OK || o.cause == EXEC_UNAVAILABLE);
        exec_outcome_done(&o);
    }
    assert_int_equal(test_open_fds(), fds);
    expect(&p, EXEC_OK, "42");
}

/* The helper: our child of that name. */
static pid_t helper_pid(void)
{
    pid_t found = 0;
    char want[64];
    snprintf(want, sizeof want, " %d ", (int)getpid());
    DIR *dir = opendir("/proc");
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        char path[300];
        char line[512] = "";
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        FILE *f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        if (f == NULL) {
            continue;
        }
        /* "PID (NAME) STATE PARENT ": whatever it does just now, but not dead */
        const char *at = fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
        if (at != NULL && strstr(line, "(soulacy-spawn") != NULL && at[1] == ' ' &&
            at[2] != 'Z' && strncmp(at + 3, want, strlen(want)) == 0) {
            int64_t pid = 0;
            assert_int_equal(str_to_i64(str_c(e->d_name), 1, INT32_MAX, &pid), ST_OK);
            found = (pid_t)pid;
        }
        fclose(f);
    }
    closedir(dir);
    return found;
}

/* The helper is killed between two calls: the next one is run by its successor. */
static void helper_is_killed(void **state)
{
    (void)state;
    struct plan p;
    struct exec_outcome o;
    plan_of(&p, "def tool(): return 42");
    pid_t pid = helper_pid();
    assert_true(pid > 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    run(&p, &o);
    assert_true(o.cause == EXEC_OK || o.cause == EXEC_UNAVAILABLE);
    exec_outcome_done(&o);
    assert_true(rig_settle(&rig));
    expect(&p, EXEC_OK, "42");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(harness_texts),
        cmocka_unit_test(unknown_backend),
        cmocka_unit_test(must_that_is_not_enforced),
        cmocka_unit_test(no_interpreter),
        cmocka_unit_test(exec_format),
        cmocka_unit_test(not_python),
        cmocka_unit_test(cancelled_before_it_starts),
        cmocka_unit_test(cancelled_while_backing_off),
        cmocka_unit_test(facts_of_a_run),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(more_than_places),
        cmocka_unit_test(calls_leave_nothing),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(out_of_descriptors),
        cmocka_unit_test(helper_is_killed),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
