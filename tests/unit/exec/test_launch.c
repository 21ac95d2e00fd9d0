/* Launches: shared by key, kept while used, retired oldest first, ids never twice. */
#include "sandbox/launch.h"
#include "support/test.h"

static struct launch_spec spec_of(const char *key)
{
    static const char *const argv[] = {"/usr/bin/python3", "-c", "pass"};
    static const char *const env[] = {"A=1", "B=2"};
    static const struct spawn_path paths[] = {{"/srv/tool", false}, {"/srv/out", true}};
    struct launch_spec s = {.backend = "process",
                            .isolation = ISOLATION_STRICT,
                            .network = false,
                            .must = SY_MUST_KILL_TREE | SY_MUST_MEM,
                            .argv = argv,
                            .nargv = 3,
                            .env = env,
                            .nenv = 2,
                            .uid = 5,
                            .gid = 6,
                            .cpu_seconds = 30,
                            .mem_bytes = 512,
                            .open_files = SPAWN_NO_LIMIT,
                            .file_bytes = 64,
                            .processes = SPAWN_NO_LIMIT,
                            .paths = paths,
                            .npaths = 2,
                            .work_root = "/var/work"};
    snprintf(s.key, sizeof s.key, "%s", key);
    return s;
}

struct retired {
    uint64_t ids[64];
    size_t n;
};

static void on_retire(void *arg, uint64_t id)
{
    struct retired *r = arg;
    r->ids[r->n++] = id;
}

static struct launches *make(size_t max, struct retired *r)
{
    struct launches *l = NULL;
    struct error err;
    assert_int_equal(launches_new(NULL, STR_LIT("PRE"), max, &l, &err), ST_OK);
    launches_on_retire(l, on_retire, r);
    return l;
}

static const struct sy_launch *get(struct launches *l, const char *key)
{
    struct launch_spec s = spec_of(key);
    const struct sy_launch *out = NULL;
    struct error err;
    assert_int_equal(launch_acquire(l, &s, &out, &err), ST_OK);
    return out;
}

static void fields(void **state)
{
    (void)state;
    struct retired r = {.n = 0};
    struct launches *l = make(4, &r);
    const struct sy_launch *a = get(l, "k");
    assert_int_equal(a->size, sizeof *a);
    assert_int_equal(a->isolation, SY_ISOLATION_STRICT);
    assert_true(a->id != 0);
    assert_int_equal(a->key.len, 1);
    assert_int_equal(a->must, SY_MUST_KILL_TREE | SY_MUST_MEM);
    assert_int_equal(a->nargv, 3);
    assert_string_equal(a->argv[0].ptr, "/usr/bin/python3");
    assert_int_equal(a->nmounts, 2);
    assert_string_equal(a->mounts[1].source.ptr, "/srv/out");
    assert_int_equal(a->mounts[1].writable, 1);
    assert_int_equal(a->mounts[0].writable, 0);
    assert_string_equal(a->preamble.ptr, "PRE");
    assert_int_equal(a->cpu_ms, 30000);
    assert_int_equal(a->mem_bytes, 512);
    assert_int_equal(a->file_bytes, 64);
    assert_int_equal(a->max_files, 0);
    assert_int_equal(a->max_pids, 0);
    assert_int_equal(a->network, 0);
    launch_release(l, a);
    launches_free(l);
    launches_free(NULL);
}

static void same_key_same_launch(void **state)
{
    (void)state;
    struct retired r = {.n = 0};
    struct launches *l = make(4, &r);
    const struct sy_launch *a = get(l, "k");
    assert_ptr_equal(a, get(l, "k"));
    const struct sy_launch *b = get(l, "other");
    assert_true(a != b && a->id != b->id);
    launch_release(l, a);
    launch_release(l, a);
    assert_ptr_equal(a, get(l, "k"));
    launches_free(l);
}

static void oldest_idle_goes(void **state)
{
    (void)state;
    struct retired r = {.n = 0};
    struct launches *l = make(2, &r);
    const struct sy_launch *a = get(l, "a");
    uint64_t a_id = a->id;
    const struct sy_launch *b = get(l, "b");
    uint64_t b_id = b->id;
    struct launch_spec s = spec_of("c");
    const struct sy_launch *c = NULL;
    struct error err;
    assert_int_equal(launch_acquire(l, &s, &c, &err), ST_BUSY); /* both in use */
    launch_release(l, b);
    launch_release(l, a);
    assert_ptr_equal(get(l, "a"), a); /* used again: b is the oldest now */
    launch_release(l, a);
    assert_int_equal(launch_acquire(l, &s, &c, &err), ST_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.ids[0], b_id);
    assert_true(c->id != a_id && c->id != b_id);
    launches_free(l);
}

static void retire_all(void **state)
{
    (void)state;
    struct retired r = {.n = 0};
    struct launches *l = make(4, &r);
    const struct sy_launch *used = get(l, "a");
    uint64_t id = used->id;
    launch_release(l, get(l, "b"));
    launches_retire_all(l);
    assert_int_equal(r.n, 2);
    const struct sy_launch *fresh = get(l, "a");
    assert_true(fresh->id != id);
    assert_int_equal(used->id, id); /* still there for the run in flight */
    launch_release(l, used);
    launches_retire_all(l);
    assert_int_equal(r.n, 3);
    launches_free(l);
}

static void unknown_ids(void **state)
{
    (void)state;
    struct retired r = {.n = 0};
    struct launches *l = make(4, &r);
    struct sy_child c = {.size = sizeof c};
    struct sy_error e = {.size = sizeof e};
    char text[64];
    assert_int_equal(launch_spawn(l, 0, &c, &e), SY_E_INVALID);
    assert_int_equal(launch_spawn(l, 12345, &c, &e), SY_E_INVALID);
    assert_non_null(strstr(e.text, "launch"));
    assert_int_equal(launch_reap(l, 1, 0, NULL), SY_E_INVALID);
    assert_int_equal(launch_layers(l, 1, text, sizeof text), SY_E_INVALID);
    launch_kill(l, 1);
    assert_int_equal(launches_children(l), 0);
    launches_free(l);
}

/* Called with no instance behind it. */
static void service_refuses_strangers(void **state)
{
    (void)state;
    const struct sy_host_spawn *s = launch_spawn_service();
    struct sy_child c = {.size = sizeof c};
    struct sy_error e = {.size = sizeof e};
    char text[8];
    assert_int_equal(s->size, sizeof *s);
    assert_int_equal(s->spawn(NULL, 1, &c, &e), SY_E_INVALID);
    assert_int_equal(s->layers(NULL, 1, text, sizeof text), SY_E_INVALID);
    assert_int_equal(s->reap(NULL, 1, 0, NULL), SY_E_INVALID);
    s->kill(NULL, 1);
}

static bool acquire_once(void)
{
    struct launches *l = NULL;
    struct error err;
    const struct sy_launch *out = NULL;
    struct launch_spec s = spec_of("k");
    bool ok = launches_new(NULL, STR_LIT(""), 2, &l, &err) == ST_OK &&
              launch_acquire(l, &s, &out, &err) == ST_OK;
    launches_free(l);
    return ok;
}

static void out_of_memory(void **state)
{
    (void)state;
    TEST_SWEEP(acquire_once());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),           cmocka_unit_test(same_key_same_launch),
        cmocka_unit_test(oldest_idle_goes), cmocka_unit_test(retire_all),
        cmocka_unit_test(unknown_ids),      cmocka_unit_test(service_refuses_strangers),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
