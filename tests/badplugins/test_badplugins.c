/* In: the shared objects of cases/. Out: for each, the exact line the core gives. Each
 * is a row of a table: the file, how it is used, the line. */
#include "support/test.h"

#include "base/clock.h"
#include "base/io.h"
#include "plugin/plugin.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct fixture {
    struct test_dir dir;
    char cases[PATH_MAX]; /* where the files are */
    char log_path[PATH_MAX];
    struct log *log;
    struct plugin_registry *r;
    struct event condemned;
};

/* Instances that the core keeps on purpose: known here, so that no leak checker minds. */
static struct plugin_instance *kept[2];

/* ---- a core small enough to load into ---- */

static sy_status deliver(void *ctx, const struct sy_message *msgs, size_t n,
                         struct sy_error *err)
{
    struct error e = {0};
    struct sy_message *copy = NULL;
    struct plugin_instance *p = plugin_upcall_begin(ctx, "deliver", PLUGIN_FROM_START);
    if (p == NULL) {
        return SY_E_INVALID;
    }
    struct arena *a = arena_new(1 << 20);
    enum status st =
        a == NULL ? ST_NOMEM : plugin_take_messages(p, msgs, n, a, &copy, &e);
    arena_free(a);
    plugin_upcall_end(p);
    return st == ST_OK ? SY_OK : plugin_give_error(&e, err);
}

static const struct sy_host_channel channel_table = {.size = sizeof channel_table,
                                                     .deliver = deliver};
static const struct sy_host_spawn spawn_table = {.size = sizeof spawn_table};
static const struct sy_host_gateway gateway_table = {.size = sizeof gateway_table};

static const struct plugin_service services[] = {
    {SY_HOST_CHANNEL_ID, &channel_table},
    {SY_HOST_SPAWN_ID, &spawn_table},
    {SY_HOST_GATEWAY_ID, &gateway_table},
};

/* The configuration of every plugin here has one key, "tokem", and it is nowhere known
 * (a plugin without a table of keys has no configuration). */
static enum status values(void *ctx, uint32_t kind, const char *name,
                          const struct sy_cfg_key *keys, size_t nkeys, struct arena *a,
                          const struct sy_cfg_value **out, size_t *nout,
                          struct error *err)
{
    (void)ctx;
    (void)kind;
    (void)keys;
    (void)a;
    *out = NULL;
    *nout = 0;
    return nkeys == 0 ? ST_OK
                      : error_set(err, ST_INVALID,
                                  "plugins_config.%s: unknown key 'tokem'", name);
}

static void on_condemned(void *ctx, struct plugin_instance *p)
{
    struct fixture *f = ctx;
    (void)p;
    event_fire(&f->condemned);
}

static void new_registry(struct fixture *f)
{
    struct error err;
    const struct plugin_registry_config cfg = {.log = f->log,
                                               .plugin_dir = f->dir.path,
                                               .services = services,
                                               .nservices = 3,
                                               .values = values,
                                               .condemned = on_condemned,
                                               .condemned_ctx = f,
                                               .grace_ms = 1,
                                               .stop_ms = 20};
    assert_int_equal(plugin_registry_new(&cfg, &f->r, &err), ST_OK);
}

static int setup(void **state)
{
    struct error err;
    struct fixture *f = calloc(1, sizeof *f);
    const char *build = getenv("SOULACY_BUILD_DIR");
    assert_non_null(f);
    test_dir_make(&f->dir);
    (void)snprintf(f->cases, sizeof f->cases, "%s/tests/badplugins",
                   build != NULL ? build : ".");
    (void)chmod(f->cases, 0755); /* whatever the umask of the build was */
    (void)test_path(&f->dir, "log", f->log_path);
    assert_int_equal(log_open(LOG_INFO, LOG_CONSOLE, f->log_path, &f->log, &err), ST_OK);
    assert_int_equal(event_init(&f->condemned, &err), ST_OK);
    new_registry(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    plugin_registry_free(f->r);
    log_close(f->log);
    event_done(&f->condemned);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static const char *case_path(const struct fixture *f, const char *file,
                             char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/%s.so", f->cases, file);
    assert_true(n > 0 && n < PATH_MAX);
    (void)chmod(out, 0755);
    return out;
}

/* How often the log has a line that ends in ": " and this text. */
static size_t logged(const struct fixture *f, const char *text)
{
    struct error err;
    struct buf b;
    size_t n = 0;
    struct str line;
    buf_init(&b, 1 << 20);
    assert_int_equal(io_read_file(f->log_path, 1 << 20, &b, &err), ST_OK);
    struct str rest = buf_str(&b);
    while (str_split(&rest, '\n', &line)) {
        size_t at = str_find(line, str_c(text));
        n += at != SIZE_MAX && at >= 2 && line.ptr[at - 1] == ' ' &&
                     line.ptr[at - 2] == ':' && at + strlen(text) == line.len
                 ? 1
                 : 0;
    }
    buf_done(&b);
    return n;
}

static void assert_logged(const struct fixture *f, const char *text)
{
    if (logged(f, text) == 0) {
        struct error err;
        struct buf b;
        buf_init(&b, 1 << 20);
        assert_int_equal(io_read_file(f->log_path, 1 << 20, &b, &err), ST_OK);
        print_error("not in the log: %s\n%.*s", text, STR_ARG(buf_str(&b)));
        buf_done(&b);
        fail();
    }
}

static struct plugin_instance *load(struct fixture *f, const char *file, uint32_t kind)
{
    char path[PATH_MAX];
    struct error err = {0};
    struct plugin_instance *p = NULL;
    const struct plugin_spec spec = {.path = case_path(f, file, path), .kind = kind};
    enum status st = plugin_load(f->r, &spec, &p, &err);
    if (st != ST_OK) {
        print_error("%s\n", err.text);
    }
    assert_int_equal(st, ST_OK);
    return p;
}

static struct plugin_instance *load_and_start(struct fixture *f, const char *file,
                                              uint32_t kind)
{
    struct error err = {0};
    struct plugin_instance *p = load(f, file, kind);
    assert_int_equal(plugin_start(p, &err), ST_OK);
    return p;
}

/* ---- refused while loading ---- */

static const struct {
    const char *file;
    uint32_t kind;
    const char *line; /* after "PATH: " */
} refused[] = {
    {"no_symbol", SY_KIND_CHANNEL,
     "exports no soulacy_plugin_v1: not a plugin for ABI 1"},
    {"undefined_symbol", SY_KIND_CHANNEL,
     "cannot be loaded: undefined symbol: log_line (a plugin may use its own symbols and "
     "those of the libraries it names; the core exports none)"},
    {"short_entry", SY_KIND_CHANNEL,
     "its entry is 40 bytes long, at least 64 are needed"},
    {"newer_minor", SY_KIND_CHANNEL, "needs a core with ABI 1.7, this one has 1.0"},
    {"null_create", SY_KIND_CHANNEL, "its entry has no create()"},
    {"bad_name", SY_KIND_CHANNEL, "name 'Bad Name/..' is not [a-z][a-z0-9-]{0,31}"},
    {"reserved_name", SY_KIND_CHANNEL,
     "name 'http' is reserved for soulacy's own plugin"},
    {"wrong_kind", SY_KIND_CHANNEL,
     "is an executor, the configuration uses it as a channel"},
    {"unknown_key", SY_KIND_CHANNEL, "plugins_config.bad: unknown key 'tokem'"},
    {"bad_keys", SY_KIND_CHANNEL,
     "key 'allowed_user_ids': the core's own key of every channel"},
    {"create_fails", SY_KIND_CHANNEL, "create() failed: no such account"},
    {"query_null", SY_KIND_CHANNEL, "offers no soulacy.channel/1"},
    {"short_table", SY_KIND_CHANNEL,
     "soulacy.channel/1 is 16 bytes long, at least 24 are needed"},
};

static void every_bad_file_is_refused_with_its_line(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX], line[PATH_MAX + 512];
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct error err = {0};
        struct plugin_instance *p = NULL;
        const struct plugin_spec spec = {.path = case_path(f, refused[i].file, path),
                                         .kind = refused[i].kind};
        assert_true(plugin_load(f->r, &spec, &p, &err) != ST_OK);
        (void)snprintf(line, sizeof line, "%s: %s", path, refused[i].line);
        assert_string_equal(err.text, line);
        assert_null(p);
        assert_int_equal(plugin_count(f->r), 0);
    }
}

static void one_refused_file_leaves_others_running(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX], line[PATH_MAX + 512];
    struct error err = {0};
    struct plugin_instance *p = load_and_start(f, "good", SY_KIND_CHANNEL);
    const struct plugin_spec spec = {.path = case_path(f, "duplicate_name", path)};
    assert_int_equal(plugin_load(f->r, &spec, NULL, &err), ST_CONFLICT);
    (void)snprintf(line, sizeof line, "%s: name 'bad' is taken by a plugin loaded before",
                   path);
    assert_string_equal(err.text, line);
    assert_int_equal(plugin_state(p), PLUGIN_STARTED);
    assert_ptr_equal(plugin_find(f->r, SY_KIND_CHANNEL, "bad"), p);
}

static void a_longer_entry_is_read_no_further_than_known(void **state)
{
    struct plugin_instance *p = load_and_start(*state, "long_entry", SY_KIND_CHANNEL);
    assert_string_equal(plugin_name(p), "bad");
}

static bool loads(struct fixture *f, const char *path)
{
    struct error err;
    const struct plugin_spec spec = {.path = path};
    return plugin_load(f->r, &spec, NULL, &err) == ST_OK;
}

static void no_memory_refuses_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    (void)case_path(f, "good", path);
    TEST_SWEEP(loads(f, path));
    assert_int_equal(plugin_count(f->r), 1);
}

static void a_crash_at_load_comes_after_the_line_that_names_it(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX], line[PATH_MAX + 16];
    const struct plugin_spec spec = {.path = case_path(f, "crash", path)};
    pid_t pid = fork();
    if (pid == 0) {
        struct error err;
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        _exit(plugin_load(f->r, &spec, NULL, &err) == ST_OK ? 0 : 1);
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGABRT);
    (void)snprintf(line, sizeof line, "loading %s", path);
    assert_logged(f, line);
}

/* ---- breaches while it runs ---- */

static const struct {
    const char *file;
    const char *line;
} in_start[] = {
    {"deliver_null", "plugin misbehaving: deliver: NULL, no items, or more than 1024"},
    {"deliver_huge", "plugin misbehaving: deliver: item 0: text is too long"},
    {"deliver_binary", "plugin misbehaving: deliver: item 0: sender is not UTF-8"},
    {"deliver_early", "plugin misbehaving: deliver: called before start()"},
    {"wrong_service", "plugin misbehaving: service: no id, or one over 64 bytes"},
};

static void every_breach_in_start_has_its_line(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof in_start / sizeof in_start[0]; i++) {
        struct plugin_instance *p = load_and_start(f, in_start[i].file, SY_KIND_CHANNEL);
        assert_logged(f, in_start[i].line);
        assert_int_equal(plugin_breaches(p), 1);
        plugin_registry_free(f->r); /* the name is free again */
        new_registry(f);
    }
}

static void deliver_after_stop_is_refused(void **state)
{
    struct fixture *f = *state;
    struct plugin_instance *p = load_and_start(f, "deliver_late", SY_KIND_CHANNEL);
    kept[0] = p;
    plugin_stop(p);
    plugin_registry_free(f->r);
    f->r = NULL;
    assert_logged(f, "plugin misbehaving: deliver: called after stop() had returned");
}

static void a_send_beyond_its_deadline_is_a_breach(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct event cancel;
    struct sy_sent sent;
    struct plugin_instance *p = load_and_start(f, "slow_send", SY_KIND_CHANNEL);
    assert_int_equal(event_init(&cancel, &err), ST_OK);
    event_fire(&cancel);
    const struct sy_outgoing msg = {.size = sizeof msg,
                                    .cancel_fd = cancel.fd,
                                    .deadline_ms = clock_mono_ms() - 1000};
    assert_int_equal(plugin_channel_send(p, &msg, &sent, &err), ST_OK);
    assert_int_equal(sent.outcome, SY_SENT);
    assert_logged(f, "plugin misbehaving: send() returned after its deadline");
    event_done(&cancel);
}

static enum status send_once(struct plugin_instance *p, struct sy_sent *sent,
                             struct error *err)
{
    const struct sy_outgoing msg = {
        .size = sizeof msg, .cancel_fd = -1, .deadline_ms = CLOCK_NEVER};
    return plugin_channel_send(p, &msg, sent, err);
}

static void unknown_answers_of_send_are_made_safe(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct sy_sent sent;
    struct plugin_instance *p = load_and_start(f, "bad_status", SY_KIND_CHANNEL);
    assert_int_equal(send_once(p, &sent, &err), ST_INTERNAL);
    assert_int_equal(sent.outcome, SY_SENT_RETRY);
    assert_string_equal(err.text, "send() failed: no reason given");
    assert_logged(f, "plugin misbehaving: send() answered 42, which is no status");
    plugin_registry_free(f->r);
    new_registry(f);
    p = load_and_start(f, "bad_outcome", SY_KIND_CHANNEL);
    assert_int_equal(send_once(p, &sent, &err), ST_OK);
    assert_int_equal(sent.outcome, SY_SENT_UNKNOWN);
    assert_logged(f, "plugin misbehaving: send() gave outcome 99, which is unknown");
}

/* ---- executors ---- */

struct run {
    struct plugin_instance *p;
    struct event started, cancel;
    uint64_t must;
    int64_t deadline_ms;
    size_t got;
    size_t cap; /* of the answer: then the sink says enough */
    enum status st;
    struct error err;
};

static int32_t take_output(void *ctx, uint32_t stream, const void *data, size_t len)
{
    struct run *r = ctx;
    (void)stream;
    (void)data;
    r->got += len;
    return r->got >= r->cap ? 1 : 0;
}

static void take_started(void *ctx, struct sy_str layers)
{
    struct run *r = ctx;
    (void)layers;
    event_fire(&r->started);
}

static void *run_thread(void *arg)
{
    struct run *r = arg;
    struct sy_result result;
    const struct sy_launch launch = {.size = sizeof launch, .id = 1, .must = r->must};
    const struct sy_plan plan = {.size = sizeof plan,
                                 .cancel_fd = r->cancel.fd,
                                 .launch = &launch,
                                 .deadline_ms = r->deadline_ms};
    const struct sy_sink sink = {
        .size = sizeof sink, .ctx = r, .output = take_output, .started = take_started};
    r->st = plugin_executor_run(r->p, &plan, &sink, &result, &r->err);
    return NULL;
}

static void run_init(struct run *r, struct plugin_instance *p)
{
    struct error err;
    memset(r, 0, sizeof *r);
    r->p = p;
    r->cap = 16;
    r->deadline_ms = CLOCK_NEVER;
    assert_int_equal(event_init(&r->started, &err), ST_OK);
    assert_int_equal(event_init(&r->cancel, &err), ST_OK);
}

static void run_done(struct run *r)
{
    event_done(&r->started);
    event_done(&r->cancel);
}

static void a_bit_it_does_not_enforce_never_reaches_it(void **state)
{
    struct run r;
    run_init(&r, load_and_start(*state, "missing_bit", SY_KIND_EXECUTOR));
    r.must = SY_MUST_KILL_TREE | SY_MUST_NO_NET | SY_MUST_NAMESPACES;
    (void)run_thread(&r);
    assert_int_equal(r.st, ST_REFUSED);
    assert_string_equal(r.err.text,
                        "executor bad cannot enforce: no network, namespaces");
    r.must = SY_MUST_KILL_TREE;
    (void)run_thread(&r);
    assert_int_equal(r.st, ST_OK);
    r.must = UINT64_C(1) << 40;
    (void)run_thread(&r);
    assert_string_equal(r.err.text, "executor bad cannot enforce: bits 0x10000000000");
    run_done(&r);
}

static void a_second_run_at_once_is_kept_from_it(void **state)
{
    struct run first, second;
    pthread_t t;
    struct plugin_instance *p = load_and_start(*state, "two_runs", SY_KIND_EXECUTOR);
    run_init(&first, p);
    run_init(&second, p);
    assert_int_equal(pthread_create(&t, NULL, run_thread, &first), 0);
    assert_int_equal(io_wait(first.started.fd, POLLIN, -1, clock_mono_ms() + 5000),
                     ST_OK);
    (void)run_thread(&second);
    event_fire(&first.cancel);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(second.st, ST_BUSY);
    assert_string_equal(second.err.text, "executor bad allows 1 runs at once");
    assert_int_equal(first.st, ST_OK);
    event_fire(&second.cancel);
    (void)run_thread(&second);
    assert_int_equal(second.st, ST_OK);
    run_done(&first);
    run_done(&second);
}

static void a_flood_of_output_ends_its_instance(void **state)
{
    struct fixture *f = *state;
    struct run r;
    struct plugin_instance *p = load_and_start(f, "output_flood", SY_KIND_EXECUTOR);
    run_init(&r, p);
    (void)run_thread(&r);
    assert_int_equal(r.st, ST_OK);
    assert_int_equal(r.got, 16);
    assert_int_equal(
        logged(
            f,
            "plugin misbehaving: output: more of the answer after the core said enough"),
        PLUGIN_MAX_BREACHES);
    assert_logged(f, "plugin misbehaving: more than 100 breaches: it is stopped");
    assert_true(plugin_condemned(p));
    assert_true(event_fired(&f->condemned));
    (void)run_thread(&r);
    assert_int_equal(r.st, ST_CANCELLED);
    assert_string_equal(r.err.text, "plugin bad: stopped for misbehaviour");
    plugin_stop(p);
    assert_int_equal(plugin_state(p), PLUGIN_STOPPED);
    run_done(&r);
}

static void a_run_that_never_returns_is_given_up_at_stop(void **state)
{
    struct fixture *f = *state;
    struct run r;
    pthread_t t;
    struct plugin_instance *p = load_and_start(f, "stuck_run", SY_KIND_EXECUTOR);
    kept[1] = p;
    run_init(&r, p);
    assert_int_equal(pthread_create(&t, NULL, run_thread, &r), 0);
    assert_int_equal(io_wait(r.started.fd, POLLIN, -1, clock_mono_ms() + 5000), ST_OK);
    plugin_stop(p);
    assert_int_equal(plugin_state(p), PLUGIN_FAILED);
    assert_logged(f,
                  "plugin misbehaving: a call into it did not return in 20 ms: given up");
    event_fire(&r.cancel);
    assert_int_equal(pthread_join(t, NULL), 0);
    run_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(every_bad_file_is_refused_with_its_line),
        T(one_refused_file_leaves_others_running),
        T(a_longer_entry_is_read_no_further_than_known),
        T(no_memory_refuses_and_leaves_nothing),
        T(a_crash_at_load_comes_after_the_line_that_names_it),
        T(every_breach_in_start_has_its_line),
        T(deliver_after_stop_is_refused),
        T(a_send_beyond_its_deadline_is_a_breach),
        T(unknown_answers_of_send_are_made_safe),
        T(a_bit_it_does_not_enforce_never_reaches_it),
        T(a_second_run_at_once_is_kept_from_it),
        T(a_flood_of_output_ends_its_instance),
        T(a_run_that_never_returns_is_given_up_at_stop),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
