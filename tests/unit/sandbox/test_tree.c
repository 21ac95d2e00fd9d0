/* In: tools that do not want to die. Out: they do, all of them, whatever ends the run:
 * their own end, a kill, the deadline, or the end of the gateway. Folders go too. */
#define _GNU_SOURCE /* pidfd_open by syscall, kill */
#include "kit.h"

#include "base/clock.h"
#include "base/io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

#define FOR_LEVELS(level) \
    for (enum isolation level = ISOLATION_NONE; level <= ISOLATION_STRICT; level++)

/* Run verb to its end, which leaves something behind, and look that nothing is. */
static void expect_gone(struct kit *k, enum isolation level, const char *verb, int signal)
{
    const char *words[8];
    char token[64];
    struct spawn_plan p;
    struct kit_run r;

    (void)snprintf(token, sizeof(token), "token-%s-%d-%d", verb, (int)level,
                   (int)getpid());
    p = kit_plan(k, level, kit_argv(k, verb, token, NULL, NULL, words));
    if (signal == SIGKILL) {
        p.deadline_ms = clock_mono_ms() + 300;
    }
    kit_run(k, &p, &r);
    assert_string_equal(r.end.setup, "");
    assert_int_equal(r.end.term_signal, signal);
    assert_int_equal(kit_processes(token), 0);
    kit_run_done(&r);
    assert_int_equal(kit_entries(k->work), 0);
}

static void test_daemons_go_with_their_tool(void **state)
{
    FOR_LEVELS(level)
    {
        expect_gone(*state, level, "daemon", 0);
        expect_gone(*state, level, "stopped_child", 0);
    }
}

static void test_deadline_reaches_all(void **state)
{
    FOR_LEVELS(level)
    {
        expect_gone(*state, level, "daemon_wait", SIGKILL);
        expect_gone(*state, level, "stop", SIGKILL);
    }
}

/* The record does not wait for the daemons. */
static void test_record_comes_before_the_killing(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "daemon", "token-early", NULL, NULL, words));
        struct child *c = NULL;
        struct spawn_exit end;

        assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_OK);
        assert_int_equal(io_wait(child_exit_fd(c), POLLIN, -1, p.deadline_ms), ST_OK);
        assert_int_equal(child_reap(c, p.deadline_ms, &end), ST_OK);
        assert_int_equal(end.exit_code, 0);
        assert_int_equal(kit_processes("token-early"), 0);
    }
}

/* Every process in a session of its own and deaf to signals. Bounded where the kernel
 * bounds it: root at none has no such bound and is left out. */
static void test_fork_bomb(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "bomb", "token-bomb", NULL, NULL, words));
        struct child *c = NULL;

        if (level == ISOLATION_NONE && geteuid() == 0) {
            continue;
        }
        p.processes = 64;
        assert_int_equal(spawn_child(k->spawn, &p, &c, NULL), ST_OK);
        kit_await(c, "ready");
        assert_int_equal(child_reap(c, clock_mono_ms() + KIT_DEADLINE_MS, NULL), ST_OK);
        assert_int_equal(kit_processes("token-bomb"), 0);
    }
}

static void test_hard_folders_are_removed(void **state)
{
    struct kit *k = *state;
    char text[256];

    FOR_LEVELS(level)
    {
        kit_say(k, level, false, "tree", k->dir, NULL, NULL, text);
        assert_string_equal(text, "ok");
        assert_int_equal(kit_entries(k->work), 0);
        /* What the links pointed to is still there. */
        assert_true(kit_entries(k->dir) >= 4);
    }
}

static void test_work_root_that_is_missing(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "exit", "0", NULL, NULL, words));
        struct kit_run r;

        p.work_root = "/no/such/root";
        kit_run(k, &p, &r);
        assert_non_null(
            strstr(r.end.setup, ": work folder: /no/such/root: No such file"));
        kit_run_done(&r);
    }
}

/* A gateway of its own: opens the helper, starts one stubborn daemon at each level, says
 * so, and waits to be killed. argv: --gateway HELPER PAYLOAD WORK TOKEN */
static int gateway_main(char **argv)
{
    struct kit k;
    struct child *children[3];

    memset(&k, 0, sizeof(k));
    (void)snprintf(k.payload, sizeof(k.payload), "%s", argv[3]);
    (void)snprintf(k.work, sizeof(k.work), "%s", argv[4]);
    if (spawn_open(argv[2], NULL, &k.spawn, NULL) != ST_OK) {
        return 1;
    }
    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(&k, level, kit_argv(&k, "daemon_wait", argv[5], NULL, NULL, words));

        p.deadline_ms = CLOCK_NEVER;
        if (spawn_child(k.spawn, &p, &children[level], NULL) != ST_OK) {
            return 1;
        }
        kit_await(children[level], "ready");
    }
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) {
        return 1;
    }
    for (;;) {
        (void)pause();
    }
}

#define MAX_WATCHED 32

/* Descriptors that become readable when the processes with token end. */
static size_t watch(const char *token, struct pollfd fds[MAX_WATCHED])
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    size_t n = 0;

    assert_non_null(proc);
    while ((e = readdir(proc)) != NULL && n < MAX_WATCHED) {
        char path[300], text[1024];
        int fd;
        ssize_t got;

        (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
        io_close(&fd);
        if (got <= 0 || memmem(text, (size_t)got, token, strlen(token)) == NULL) {
            continue;
        }
        fd = (int)syscall(SYS_pidfd_open, (pid_t)strtoimax(e->d_name, NULL, 10), 0);
        if (fd >= 0) {
            fds[n++] = (struct pollfd){fd, POLLIN, 0};
        }
    }
    closedir(proc);
    return n;
}

static void test_gateway_killed(void **state)
{
    struct kit *k = *state;
    char token[64], flag[] = "--gateway";
    char *argv[] = {flag, flag, k->helper, k->payload, k->work, token, NULL};
    posix_spawn_file_actions_t fa;
    struct pollfd fds[MAX_WATCHED];
    char text[16] = "";
    int in = -1, out = -1;
    size_t n;
    pid_t pid;

    (void)snprintf(token, sizeof(token), "token-gateway-%d", (int)getpid());
    assert_int_equal(io_pipe(&in, &out, NULL), ST_OK);
    assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&fa, out, 1), 0);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &fa, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&fa);
    io_close(&out);
    assert_int_equal(io_wait(in, POLLIN, -1, clock_mono_ms() + KIT_DEADLINE_MS), ST_OK);
    assert_int_equal(read(in, text, sizeof(text)), 6);
    io_close(&in);
    n = watch(token, fds);
    /* A tool and its daemon at each of three levels, and the gateway. */
    assert_true(n >= 7);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(poll(&fds[i], 1, KIT_DEADLINE_MS), 1);
        io_close(&fds[i].fd);
    }
    assert_int_equal(kit_processes(token), 0);
    /* Their supervisors tidy up after them. */
    for (int64_t give_up = clock_mono_ms() + KIT_DEADLINE_MS;
         kit_entries(k->work) != 0;) {
        assert_true(clock_mono_ms() < give_up);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_daemons_go_with_their_tool),
        cmocka_unit_test(test_deadline_reaches_all),
        cmocka_unit_test(test_record_comes_before_the_killing),
        cmocka_unit_test(test_fork_bomb),
        cmocka_unit_test(test_hard_folders_are_removed),
        cmocka_unit_test(test_work_root_that_is_missing),
        cmocka_unit_test(test_gateway_killed),
    };

    if (argc == 6 && strcmp(argv[1], "--gateway") == 0) {
        return gateway_main(argv);
    }
    return kit_main(argc, argv, "tree", tests, sizeof(tests) / sizeof(tests[0]));
}
