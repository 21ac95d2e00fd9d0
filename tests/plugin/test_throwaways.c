/* In: the three throw-away plugins and the mock host. Out: that a stream, stock and a
 * plugin in another process can be written against the ABI as it is. */
#include "support/test.h"

#include "plugin/mock_host.h"
#include "plugin/proxy_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

extern const struct sy_plugin soulacy_plugin_sse_v1;
extern const struct sy_plugin soulacy_plugin_standby_v1;
extern const struct sy_plugin soulacy_plugin_proxy_v1;

#define SPAN(s) \
    { \
        (s), sizeof(s) - 1 \
    }

static int setup(void **state)
{
    *state = mock_new();
    return 0;
}

static int teardown(void **state)
{
    char last[256];
    int faults = mock_faults(*state, last);
    mock_free(*state);
    return faults;
}

static void *made(struct mock_host *m, const struct sy_plugin *entry,
                  const struct sy_cfg_value *cfg, size_t ncfg)
{
    struct sy_error err = {.size = sizeof err};
    void *self = NULL;
    assert_int_equal(entry->create(mock_table(m), cfg, ncfg, &self, &err), SY_OK);
    return self;
}

/* ---- server-sent events ---- */

static struct mock_client *get_stream(struct mock_host *m, const char *query, bool key)
{
    const struct mock_request req = {.method = "GET",
                                     .path = "/channels/sse/stream",
                                     .query = query,
                                     .authenticated = key};
    return mock_send(m, &req);
}

static void reply(const struct sy_channel *c, void *self, const char *to,
                  const char *text, uint32_t outcome)
{
    struct sy_error err = {.size = sizeof err};
    struct sy_sent sent = {.size = sizeof sent};
    const struct sy_outgoing out = {.size = sizeof out,
                                    .cancel_fd = -1,
                                    .conversation = {to, strlen(to)},
                                    .text = {text, strlen(text)},
                                    .deadline_ms = mock_now_ms() + 1000};
    assert_int_equal(c->send(self, &out, &sent, &err), SY_OK);
    assert_int_equal(sent.outcome, outcome);
}

static void a_stream_outlives_its_handler(void **state)
{
    struct mock_host *m = *state;
    struct sy_error err = {.size = sizeof err};
    void *self = made(m, &soulacy_plugin_sse_v1, NULL, 0);
    const struct sy_channel *c = soulacy_plugin_sse_v1.query(self, SY_CHANNEL_ID);
    assert_int_equal(c->start(self, &err), SY_OK);
    assert_int_equal(mock_routes(m), 2);
    assert_int_equal(mock_client_status(get_stream(m, "as=ann", false)), 401);
    assert_int_equal(mock_client_status(get_stream(m, NULL, true)), 400);
    struct mock_client *ann = get_stream(m, "as=ann", true);
    struct mock_client *bob = get_stream(m, "as=bob", true);
    assert_int_equal(mock_client_status(ann), 200);
    assert_string_equal(mock_client_header(ann, "content-type"), "text/event-stream");
    assert_false(mock_client_ended(ann));
    reply(c, self, "ann", "one", SY_SENT);
    reply(c, self, "bob", "two", SY_SENT);
    reply(c, self, "eve", "three", SY_SENT_RETRY);
    assert_string_equal(mock_client_body(ann), ": hello\n\ndata: one\n\n");
    assert_string_equal(mock_client_body(bob), ": hello\n\ndata: two\n\n");
    mock_client_drop(ann);
    assert_true(mock_client_ended(ann));
    reply(c, self, "ann", "four", SY_SENT_RETRY);
    c->stop(self);
    assert_true(mock_client_ended(bob));
    soulacy_plugin_sse_v1.destroy(self);
}

static void what_is_said_is_delivered_before_it_is_acknowledged(void **state)
{
    struct mock_host *m = *state;
    struct sy_error err = {.size = sizeof err};
    void *self = made(m, &soulacy_plugin_sse_v1, NULL, 0);
    const struct sy_channel *c = soulacy_plugin_sse_v1.query(self, SY_CHANNEL_ID);
    const struct mock_request say = {.method = "POST",
                                     .path = "/channels/sse/say",
                                     .query = "as=ann",
                                     .body = "hello",
                                     .authenticated = true};
    assert_int_equal(c->start(self, &err), SY_OK);
    assert_int_equal(mock_client_status(mock_send(m, &say)), 202);
    assert_int_equal(mock_messages(m), 1);
    assert_string_equal(mock_message(m, 0)->text, "hello");
    assert_string_equal(mock_message(m, 0)->sender, "ann");
    mock_deliver_answers(m, SY_E_BUSY);
    assert_int_equal(mock_client_status(mock_send(m, &say)), 503);
    assert_int_equal(mock_messages(m), 1);
    c->stop(self);
    soulacy_plugin_sse_v1.destroy(self);
}

static void a_slow_reader_is_let_go(void **state)
{
    struct mock_host *m = *state;
    struct sy_error err = {.size = sizeof err};
    static char big[100001];
    void *self = made(m, &soulacy_plugin_sse_v1, NULL, 0);
    const struct sy_channel *c = soulacy_plugin_sse_v1.query(self, SY_CHANNEL_ID);
    memset(big, 'x', sizeof big - 1);
    assert_int_equal(c->start(self, &err), SY_OK);
    struct mock_client *ann = get_stream(m, "as=ann", true);
    mock_client_slow(ann);
    reply(c, self, "ann", big, SY_SENT);
    reply(c, self, "ann", big, SY_SENT);
    reply(c, self, "ann", big, SY_SENT_RETRY);
    c->stop(self);
    soulacy_plugin_sse_v1.destroy(self);
}

/* ---- stock ---- */

struct standby {
    struct mock_host *m;
    void *self;
    const struct sy_executor *x;
    struct mock_sink sink;
    struct sy_result result;
    struct sy_error err;
    int cancel;
};

static void standby_init(struct standby *s, struct mock_host *m)
{
    memset(s, 0, sizeof *s);
    s->m = m;
    s->self = made(m, &soulacy_plugin_standby_v1, NULL, 0);
    s->x = soulacy_plugin_standby_v1.query(s->self, SY_EXECUTOR_ID);
    s->err.size = sizeof s->err;
    s->cancel = eventfd(0, EFD_CLOEXEC);
    mock_sink_init(&s->sink);
    assert_int_equal(s->x->start(s->self, &s->err), SY_OK);
}

static void standby_done(struct standby *s)
{
    s->x->stop(s->self);
    soulacy_plugin_standby_v1.destroy(s->self);
    assert_int_equal(mock_children(s->m), 0);
    (void)close(s->cancel);
}

static sy_status standby_run(struct standby *s, const struct sy_launch *l, int64_t ms)
{
    const struct sy_plan plan = {.size = sizeof plan,
                                 .cancel_fd = s->cancel,
                                 .launch = l,
                                 .run_id = SPAN("r1"),
                                 .request = SPAN("world\n"),
                                 .deadline_ms = mock_now_ms() + ms};
    memset(&s->result, 0, sizeof s->result);
    s->result.size = sizeof s->result;
    return s->x->run(s->self, &plan, &s->sink.sink, &s->result, &s->err);
}

static const char *const greeter[] = {
    "/bin/sh", "-c", "read a; read b; echo \"$a $b\"; echo noted >&2", NULL};
static const char *const sleeper[] = {"/bin/sh", "-c", "sleep 100 & sleep 100", NULL};

static void stock_is_used_once_and_equals_a_cold_run(void **state)
{
    struct standby s;
    standby_init(&s, *state);
    const struct sy_launch *l = mock_launch(s.m, greeter, "hello\n", SY_MUST_KILL_TREE);
    s.x->prepare(s.self, l);
    assert_int_equal(mock_children(s.m), 1);
    assert_int_equal(standby_run(&s, l, 5000), SY_OK);
    assert_int_equal(s.result.from_stock, 1);
    assert_int_equal(s.result.exit_code, 0);
    assert_int_equal(s.result.request_sent, 1);
    assert_string_equal(s.sink.answer, "hello world\n");
    assert_string_equal(s.sink.log, "noted\n");
    assert_string_equal(s.sink.layers, "{\"mock\":true}");
    mock_sink_init(&s.sink);
    assert_int_equal(standby_run(&s, l, 5000), SY_OK);
    assert_int_equal(s.result.from_stock, 0);
    assert_string_equal(s.sink.answer, "hello world\n");
    assert_int_equal(mock_children_total(s.m), 2);
    standby_done(&s);
}

static void retired_stock_is_dropped_and_cannot_be_made(void **state)
{
    struct standby s;
    standby_init(&s, *state);
    const struct sy_launch *l = mock_launch(s.m, greeter, "hello\n", 0);
    s.x->prepare(s.self, l);
    s.x->prepare(s.self, l);
    assert_int_equal(mock_children(s.m), 2);
    mock_launch_retire(s.m, l);
    s.x->retire(s.self, l->id);
    assert_int_equal(mock_children(s.m), 0);
    assert_int_equal(standby_run(&s, l, 1000), SY_E_INVALID);
    standby_done(&s);
}

static void deadline_and_cancel_end_the_whole_tree(void **state)
{
    struct standby s;
    standby_init(&s, *state);
    const struct sy_launch *l = mock_launch(s.m, sleeper, NULL, SY_MUST_KILL_TREE);
    assert_int_equal(standby_run(&s, l, 50), SY_E_TIMEOUT);
    assert_int_equal(eventfd_write(s.cancel, 1), 0);
    assert_int_equal(standby_run(&s, l, 5000), SY_E_CANCELLED);
    assert_int_equal(mock_children(s.m), 0);
    standby_done(&s);
}

static void a_layer_that_fails_is_a_refusal_with_its_name(void **state)
{
    struct standby s;
    standby_init(&s, *state);
    const struct sy_launch *l = mock_launch(s.m, greeter, "hello\n", 0);
    mock_spawn_fails(s.m, 1, "landlock: not in this kernel");
    sy_status st = standby_run(&s, l, 1000);
    assert_true(st == SY_E_REFUSED || st == SY_E_IO);
    standby_done(&s);
}

/* ---- another process ---- */

static void put_text(char *to, size_t cap, const char *text)
{
    memset(to, 0, cap);
    (void)snprintf(to, cap, "%s", text);
}

/* The process behind the stub: says one thing with a file, then takes two sends. The first
 * answers with what is in the attachment, the second waits until it is cancelled. */
static int other_process(int socket)
{
    struct wire w = {.what = WIRE_MESSAGE, .nfds = 1};
    char content[64] = "";
    int fds[2];
    FILE *f = tmpfile();
    if (f == NULL || fputs("from the other side", f) < 0 || fflush(f) != 0) {
        return 1;
    }
    fds[0] = fileno(f);
    put_text(w.id, sizeof w.id, "m-1");
    put_text(w.conversation, sizeof w.conversation, "room");
    put_text(w.sender, sizeof w.sender, "ann");
    put_text(w.text, sizeof w.text, "see file");
    if (wire_put(socket, &w, fds) != 0) {
        return 2;
    }
    /* The first send may overtake the word that the message is stored. */
    bool stored = false, asked = false;
    while (!stored || !asked) {
        if (wire_get(socket, &w, fds) != 0) {
            return 3;
        }
        stored = stored || (w.what == WIRE_STORED && w.status == SY_OK);
        asked = asked || (w.what == WIRE_SEND && fds[1] >= 0 &&
                          pread(fds[1], content, sizeof content - 1, 0) > 0);
    }
    w = (struct wire){.what = WIRE_SENT, .outcome = SY_SENT};
    put_text(w.text, sizeof w.text, content);
    if (wire_put(socket, &w, NULL) != 0 || wire_get(socket, &w, fds) != 0) {
        return 4;
    }
    struct pollfd p = {.fd = fds[0], .events = POLLIN};
    w = (struct wire){.what = WIRE_SENT, .outcome = SY_SENT_UNKNOWN};
    if (poll(&p, 1, 5000) != 1 || wire_put(socket, &w, NULL) != 0) {
        return 5;
    }
    return wire_get(socket, &w, fds) != 0 ? 0 : 6; /* end of file: the stub has stopped */
}

static bool one_message(void *arg)
{
    return mock_messages(arg) == 1;
}

struct late_cancel {
    int fd;
};

static void *cancel_thread(void *arg)
{
    const struct late_cancel *c = arg;
    (void)eventfd_write(c->fd, 1);
    return NULL;
}

static void send_through(const struct sy_channel *c, void *self, int cancel,
                         const struct sy_attachment *file, struct sy_sent *sent)
{
    struct sy_error err = {.size = sizeof err};
    const struct sy_outgoing out = {.size = sizeof out,
                                    .cancel_fd = cancel,
                                    .conversation = SPAN("room"),
                                    .text = SPAN("hello"),
                                    .attachments = file,
                                    .nattachments = file != NULL ? 1 : 0,
                                    .deadline_ms = mock_now_ms() + 5000};
    memset(sent, 0, sizeof *sent);
    sent->size = sizeof *sent;
    assert_int_equal(c->send(self, &out, sent, &err), SY_OK);
}

static void a_plugin_may_live_in_another_process(void **state)
{
    struct mock_host *m = *state;
    struct sy_error err = {.size = sizeof err};
    struct sy_sent sent;
    pthread_t t;
    int pair[2];
    int how = 0;
    char content[64] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        _exit(other_process(pair[1]));
    }
    (void)close(pair[1]);
    const struct sy_cfg_value cfg = {
        .key = SPAN("socket_fd"), .type = SY_CFG_INT, .i = pair[0]};
    void *self = made(m, &soulacy_plugin_proxy_v1, &cfg, 1);
    const struct sy_channel *c = soulacy_plugin_proxy_v1.query(self, SY_CHANNEL_ID);
    assert_int_equal(c->start(self, &err), SY_OK);
    assert_true(mock_wait(m, one_message, m, 5000));
    const struct mock_message *got = mock_message(m, 0);
    assert_string_equal(got->text, "see file");
    assert_true(pread(got->attachment_fd, content, sizeof content - 1, 0) > 0);
    assert_string_equal(content, "from the other side");
    int cancel = eventfd(0, EFD_CLOEXEC);
    const struct sy_attachment file = {.fd = got->attachment_fd, .kind = SY_MEDIA_FILE};
    send_through(c, self, cancel, &file, &sent);
    assert_int_equal(sent.outcome, SY_SENT);
    assert_string_equal(sent.transport_id, "from the other side");
    const struct late_cancel late = {cancel};
    assert_int_equal(pthread_create(&t, NULL, cancel_thread, (void *)(uintptr_t)&late),
                     0);
    send_through(c, self, cancel, NULL, &sent);
    assert_int_equal(sent.outcome, SY_SENT_UNKNOWN);
    assert_int_equal(pthread_join(t, NULL), 0);
    c->stop(self);
    soulacy_plugin_proxy_v1.destroy(self);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(WEXITSTATUS(how), 0);
    (void)close(pair[0]);
    (void)close(cancel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(a_stream_outlives_its_handler),
        T(what_is_said_is_delivered_before_it_is_acknowledged),
        T(a_slow_reader_is_let_go),
        T(stock_is_used_once_and_equals_a_cold_run),
        T(retired_stock_is_dropped_and_cannot_be_made),
        T(deadline_and_cancel_end_the_whole_tree),
        T(a_layer_that_fails_is_a_refusal_with_its_name),
        T(a_plugin_may_live_in_another_process),
#undef T
    };
    (void)signal(SIGPIPE, SIG_IGN); /* as the core does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
