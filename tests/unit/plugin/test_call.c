/* In: calls of the core into plugins made of test functions. Out: what reaches them, what
 * comes back, and that nothing does before start() or after stop(). */
#include "unit/plugin/fake.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>

struct seen {
    int runs, prepared, retired, typed, sent;
    int started, stopped;
    const struct sy_sink *sink;
    sy_status answer;
    uint32_t outcome;
    uint32_t busy;
};

static sy_status run(void *self, const struct sy_plan *plan, const struct sy_sink *sink,
                     struct sy_result *out, struct sy_error *err)
{
    struct seen *s = self;
    (void)plan;
    s->runs++;
    sink->started(sink->ctx, (struct sy_str){"{}", 2});
    sink->started(sink->ctx, (struct sy_str){"{}", 2});
    (void)sink->output(sink->ctx, SY_STREAM_LOG, "log", 3);
    (void)sink->output(sink->ctx, SY_STREAM_ANSWER, "answer", 6);
    (void)sink->output(sink->ctx, 3, "x", 1);
    (void)sink->output(sink->ctx, SY_STREAM_LOG, NULL, 1);
    (void)sink->output(sink->ctx, SY_STREAM_ANSWER, NULL, 0);
    (void)sink->output(sink->ctx, SY_STREAM_LOG, "more", 4);
    out->exit_code = 3;
    (void)snprintf(err->text, sizeof err->text, "engine is away");
    return s->answer;
}

static void prepare(void *self, const struct sy_launch *launch)
{
    struct seen *s = self;
    (void)launch;
    s->prepared++;
}

static void retire(void *self, uint64_t launch_id)
{
    struct seen *s = self;
    (void)launch_id;
    s->retired++;
}

static sy_status check(void *self, int64_t deadline_ms, void *out_ctx,
                       void (*out)(void *out_ctx, struct sy_str json),
                       struct sy_error *err)
{
    const struct seen *s = self;
    (void)deadline_ms;
    (void)err;
    out(out_ctx, (struct sy_str){"{\"ok\":true}", 11});
    out(out_ctx, (struct sy_str){NULL, 7});
    out(out_ctx, (struct sy_str){"\xff", 1});
    return s->answer;
}

static sy_status send_it(void *self, const struct sy_outgoing *msg, struct sy_sent *out,
                         struct sy_error *err)
{
    struct seen *s = self;
    (void)msg;
    s->sent++;
    out->outcome = s->outcome;
    out->retry_after_ms = -5;
    (void)snprintf(out->transport_id, sizeof out->transport_id, "wamid.1");
    (void)snprintf(err->text, sizeof err->text, "number is not there");
    return s->answer;
}

static void typing(void *self, struct sy_str account, struct sy_str conversation,
                   struct sy_str message_id, uint32_t busy, int64_t deadline_ms)
{
    struct seen *s = self;
    (void)account;
    (void)conversation;
    (void)message_id;
    (void)deadline_ms;
    s->typed++;
    s->busy = busy;
}

static sy_status start_fails(void *self, struct sy_error *err)
{
    struct seen *s = self;
    s->started++;
    (void)snprintf(err->text, sizeof err->text, "port is taken");
    return SY_E_IO;
}

static void stop_counts(void *self)
{
    struct seen *s = self;
    s->stopped++;
}

struct got {
    char text[64];
    int started;
    int32_t answer;
};

static int32_t output(void *ctx, uint32_t stream, const void *data, size_t len)
{
    struct got *g = ctx;
    size_t n = strlen(g->text);
    (void)snprintf(g->text + n, sizeof g->text - n, "%u:%.*s ", stream, (int)len,
                   len > 0 ? (const char *)data : "");
    return g->answer;
}

static void started(void *ctx, struct sy_str layers)
{
    struct got *g = ctx;
    (void)layers;
    g->started++;
}

static void executor(struct fake *f, struct seen *s)
{
    fake_init(f, SY_KIND_EXECUTOR, "mine", false, NULL, 0);
    memset(s, 0, sizeof *s);
    f->p->self = s;
    f->p->executor.enforces = SY_MUST_MEM | SY_MUST_KILL_TREE;
    f->p->executor.run = run;
    f->p->executor.prepare = prepare;
    f->p->executor.retire = retire;
    f->p->executor.check = check;
    f->p->executor.stop = stop_counts;
}

static enum status run_it(struct fake *f, uint64_t must, struct got *g,
                          struct sy_result *res, struct error *err)
{
    const struct sy_launch launch = {.size = sizeof launch, .must = must};
    const struct sy_plan plan = {.size = sizeof plan,
                                 .cancel_fd = -1,
                                 .launch = &launch,
                                 .deadline_ms = CLOCK_NEVER};
    const struct sy_sink sink = {
        .size = sizeof sink, .ctx = g, .output = output, .started = started};
    memset(g->text, 0, sizeof g->text);
    g->started = 0;
    return plugin_executor_run(f->p, &plan, &sink, res, err);
}

static void a_run_is_passed_on_and_its_sink_is_guarded(void **state)
{
    (void)state;
    struct fake f;
    struct seen s;
    struct error err;
    struct got g = {.answer = 0};
    struct sy_result res;
    executor(&f, &s);
    assert_int_equal(run_it(&f, 0, &g, &res, &err), ST_CANCELLED);
    assert_string_equal(err.text, "plugin mine: loaded");
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    assert_int_equal(run_it(&f, SY_MUST_MEM, &g, &res, &err), ST_OK);
    assert_string_equal(g.text, "2:log 1:answer 1: 2:more ");
    assert_int_equal(g.started, 1);
    assert_int_equal(res.exit_code, 3);
    assert_int_equal(res.cpu_ms, -1);
    assert_int_equal(fake_logged(&f, "started: called twice for one run"), 1);
    assert_int_equal(fake_logged(&f, "output: stream 3 is unknown"), 1);
    assert_int_equal(fake_logged(&f, "output: a length but no bytes"), 1);
    g.answer = 1; /* enough: answers stop, the log goes on */
    assert_int_equal(run_it(&f, 0, &g, &res, &err), ST_OK);
    assert_string_equal(g.text, "2:log 2:more ");
    assert_int_equal(fake_logged(&f, "more of the answer after the core said enough"), 2);
    plugin_stop(f.p);
    assert_int_equal(s.stopped, 1);
    assert_int_equal(run_it(&f, 0, &g, &res, &err), ST_CANCELLED);
    assert_string_equal(err.text, "plugin mine: stopped");
    assert_int_equal(s.runs, 2);
    fake_done(&f);
    assert_int_equal(s.stopped, 1);
}

static void a_failed_run_says_why(void **state)
{
    (void)state;
    struct fake f;
    struct seen s;
    struct error err;
    struct got g = {.answer = 0};
    struct sy_result res;
    executor(&f, &s);
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    s.answer = SY_E_IO;
    assert_int_equal(run_it(&f, 0, &g, &res, &err), ST_IO);
    assert_string_equal(err.text, "run() failed: engine is away");
    fake_done(&f);
}

static void launches_with_bits_it_lacks_never_arrive(void **state)
{
    (void)state;
    struct fake f;
    struct seen s;
    struct error err;
    struct got g = {.answer = 0};
    struct sy_result res;
    executor(&f, &s);
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    assert_int_equal(run_it(&f, SY_MUST_MEM | SY_MUST_PIDS, &g, &res, &err), ST_REFUSED);
    assert_string_equal(err.text, "executor mine cannot enforce: process limit");
    const struct sy_launch bad = {.size = sizeof bad, .must = SY_MUST_NO_NET};
    const struct sy_launch good = {.size = sizeof good, .must = SY_MUST_MEM};
    plugin_executor_prepare(f.p, &bad);
    assert_int_equal(s.prepared, 0);
    plugin_executor_prepare(f.p, &good);
    plugin_executor_retire(f.p, 1);
    assert_int_equal(s.prepared, 1);
    assert_int_equal(s.retired, 1);
    assert_int_equal(s.runs, 0);
    assert_int_equal(plugin_executor_enforces(f.p), SY_MUST_MEM | SY_MUST_KILL_TREE);
    assert_int_equal(plugin_executor_max_parallel(f.p), 1);
    fake_done(&f);
}

static void check_gives_json_or_a_reason(void **state)
{
    (void)state;
    struct fake f;
    struct seen s;
    struct error err;
    struct buf b;
    executor(&f, &s);
    buf_init(&b, 100);
    assert_int_equal(plugin_executor_check(f.p, CLOCK_NEVER, &b, &err), ST_CANCELLED);
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    assert_int_equal(plugin_executor_check(f.p, CLOCK_NEVER, &b, &err), ST_OK);
    assert_str_is(buf_str(&b), "{\"ok\":true}");
    s.answer = SY_E_UNSUPPORTED;
    assert_int_equal(plugin_executor_check(f.p, CLOCK_NEVER, &b, &err), ST_UNSUPPORTED);
    buf_done(&b);
    fake_done(&f);
}

static void channel(struct fake *f, struct seen *s)
{
    fake_init(f, SY_KIND_CHANNEL, "mail", false, NULL, 0);
    memset(s, 0, sizeof *s);
    f->p->self = s;
    f->p->channel.send = send_it;
    f->p->channel.typing = typing;
    f->p->channel.max_text_chars = 4096;
}

static void every_outcome_of_send(void **state)
{
    (void)state;
    struct fake f;
    struct seen s;
    struct error err;
    struct sy_sent sent;
    const struct sy_outgoing msg = {
        .size = sizeof msg, .cancel_fd = -1, .deadline_ms = CLOCK_NEVER};
    channel(&f, &s);
    assert_true(plugin_channel_can_send(f.p));
    assert_int_equal(plugin_channel_max_text(f.p), 4096);
    assert_int_equal(plugin_channel_send(f.p, &msg, &sent, &err), ST_CANCELLED);
    assert_int_equal(sent.outcome, SY_SENT_RETRY);
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    for (uint32_t o = SY_SENT; o <= SY_SENT_UNKNOWN; o++) {
        s.outcome = o;
        err.text[0] = '\0';
        assert_int_equal(plugin_channel_send(f.p, &msg, &sent, &err), ST_OK);
        assert_int_equal(sent.outcome, o);
        assert_string_equal(sent.transport_id, "wamid.1");
        assert_int_equal(sent.retry_after_ms, 0);
        assert_string_equal(
            err.text, o == SY_SENT_NEVER ? "send() failed: number is not there" : "");
    }
    s.answer = SY_E_TIMEOUT;
    assert_int_equal(plugin_channel_send(f.p, &msg, &sent, &err), ST_TIMEOUT);
    assert_int_equal(sent.outcome, SY_SENT_RETRY);
    assert_int_equal(plugin_breaches(f.p), 0);
    f.p->channel.send = NULL;
    assert_false(plugin_channel_can_send(f.p));
    assert_int_equal(plugin_channel_send(f.p, &msg, &sent, &err), ST_UNSUPPORTED);
    fake_done(&f);
}

static void typing_is_best_effort(void **state)
{
    (void)state;
    struct fake f;
    struct seen s;
    struct error err;
    const struct sy_str none = {NULL, 0};
    channel(&f, &s);
    plugin_channel_typing(f.p, none, none, none, true, CLOCK_NEVER);
    assert_int_equal(s.typed, 0);
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    plugin_channel_typing(f.p, none, none, none, true, CLOCK_NEVER);
    assert_int_equal(s.typed, 1);
    assert_int_equal(s.busy, 1);
    fake_done(&f);
}

static void a_failed_start_is_never_stopped(void **state)
{
    (void)state;
    struct fake f;
    struct seen s;
    struct error err;
    executor(&f, &s);
    f.p->executor.start = start_fails;
    assert_int_equal(plugin_start(f.p, &err), ST_IO);
    assert_string_equal(err.text, "plugin mine: start() failed: port is taken");
    assert_int_equal(plugin_state(f.p), PLUGIN_FAILED);
    assert_int_equal(plugin_start(f.p, &err), ST_INVALID);
    plugin_stop(f.p);
    assert_int_equal(s.started, 1);
    assert_int_equal(s.stopped, 0);
    fake_done(&f);
}

/* What stop() meets: work is refused, what follows from earlier work is not. */
struct stopping {
    struct plugin_instance *p;
    bool work, follows;
};

static void stop_asks(void *self)
{
    struct stopping *s = self;
    s->work = plugin_call_begin(s->p, PLUGIN_CALL_WORK);
    s->follows = plugin_call_begin(s->p, PLUGIN_CALL_FOLLOWS);
    if (s->follows) {
        plugin_call_end(s->p, PLUGIN_CALL_FOLLOWS);
    }
}

static void calls_are_let_in_by_state(void **state)
{
    (void)state;
    struct fake f;
    struct error err;
    struct stopping s = {NULL, true, false};
    fake_init(&f, SY_KIND_CHANNEL, "mail", false, NULL, 0);
    s.p = f.p;
    f.p->self = &s;
    f.p->channel.stop = stop_asks;
    assert_false(plugin_call_begin(f.p, PLUGIN_CALL_WORK));
    assert_false(plugin_call_begin(f.p, PLUGIN_CALL_FOLLOWS));
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    assert_true(plugin_call_begin(f.p, PLUGIN_CALL_WORK));
    plugin_call_end(f.p, PLUGIN_CALL_WORK);
    assert_true(plugin_call_begin(f.p, PLUGIN_CALL_FOLLOWS));
    plugin_call_end(f.p, PLUGIN_CALL_FOLLOWS);
    plugin_stop(f.p);
    assert_false(s.work);
    assert_true(s.follows);
    assert_false(plugin_call_begin(f.p, PLUGIN_CALL_WORK));
    assert_false(plugin_call_begin(f.p, PLUGIN_CALL_FOLLOWS));
    assert_int_equal(plugin_state(f.p), PLUGIN_STOPPED);
    fake_done(&f);
}

static void *end_follow(void *arg)
{
    struct fake *f = arg;
    while (plugin_state(f->p) != PLUGIN_STOPPED) {
        (void)sched_yield();
    }
    /* The plugin may still call from inside a call of ours. */
    struct plugin_instance *p = plugin_upcall_begin(f->p, "log", PLUGIN_FROM_CREATE);
    if (p != NULL) {
        plugin_upcall_end(p);
    }
    plugin_call_end(f->p, PLUGIN_CALL_FOLLOWS);
    return p;
}

static void stop_waits_for_what_is_in_flight(void **state)
{
    (void)state;
    struct fake f;
    struct error err;
    pthread_t t;
    void *could_call = NULL;
    fake_init(&f, SY_KIND_CHANNEL, "mail", false, NULL, 0);
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    assert_true(plugin_call_begin(f.p, PLUGIN_CALL_FOLLOWS));
    assert_int_equal(pthread_create(&t, NULL, end_follow, &f), 0);
    plugin_stop(f.p);
    assert_int_equal(pthread_join(t, &could_call), 0);
    assert_ptr_equal(could_call, f.p);
    assert_int_equal(plugin_breaches(f.p), 0);
    fake_done(&f);
}

static void the_registry_finds_by_kind_and_name(void **state)
{
    (void)state;
    struct fake f;
    int module = 0;
    fake_init(&f, SY_KIND_CHANNEL, "mail", true, NULL, 0);
    assert_ptr_equal(plugin_find(f.r, SY_KIND_CHANNEL, "mail"), f.p);
    assert_ptr_equal(plugin_find(f.r, 0, "mail"), f.p);
    assert_null(plugin_find(f.r, SY_KIND_EXECUTOR, "mail"));
    assert_null(plugin_find(f.r, 0, "male"));
    assert_int_equal(plugin_count(f.r), 1);
    assert_ptr_equal(plugin_at(f.r, 0), f.p);
    assert_null(plugin_at(f.r, 1));
    assert_string_equal(plugin_name(f.p), "mail");
    assert_string_equal(plugin_version(f.p), "1");
    assert_string_equal(plugin_path(f.p), "/nowhere/fake.so");
    assert_int_equal(plugin_kind(f.p), SY_KIND_CHANNEL);
    assert_true(plugin_is_own(f.p));
    assert_null(plugin_slot(f.p, PLUGIN_SLOT_HTTP));
    plugin_slot_set(f.p, PLUGIN_SLOT_HTTP, &module);
    assert_ptr_equal(plugin_slot(f.p, PLUGIN_SLOT_HTTP), &module);
    fake_done(&f);
    plugin_registry_free(NULL);
    plugin_instance_free(NULL);
}

static void states_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"creating", "loaded",  "starting", "started",
                                        "stopping", "stopped", "failed"};
    for (int i = PLUGIN_CREATING; i <= PLUGIN_FAILED; i++) {
        assert_string_equal(plugin_state_name((enum plugin_state)i), names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_passed_on_and_its_sink_is_guarded),
        cmocka_unit_test(a_failed_run_says_why),
        cmocka_unit_test(launches_with_bits_it_lacks_never_arrive),
        cmocka_unit_test(check_gives_json_or_a_reason),
        cmocka_unit_test(every_outcome_of_send),
        cmocka_unit_test(typing_is_best_effort),
        cmocka_unit_test(a_failed_start_is_never_stopped),
        cmocka_unit_test(calls_are_let_in_by_state),
        cmocka_unit_test(stop_waits_for_what_is_in_flight),
        cmocka_unit_test(the_registry_finds_by_kind_and_name),
        cmocka_unit_test(states_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
