/* One call through one child. Comes in: a child of the core's spawn service and a plan.
 * Goes out: what the child writes, as it arrives, and how it ended. One poll loop serves
 * all descriptors, so that no full pipe can stall another. It never reads the bytes for
 * their meaning, never waits for end of file, and never returns before the core has said
 * that nothing of the child is left. */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536
#define REAP_MS 5000
#define WRITES_PER_ROUND 16 /* then the other descriptors get their turn */

enum { P_CANCEL, P_EXIT, P_IN, P_OUT, P_ERR, P_COUNT };

/* Why the loop ended. */
enum outcome { GOING, ENOUGH, ENDED, TIMED_OUT, CANCELLED, BROKEN };

struct run {
    const struct run_host *h;
    const struct sy_child *child;
    const struct sy_plan *plan;
    const struct sy_sink *sink;
    struct sy_result *result;
    struct pollfd fds[P_COUNT];
    size_t preamble_at, request_at; /* bytes written */
    int64_t began_ms;
    bool up;      /* the child has shown itself on stdout */
    bool started; /* the sink was told */
    bool enough;  /* the core wants no more answer bytes */
    char *chunk;  /* CHUNK bytes */
};

sy_status run_fail(struct sy_error *err, sy_status st, const char *text)
{
    if (err != NULL) {
        err->os_errno = 0;
        (void)snprintf(err->text, sizeof err->text, "%s", text);
    }
    return st;
}

static int64_t now_ms(const struct run *r)
{
    return r->h->host->now_ms(r->h->host->ctx);
}

static int poll_timeout(const struct run *r)
{
    if (r->plan->deadline_ms == INT64_MAX) {
        return -1;
    }
    int64_t left = r->plan->deadline_ms - now_ms(r);
    if (left <= 0) {
        return 0;
    }
    return left > 3600000 ? 3600000 : (int)left;
}

/* ---- towards the child -------------------------------------------------------------- */

static void tell_started(struct run *r)
{
    char layers[512] = "";
    struct sy_str text = {"", 0};
    if (r->h->spawn->layers(r->h->host->ctx, r->child->id, layers, sizeof layers) ==
        SY_OK) {
        text.ptr = layers;
        text.len = strlen(layers);
    }
    r->started = true;
    r->result->start_ms = now_ms(r) - r->began_ms;
    if (r->sink->started != NULL) {
        r->sink->started(r->sink->ctx, text);
    }
}

/* The part that may be written now: the preamble at once, the request when it is up. */
static struct sy_str next_bytes(struct run *r, size_t **at)
{
    struct sy_str preamble = r->plan->launch->preamble;
    if (r->preamble_at < preamble.len) {
        *at = &r->preamble_at;
        return (struct sy_str){preamble.ptr + r->preamble_at,
                               preamble.len - r->preamble_at};
    }
    if (!r->up || r->request_at >= r->plan->request.len) {
        return (struct sy_str){NULL, 0};
    }
    *at = &r->request_at;
    return (struct sy_str){r->plan->request.ptr + r->request_at,
                           r->plan->request.len - r->request_at};
}

/* Write until the pipe is full or nothing is left. A reader that went away is no error
 * here: how the child ended tells what happened. */
static void feed(struct run *r)
{
    for (int i = 0; i < WRITES_PER_ROUND; i++) {
        size_t *at = NULL;
        struct sy_str bytes = next_bytes(r, &at);
        if (bytes.len == 0) {
            break;
        }
        if (at == &r->request_at && !r->started) {
            tell_started(r);
        }
        ssize_t n = write(r->child->stdin_fd, bytes.ptr, bytes.len);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                r->fds[P_IN].fd = -1;
            }
            break;
        }
        *at += (size_t)n;
        if (at == &r->request_at) {
            r->result->request_sent = 1;
        }
    }
    size_t *at = NULL;
    r->fds[P_IN].events = next_bytes(r, &at).len > 0 ? POLLOUT : 0;
}

/* ---- from the child ----------------------------------------------------------------- */

/* One read. false: nothing there now, or the end. */
static bool read_some(struct run *r, int which, uint32_t stream)
{
    if (r->fds[which].fd < 0) {
        return false;
    }
    ssize_t n = read(r->fds[which].fd, r->chunk, CHUNK);
    if (n < 0) {
        if (errno == EINTR) {
            return true;
        }
        if (errno != EAGAIN) {
            r->fds[which].fd = -1;
        }
        return false;
    }
    if (n == 0) {
        r->fds[which].fd = -1;
        return false;
    }
    if (stream == SY_STREAM_ANSWER) {
        r->up = true;
        if (r->enough) {
            return true;
        }
    }
    if (r->sink->output(r->sink->ctx, stream, r->chunk, (size_t)n) != 0) {
        r->enough = true;
    }
    return true;
}

/* Log text first: what the child wrote before its answer is handed over before it. The
 * number of reads is bounded, since a child can write without end. */
static void drain_log(struct run *r)
{
    for (int i = 0; i < 16 && read_some(r, P_ERR, SY_STREAM_LOG); i++) {
    }
}

static void drain_all(struct run *r)
{
    drain_log(r);
    /* What a pipe can hold is there now; more would be a grandchild's. */
    for (int i = 0; i < 32 && !r->enough && read_some(r, P_OUT, SY_STREAM_ANSWER); i++) {
    }
}

/* ---- the loop ----------------------------------------------------------------------- */

static enum outcome serve(struct run *r)
{
    if (r->fds[P_CANCEL].revents != 0) {
        return CANCELLED;
    }
    bool ended = r->fds[P_EXIT].revents != 0;
    if (ended) {
        drain_all(r);
        return r->enough ? ENOUGH : ENDED;
    }
    if (r->fds[P_ERR].revents != 0) {
        drain_log(r);
    }
    if (r->fds[P_OUT].revents != 0) {
        if (r->fds[P_ERR].revents == 0) {
            drain_log(r);
        }
        (void)read_some(r, P_OUT, SY_STREAM_ANSWER);
        if (r->enough) {
            return ENOUGH;
        }
    }
    if (r->fds[P_IN].revents != 0 && (r->fds[P_IN].revents & POLLOUT) == 0) {
        r->fds[P_IN].fd = -1; /* the child has closed its end */
    } else if (r->fds[P_IN].fd >= 0) {
        feed(r);
    }
    return GOING;
}

static enum outcome loop(struct run *r)
{
    feed(r);
    for (;;) {
        int timeout = poll_timeout(r);
        int n = poll(r->fds, P_COUNT, timeout);
        if (n < 0 && errno != EINTR) {
            return BROKEN;
        }
        if (n < 0) {
            continue;
        }
        if (n > 0) {
            enum outcome o = serve(r);
            if (o != GOING) {
                return o;
            }
        }
        /* Looked at in each round, so that a child that never stops writing is stopped
         * too; after serve(), so that an answer that is there in time counts. */
        if (r->plan->deadline_ms != INT64_MAX && now_ms(r) >= r->plan->deadline_ms) {
            return TIMED_OUT;
        }
    }
}

static void prepare(struct run *r, int fed)
{
    const int fds[P_COUNT] = {r->plan->cancel_fd, r->child->exit_fd, r->child->stdin_fd,
                              r->child->stdout_fd, r->child->stderr_fd};
    for (size_t i = 0; i < P_COUNT; i++) {
        r->fds[i].fd = fds[i];
        r->fds[i].events = POLLIN;
    }
    r->fds[P_IN].events = 0;
    if (fed != 0) {
        r->preamble_at = r->plan->launch->preamble.len;
        r->up = true;
    }
}

static sy_status finish(struct run *r, enum outcome why, struct sy_error *err)
{
    const struct sy_host_spawn *spawn = r->h->spawn;
    void *ctx = r->h->host->ctx;
    if (why != ENDED) {
        spawn->kill(ctx, r->child->id);
        drain_log(r);
    }
    struct sy_child_exit end = {.size = sizeof end};
    sy_status st = spawn->reap(ctx, r->child->id, now_ms(r) + REAP_MS, &end);
    if (st != SY_OK) {
        return run_fail(err, SY_E_INTERNAL, "the process tree is not gone yet");
    }
    r->result->exit_code = end.exit_code;
    r->result->term_signal = end.term_signal;
    r->result->cpu_ms = end.cpu_ms;
    r->result->max_rss_bytes = end.max_rss_bytes;
    if (why == TIMED_OUT) {
        return run_fail(err, SY_E_TIMEOUT, "the deadline has passed");
    }
    if (why == CANCELLED) {
        return run_fail(err, SY_E_CANCELLED, "cancelled");
    }
    if (why == BROKEN) {
        return run_fail(err, SY_E_IO, "poll failed");
    }
    if (end.setup[0] != '\0' && !r->started) {
        return run_fail(err, SY_E_REFUSED, end.setup);
    }
    return SY_OK;
}

sy_status run_child(const struct run_host *h, const struct sy_child *child, int fed,
                    int64_t began_ms, const struct sy_plan *plan,
                    const struct sy_sink *sink, struct sy_result *out,
                    struct sy_error *err)
{
    char chunk[CHUNK];
    struct run r = {.h = h, .child = child, .plan = plan, .sink = sink, .result = out};
    r.chunk = chunk;
    r.began_ms = began_ms;
    out->exit_code = -1;
    out->cpu_ms = -1;
    out->max_rss_bytes = -1;
    out->start_ms = -1;
    prepare(&r, fed);
    return finish(&r, loop(&r), err);
}
