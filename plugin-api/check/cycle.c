/* In: the plugin's file. Out: one whole life of it: load, start, use, stop, destroy, each
 * on the thread it belongs on and with memory that is lent for the call alone. What breaks
 * a rule is counted by the core's checks and read back from its log. */
#include "check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "config/plugin_values.h"

#include <stdio.h>
#include <string.h>

#define RUN_MS 10000

static enum status values(void *ctx, uint32_t kind, const char *name,
                          const struct sy_cfg_key *keys, size_t nkeys, struct arena *a,
                          const struct sy_cfg_value **out, size_t *nout,
                          struct error *err)
{
    const struct check *c = ctx;
    struct problems probs;
    struct sy_cfg_value *found = NULL;
    (void)nkeys;
    problems_init(&probs, a, c->cfg->file != NULL ? c->cfg->file : "(no configuration)");
    enum status st =
        config_plugin_values(c->cfg, name, kind, keys, a, &probs, &found, nout);
    *out = found;
    if (st == ST_OK) {
        return ST_OK;
    }
    return error_set(err, st, "%s: %s", probs.file,
                     probs.first != NULL ? probs.first->text : "cannot be read");
}

static void seen_failure(struct check *c, bool quiet, const char *what, enum status st,
                         const struct error *err)
{
    if (strstr(err->text, "no reason given") != NULL) {
        check_fail(c, "%s failed (%s) and gave no reason", what, status_name(st));
    } else if (!quiet) {
        (void)printf("note %s\n", err->text);
    }
}

/* ---- an executor ---- */

static int32_t output(void *ctx, uint32_t stream, const void *data, size_t len)
{
    struct buf *answer = ctx;
    if (stream == SY_STREAM_ANSWER) {
        buf_add(answer, data, len);
    }
    return str_find(buf_str(answer), STR_LIT(CHECK_ANSWER)) != SIZE_MAX ? 1 : 0;
}

static void started(void *ctx, struct sy_str layers)
{
    (void)ctx;
    (void)layers;
}

static const struct sy_launch *lend_launch(struct loan *l, uint64_t must)
{
    static const char key[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const struct sy_str argv[] = {loan_text(l, "/usr/bin/python3"), loan_text(l, "-I"),
                                  loan_text(l, "-c"), loan_text(l, "pass")};
    struct sy_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.size = sizeof launch;
    launch.id = 1;
    launch.key = loan_text(l, key);
    launch.must = must;
    launch.argv = loan_copy(l, argv, sizeof argv);
    launch.nargv = 4;
    launch.preamble = loan_text(l, "8\n" CHECK_PREAMBLE);
    launch.mem_bytes = UINT64_C(512) << 20;
    launch.cpu_ms = 30000;
    launch.file_bytes = UINT64_C(64) << 20;
    launch.max_files = 256;
    launch.max_pids = 64;
    return loan_copy(l, &launch, sizeof launch);
}

/* One run: until its answer, until it is cancelled, or until its deadline. */
static void one_run(struct check *c, struct plugin_instance *p, bool quiet,
                    bool cancelled, int64_t ms)
{
    struct loan l;
    struct event cancel;
    struct error err = {.status = ST_OK};
    struct sy_result result;
    struct buf answer;
    if (event_init(&cancel, &err) != ST_OK) {
        return;
    }
    if (cancelled) {
        event_fire(&cancel);
    }
    buf_init(&answer, 4096);
    loan_open(&l);
    struct sy_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.size = sizeof plan;
    plan.cancel_fd = cancel.fd;
    plan.launch = lend_launch(&l, plugin_executor_enforces(p));
    plan.run_id = loan_text(&l, "check");
    plan.request = loan_text(&l, CHECK_REQUEST);
    plan.deadline_ms = clock_mono_ms() + ms;
    const struct sy_sink sink = {
        .size = sizeof sink, .ctx = &answer, .output = output, .started = started};
    const struct sy_plan *lent = loan_copy(&l, &plan, sizeof plan);
    loan_note("run()");
    enum status st = plugin_executor_run(p, lent, &sink, &result, &err);
    loan_revoke(&l, "run()");
    if (st == ST_TIMEOUT && ms >= RUN_MS && c->next_child > 0) {
        check_fail(c, "run() got no answer from a child that gives one");
    } else if (st != ST_OK) {
        seen_failure(c, quiet || cancelled || ms < 1000, "run()", st, &err);
    } else if (cancelled &&
               str_find(buf_str(&answer), STR_LIT(CHECK_ANSWER)) == SIZE_MAX) {
        check_fail(c, "run() said it ran to its end although it was cancelled");
    }
    loan_close(&l);
    buf_done(&answer);
    event_done(&cancel);
}

static void use_executor(struct check *c, struct plugin_instance *p, bool quiet)
{
    struct loan l;
    struct error err;
    struct buf b;
    loan_open(&l);
    const struct sy_launch *launch = lend_launch(&l, plugin_executor_enforces(p));
    loan_note("prepare()");
    plugin_executor_prepare(p, launch);
    loan_revoke(&l, "prepare()");
    int64_t ms = c->fail_every > 0 ? RUN_MS / 10 : RUN_MS;
    one_run(c, p, quiet, false, ms);
    one_run(c, p, quiet, false, ms);
    one_run(c, p, quiet, true, ms);
    one_run(c, p, quiet, false, 1);
    loan_note("check()");
    buf_init(&b, 65536);
    enum status st = plugin_executor_check(p, clock_mono_ms() + 2000, &b, &err);
    if (st != ST_OK && st != ST_UNSUPPORTED) {
        seen_failure(c, quiet, "check()", st, &err);
    }
    buf_done(&b);
    loan_note("retire()");
    plugin_executor_retire(p, 1);
    loan_close(&l);
}

/* ---- a channel ---- */

static void one_send(struct check *c, struct plugin_instance *p, bool quiet,
                     bool cancelled)
{
    struct loan l;
    struct event cancel;
    struct error err = {.status = ST_OK};
    struct sy_sent sent;
    if (event_init(&cancel, &err) != ST_OK) {
        return;
    }
    if (cancelled) {
        event_fire(&cancel);
    }
    loan_open(&l);
    struct sy_outgoing out;
    memset(&out, 0, sizeof out);
    out.size = sizeof out;
    out.cancel_fd = cancel.fd;
    out.id = loan_text(&l, "out-1");
    out.account = loan_text(&l, "account");
    out.conversation = loan_text(&l, "conversation");
    out.text = loan_text(&l, "h\xc3\xa9llo");
    out.deadline_ms = clock_mono_ms() + 5000;
    const struct sy_outgoing *lent = loan_copy(&l, &out, sizeof out);
    loan_note("send()");
    enum status st = plugin_channel_send(p, lent, &sent, &err);
    loan_revoke(&l, "send()");
    if (st != ST_OK) {
        seen_failure(c, quiet || cancelled, "send()", st, &err);
    }
    loan_close(&l);
    event_done(&cancel);
}

static void use_channel(struct check *c, struct plugin_instance *p, bool quiet)
{
    struct loan l;
    check_http_requests(c);
    if (plugin_channel_can_send(p)) {
        one_send(c, p, quiet, false);
        one_send(c, p, quiet, true);
    }
    loan_open(&l);
    loan_note("typing()");
    plugin_channel_typing(p, loan_text(&l, "account"), loan_text(&l, "conversation"),
                          loan_text(&l, "message"), true, clock_mono_ms() + 2000);
    loan_revoke(&l, "typing()");
    loan_close(&l);
}

/* ---- a whole life ---- */

struct use {
    struct check *c;
    struct plugin_instance *p;
    bool quiet;
};

/* [worker] calls belong on another thread than [core] ones. */
static void *worker(void *arg)
{
    const struct use *u = arg;
    if (plugin_kind(u->p) == SY_KIND_CHANNEL) {
        use_channel(u->c, u->p, u->quiet);
    } else {
        use_executor(u->c, u->p, u->quiet);
    }
    return NULL;
}

/* What the core's checks have logged since we last looked. */
static void read_breaches(struct check *c)
{
    struct error err;
    struct buf b;
    struct str line;
    const struct str mark = STR_LIT("plugin misbehaving: ");
    buf_init(&b, (size_t)64 * 1024 * 1024);
    if (io_read_file(c->log_path, b.max, &b, &err) == ST_OK) {
        struct str rest = buf_str(&b);
        size_t all = rest.len;
        rest = str_n(rest.ptr + c->log_seen, rest.len - c->log_seen);
        while (str_split(&rest, '\n', &line)) {
            size_t at = str_find(line, mark);
            if (at != SIZE_MAX) {
                struct str rule = str_n(line.ptr + at, line.len - at);
                check_fail(c, "%.*s", STR_ARG(rule));
            }
        }
        c->log_seen = all;
    }
    buf_done(&b);
}

static bool live(struct check *c, struct plugin_registry *r, bool quiet)
{
    struct error err = {.status = ST_OK};
    struct plugin_instance *p = NULL;
    pthread_t t;
    const struct plugin_spec spec = {.path = c->plugin_path};
    loan_note("create() or query()");
    enum status st = plugin_load(r, &spec, &p, &err);
    if (st != ST_OK) {
        if (!quiet) {
            check_fail(c, "%s", err.text);
        }
        seen_failure(c, true, "create()", st, &err);
        return false;
    }
    loan_note("start()");
    st = plugin_start(p, &err);
    if (st != ST_OK) {
        seen_failure(c, quiet, "start()", st, &err);
        return true;
    }
    struct use u = {c, p, quiet};
    if (pthread_create(&t, NULL, worker, &u) == 0) {
        (void)pthread_join(t, NULL);
    }
    loan_note("stop()");
    plugin_stop(p);
    return true;
}

bool check_cycle(struct check *c, bool quiet)
{
    struct error err = {.status = ST_OK};
    struct check_process before;
    struct plugin_registry *r = NULL;
    struct plugin_registry_config cfg = {
        .log = c->log, .values = values, .values_ctx = c, .grace_ms = 1000};
    cfg.services = check_services(&cfg.nservices);
    for (int i = 0; i < PLUGIN_SLOTS; i++) {
        cfg.slots[i] = c;
    }
    check_process_take(&before);
    if (plugin_registry_new(&cfg, &r, &err) != ST_OK) {
        check_fail(c, "%s", err.text);
        return false;
    }
    bool loaded = live(c, r, quiet);
    check_http_done(c);
    check_spawn_done(c);
    loan_note("destroy()");
    plugin_registry_free(r);
    loan_note(NULL);
    read_breaches(c);
    /* Each load keeps one descriptor of the file for good; it is no leak of the plugin. */
    before.fds++;
    check_process_compare(c, &before, true);
    return loaded;
}
