/* Throw-away 2: an executor that keeps processes ready, as the docker executor keeps
 * containers. It shows that prepare, retire, launch keys and host.spawn suffice for stock:
 * a process made before the call, used for one call only, dropped when its launch is
 * over. Not built into the product. */
#include <soulacy/executor.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOCK 4
#define REAP_MS 2000

struct ready {
    uint64_t launch_id; /* 0: free */
    char key[64];
    struct sy_child child;
};

struct standby {
    const struct sy_host *host;
    const struct sy_host_spawn *spawn;
    pthread_mutex_t lock; /* guards stock */
    struct ready stock[STOCK];
};

/* Writes to a non-blocking pipe; gives up when cancelled or late. */
static sy_status write_all(const struct standby *s, int fd, struct sy_str data,
                           int cancel_fd, int64_t deadline_ms)
{
    while (data.len > 0) {
        struct pollfd p[2] = {{.fd = fd, .events = POLLOUT},
                              {.fd = cancel_fd, .events = POLLIN}};
        int64_t left = deadline_ms - s->host->now_ms(s->host->ctx);
        if (left <= 0) {
            return SY_E_TIMEOUT;
        }
        int n = poll(p, 2, left > 60000 ? 60000 : (int)left);
        if (n > 0 && p[1].revents != 0) {
            return SY_E_CANCELLED;
        }
        ssize_t put = n > 0 ? write(fd, data.ptr, data.len) : 0;
        if (put < 0 && errno != EAGAIN && errno != EINTR) {
            return SY_E_IO;
        }
        data.ptr += put > 0 ? put : 0;
        data.len -= put > 0 ? (size_t)put : 0;
    }
    return SY_OK;
}

static void discard(const struct standby *s, const struct sy_child *c)
{
    struct sy_child_exit e = {.size = sizeof e};
    (void)s->spawn->reap(s->host->ctx, c->id, s->host->now_ms(s->host->ctx) + REAP_MS,
                         &e);
}

static sy_status make(const struct standby *s, const struct sy_launch *l,
                      struct sy_child *out, struct sy_error *err)
{
    out->size = sizeof *out;
    sy_status st = s->spawn->spawn(s->host->ctx, l->id, out, err);
    if (st != SY_OK) {
        return st;
    }
    st = write_all(s, out->stdin_fd, l->preamble, -1,
                   s->host->now_ms(s->host->ctx) + 5000);
    if (st != SY_OK) {
        discard(s, out);
    }
    return st;
}

static void prepare(void *self, const struct sy_launch *l)
{
    struct standby *s = self;
    struct sy_error err = {.size = sizeof err};
    struct sy_child child;
    struct ready *slot = NULL;
    if (l->key.len != 64 || make(s, l, &child, &err) != SY_OK) {
        return; /* stock is a wish; run() will say what is wrong */
    }
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < STOCK && slot == NULL; i++) {
        slot = s->stock[i].launch_id == 0 ? &s->stock[i] : NULL;
    }
    if (slot != NULL) {
        slot->launch_id = l->id;
        memcpy(slot->key, l->key.ptr, 64);
        slot->child = child;
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (slot == NULL) {
        discard(s, &child);
    }
}

/* Take out the stock of a launch id (key NULL) or of a key; 0 when there is none. */
static int take(struct standby *s, uint64_t launch_id, const char *key,
                struct sy_child *out)
{
    int found = 0;
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < STOCK && !found; i++) {
        struct ready *r = &s->stock[i];
        found = r->launch_id != 0 &&
                (key != NULL ? memcmp(r->key, key, 64) == 0 : r->launch_id == launch_id);
        if (found) {
            *out = r->child;
            r->launch_id = 0;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return found;
}

static void retire(void *self, uint64_t launch_id)
{
    struct standby *s = self;
    struct sy_child child;
    while (take(s, launch_id, NULL, &child)) {
        discard(s, &child);
    }
}

/* Hand over what is there; 0 at the end of the stream, -1 when the core said enough. */
static int pump(int fd, uint32_t stream, const struct sy_sink *sink)
{
    char block[4096];
    ssize_t n = read(fd, block, sizeof block);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 1 : 0;
    }
    if (n == 0) {
        return 0;
    }
    return sink->output(sink->ctx, stream, block, (size_t)n) != 0 ? -1 : 1;
}

/* Until the answer is complete, the process ended, or the run is cancelled or late. */
static sy_status talk(const struct standby *s, const struct sy_child *c,
                      const struct sy_plan *plan, const struct sy_sink *sink)
{
    struct pollfd p[4] = {{.fd = c->stdout_fd, .events = POLLIN},
                          {.fd = c->stderr_fd, .events = POLLIN},
                          {.fd = plan->cancel_fd, .events = POLLIN},
                          {.fd = c->exit_fd, .events = POLLIN}};
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        int64_t left = plan->deadline_ms - s->host->now_ms(s->host->ctx);
        if (left <= 0) {
            return SY_E_TIMEOUT;
        }
        if (poll(p, 4, left > 60000 ? 60000 : (int)left) <= 0) {
            continue;
        }
        if (p[2].revents != 0) {
            return SY_E_CANCELLED;
        }
        for (uint32_t i = 0; i < 2; i++) {
            int more =
                p[i].revents == 0
                    ? 1
                    : pump(p[i].fd, i == 0 ? SY_STREAM_ANSWER : SY_STREAM_LOG, sink);
            if (more < 0 && i == 0) {
                return SY_OK;
            }
            p[i].fd = more == 0 ? -1 : p[i].fd;
        }
        if (p[3].revents != 0 && p[0].revents == 0 && p[1].revents == 0) {
            return SY_OK; /* ended, and a grandchild may hold the streams open */
        }
    }
    return SY_OK;
}

static sy_status run(void *self, const struct sy_plan *plan, const struct sy_sink *sink,
                     struct sy_result *out, struct sy_error *err)
{
    struct standby *s = self;
    struct sy_child child;
    struct sy_child_exit e = {.size = sizeof e};
    char layers[512];
    int64_t begun = s->host->now_ms(s->host->ctx);
    int stock = plan->launch->key.len == 64 && take(s, 0, plan->launch->key.ptr, &child);
    sy_status st = stock ? SY_OK : make(s, plan->launch, &child, err);
    if (st != SY_OK) {
        return st;
    }
    out->from_stock = stock ? 1 : 0;
    out->start_ms = s->host->now_ms(s->host->ctx) - begun;
    if (s->spawn->layers(s->host->ctx, child.id, layers, sizeof layers) != SY_OK) {
        layers[0] = '\0';
    }
    sink->started(sink->ctx, (struct sy_str){layers, strlen(layers)});
    st = write_all(s, child.stdin_fd, plan->request, plan->cancel_fd, plan->deadline_ms);
    out->request_sent = 1;
    st = st == SY_OK ? talk(s, &child, plan, sink) : st;
    (void)s->spawn->reap(s->host->ctx, child.id, s->host->now_ms(s->host->ctx) + REAP_MS,
                         &e);
    out->exit_code = e.exit_code;
    out->term_signal = e.term_signal;
    out->cpu_ms = e.cpu_ms;
    out->max_rss_bytes = e.max_rss_bytes;
    if (e.setup[0] != '\0') {
        memcpy(err->text, e.setup, sizeof err->text - 1);
        return SY_E_REFUSED;
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
    struct standby *s = self;
    for (size_t i = 0; i < STOCK; i++) {
        if (s->stock[i].launch_id != 0) {
            discard(s, &s->stock[i].child);
            s->stock[i].launch_id = 0;
        }
    }
}

static sy_status create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err)
{
    struct standby *s = calloc(1, sizeof *s);
    (void)cfg;
    (void)ncfg;
    (void)err;
    if (s == NULL) {
        return SY_E_NOMEM;
    }
    s->host = host;
    s->spawn = host->service(host->ctx, SY_HOST_SPAWN_ID);
    if (s->spawn == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return SY_E_UNSUPPORTED;
    }
    *out = s;
    return SY_OK;
}

static void destroy(void *self)
{
    struct standby *s = self;
    if (s != NULL) {
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
    }
}

static const void *query(void *self, const char *id)
{
    static const struct sy_executor table = {.size = sizeof table,
                                             .max_parallel = 16,
                                             .enforces = SY_MUST_KILL_TREE,
                                             .start = start,
                                             .stop = stop,
                                             .run = run,
                                             .prepare = prepare,
                                             .retire = retire};
    (void)self;
    return strcmp(id, SY_EXECUTOR_ID) == 0 ? &table : NULL;
}

const struct sy_plugin soulacy_plugin_v1 = {.size = sizeof soulacy_plugin_v1,
                                            .abi_minor = SY_ABI_MINOR,
                                            .kind = SY_KIND_EXECUTOR,
                                            .name = "standby",
                                            .version = "0",
                                            .create = create,
                                            .destroy = destroy,
                                            .query = query};
