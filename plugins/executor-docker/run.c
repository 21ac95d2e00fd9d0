/* One call through one container. Comes in: a plan. Goes out: what the tool writes, as it
 * arrives, and how it ended. One loop reads and writes at the same time, so that neither
 * side can stall the other; it never waits for the end of the stream to give the answer. */
#include "docker.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK 65536
#define WRITES_PER_ROUND 8
/* stdout and stderr take separate ways through an engine, so text written before the
 * answer may come after it: the answer is held back until it is quiet for this long. */
#define HOLD_MS 3
#define HELD_MAX ((size_t)1024 * 1024)
#define DRAIN_READS 64

enum { P_CANCEL, P_STREAM, P_COUNT };
enum outcome { GOING, ENOUGH, ENDED, TIMED_OUT, CANCELLED, BROKEN };

struct run {
    struct docker *d;
    struct box *box;
    const struct sy_plan *plan;
    const struct sy_sink *sink;
    struct sy_result *result;
    struct pollfd fds[P_COUNT];
    size_t at; /* bytes of the request written */
    struct bytes held;
    int64_t held_until_ms;
    int64_t started_ms;
    bool enough, logs_only, stdin_closed;
    char *chunk;
};

static int64_t now_ms(const struct run *r)
{
    return engine_now(&r->d->engine);
}

/* ---- towards the core ----------------------------------------------------------------- */

static void release(struct run *r)
{
    if (r->held.n > 0 && !r->enough && !r->logs_only) {
        r->enough =
            r->sink->output(r->sink->ctx, SY_STREAM_ANSWER, r->held.p, r->held.n) != 0;
    }
    bytes_clear(&r->held);
}

static void give_log(struct run *r, const char *data, size_t len)
{
    if (r->sink->output(r->sink->ctx, SY_STREAM_LOG, data, len) != 0) {
        r->enough = true;
    }
}

static int take(void *ctx, int stream, const char *data, size_t len)
{
    struct run *r = ctx;
    if (stream == 2) {
        give_log(r, data, len);
    } else if (!r->enough && !r->logs_only) {
        if (len > r->held.max - r->held.n) {
            release(r);
        }
        if (!r->enough) {
            bytes_add(&r->held, data, len);
            if (r->held.bad) { /* no memory to hold it: give it as it comes */
                bytes_clear(&r->held);
                r->enough =
                    r->sink->output(r->sink->ctx, SY_STREAM_ANSWER, data, len) != 0;
            }
        }
    }
    return 0;
}

/* ---- the stream ----------------------------------------------------------------------- */

/* One read. false: nothing there, or the end (then *end). */
static bool read_some(struct run *r, enum outcome *end)
{
    ssize_t n = recv(r->box->attach_fd, r->chunk, CHUNK, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (n <= 0) {
        *end = ENDED;
        return false;
    }
    if (frames_feed(&r->box->frames, r->chunk, (size_t)n, take, r) == FRAMES_BAD) {
        *end = BROKEN;
        return false;
    }
    if (r->held.n > 0) {
        r->held_until_ms = now_ms(r) + HOLD_MS;
    }
    return true;
}

static void feed(struct run *r)
{
    const struct sy_str *q = &r->plan->request;
    for (int i = 0; i < WRITES_PER_ROUND && r->at < q->len && !r->stdin_closed; i++) {
        size_t len = q->len - r->at < CHUNK ? q->len - r->at : CHUNK;
        ssize_t n =
            send(r->box->attach_fd, q->ptr + r->at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            r->stdin_closed = errno != EAGAIN && errno != EINTR;
            break;
        }
        r->at += (size_t)n;
        r->result->request_sent = 1;
    }
    bool more = r->at < q->len && !r->stdin_closed;
    r->fds[P_STREAM].events = more ? POLLIN | POLLOUT : POLLIN;
}

static int poll_timeout(const struct run *r)
{
    int64_t by = r->plan->deadline_ms;
    if (r->held.n > 0 && r->held_until_ms < by) {
        by = r->held_until_ms;
    }
    int64_t left = by == INT64_MAX ? 3600000 : by - now_ms(r);
    return left <= 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static enum outcome serve(struct run *r)
{
    enum outcome end = GOING;
    if (r->fds[P_CANCEL].revents != 0) {
        return CANCELLED;
    }
    if (r->fds[P_STREAM].revents != 0) {
        (void)read_some(r, &end);
        if ((r->fds[P_STREAM].revents & POLLOUT) != 0) {
            feed(r);
        }
    }
    if (end == ENDED || (r->held.n > 0 && now_ms(r) >= r->held_until_ms)) {
        release(r);
    }
    return r->enough ? ENOUGH : end;
}

static enum outcome loop(struct run *r)
{
    feed(r);
    for (;;) {
        int n = poll(r->fds, P_COUNT, poll_timeout(r));
        if (n < 0 && errno != EINTR) {
            return BROKEN;
        }
        enum outcome o = n >= 0 ? serve(r) : GOING;
        if (o != GOING) {
            return o;
        }
        if (now_ms(r) >= r->plan->deadline_ms) {
            release(r); /* an answer that was here in time counts */
            return r->enough ? ENOUGH : TIMED_OUT;
        }
    }
}

/* Text that is on its way already. */
static void drain_log(struct run *r)
{
    enum outcome end = GOING;
    r->logs_only = true;
    for (int i = 0; i < DRAIN_READS && end == GOING && read_some(r, &end); i++) {
    }
}

/* ---- how it ended --------------------------------------------------------------------- */

static void set_end(struct run *r, int code, bool oom)
{
    r->result->oom_killed = oom ? 1 : 0;
    /* The engine's init gives 128 + n for a signal n. */
    if (code > 128 && code <= 128 + 64) {
        r->result->term_signal = code - 128;
    } else {
        r->result->exit_code = code;
    }
    /* SIGKILL after at least the CPU limit's time: a container has one processor, so this
     * is as much CPU time as it can have had, and only a limit kills like that. */
    uint64_t wall = (uint64_t)(now_ms(r) - r->started_ms);
    uint64_t limit = r->plan->launch->cpu_ms;
    if (code == 137 && !oom && limit > 0 && wall >= limit) {
        r->result->cpu_ms = (int64_t)limit;
    }
}

static sy_status finish(struct run *r, enum outcome why, struct sy_error *err)
{
    int code = -1;
    bool oom = false;
    sy_status st = SY_OK;
    if (why == ENDED) {
        st = box_exit(r->d, r->box, &code, &oom, err);
        if (st == SY_OK) {
            set_end(r, code, oom);
        } else {
            keeper_suspect(r->d);
        }
    } else if (why == TIMED_OUT) {
        drain_log(r);
        st = util_fail(err, SY_E_TIMEOUT, "the deadline has passed");
    } else if (why == CANCELLED) {
        drain_log(r);
        st = util_fail(err, SY_E_CANCELLED, "cancelled");
    } else if (why == BROKEN) {
        st = util_fail(
            err, SY_E_IO,
            "executor unavailable: the engine's attached stream cannot be read");
    }
    box_end(r->d, r->box);
    return st;
}

static void tell_started(struct run *r)
{
    char text[512];
    struct docker *d = r->d;
    const struct sy_launch *l = r->plan->launch;
    (void)pthread_mutex_lock(&d->lock);
    int n = snprintf(text, sizeof text,
                     "{\"engine\":\"%.32s\",\"image\":\"%.19s\",\"network\":\"%.32s\","
                     "\"memory\":%" PRIu64 ",\"cpu_ms\":%" PRIu64 ",\"files\":%u,"
                     "\"file_bytes\":%" PRIu64 ",\"namespaces\":true,\"read_only\":true,"
                     "\"no_new_privs\":true,\"capabilities\":0,\"uid\":65534}",
                     d->version, d->image_id, d->network, l->mem_bytes, l->cpu_ms,
                     l->max_files, l->file_bytes);
    (void)pthread_mutex_unlock(&d->lock);
    bool whole = n > 0 && (size_t)n < sizeof text;
    r->started_ms = now_ms(r);
    if (r->sink->started != NULL) {
        r->sink->started(r->sink->ctx, (struct sy_str){text, whole ? (size_t)n : 0});
    }
}

static sy_status run_box(struct docker *d, struct box *b, const struct sy_plan *plan,
                         const struct sy_sink *sink, struct sy_result *out,
                         struct sy_error *err)
{
    char chunk[CHUNK];
    struct run r = {.d = d, .box = b, .plan = plan, .sink = sink, .result = out};
    r.chunk = chunk;
    bytes_init(&r.held, HELD_MAX);
    r.fds[P_CANCEL] = (struct pollfd){.fd = plan->cancel_fd, .events = POLLIN};
    r.fds[P_STREAM] = (struct pollfd){.fd = b->attach_fd, .events = POLLIN};
    tell_started(&r);
    if (b->early.n > 0) {
        give_log(&r, b->early.p, b->early.n);
    }
    enum outcome why = loop(&r);
    sy_status st = finish(&r, why, err);
    bytes_done(&r.held);
    return st;
}

sy_status docker_run(void *self, const struct sy_plan *plan, const struct sy_sink *sink,
                     struct sy_result *out, struct sy_error *err)
{
    struct docker *d = self;
    const struct span s = {plan->cancel_fd, plan->deadline_ms};
    int64_t began_ms = engine_now(&d->engine);
    out->exit_code = -1;
    out->cpu_ms = out->max_rss_bytes = out->start_ms = -1;
    if ((plan->launch->must & ~d->table.enforces) != 0) {
        return util_fail(err, SY_E_REFUSED,
                         "the plan asks for what a container with "
                         "network \"%s\" does not keep",
                         d->network);
    }
    sy_status st = keeper_ready(d, &s, err);
    if (st != SY_OK) {
        return st;
    }
    struct box *b = stock_take(d, plan->launch);
    stock_want(d, plan->launch);
    out->from_stock = b != NULL ? 1 : 0;
    if (b == NULL) {
        st = box_make(d, plan->launch, &s, &b, err);
    }
    if (st != SY_OK) {
        return st;
    }
    out->start_ms = engine_now(&d->engine) - began_ms;
    return run_box(d, b, plan, sink, out, err);
}
