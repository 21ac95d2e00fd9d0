/* In: the helper and the payload. Out: each limit one below, at and one above its value,
 * at every level; a limit that fails warns or refuses as the plan says. */
#include "kit.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define FOR_LEVELS(level) \
    for (enum isolation level = ISOLATION_NONE; level <= ISOLATION_STRICT; level++)

#define MB (1024u * 1024u)

/* The number the payload printed, under a plan that set() changed. */
static long number_of(struct kit *k, enum isolation level, const char *verb, long arg,
                      void (*set)(struct spawn_plan *p))
{
    const char *words[8];
    char text[32];
    struct spawn_plan p;
    struct kit_run r;
    long v;

    (void)snprintf(text, sizeof(text), "%ld", arg);
    p = kit_plan(k, level, kit_argv(k, verb, text, NULL, NULL, words));
    set(&p);
    kit_run(k, &p, &r);
    assert_string_equal(r.end.setup, "");
    v = (long)strtoimax(r.out.ptr, NULL, 10);
    v = strncmp(r.out.ptr, "ok", 2) == 0 ? -1 : v;
    kit_run_done(&r);
    return v;
}

static void set_files(struct spawn_plan *p)
{
    p->open_files = 32;
}

static void set_file_bytes(struct spawn_plan *p)
{
    p->file_bytes = MB;
}

static void set_memory(struct spawn_plan *p)
{
    p->mem_bytes = 64u * MB;
}

static void set_processes(struct spawn_plan *p)
{
    p->processes = 10;
}

static void test_open_files(void **state)
{
    FOR_LEVELS(level)
    {
        assert_int_equal(number_of(*state, level, "files", 28, set_files), 28);
        assert_int_equal(number_of(*state, level, "files", 29, set_files), 29);
        assert_int_equal(number_of(*state, level, "files", 30, set_files), 29);
    }
}

static void test_file_size(void **state)
{
    FOR_LEVELS(level)
    {
        const long at = MB;

        assert_int_equal(number_of(*state, level, "bytes", at - 1, set_file_bytes),
                         at - 1);
        assert_int_equal(number_of(*state, level, "bytes", at, set_file_bytes), at);
        assert_int_equal(number_of(*state, level, "bytes", at + 1, set_file_bytes), at);
    }
}

/* Without the limit it writes more: so it was the limit. */
static void set_nothing(struct spawn_plan *p)
{
    (void)p;
}

static void test_memory(void **state)
{
    FOR_LEVELS(level)
    {
        assert_int_equal(number_of(*state, level, "memory", 48l * MB, set_memory), -1);
        assert_int_equal(number_of(*state, level, "memory", 64l * MB, set_memory), 12);
        assert_int_equal(number_of(*state, level, "memory", 64l * MB, set_nothing), -1);
        assert_true(number_of(*state, level, "bytes", MB + 1, set_nothing) > (long)MB);
    }
}

/* Not held for root, which only `none` can be; per user namespace under strict. At the
 * other levels whoever else runs as this user counts too, so only "not more" is sure. */
static void test_processes(void **state)
{
    FOR_LEVELS(level)
    {
        long made;

        if (level == ISOLATION_NONE && geteuid() == 0) {
            continue;
        }
        if (level == ISOLATION_STRICT) {
            made = number_of(*state, level, "forks", 40, set_processes);
            assert_true(made <= 9 && made >= 1);
        }
        assert_int_equal(number_of(*state, level, "forks", 3, set_nothing), 3);
    }
}

static void test_processes_refuse_the_bomb(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    struct spawn_plan p =
        kit_plan(k, ISOLATION_STRICT, kit_argv(k, "forks", "500", NULL, NULL, words));
    struct kit_run r;

    p.processes = 20;
    kit_run(k, &p, &r);
    assert_true(strtoimax(r.out.ptr, NULL, 10) < 20);
    kit_run_done(&r);
}

/* Soft limit: SIGXCPU, which tells it from a kill. A tool that ignores it dies a second
 * later. */
static void test_cpu(void **state)
{
    struct kit *k = *state;

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "spin", NULL, NULL, NULL, words));
        struct kit_run r;

        p.cpu_seconds = 1;
        kit_run(k, &p, &r);
        assert_int_equal(r.end.term_signal, SIGXCPU);
        assert_true(r.end.cpu_ms >= 500 && r.end.cpu_ms < 2000);
        kit_run_done(&r);
    }
}

static void test_cpu_of_a_stubborn_tool(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    struct spawn_plan p = kit_plan(k, ISOLATION_STRICT,
                                   kit_argv(k, "stubborn_spin", NULL, NULL, NULL, words));
    struct kit_run r;

    p.cpu_seconds = 1;
    kit_run(k, &p, &r);
    assert_int_equal(r.end.term_signal, SIGKILL);
    assert_false(r.end.deadline);
    assert_true(r.end.cpu_ms >= 1200);
    kit_run_done(&r);
}

/* More descriptors than the kernel gives anybody. */
static void test_a_limit_that_fails(void **state)
{
    struct kit *k = *state;
    const char *words[8];
    struct spawn_plan p =
        kit_plan(k, ISOLATION_NONE, kit_argv(k, "exit", "6", NULL, NULL, words));
    struct kit_run r;

    p.open_files = UINT64_MAX - 1;
    p.file_bytes = MB;
    kit_run(k, &p, &r);
    assert_int_equal(r.end.exit_code, 6);
    assert_non_null(
        strstr(r.err.ptr, "soulacy: warning: limit open_files not applied: "));
    assert_null(strstr(r.layers, "open_files"));
    assert_non_null(strstr(r.layers, "\"file_bytes\":1048576"));
    kit_run_done(&r);
    p.limits_must_hold = true;
    kit_run(k, &p, &r);
    assert_non_null(strstr(r.end.setup, "none: limit open_files: "));
    assert_int_equal(r.err.len, 0);
    kit_run_done(&r);
}

static void test_a_limit_that_fails_refuses_above_none(void **state)
{
    struct kit *k = *state;

    for (int l = ISOLATION_RESTRICTED; l <= ISOLATION_STRICT; l++) {
        const char *words[8];
        struct spawn_plan p =
            kit_plan(k, (enum isolation)l, kit_argv(k, "exit", "6", NULL, NULL, words));
        struct kit_run r;

        p.open_files = UINT64_MAX - 1;
        kit_run(k, &p, &r);
        assert_non_null(strstr(r.end.setup, ": limit open_files: "));
        kit_run_done(&r);
    }
}

static void test_limits_cannot_be_raised(void **state)
{
    char text[256];

    FOR_LEVELS(level)
    {
        const char *words[8];
        struct kit *k = *state;
        struct spawn_plan p =
            kit_plan(k, level, kit_argv(k, "raise", NULL, NULL, NULL, words));
        struct kit_run r;

        p.open_files = 50;
        kit_run(k, &p, &r);
        (void)snprintf(text, sizeof(text), "%.200s", r.out.ptr);
        kit_run_done(&r);
        if (level != ISOLATION_NONE || geteuid() != 0) {
            assert_string_equal(text, "1\n");
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_files),
        cmocka_unit_test(test_file_size),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_processes_refuse_the_bomb),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_cpu_of_a_stubborn_tool),
        cmocka_unit_test(test_a_limit_that_fails),
        cmocka_unit_test(test_a_limit_that_fails_refuses_above_none),
        cmocka_unit_test(test_limits_cannot_be_raised),
    };

    return kit_main(argc, argv, "limits", tests, sizeof(tests) / sizeof(tests[0]));
}
