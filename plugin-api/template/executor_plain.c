/* The smallest executor: each run is one process that the core makes and confines. It
 * writes the request to it, hands over what comes back until the core has its answer, and
 * sees to it that nothing is left.
 *
 * It makes no process itself and decides nothing: what a run may do is in the launch,
 * which the core made and the core enforces in the child. */
#include <soulacy/executor.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REAP_MS 5000

struct plain {
    const struct sy_host *host;
    const struct sy_host_spawn *spawn;
};

/* One run while it goes on. */
struct run {
    const struct plain *x;
    const struct sy_plan *plan;
    const struct sy_sink *sink;
    struct sy_child child;
};

/* For poll: milliseconds until the deadline, at most a minute. */
static int time_left(const struct run *r)
{
    int64_t left = r->plan->deadline_ms - r->x->host->now_ms(r->x->host->ctx);
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static int out_of_time(const struct run *r)
{
    return r->x->host->now_ms(r->x->host->ctx) >= r->plan->deadline_ms;
}

static sy_status write_all(const struct run *r, struct sy_str data)
{
    while (data.len > 0) {
        struct pollfd p[2] = {{.fd = r->child.stdin_fd, .events = POLLOUT},
                              {.fd = r->plan->cancel_fd, .events = POLLIN}};
        if (out_of_time(r)) {
            return SY_E_TIMEOUT;
        }
        if (poll(p, 2, time_left(r)) <= 0) {
            continue;
        }
        if (p[1].revents != 0) {
            return SY_E_CANCELLED;
        }
        ssize_t n = write(r->child.stdin_fd, data.ptr, data.len);
        if (n < 0 && errno == EPIPE) {
            return SY_OK; /* it ended early: what it said is read below */
        }
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return SY_E_IO;
        }
        data.ptr += n > 0 ? n : 0;
        data.len -= n > 0 ? (size_t)n : 0;
    }
    return SY_OK;
}

enum { MORE, END, ENOUGH };

/* Hand over what is there. */
static int pump(const struct run *r, int fd, uint32_t stream)
{
    char block[16384];
    ssize_t n = read(fd, block, sizeof block);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? MORE : END;
    }
    if (n == 0) {
        return END;
    }
    return r->sink->output(r->sink->ctx, stream, block, (size_t)n) != 0 ? ENOUGH : MORE;
}

static sy_status read_answer(const struct run *r)
{
    struct pollfd p[4] = {{.fd = r->child.stdout_fd, .events = POLLIN},
                          {.fd = r->child.stderr_fd, .events = POLLIN},
                          {.fd = r->plan->cancel_fd, .events = POLLIN},
                          {.fd = r->child.exit_fd, .events = POLLIN}};
    for (;;) {
        if (out_of_time(r)) {
            return SY_E_TIMEOUT;
        }
        if (poll(p, 4, time_left(r)) <= 0) {
            continue;
        }
        if (p[2].revents != 0) {
            return SY_E_CANCELLED;
        }
        int idle = p[0].revents == 0 && p[1].revents == 0;
        if (p[1].revents != 0 && pump(r, p[1].fd, SY_STREAM_LOG) == END) {
            p[1].fd = -1;
        }
        int answer = p[0].revents != 0 ? pump(r, p[0].fd, SY_STREAM_ANSWER) : MORE;
        if (answer == ENOUGH || answer == END) {
            return SY_OK;
        }
        if (p[3].revents != 0 && idle) {
            return SY_OK; /* it has ended; something it left may hold the pipes open */
        }
    }
}

static sy_status talk(const struct run *r, struct sy_result *out)
{
    sy_status st = write_all(r, r->plan->launch->preamble);
    if (st != SY_OK) {
        return st;
    }
    r->sink->started(r->sink->ctx, (struct sy_str){"", 0});
    out->request_sent = 1;
    st = write_all(r, r->plan->request);
    return st == SY_OK ? read_answer(r) : st;
}

static sy_status run(void *self, const struct sy_plan *plan, const struct sy_sink *sink,
                     struct sy_result *out, struct sy_error *err)
{
    const struct plain *x = self;
    struct run r = {.x = x, .plan = plan, .sink = sink};
    struct sy_child_exit e = {.size = sizeof e};
    r.child.size = sizeof r.child;
    sy_status st = x->spawn->spawn(x->host->ctx, plan->launch->id, &r.child, err);
    if (st != SY_OK) {
        return st;
    }
    st = talk(&r, out);
    /* Kills what is left, waits for it, closes the descriptors. */
    int64_t until = x->host->now_ms(x->host->ctx) + REAP_MS;
    sy_status reaped = x->spawn->reap(x->host->ctx, r.child.id, until, &e);
    if (reaped == SY_OK) {
        out->exit_code = e.exit_code;
        out->term_signal = e.term_signal;
        out->cpu_ms = e.cpu_ms;
        out->max_rss_bytes = e.max_rss_bytes;
    }
    if (e.setup[0] != '\0') {
        snprintf(err->text, sizeof err->text, "%.230s", e.setup);
        return SY_E_REFUSED;
    }
    if (st != SY_OK) {
        snprintf(err->text, sizeof err->text, "%s",
                 st == SY_E_TIMEOUT     ? "out of time"
                 : st == SY_E_CANCELLED ? "cancelled"
                                        : "the process cannot be written to");
    }
    return st;
}

static sy_status start(void *self, struct sy_error *err)
{
    (void)self;
    (void)err;
    return SY_OK;
}

static void stop(void *self)
{
    (void)self; /* no thread, no stock */
}

static sy_status create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err)
{
    struct plain *x = calloc(1, sizeof *x);
    (void)cfg;
    (void)ncfg;
    if (x == NULL) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return SY_E_NOMEM;
    }
    x->host = host;
    x->spawn = host->service(host->ctx, SY_HOST_SPAWN_ID);
    if (x->spawn == NULL) {
        free(x);
        snprintf(err->text, sizeof err->text, "this core has no spawn service");
        return SY_E_UNSUPPORTED;
    }
    *out = x;
    return SY_OK;
}

static void destroy(void *self)
{
    free(self);
}

static const void *query(void *self, const char *id)
{
    /* All of these are enforced by the core in the child that it makes; an executor that
     * makes its processes elsewhere lists only what it can enforce there. */
    static const struct sy_executor executor = {
        .size = sizeof executor,
        .max_parallel = 64,
        .enforces = SY_MUST_FS_ROOT | SY_MUST_NO_NET | SY_MUST_MEM | SY_MUST_PIDS |
                    SY_MUST_CPU_TIME | SY_MUST_NO_NEW_PRIV | SY_MUST_KILL_TREE |
                    SY_MUST_FILES | SY_MUST_FILE_SIZE | SY_MUST_NAMESPACES,
        .start = start,
        .stop = stop,
        .run = run};
    (void)self;
    return strcmp(id, SY_EXECUTOR_ID) == 0 ? &executor : NULL;
}

const struct sy_plugin soulacy_plugin_v1 = {.size = sizeof soulacy_plugin_v1,
                                            .abi_minor = SY_ABI_MINOR,
                                            .min_host_minor = 0,
                                            .kind = SY_KIND_EXECUTOR,
                                            .name = "plain",
                                            .version = "1.0",
                                            .create = create,
                                            .destroy = destroy,
                                            .query = query};
