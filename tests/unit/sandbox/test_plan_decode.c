/* In: messages, right and wrong. Out: hplan_decode takes what wire_encode makes and
 * nothing that is cut, longer, out of range or not well formed. */
#include "support/test.h"

#include "sandbox/helper/hplan.h"
#include "sandbox/wire_encode.h"

static struct hplan plan; /* large */

static struct spawn_plan base_plan(void)
{
    static const char *const argv[] = {"/bin/tool", "one", ""};
    static const char *const env[] = {"A=1", "B="};
    static const struct spawn_path paths[] = {{"/opt/x", false}, {"/data/", true}};
    struct spawn_plan p = {.argv = argv,
                           .nargv = 3,
                           .env = env,
                           .nenv = 2,
                           .cwd = "/opt/x/",
                           .isolation = ISOLATION_STRICT,
                           .network = true,
                           .uid = 7,
                           .gid = 8,
                           .cpu_seconds = 1,
                           .mem_bytes = 2,
                           .open_files = 3,
                           .file_bytes = 4,
                           .processes = SPAWN_NO_LIMIT,
                           .paths = paths,
                           .npaths = 2,
                           .work_root = "/var/work",
                           .deadline_ms = 99};

    return p;
}

static void encode(const struct spawn_plan *p, struct buf *b)
{
    buf_init(b, SPAWN_PLAN_MAX);
    assert_int_equal(wire_encode(p, false, b, NULL), ST_OK);
}

static bool decode(const struct buf *b, const char **why)
{
    return hplan_decode(b->ptr, b->len, &plan, why);
}

static void test_round_trip(void **state)
{
    struct spawn_plan p = base_plan();
    struct buf b;
    const char *why = NULL;

    (void)state;
    encode(&p, &b);
    assert_true(decode(&b, &why));
    assert_int_equal(plan.level, LEVEL_STRICT);
    assert_true(plan.network && plan.limits_must_hold && !plan.self);
    assert_int_equal(plan.nargv, 3);
    assert_string_equal(plan.argv[0], "/bin/tool");
    assert_string_equal(plan.argv[2], "");
    assert_null(plan.argv[3]);
    assert_string_equal(plan.env[1], "B=");
    assert_null(plan.env[2]);
    assert_string_equal(plan.cwd, "/opt/x");
    assert_string_equal(plan.work_root, "/var/work");
    assert_string_equal(plan.paths[1].path, "/data");
    assert_true(plan.paths[1].writable && !plan.paths[0].writable);
    assert_int_equal(plan.uid, 7);
    assert_int_equal(plan.gid, 8);
    assert_int_equal(plan.file_bytes, 4);
    assert_true(plan.processes == WIRE_NO_LIMIT);
    assert_int_equal(plan.deadline_ms, 99);
    buf_done(&b);
}

static void test_nothing_optional(void **state)
{
    static const char *const argv[] = {"/x"};
    struct spawn_plan p = {
        .argv = argv, .nargv = 1, .uid = SPAWN_KEEP_ID, .gid = SPAWN_KEEP_ID};
    struct buf b;
    const char *why = NULL;

    (void)state;
    encode(&p, &b);
    assert_true(decode(&b, &why));
    assert_null(plan.cwd);
    assert_null(plan.work_root);
    assert_false(plan.limits_must_hold);
    buf_done(&b);
}

/* Every shorter message, with its size said rightly or not, and one byte more. */
static void test_cut_and_longer(void **state)
{
    struct spawn_plan p = base_plan();
    struct buf b;
    const char *why = NULL;
    size_t whole;

    (void)state;
    encode(&p, &b);
    whole = b.len;
    for (size_t n = 0; n < whole; n++) {
        uint32_t size = (uint32_t)n;

        b.len = n;
        assert_false(decode(&b, &why));
        if (n >= 8) {
            memcpy(b.ptr + offsetof(struct wire_head, size), &size, sizeof(size));
            assert_false(decode(&b, &why));
            size = (uint32_t)whole;
            memcpy(b.ptr + offsetof(struct wire_head, size), &size, sizeof(size));
        }
    }
    b.len = whole;
    buf_add(&b, "", 1);
    uint32_t size = (uint32_t)whole + 1;
    memcpy(b.ptr + offsetof(struct wire_head, size), &size, sizeof(size));
    assert_false(decode(&b, &why));
    assert_string_equal(why, "bytes behind the plan");
    buf_done(&b);
}

static void change_u32(struct buf *b, size_t offset, uint32_t v)
{
    memcpy(b->ptr + offset, &v, sizeof(v));
}

static void expect_head(size_t offset, uint32_t v, size_t width, const char *text)
{
    struct spawn_plan p = base_plan();
    struct buf b;
    const char *why = NULL;

    encode(&p, &b);
    if (width == 1) {
        b.ptr[offset] = (char)v;
    } else {
        change_u32(&b, offset, v);
    }
    assert_false(decode(&b, &why));
    assert_string_equal(why, text);
    buf_done(&b);
}

static void test_head_out_of_range(void **state)
{
    (void)state;
    expect_head(offsetof(struct wire_head, magic), 1, 4, "not a plan");
    expect_head(offsetof(struct wire_head, isolation), 3, 1, "a flag out of range");
    expect_head(offsetof(struct wire_head, network), 2, 1, "a flag out of range");
    expect_head(offsetof(struct wire_head, self), 255, 1, "a flag out of range");
    expect_head(offsetof(struct wire_head, limits_must_hold), 2, 1,
                "a flag out of range");
    expect_head(offsetof(struct wire_head, nargv), 0, 4, "a count out of range");
    expect_head(offsetof(struct wire_head, nargv), WIRE_MAX_ARGV + 1, 4,
                "a count out of range");
    expect_head(offsetof(struct wire_head, nargv), UINT32_MAX, 4, "a count out of range");
    expect_head(offsetof(struct wire_head, nenv), WIRE_MAX_ENV + 1, 4,
                "a count out of range");
    expect_head(offsetof(struct wire_head, npaths), WIRE_MAX_PATHS + 1, 4,
                "a count out of range");
    expect_head(offsetof(struct wire_head, uid), WIRE_KEEP_ID, 4, "uid without gid");
    expect_head(offsetof(struct wire_head, nargv), WIRE_MAX_ARGV, 4, "argv cut short");
}

/* At the greatest counts. */
static void test_greatest_counts(void **state)
{
    static const char *argv[WIRE_MAX_ARGV], *env[WIRE_MAX_ENV];
    static struct spawn_path paths[WIRE_MAX_PATHS];
    struct spawn_plan p = base_plan();
    struct buf b;
    const char *why = NULL;

    (void)state;
    for (size_t i = 0; i < WIRE_MAX_ARGV; i++) {
        argv[i] = "/a";
    }
    for (size_t i = 0; i < WIRE_MAX_ENV; i++) {
        env[i] = "A=b";
    }
    for (size_t i = 0; i < WIRE_MAX_PATHS; i++) {
        paths[i].path = "/p";
    }
    p.argv = argv;
    p.nargv = WIRE_MAX_ARGV;
    p.env = env;
    p.nenv = WIRE_MAX_ENV;
    p.paths = paths;
    p.npaths = WIRE_MAX_PATHS;
    encode(&p, &b);
    assert_true(decode(&b, &why));
    buf_clear(&b);
    p.npaths++;
    assert_int_equal(wire_encode(&p, false, &b, NULL), ST_TOO_LARGE);
    p.npaths--;
    p.nenv++;
    assert_int_equal(wire_encode(&p, false, &b, NULL), ST_TOO_LARGE);
    p.nenv--;
    p.nargv++;
    assert_int_equal(wire_encode(&p, false, &b, NULL), ST_INVALID);
    buf_done(&b);
}

static void test_paths(void **state)
{
    static const char *const bad[] = {"/",    "/proc", "/proc/1", "/a/../b", "/a/..",
                                      "/./a", "//a",   "/a//b",   "/.",      "/.."};
    static const char *const good[] = {"/a", "/proc2", "/a/b", "/...", "/a/.b", "/a/..b"};
    struct spawn_plan p = base_plan();
    struct spawn_path path = {NULL, false};
    struct buf b;
    const char *why = NULL;

    (void)state;
    p.paths = &path;
    p.npaths = 1;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        path.path = bad[i];
        encode(&p, &b);
        assert_false(decode(&b, &why));
        buf_done(&b);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        path.path = good[i];
        encode(&p, &b);
        assert_true(decode(&b, &why));
        buf_done(&b);
    }
}

static void test_longest_path(void **state)
{
    static char text[WIRE_MAX_PATH + 2];
    struct spawn_plan p = base_plan();
    struct buf b;
    const char *why = NULL;

    (void)state;
    memset(text, 'a', WIRE_MAX_PATH);
    text[0] = '/';
    p.work_root = text;
    encode(&p, &b);
    assert_true(decode(&b, &why));
    buf_done(&b);
    text[WIRE_MAX_PATH] = 'a';
    encode(&p, &b);
    assert_false(decode(&b, &why));
    buf_done(&b);
    p.work_root = NULL;
    p.cwd = text;
    encode(&p, &b);
    assert_false(decode(&b, &why));
    assert_string_equal(why, "cwd is not absolute");
    buf_done(&b);
}

static bool encodes(const struct spawn_plan *p)
{
    struct buf b;
    enum status st;

    buf_init(&b, SPAWN_PLAN_MAX);
    st = wire_encode(p, false, &b, NULL);
    buf_done(&b);
    assert_true(st == ST_OK || st == ST_NOMEM);
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    struct spawn_plan p = base_plan();

    (void)state;
    TEST_SWEEP(encodes(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_nothing_optional),
        cmocka_unit_test(test_cut_and_longer),  cmocka_unit_test(test_head_out_of_range),
        cmocka_unit_test(test_greatest_counts), cmocka_unit_test(test_paths),
        cmocka_unit_test(test_longest_path),    cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
