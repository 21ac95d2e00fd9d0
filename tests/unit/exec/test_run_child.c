/* The poll loop of executor-process against a host made of pipes and one thread that
 * plays the child: full pipes both ways, a child that goes away at each moment, cancel,
 * deadline, a host that cannot reap. The plugin is linked in statically. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include "base/clock.h"
#include "base/io.h"
#include "support/test.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <soulacy/executor.h>
#include <sys/eventfd.h>

extern const struct sy_plugin soulacy_plugin_process_v1;

/* One scene: what the child does, what the host says. */
struct scene {
    struct sy_child child;
    int in, out, err; /* the child's ends */
    int exit_fd;
    void (*play)(struct scene *s);
    struct sy_child_exit end;
    sy_status spawn_status, reap_status, layers_status;
    pthread_t thread;
    int kills, reaps;
    /* What the sink saw. */
    size_t answer_bytes, log_bytes, enough_at;
    int started, log_after_answer, answers_after_enough;
    char layers[64];
    char first_log[64];
};

static void *play(void *arg)
{
    struct scene *s = arg;
    s->play(s);
    io_close(&s->in);
    io_close(&s->out);
    io_close(&s->err);
    uint64_t one = 1;
    assert(write(s->exit_fd, &one, sizeof one) == sizeof one);
    return NULL;
}

static void make_pipe(int *r, int *w, bool nonblock_read)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    *r = fds[0];
    *w = fds[1];
    assert_int_equal(fcntl(nonblock_read ? *r : *w, F_SETFL, O_NONBLOCK), 0);
}

static sy_status fake_spawn(void *ctx, uint64_t id, struct sy_child *out,
                            struct sy_error *e)
{
    struct scene *s = ctx;
    (void)id;
    if (s->spawn_status != SY_OK) {
        snprintf(e->text, sizeof e->text, "no helper");
        return s->spawn_status;
    }
    make_pipe(&s->in, &out->stdin_fd, false);
    make_pipe(&out->stdout_fd, &s->out, true);
    make_pipe(&out->stderr_fd, &s->err, true);
    s->exit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    out->exit_fd = s->exit_fd;
    out->id = 77;
    s->child = *out;
    assert_int_equal(pthread_create(&s->thread, NULL, play, s), 0);
    return SY_OK;
}

static void fake_kill(void *ctx, uint64_t id)
{
    struct scene *s = ctx;
    assert_int_equal(id, 77);
    s->kills++;
}

static sy_status fake_layers(void *ctx, uint64_t id, char *text, size_t cap)
{
    struct scene *s = ctx;
    assert_int_equal(id, 77);
    snprintf(text, cap, "%s", s->layers_status == SY_OK ? "{\"l\":1}" : "");
    return s->layers_status;
}

static sy_status fake_reap(void *ctx, uint64_t id, int64_t deadline_ms,
                           struct sy_child_exit *out)
{
    struct scene *s = ctx;
    assert_int_equal(id, 77);
    assert_true(deadline_ms > clock_mono_ms());
    s->reaps++;
    /* A kill shows to the thread as its pipes going away. */
    io_close(&s->child.stdin_fd);
    io_close(&s->child.stdout_fd);
    io_close(&s->child.stderr_fd);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    io_close(&s->child.exit_fd);
    *out = s->end;
    out->size = sizeof *out;
    return s->reap_status;
}

static const struct sy_host_spawn spawn_table = {.size = sizeof spawn_table,
                                                 .spawn = fake_spawn,
                                                 .kill = fake_kill,
                                                 .layers = fake_layers,
                                                 .reap = fake_reap};

static const void *fake_service(void *ctx, const char *id)
{
    (void)ctx;
    return strcmp(id, SY_HOST_SPAWN_ID) == 0 ? &spawn_table : NULL;
}

static const void *no_service(void *ctx, const char *id)
{
    (void)ctx;
    (void)id;
    return NULL;
}

static int64_t fake_now(void *ctx)
{
    (void)ctx;
    return clock_mono_ms();
}

static int32_t on_output(void *ctx, uint32_t stream, const void *data, size_t len)
{
    struct scene *s = ctx;
    bool enough = s->enough_at > 0 && s->answer_bytes >= s->enough_at;
    if (stream == SY_STREAM_LOG) {
        if (s->log_bytes == 0) {
            snprintf(s->first_log, sizeof s->first_log, "%.*s",
                     (int)(len < 60 ? len : 60), (const char *)data);
        }
        s->log_bytes += len;
        s->log_after_answer += enough ? 1 : 0;
        return 0;
    }
    s->answers_after_enough += enough ? 1 : 0;
    s->answer_bytes += len;
    return s->enough_at > 0 && s->answer_bytes >= s->enough_at ? 1 : 0;
}

static void on_started(void *ctx, struct sy_str layers)
{
    struct scene *s = ctx;
    s->started++;
    snprintf(s->layers, sizeof s->layers, "%.*s", (int)layers.len, layers.ptr);
}

struct given {
    size_t preamble, request;
    int64_t timeout_ms;
    int cancel_fd;
};

static sy_status drive(struct scene *s, const struct given *g, struct sy_result *res,
                       struct sy_error *err)
{
    const struct sy_host host = {
        .size = sizeof host, .ctx = s, .service = fake_service, .now_ms = fake_now};
    const struct sy_plugin *plugin = &soulacy_plugin_process_v1;
    void *self = NULL;
    char *bytes = calloc(1, g->preamble + g->request + 1);
    assert_non_null(bytes);
    assert_int_equal(plugin->create(&host, NULL, 0, &self, err), SY_OK);
    const struct sy_executor *x = plugin->query(self, SY_EXECUTOR_ID);
    assert_non_null(x);
    assert_null(plugin->query(self, "soulacy.executor/2"));
    assert_int_equal(x->start(self, err), SY_OK);
    const struct sy_launch launch = {
        .size = sizeof launch, .id = 5, .preamble = {bytes, g->preamble}};
    const struct sy_plan plan = {.size = sizeof plan,
                                 .cancel_fd = g->cancel_fd,
                                 .launch = &launch,
                                 .run_id = {"r", 1},
                                 .request = {bytes, g->request},
                                 .deadline_ms = clock_mono_ms() + g->timeout_ms};
    const struct sy_sink sink = {
        .size = sizeof sink, .ctx = s, .output = on_output, .started = on_started};
    *res = (struct sy_result){.size = sizeof *res};
    size_t fds = test_open_fds();
    sy_status st = x->run(self, &plan, &sink, res, err);
    assert_int_equal(test_open_fds(), fds);
    assert_int_equal(s->reaps, s->spawn_status == SY_OK ? 1 : 0);
    assert_int_equal(s->answers_after_enough, 0);
    x->stop(self);
    plugin->destroy(self);
    free(bytes);
    return st;
}

/* ---- what children do ---------------------------------------------------------------- */

static bool eat(int fd, size_t n)
{
    char block[65536];
    while (n > 0) {
        ssize_t got = read(fd, block, n < sizeof block ? n : sizeof block);
        if (got <= 0) {
            return false;
        }
        n -= (size_t)got;
    }
    return true;
}

static bool say(int fd, size_t n)
{
    static const char block[65536] = "hello";
    while (n > 0) {
        ssize_t done = write(fd, block, n < sizeof block ? n : sizeof block);
        if (done <= 0) {
            return false;
        }
        n -= (size_t)done;
    }
    return true;
}

#define PRE 20000
#define BIG ((size_t)20 * 1024 * 1024)

static void plain_call(struct scene *s)
{
    (void)(eat(s->in, PRE) && say(s->out, 17) && eat(s->in, 1000) && say(s->err, 5) &&
           say(s->out, 100));
    (void)eat(s->in, 1); /* until it is killed */
}

/* Writes megabytes on both streams before it reads a byte of a large request. */
static void both_ways(struct scene *s)
{
    (void)(eat(s->in, PRE) && say(s->out, 17) && say(s->err, BIG / 4) &&
           say(s->out, BIG - 17 - 10) && say(s->err, BIG / 4) && eat(s->in, BIG) &&
           say(s->out, 10));
}

static void never_up(struct scene *s)
{
    (void)eat(s->in, 100);
}

static void silent(struct scene *s)
{
    (void)eat(s->in, BIG);
}

/* Takes half of the request and goes. */
static void goes_away(struct scene *s)
{
    (void)(eat(s->in, PRE) && say(s->out, 17) && eat(s->in, BIG / 2));
}

/* Closes its stdin and goes on. */
static void closes_stdin(struct scene *s)
{
    if (eat(s->in, PRE) && say(s->out, 17)) {
        io_close(&s->in);
        (void)say(s->out, 100);
    }
}

static void writes_for_ever(struct scene *s)
{
    while (say(s->err, 60000) && say(s->out, 60000)) {
    }
}

/* ---- scenes -------------------------------------------------------------------------- */

static struct scene scene_of(void (*child)(struct scene *s))
{
    struct scene s = {.play = child};
    s.in = s.out = s.err = s.exit_fd = -1;
    s.end.cpu_ms = 12;
    s.end.max_rss_bytes = 34;
    return s;
}

static const struct given small = {PRE, 1000, 20000, -1};
static const struct given large = {PRE, BIG, 20000, -1};

static void a_call(void **state)
{
    (void)state;
    struct scene s = scene_of(plain_call);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    s.enough_at = 117;
    assert_int_equal(drive(&s, &small, &r, &e), SY_OK);
    assert_int_equal(s.started, 1);
    assert_string_equal(s.layers, "{\"l\":1}");
    assert_string_equal(s.first_log, "hello");
    assert_int_equal(s.log_after_answer, 0); /* log text comes before the answer */
    assert_int_equal(s.answer_bytes, 117);
    assert_int_equal(s.kills, 1);
    assert_int_equal(r.request_sent, 1);
    assert_int_equal(r.cpu_ms, 12);
    assert_int_equal(r.max_rss_bytes, 34);
    assert_true(r.start_ms >= 0);
}

static void full_pipes(void **state)
{
    (void)state;
    struct scene s = scene_of(both_ways);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    s.enough_at = BIG;
    s.layers_status = SY_E_BUSY;
    assert_int_equal(drive(&s, &large, &r, &e), SY_OK);
    assert_int_equal(s.answer_bytes, BIG);
    assert_int_equal(s.log_bytes, BIG / 4 * 2);
    assert_string_equal(s.layers, "");
}

static void ends_before_it_is_up(void **state)
{
    (void)state;
    struct scene s = scene_of(never_up);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    s.end.exit_code = 3;
    assert_int_equal(drive(&s, &small, &r, &e), SY_OK);
    assert_int_equal(r.exit_code, 3);
    assert_int_equal(r.request_sent, 0);
    assert_int_equal(s.started, 0);
}

static void set_up_fails(void **state)
{
    (void)state;
    struct scene s = scene_of(never_up);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    snprintf(s.end.setup, sizeof s.end.setup, "landlock: too old");
    assert_int_equal(drive(&s, &small, &r, &e), SY_E_REFUSED);
    assert_string_equal(e.text, "landlock: too old");
}

static void cannot_spawn(void **state)
{
    (void)state;
    struct scene s = scene_of(never_up);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    s.spawn_status = SY_E_IO;
    assert_int_equal(drive(&s, &small, &r, &e), SY_E_IO);
    assert_string_equal(e.text, "no helper");
}

static void goes_away_in_the_request(void **state)
{
    (void)state;
    struct scene s = scene_of(goes_away);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    s.end.term_signal = SIGSEGV;
    s.end.exit_code = -1;
    assert_int_equal(drive(&s, &large, &r, &e), SY_OK);
    assert_int_equal(r.term_signal, SIGSEGV);
    assert_int_equal(r.request_sent, 1);
}

static void without_stdin(void **state)
{
    (void)state;
    struct scene s = scene_of(closes_stdin);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    s.enough_at = 117;
    assert_int_equal(drive(&s, &large, &r, &e), SY_OK);
    assert_int_equal(s.answer_bytes, 117);
}

static void deadline(void **state)
{
    (void)state;
    const struct given g = {PRE, 1000, 60, -1};
    void (*const children[])(struct scene *) = {silent, writes_for_ever};
    for (size_t i = 0; i < 2; i++) {
        struct scene s = scene_of(children[i]);
        struct sy_result r;
        struct sy_error e = {.size = sizeof e};
        int64_t began = clock_mono_ms();
        assert_int_equal(drive(&s, &g, &r, &e), SY_E_TIMEOUT);
        assert_in_range(clock_mono_ms() - began, 59, 5000);
        assert_int_equal(s.kills, 1);
    }
}

static void cancel(void **state)
{
    (void)state;
    struct event ev;
    assert_int_equal(event_init(&ev, NULL), ST_OK);
    event_fire(&ev);
    const struct given g = {PRE, 1000, 20000, ev.fd};
    void (*const children[])(struct scene *) = {silent, writes_for_ever, plain_call};
    for (size_t i = 0; i < 3; i++) {
        struct scene s = scene_of(children[i]);
        struct sy_result r;
        struct sy_error e = {.size = sizeof e};
        assert_int_equal(drive(&s, &g, &r, &e), SY_E_CANCELLED);
        assert_int_equal(s.kills, 1);
        assert_true(event_fired(&ev)); /* never read from */
    }
    event_done(&ev);
}

static void tree_is_not_gone(void **state)
{
    (void)state;
    struct scene s = scene_of(plain_call);
    struct sy_result r;
    struct sy_error e = {.size = sizeof e};
    s.enough_at = 117;
    s.reap_status = SY_E_TIMEOUT;
    assert_int_equal(drive(&s, &small, &r, &e), SY_E_INTERNAL);
}

static void core_without_spawn(void **state)
{
    (void)state;
    const struct sy_host host = {.size = sizeof host, .service = no_service};
    struct sy_error e = {.size = sizeof e};
    void *self = NULL;
    assert_int_equal(soulacy_plugin_process_v1.create(&host, NULL, 0, &self, &e),
                     SY_E_UNSUPPORTED);
    assert_null(self);
    soulacy_plugin_process_v1.destroy(NULL);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as the program does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call),
        cmocka_unit_test(full_pipes),
        cmocka_unit_test(ends_before_it_is_up),
        cmocka_unit_test(set_up_fails),
        cmocka_unit_test(cannot_spawn),
        cmocka_unit_test(goes_away_in_the_request),
        cmocka_unit_test(without_stdin),
        cmocka_unit_test(deadline),
        cmocka_unit_test(cancel),
        cmocka_unit_test(tree_is_not_gone),
        cmocka_unit_test(core_without_spawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
