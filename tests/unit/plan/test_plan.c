/* An approved call and the policy to a plan: bits, limits, environment, paths, key. */
#include "support/souls.h"

#include "gate/gate.h"
#include "sandbox/plan.h"

#include <soulacy/executor.h>

#define MIB ((uint64_t)1024 * 1024)

struct world {
    struct soul *soul;
    struct arena *arena;
    struct catalog tools;
    struct config cfg;
    struct interpreter python;
    struct plan_policy policy;
    struct tool_source source;
    struct admitted *by;
    struct approved *call;
    struct plan *plan;
};

static const char *const base_env[] = {"PATH=/bin", "HOME=/root", "LANG=C",
                                       "TMPDIR=/tmp"};
static const char *const agent_env[] = {"TOKEN=s3cret", "OMP_NUM_THREADS=4"};
static const char *const protected_paths[] = {"/etc/soulacy/config.yaml", "/var/state"};

static char *keep(struct world *w, const char *s)
{
    char *p = arena_dup(w->arena, str_c(s));
    assert_non_null(p);
    return p;
}

static struct str_list words(struct world *w, const char *first, ...)
{
    struct str_list l = {arena_array(w->arena, 8, sizeof(char *)), 0};
    va_list ap;
    assert_non_null(l.items);
    va_start(ap, first);
    for (const char *s = first; s != NULL; s = va_arg(ap, const char *)) {
        assert_in_range(l.n, 0, 7);
        l.items[l.n++] = keep(w, s);
    }
    va_end(ap);
    return l;
}

/* The call of one tool; what it was before is dropped. */
static void approve(struct world *w, const char *tool, const char *args)
{
    struct call_request req = {str_c(tool), str_c(args), true, false};
    struct gate_policy p = {.allow_system_tools = true};
    struct verdict v;
    approved_free(w->call);
    w->call = NULL;
    assert_int_equal(gate_call(w->by, &p, &w->tools, &req, &v, &w->call, NULL), ST_OK);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct config_sandbox *s;
    struct origin from = {.entry = ENTRY_CHAT, .channel = STR_LIT("http"), .local = true};
    struct verdict v;
    assert_non_null(w);
    w->soul = test_soul("id: helper\n"
                        "tools:\n"
                        "  - name: add\n"
                        "    inline: 'def add(n): return n'\n"
                        "    function: plus\n"
                        "  - name: slow\n"
                        "    inline: 'def slow(): pass'\n"
                        "    timeout: 7s\n"
                        "    retries: 2\n"
                        "    retry_backoff: 3s\n");
    w->arena = arena_new((size_t)4 * 1024 * 1024);
    assert_non_null(w->arena);
    assert_int_equal(catalog_build(w->soul, w->arena, &w->tools, NULL), ST_OK);
    w->cfg.executor.backend = keep(w, "process");
    w->cfg.executor.allowed_backends = words(w, "process", "pool", NULL);
    w->cfg.runtime.tool_timeout_ms = 120000;
    w->cfg.runtime.max_tool_output_kb = 256;
    s = &w->cfg.runtime.sandbox;
    s->enabled = true;
    s->cpu_seconds = 30;
    s->memory_mb = 512;
    s->open_files = 256;
    s->file_size_mb = 64;
    s->processes = 9;
    s->read_paths = words(w, "/data", NULL);
    s->write_paths = words(w, "/out", NULL);
    w->python.path = keep(w, "/usr/bin/python3.11");
    w->python.paths = words(w, "/usr", "/usr/lib/python3", NULL);
    w->policy = (struct plan_policy){.cfg = &w->cfg,
                                     .python = &w->python,
                                     .bootstrap = "boot",
                                     .protected_paths = protected_paths,
                                     .nprotected = 2,
                                     .work_root = "/var/state/work",
                                     .drop_uid = 65534,
                                     .drop_gid = 65533,
                                     .base_env = base_env,
                                     .nbase_env = 4,
                                     .max_timeout_ms = INT64_MAX,
                                     .agent_env = agent_env,
                                     .nagent_env = 2};
    w->source = (struct tool_source){STR_LIT("def plus(n):\n return n\n"), "add.py",
                                     "/srv/agents/helper"};
    assert_int_equal(
        gate_admit(w->soul, NULL, &from, STR_LIT("hi"), true, &v, &w->by, NULL), ST_OK);
    approve(w, "add", "{\"n\":9007199254740993}");
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    plan_free(w->plan);
    approved_free(w->call);
    admitted_free(w->by);
    arena_free(w->arena);
    soul_free(w->soul);
    free(w);
    return 0;
}

static const struct launch_spec *build(struct world *w)
{
    struct error err = {0};
    plan_free(w->plan);
    w->plan = NULL;
    if (plan_build(w->call, &w->policy, &w->source, "run1", &w->plan, &err) != ST_OK) {
        fail_msg("no plan: %s", err.text);
    }
    return plan_launch(w->plan);
}

static void refused(struct world *w, enum status st, const char *part)
{
    struct plan *p = NULL;
    struct error err = {0};
    assert_int_equal(plan_build(w->call, &w->policy, &w->source, "run1", &p, &err), st);
    assert_null(p);
    if (strstr(err.text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    }
}

static struct config_sandbox *sandbox(struct world *w)
{
    return &w->cfg.runtime.sandbox;
}

/* ---- bits ------------------------------------------------------------------------ */

#define LIMIT_BITS \
    (SY_MUST_CPU_TIME | SY_MUST_MEM | SY_MUST_FILES | SY_MUST_FILE_SIZE | SY_MUST_PIDS)
#define FENCE_BITS (SY_MUST_FS_ROOT | SY_MUST_NO_NEW_PRIV)

static void test_must_bits(void **state)
{
    struct world *w = *state;
    static const struct {
        enum isolation level;
        enum limit_failure failure;
        bool network, enabled;
        uint64_t must;
    } rows[] = {
        {ISOLATION_NONE, LIMIT_WARN, false, true, 0},
        {ISOLATION_NONE, LIMIT_REFUSE, false, true, LIMIT_BITS},
        {ISOLATION_NONE, LIMIT_REFUSE, false, false, 0},
        {ISOLATION_RESTRICTED, LIMIT_WARN, false, true,
         LIMIT_BITS | FENCE_BITS | SY_MUST_NO_NET},
        {ISOLATION_RESTRICTED, LIMIT_WARN, true, true, LIMIT_BITS | FENCE_BITS},
        {ISOLATION_RESTRICTED, LIMIT_WARN, false, false, FENCE_BITS | SY_MUST_NO_NET},
        {ISOLATION_STRICT, LIMIT_WARN, false, true,
         LIMIT_BITS | FENCE_BITS | SY_MUST_NO_NET | SY_MUST_NAMESPACES},
        {ISOLATION_STRICT, LIMIT_REFUSE, true, true,
         LIMIT_BITS | FENCE_BITS | SY_MUST_NAMESPACES},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sandbox(w)->isolation = rows[i].level;
        sandbox(w)->on_limit_failure = rows[i].failure;
        sandbox(w)->network = rows[i].network;
        sandbox(w)->enabled = rows[i].enabled;
        const struct launch_spec *l = build(w);
        assert_int_equal(l->must, rows[i].must | SY_MUST_KILL_TREE);
        assert_int_equal(plan_must(&w->cfg), l->must); /* what start-up asks about */
        assert_int_equal(l->isolation, rows[i].level);
        assert_int_equal(l->network, rows[i].level == ISOLATION_NONE || rows[i].network);
        assert_int_equal(l->limits_must_hold, rows[i].level != ISOLATION_NONE ||
                                                  rows[i].failure == LIMIT_REFUSE);
    }
}

static void test_limits(void **state)
{
    struct world *w = *state;
    const struct launch_spec *l = build(w);
    assert_int_equal(l->cpu_seconds, 30);
    assert_int_equal(l->mem_bytes, 512 * MIB);
    assert_int_equal(l->open_files, 256);
    assert_int_equal(l->file_bytes, 64 * MIB);
    assert_int_equal(l->processes, 9);
    sandbox(w)->enabled = false;
    l = build(w);
    assert_true(l->cpu_seconds == SPAWN_NO_LIMIT && l->mem_bytes == SPAWN_NO_LIMIT);
    assert_true(l->open_files == SPAWN_NO_LIMIT && l->file_bytes == SPAWN_NO_LIMIT);
    assert_true(l->processes == SPAWN_NO_LIMIT);
}

/* 0 is no limit, and no bit for it either. */
static void test_no_limit_no_bit(void **state)
{
    struct world *w = *state;
    int64_t *settings[] = {&sandbox(w)->cpu_seconds, &sandbox(w)->memory_mb,
                           &sandbox(w)->open_files, &sandbox(w)->file_size_mb,
                           &sandbox(w)->processes};
    static const uint64_t bits[] = {SY_MUST_CPU_TIME, SY_MUST_MEM, SY_MUST_FILES,
                                    SY_MUST_FILE_SIZE, SY_MUST_PIDS};
    sandbox(w)->on_limit_failure = LIMIT_REFUSE;
    for (size_t i = 0; i < 5; i++) {
        int64_t was = *settings[i];
        *settings[i] = 0;
        const struct launch_spec *l = build(w);
        const uint64_t got[] = {l->cpu_seconds, l->mem_bytes, l->open_files,
                                l->file_bytes, l->processes};
        assert_int_equal(l->must, (LIMIT_BITS & ~bits[i]) | SY_MUST_KILL_TREE);
        assert_true(got[i] == SPAWN_NO_LIMIT);
        *settings[i] = 1;
        assert_int_equal(build(w)->must, LIMIT_BITS | SY_MUST_KILL_TREE);
        *settings[i] = was;
    }
}

static void test_uid_drop(void **state)
{
    struct world *w = *state;
    const struct launch_spec *l = build(w);
    assert_int_equal(l->uid, SPAWN_KEEP_ID);
    w->policy.root_gateway = true;
    l = build(w); /* none is none: a root tool stays root */
    assert_int_equal(l->uid, SPAWN_KEEP_ID);
    assert_int_equal(l->gid, SPAWN_KEEP_ID);
    sandbox(w)->isolation = ISOLATION_RESTRICTED;
    l = build(w);
    assert_int_equal(l->uid, 65534);
    assert_int_equal(l->gid, 65533);
    w->policy.root_gateway = false;
    l = build(w);
    assert_int_equal(l->uid, SPAWN_KEEP_ID);
}

/* ---- environment, program, paths ---------------------------------------------------- */

static void assert_list(const char *const *got, size_t n, const char *first, ...)
{
    va_list ap;
    size_t i = 0;
    va_start(ap, first);
    for (const char *s = first; s != NULL; s = va_arg(ap, const char *)) {
        assert_in_range(i, 0, n == 0 ? 0 : n - 1);
        assert_string_equal(got[i++], s);
    }
    va_end(ap);
    assert_int_equal(n, i);
}

/* decisions 1: at none the base environment and nothing else; the agent's own travels in
 * the request. */
static void test_env_at_none(void **state)
{
    struct world *w = *state;
    const struct launch_spec *l = build(w);
    const struct plan_call *c = plan_call(w->plan);
    assert_list(l->env, l->nenv, "PATH=/bin", "HOME=/root", "LANG=C", "TMPDIR=/tmp",
                NULL);
    assert_list(c->env, c->nenv, "TOKEN=s3cret", "OMP_NUM_THREADS=4", NULL);
    w->policy.nbase_env = w->policy.nagent_env = 0;
    l = build(w);
    assert_int_equal(l->nenv, 0);
    assert_int_equal(plan_call(w->plan)->nenv, 0);
}

static void test_env_above_none(void **state)
{
    struct world *w = *state;
    sandbox(w)->isolation = ISOLATION_RESTRICTED;
    const struct launch_spec *l = build(w);
    assert_list(l->env, l->nenv, "PATH=/bin", "HOME=/root", "LANG=C", "TMPDIR=/tmp",
                "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1",
                "MALLOC_ARENA_MAX=2", NULL);
    /* the agent's own word counts, and only for the very name */
    w->soul->env = words(w, "OMP_NUM_THREADS", "OMP", "MKL_NUM_THREADS_2", NULL);
    l = build(w);
    assert_list(l->env, l->nenv, "PATH=/bin", "HOME=/root", "LANG=C", "TMPDIR=/tmp",
                "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", "MALLOC_ARENA_MAX=2",
                NULL);
    for (size_t i = 0; i < l->nenv; i++) {
        assert_null(strstr(l->env[i], "s3cret"));
    }
}

static void test_program(void **state)
{
    struct world *w = *state;
    const struct launch_spec *l = build(w);
    assert_list(l->argv, l->nargv, "/usr/bin/python3.11", "-I", "-S", "-c", "boot", NULL);
    assert_string_equal(l->backend, "process");
    w->soul->backend = keep(w, "pool");
    assert_string_equal(build(w)->backend, "pool");
}

/* decisions 11: an agent picks from executor.allowed_backends only, also when the
 * configuration changed after the agent was loaded. */
static void test_backend_not_allowed(void **state)
{
    struct world *w = *state;
    w->soul->backend = keep(w, "docker");
    refused(w, ST_REFUSED, "docker");
    w->cfg.executor.allowed_backends.n = 0;
    refused(w, ST_REFUSED, "executor.allowed_backends");
    w->soul->backend = NULL;
    assert_string_equal(build(w)->backend, "process");
}

static void assert_paths(const struct launch_spec *l, const char *first, ...)
{
    va_list ap;
    size_t i = 0;
    va_start(ap, first);
    for (const char *s = first; s != NULL; s = va_arg(ap, const char *)) {
        assert_in_range(i, 0, l->npaths - 1);
        assert_int_equal(l->paths[i].writable, s[0] == 'w');
        assert_string_equal(l->paths[i++].path, s + 1);
    }
    va_end(ap);
    assert_int_equal(l->npaths, i);
}

static void test_paths(void **state)
{
    struct world *w = *state;
    const struct launch_spec *l = build(w);
    assert_int_equal(l->npaths, 0);
    assert_null(l->work_root);
    sandbox(w)->isolation = ISOLATION_STRICT;
    l = build(w);
    assert_paths(l, "r/usr", "r/usr/lib/python3", "r/data", "w/out",
                 "r/srv/agents/helper", NULL);
    assert_string_equal(l->work_root, "/var/state/work");
    w->source.folder = NULL; /* inline */
    sandbox(w)->write_paths.n = 0;
    assert_paths(build(w), "r/usr", "r/usr/lib/python3", "r/data", NULL);
}

/* security-rules 3 */
static void test_protected_folders(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"/etc/soulacy", "/etc/soulacy/", "/etc", "/",
                                      "/var/state",   "/var",          "//"};
    static const char *const good[] = {"/etc/soul", "/etc/soulacy/config.yaml.d",
                                       "/etc/soulacy2", "/var/state/tools", "/srv"};
    sandbox(w)->isolation = ISOLATION_RESTRICTED;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        w->source.folder = bad[i];
        refused(w, ST_REFUSED, "folder of its own");
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        w->source.folder = good[i];
        (void)build(w);
    }
    w->source.folder = "/etc/soulacy/config.yaml"; /* the very one */
    refused(w, ST_REFUSED, "folder of its own");
    w->policy.nprotected = 0;
    (void)build(w);
    w->policy.nprotected = 2;
    sandbox(w)->isolation = ISOLATION_NONE; /* nothing is shown, nothing is hidden */
    (void)build(w);
}

/* ---- the call ------------------------------------------------------------------------ */

static void test_call(void **state)
{
    struct world *w = *state;
    char source[] = "def plus(n): pass";
    w->source.text = str_c(source);
    (void)build(w);
    const struct plan_call *c = plan_call(w->plan);
    memset(source, 'x', 5); /* everything is copied */
    assert_string_equal(c->run_id, "run1");
    assert_string_equal(c->agent_id, "helper");
    assert_string_equal(c->tool_name, "add");
    assert_str_is(c->source, "def plus(n): pass");
    assert_string_equal(c->filename, "add.py");
    assert_string_equal(c->function, "plus");
    assert_str_is(c->args, "{\"n\":9007199254740993}"); /* not by way of a double */
    assert_int_equal(c->retries, 0);
    assert_int_equal(c->max_output_bytes, 256 * 1024);
    approve(w, "slow", "");
    (void)build(w);
    c = plan_call(w->plan);
    assert_string_equal(c->function, "slow");
    assert_str_is(c->args, "{}");
    assert_int_equal(c->retries, 2);
    assert_int_equal(c->retry_backoff_ms, 3000);
}

static int64_t timeout_of(struct world *w, int64_t left)
{
    w->policy.max_timeout_ms = left;
    (void)build(w);
    return plan_call(w->plan)->timeout_ms;
}

static void test_timeouts(void **state)
{
    struct world *w = *state;
    assert_int_equal(timeout_of(w, INT64_MAX), 120000); /* runtime.tool_timeout */
    assert_int_equal(timeout_of(w, 120001), 120000);
    assert_int_equal(timeout_of(w, 120000), 120000);
    assert_int_equal(timeout_of(w, 119999), 119999);
    assert_int_equal(timeout_of(w, 1), 1);
    approve(w, "slow", "");
    assert_int_equal(timeout_of(w, INT64_MAX), 7000); /* the tool's own */
    assert_int_equal(timeout_of(w, 6999), 6999);
}

static void test_python_tools_only(void **state)
{
    struct world *w = *state;
    w->tools.tools[1].kind = TOOL_SEARCH;
    approve(w, "slow", "");
    refused(w, ST_INVALID, "Python");
}

/* ---- the launch key -------------------------------------------------------------------- */

typedef void change_fn(struct world *w);

static void key_backend(struct world *w)
{
    w->cfg.executor.backend = keep(w, "pool");
}

static void key_isolation(struct world *w)
{
    sandbox(w)->isolation = ISOLATION_STRICT;
}

static void key_network(struct world *w)
{
    sandbox(w)->network = true;
}

static void key_must_hold(struct world *w)
{
    sandbox(w)->on_limit_failure = LIMIT_REFUSE;
    sandbox(w)->isolation = ISOLATION_NONE;
}

static void key_cpu(struct world *w)
{
    sandbox(w)->cpu_seconds = 31;
}

static void key_mem(struct world *w)
{
    sandbox(w)->memory_mb = 0;
}

static void key_files(struct world *w)
{
    sandbox(w)->open_files = 30;
}

static void key_file_size(struct world *w)
{
    sandbox(w)->file_size_mb = 65;
}

static void key_processes(struct world *w)
{
    sandbox(w)->processes = 10;
}

static void key_enabled(struct world *w)
{
    sandbox(w)->enabled = false;
}

static void key_python(struct world *w)
{
    w->python.path = keep(w, "/usr/bin/python3.12");
}

static void key_bootstrap(struct world *w)
{
    w->policy.bootstrap = "boo";
}

static void key_env(struct world *w)
{
    w->policy.nbase_env = 3;
}

static void key_pins(struct world *w)
{
    w->soul->env = words(w, "OMP_NUM_THREADS", NULL);
}

static void key_root(struct world *w)
{
    w->policy.root_gateway = true;
}

static void key_gid(struct world *w)
{
    w->policy.root_gateway = true;
    w->policy.drop_gid = 1;
}

static void key_read(struct world *w)
{
    sandbox(w)->read_paths = words(w, "/data2", NULL);
}

static void key_write(struct world *w)
{
    sandbox(w)->write_paths = words(w, "/data", NULL);
    sandbox(w)->read_paths = words(w, "/out", NULL);
}

static void key_fewer(struct world *w)
{
    sandbox(w)->write_paths.n = 0;
}

static void key_library(struct world *w)
{
    w->python.paths.n = 1;
}

static void key_folder(struct world *w)
{
    w->source.folder = "/srv/agents/other";
}

static void key_inline(struct world *w)
{
    w->source.folder = NULL;
}

static void key_work(struct world *w)
{
    w->policy.work_root = "/var/other";
}

static void key_split(struct world *w) /* lengths are part of it */
{
    sandbox(w)->read_paths = words(w, "/da", "ta", NULL);
}

static void test_key_follows_the_process(void **state)
{
    (void)state;
    static change_fn *const changes[] = {
        key_backend, key_isolation, key_network,   key_must_hold, key_cpu,
        key_mem,     key_files,     key_file_size, key_processes, key_enabled,
        key_python,  key_bootstrap, key_env,       key_pins,      key_root,
        key_gid,     key_read,      key_write,     key_fewer,     key_library,
        key_folder,  key_inline,    key_work,      key_split};
    enum { N = sizeof(changes) / sizeof(changes[0]) };
    char keys[N + 1][65];
    for (size_t i = 0; i <= N; i++) {
        void *own = NULL;
        setup(&own);
        struct world *w = own;
        sandbox(w)->isolation = ISOLATION_RESTRICTED;
        if (i > 0) {
            changes[i - 1](w);
        }
        memcpy(keys[i], build(w)->key, 65);
        assert_int_equal(strlen(keys[i]), 64);
        assert_int_equal(strspn(keys[i], "0123456789abcdef"), 64);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(keys[i], keys[j]) == 0) {
                fail_msg("changes %zu and %zu give one key", i, j);
            }
        }
        teardown(&own);
    }
}

static void test_key_ignores_the_call(void **state)
{
    struct world *w = *state;
    char key[65];
    sandbox(w)->isolation = ISOLATION_RESTRICTED;
    memcpy(key, build(w)->key, 65);
    assert_string_equal(build(w)->key, key); /* the same each time */
    approve(w, "slow", "{\"x\":1}");
    w->source.text = STR_LIT("other");
    w->source.filename = "slow.py";
    w->policy.nagent_env = 1;
    w->policy.max_timeout_ms = 5;
    w->cfg.runtime.tool_timeout_ms = 1;
    w->cfg.runtime.max_tool_output_kb = 1;
    plan_free(w->plan);
    w->plan = NULL;
    assert_int_equal(plan_build(w->call, &w->policy, &w->source, "run2", &w->plan, NULL),
                     ST_OK);
    assert_string_equal(plan_launch(w->plan)->key, key);
    assert_string_equal(plan_call(w->plan)->run_id, "run2");
}

/* ---- too much ------------------------------------------------------------------------- */

static void test_too_much_for_a_plan(void **state)
{
    struct world *w = *state;
    size_t len = (size_t)1024 * 1024;
    char *path = malloc(len + 1);
    assert_non_null(path);
    memset(path, '/', len);
    path[len] = '\0';
    const char *env[] = {path};
    w->policy.base_env = env;
    w->policy.nbase_env = 1;
    refused(w, ST_TOO_LARGE, "too much for a plan");
    free(path);
}

/* A plan, or none and a clear word; the approved call is as it was. */
static bool builds(struct world *w)
{
    struct plan *p = NULL;
    struct error err = {0};
    enum status st = plan_build(w->call, &w->policy, &w->source, "run1", &p, &err);
    assert_true(st == ST_OK || (st == ST_NOMEM && err.status == ST_NOMEM && p == NULL));
    assert_str_is(approved_args(w->call), "{\"n\":9007199254740993}");
    plan_free(p);
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    struct world *w = *state;
    size_t len = (size_t)70 * 1024; /* so that each copy below needs a block of its own */
    char *big = malloc(len + 1);
    assert_non_null(big);
    memset(big, 'x', len);
    big[len] = '\0';
    TEST_SWEEP(builds(w));
    const char *secrets[] = {big, "TOKEN=s3cret", big, "A=b"};
    w->policy.agent_env = secrets;
    w->policy.nagent_env = 4;
    w->policy.base_env = secrets;
    w->policy.nbase_env = 4;
    w->source.text = str_n(big, len);
    w->source.folder = big;
    TEST_SWEEP(builds(w));
    sandbox(w)->isolation = ISOLATION_STRICT;
    sandbox(w)->read_paths = words(w, big, big, NULL);
    sandbox(w)->write_paths = words(w, big, NULL);
    w->policy.work_root = big;
    TEST_SWEEP(builds(w));
    static const char *many[20000]; /* a list of a block of its own */
    for (size_t i = 0; i < 20000; i++) {
        many[i] = "A=b";
    }
    w->policy.base_env = many;
    w->policy.nbase_env = 20000;
    TEST_SWEEP(builds(w));
    plan_free(NULL);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_must_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_limit_no_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_uid_drop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_env_at_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_env_above_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_program, setup, teardown),
        cmocka_unit_test_setup_teardown(test_backend_not_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_protected_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_call, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timeouts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_python_tools_only, setup, teardown),
        cmocka_unit_test(test_key_follows_the_process),
        cmocka_unit_test_setup_teardown(test_key_ignores_the_call, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_much_for_a_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
