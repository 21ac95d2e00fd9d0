/* In: command lines of __exec-sandbox. Out: the parser's verdict on each, and what the
 * command really gets, by running this program once more as __exec-sandbox. */
#define _GNU_SOURCE /* environ, posix_spawn */
#include "kit.h"

#include "base/clock.h"
#include "base/io.h"
#include "sandbox/exec_sandbox.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* What is parsed borrows from argv, which therefore outlives the call. */
static enum status parse(struct exec_sandbox_args *a, struct error *err, ...)
{
    static char *argv[EXEC_SANDBOX_MAX_ENV + 8];
    int n = 0;
    va_list ap;
    char *s;

    va_start(ap, err);
    while ((s = va_arg(ap, char *)) != NULL) {
        argv[n++] = s;
    }
    va_end(ap);
    argv[n] = NULL;
    return exec_sandbox_parse(n, argv, a, err);
}

static void test_parse(void **state)
{
    struct exec_sandbox_args a;
    struct error err;

    (void)state;
    assert_int_equal(parse(&a, &err, "--cpu=1", "--mem=2", "--nofile=3", "--fsize=4",
                           "--env=A", "--env=B", "--", "cmd", "--cpu=9", NULL),
                     ST_OK);
    assert_int_equal(a.cpu_seconds, 1);
    assert_int_equal(a.mem_mb, 2);
    assert_int_equal(a.nofile, 3);
    assert_int_equal(a.fsize_mb, 4);
    assert_int_equal(a.nenv, 2);
    assert_string_equal(a.env[1], "B");
    assert_int_equal(parse(&a, &err, "--", "cmd", NULL), ST_OK);
    assert_int_equal(a.cpu_seconds, 0);
    assert_string_equal(a.command[0], "cmd");
}

static void test_parse_refuses(void **state)
{
    static const char *const flags[] = {
        "--cpu",     "--cpu=",    "--cpu=x",     "--cpu=-1", "--cpu=1 ",
        "--cpu=1.5", "-cpu=1",    "--unknown=1", "--cpuu=1", "--mem=99999999999999999999",
        "--env=",    "--env=A=b", "cmd",         "",         "--cpu=2147483648"};
    struct exec_sandbox_args a;
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        assert_int_not_equal(parse(&a, &err, flags[i], "--", "cmd", NULL), ST_OK);
    }
    assert_int_equal(parse(&a, &err, "--cpu=1", NULL), ST_INVALID);
    assert_int_equal(parse(&a, &err, "--cpu=1", "--", NULL), ST_INVALID);
    assert_int_equal(parse(&a, &err, NULL), ST_INVALID);
    assert_int_equal(parse(&a, &err, "--cpu=2147483647", "--", "c", NULL), ST_OK);
}

static void test_parse_env_limit(void **state)
{
    static char flag[] = "--env=A", dashes[] = "--", cmd[] = "cmd";
    char *argv[EXEC_SANDBOX_MAX_ENV + 4];
    struct exec_sandbox_args a;

    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        int n = 0;

        while (n < EXEC_SANDBOX_MAX_ENV + extra) {
            argv[n++] = flag;
        }
        argv[n++] = dashes;
        argv[n++] = cmd;
        argv[n] = NULL;
        assert_int_equal(exec_sandbox_parse(n, argv, &a, NULL),
                         extra == 0 ? ST_OK : ST_TOO_LARGE);
    }
}

struct ran {
    int code;
    char out[4096], err[4096];
};

static void read_text(int fd, char text[4096])
{
    size_t n = 0;
    ssize_t got;

    while (n < 4095 && (got = io_read(fd, text + n, 4095 - n)) > 0) {
        n += (size_t)got;
    }
    text[n] = '\0';
}

/* This program as `soulacy __exec-sandbox flags... -- command...`, under env. */
static void run(char *const words[], char *const env[], struct ran *r)
{
    char first[] = "test", second[] = "__exec-sandbox";
    char *argv[16] = {first, second};
    posix_spawn_file_actions_t fa;
    int out = -1, out_w = -1, err = -1, err_w = -1, status;
    pid_t pid;

    for (size_t i = 0; words[i] != NULL; i++) {
        argv[i + 2] = words[i];
    }
    assert_int_equal(io_pipe(&out, &out_w, NULL), ST_OK);
    assert_int_equal(io_pipe(&err, &err_w, NULL), ST_OK);
    assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&fa, out_w, 1), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&fa, err_w, 2), 0);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &fa, NULL, argv, env), 0);
    posix_spawn_file_actions_destroy(&fa);
    io_close(&out_w);
    io_close(&err_w);
    read_text(out, r->out);
    read_text(err, r->err);
    io_close(&out);
    io_close(&err);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static char path_env[] = "PATH=/usr/bin:/bin";

static void test_limits_and_command(void **state)
{
    char *words[] = {(char[]){"--cpu=7"},
                     (char[]){"--nofile=40"},
                     (char[]){"--fsize=3"},
                     (char[]){"--"},
                     (char[]){"sh"},
                     (char[]){"-c"},
                     (char[]){"ulimit -t; ulimit -Ht; ulimit -n; ulimit -f; exit 5"},
                     NULL};
    char *env[] = {path_env, NULL};
    struct ran r;

    (void)state;
    run(words, env, &r);
    assert_int_equal(r.code, 5);
    assert_string_equal(r.out, "7\n8\n40\n6144\n");
    assert_string_equal(r.err, "");
}

static void test_environment(void **state)
{
    char *words[] = {(char[]){"--env=KEEP"}, (char[]){"--"}, (char[]){"env"}, NULL};
    char *env[] = {path_env,
                   (char[]){"SECRET=1"},
                   (char[]){"KEEP=2"},
                   (char[]){"HOME=/h"},
                   (char[]){"KEEPER=3"},
                   (char[]){"LANG=C"},
                   (char[]){"TMPDIR=/t"},
                   NULL};
    struct ran r;

    (void)state;
    run(words, env, &r);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out,
                        "PATH=/usr/bin:/bin\nKEEP=2\nHOME=/h\nLANG=C\nTMPDIR=/t\n");
}

static void test_exit_codes(void **state)
{
    char *bad[] = {(char[]){"--bad"}, (char[]){"--"}, (char[]){"true"}, NULL};
    char *none[] = {(char[]){"--"}, (char[]){"/no/such/program"}, NULL};
    char *env[] = {path_env, NULL};
    struct ran r;

    (void)state;
    run(bad, env, &r);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "unknown flag --bad"));
    run(none, env, &r);
    assert_int_equal(r.code, 127);
    assert_non_null(strstr(r.err, "/no/such/program: No such file"));
}

/* More descriptors than the kernel gives: one line, the rest applied, the command run. */
static void test_a_limit_that_fails_warns(void **state)
{
    char *words[] = {(char[]){"--nofile=2147483647"},
                     (char[]){"--fsize=3"},
                     (char[]){"--"},
                     (char[]){"sh"},
                     (char[]){"-c"},
                     (char[]){"ulimit -f"},
                     NULL};
    char *env[] = {path_env, NULL};
    struct ran r;

    (void)state;
    run(words, env, &r);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "6144\n");
    assert_non_null(
        strstr(r.err, "soulacy: warning: sandbox limit nofile not applied: "));
    assert_null(strchr(strchr(r.err, '\n') + 1, '\n'));
}

static void test_memory(void **state)
{
    char *words[] = {(char[]){"--mem=256"}, (char[]){"--"},        (char[]){"sh"},
                     (char[]){"-c"},        (char[]){"ulimit -v"}, NULL};
    char *env[] = {path_env, NULL};
    struct ran r;

    (void)state;
    run(words, env, &r);
    assert_string_equal(r.out, "262144\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_refuses),
        cmocka_unit_test(test_parse_env_limit),
        cmocka_unit_test(test_limits_and_command),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_a_limit_that_fails_warns),
        cmocka_unit_test(test_memory),
    };

    if (argc > 1 && strcmp(argv[1], "__exec-sandbox") == 0) {
        return exec_sandbox_main(argc - 2, argv + 2, environ);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
