/* In: plans at every level. Out: the probe says ok where the sandbox holds, says which
 * item does not where it is told a lie, and leaves no trap behind. */
#include "kit.h"

#include "base/clock.h"
#include "base/json.h"
#include "sandbox/probe.h"

static void probe(struct kit *k, struct spawn_plan *p, struct probe_report *r)
{
    struct error err = {0};

    if (probe_run(k->spawn, p, clock_mono_ms() + KIT_DEADLINE_MS, r, &err) != ST_OK) {
        print_error("%s\n", err.text);
        fail();
    }
}

static enum probe_answer got(const struct probe_report *r, const char *name)
{
    for (size_t i = 0; i < r->nitems; i++) {
        if (strcmp(r->items[i].name, name) == 0) {
            return r->items[i].got;
        }
    }
    fail();
    return PROBE_NOT_TRIED;
}

static struct spawn_plan plan_of(struct kit *k, enum isolation level, const char **argv)
{
    struct spawn_plan p = kit_plan(k, level, argv);

    p.cpu_seconds = 30;
    p.mem_bytes = 256u << 20;
    p.open_files = 64;
    p.file_bytes = 1u << 20;
    return p;
}

static void test_every_level(void **state)
{
    struct kit *k = *state;
    size_t fds = kit_open_fds();

    for (int i = 0; i < 6; i++) {
        const char *argv[] = {"/ignored", NULL};
        struct spawn_plan p = plan_of(k, (enum isolation)(i % 3), argv);
        struct probe_report r;

        p.network = i >= 3;
        probe(k, &p, &r);
        assert_string_equal(r.problem, "");
        assert_true(r.ok);
        assert_int_equal(r.level, i % 3);
        assert_int_equal(got(&r, "own_work_folder"), PROBE_ALLOWED);
        assert_int_equal(got(&r, "connect_tcp"),
                         i % 3 == 0 || i >= 3 ? PROBE_ALLOWED : PROBE_BLOCKED);
        assert_int_equal(got(&r, "unix_path"),
                         i % 3 == 0 ? PROBE_ALLOWED : PROBE_BLOCKED);
        assert_non_null(strstr(r.layers, "\"layers\":["));
    }
    assert_int_equal(kit_open_fds(), fds);
    assert_int_equal(kit_entries(k->work), 0);
}

static void test_json(void **state)
{
    const char *argv[] = {"/ignored", NULL};
    struct spawn_plan p = plan_of(*state, ISOLATION_STRICT, argv);
    struct probe_report r;
    struct buf b;

    probe(*state, &p, &r);
    buf_init(&b, 1 << 20);
    probe_report_json(&r, &b);
    assert_int_equal(json_check(buf_str(&b), JSON_MAX_DEPTH, NULL), ST_OK);
    assert_non_null(strstr(b.ptr, "\"level\":\"strict\""));
    buf_done(&b);
    memset(&r, 0, sizeof(r));
    buf_init(&b, 1 << 20);
    probe_report_json(&r, &b);
    assert_int_equal(json_check(buf_str(&b), JSON_MAX_DEPTH, NULL), ST_OK);
    buf_done(&b);
}

static void test_a_sandbox_that_does_not_start(void **state)
{
    const char *argv[] = {"/ignored", NULL};
    struct spawn_path path = {"/no/such/path", false};
    struct spawn_plan p = plan_of(*state, ISOLATION_STRICT, argv);
    struct probe_report r;

    p.paths = &path;
    p.npaths = 1;
    probe(*state, &p, &r);
    assert_false(r.ok);
    assert_non_null(strstr(r.problem, "strict: bind: /no/such/path: "));
}

static void test_deadline(void **state)
{
    struct kit *k = *state;
    const char *argv[] = {"/ignored", NULL};
    struct spawn_plan p = plan_of(k, ISOLATION_NONE, argv);
    struct probe_report r;
    enum status st = probe_run(k->spawn, &p, clock_mono_ms() - 1, &r, NULL);

    assert_true(st != ST_OK || !r.ok);
}

static bool probes(struct kit *k)
{
    const char *argv[] = {"/ignored", NULL};
    struct spawn_plan p = plan_of(k, ISOLATION_NONE, argv);
    struct probe_report r;

    return probe_run(k->spawn, &p, clock_mono_ms() + KIT_DEADLINE_MS, &r, NULL) ==
               ST_OK &&
           r.ok;
}

static void test_out_of_memory(void **state)
{
    TEST_SWEEP(probes(*state));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_level),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_a_sandbox_that_does_not_start),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_out_of_memory),
    };

    return kit_main(argc, argv, "probe", tests, sizeof(tests) / sizeof(tests[0]));
}
