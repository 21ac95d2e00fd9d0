/* One container from create to delete. Comes in: a launch. Goes out: a running interpreter
 * with its stream attached. It attaches before it starts, so that no output is lost, and
 * closes the stream before it kills, since an unread stream keeps an engine from killing. */
#include "docker.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EARLY_MAX ((size_t)16 * 1024)
#define EXIT_MS 3000
#define API_INIT_WAIT 30 /* condition=next-exit came with 1.30 */

static const struct span no_span = {.cancel_fd = -1, .deadline_ms = INT64_MAX};

void docker_path(struct docker *d, char *out, size_t cap, const char *fmt, ...)
{
    va_list ap;
    (void)pthread_mutex_lock(&d->lock);
    unsigned api = d->api;
    (void)pthread_mutex_unlock(&d->lock);
    int n = snprintf(out, cap, "/v1.%u", api);
    va_start(ap, fmt);
    if (n > 0 && (size_t)n < cap) {
        (void)vsnprintf(out + n, cap - (size_t)n, fmt, ap);
    }
    va_end(ap);
}

static void close_fds(struct box *b)
{
    if (b->attach_fd >= 0) {
        (void)close(b->attach_fd);
    }
    if (b->wait_fd >= 0) {
        (void)close(b->wait_fd);
    }
    b->attach_fd = b->wait_fd = -1;
}

void box_free(struct box *b)
{
    if (b != NULL) {
        close_fds(b);
        http_done(&b->wait);
        bytes_done(&b->early);
        free(b);
    }
}

/* ---- delete -------------------------------------------------------------------------- */

sy_status box_delete(struct docker *d, const char *name, int64_t limit_ms,
                     bool *was_there)
{
    char path[256];
    struct http_reader r;
    docker_path(d, path, sizeof path, "/containers/%s?force=1&v=1", name);
    const struct request q = {.what = "delete a container",
                              .method = "DELETE",
                              .path = path,
                              .limit_ms = limit_ms};
    sy_status st = engine_call(&d->engine, &q, &no_span, &r, NULL);
    if (st == SY_OK) {
        *was_there = r.status != 404;
        /* 409: it is being removed already. */
        if (r.status >= 300 && r.status != 404 && r.status != 409) {
            st = SY_E_IO;
        }
    }
    http_done(&r);
    return st;
}

void box_end(struct docker *d, struct box *b)
{
    bool there = false;
    if (b == NULL) {
        return;
    }
    close_fds(b);
    sy_status st = box_delete(d, b->name, STEP_DELETE_MS, &there);
    if (st == SY_OK && (there || b->made)) {
        live_remove(d, b->number);
    } else {
        trash_name(d, b->name, b->number, b->made);
        keeper_suspect(d);
    }
    box_free(b);
}

/* ---- create -------------------------------------------------------------------------- */

static sy_status answer_error(struct docker *d, const char *what,
                              const struct http_reader *r, struct sy_error *err)
{
    char reason[160];
    engine_reason(r, reason, sizeof reason);
    if (r->status == 404 && strstr(reason, "o such image") != NULL) {
        keeper_suspect(d);
        return util_fail(err, SY_E_IO,
                         "executor unavailable: the image of executor.docker_image was "
                         "removed; run: docker pull %.80s",
                         d->image);
    }
    return util_fail(err, SY_E_IO, "executor unavailable: the engine cannot %s: %d %s",
                     what, r->status, reason);
}

/* Number, name, epoch; in the list of the living before the engine hears of it. */
static struct box *box_new(struct docker *d, const struct sy_launch *l,
                           struct sy_error *err)
{
    struct box *b = calloc(1, sizeof *b);
    if (b == NULL) {
        (void)util_fail(err, SY_E_NOMEM, "out of memory");
        return NULL;
    }
    b->attach_fd = b->wait_fd = -1;
    http_init(&b->wait, 65536);
    bytes_init(&b->early, EARLY_MAX);
    memcpy(b->key, l->key.ptr, l->key.len < KEY_LEN ? l->key.len : KEY_LEN);
    (void)pthread_mutex_lock(&d->lock);
    bool room = d->nlive < LIVE_MAX;
    if (room) {
        b->number = ++d->next_number;
        b->epoch = d->epoch;
        d->live[d->nlive++] = b->number;
    }
    (void)pthread_mutex_unlock(&d->lock);
    if (!room) {
        (void)util_fail(err, SY_E_BUSY, "too many containers are waiting to be deleted");
        free(b);
        return NULL;
    }
    (void)snprintf(b->name, sizeof b->name, "soulacy-%s-%" PRIu64, d->instance,
                   b->number);
    return b;
}

/* Under d->lock: what does not come from the launch. */
static void fill_base(const struct docker *d, char *const *binds, struct spec_base *base)
{
    *base = (struct spec_base){.image_id = d->image_id,
                               .image_path = d->image_path,
                               .image_lang = d->image_lang,
                               .image_env = (const char *const *)d->image_env,
                               .nimage_env = d->nimage_env,
                               .network = d->network,
                               .binds = (const char *const *)binds,
                               .nbinds = d->nvolumes,
                               .owner = d->owner};
}

static void free_binds(const struct docker *d, char **binds)
{
    for (size_t i = 0; binds != NULL && i < d->nvolumes; i++) {
        free(binds[i]);
    }
    free(binds);
}

/* Looked at anew for each container: a link may point elsewhere by now. */
static sy_status make_binds(const struct docker *d, char ***out, struct sy_error *err)
{
    char **binds = calloc(d->nvolumes + 1, sizeof *binds);
    sy_status st = binds != NULL ? SY_OK : util_fail(err, SY_E_NOMEM, "out of memory");
    for (size_t i = 0; st == SY_OK && i < d->nvolumes; i++) {
        struct bytes bind;
        bytes_init(&bind, 16384);
        st = volume_check((struct sy_str){d->volumes[i], strlen(d->volumes[i])},
                          d->socket, &bind, err);
        if (st == SY_OK) {
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): st says so */
            binds[i] = bind.p;
        } else {
            bytes_done(&bind);
            st = st == SY_E_INVALID ? SY_E_REFUSED : st;
        }
    }
    if (st != SY_OK) {
        free_binds(d, binds);
        return st;
    }
    *out = binds;
    return SY_OK;
}

static sy_status send_create(struct docker *d, struct box *b, const struct bytes *body,
                             const struct span *s, struct sy_error *err)
{
    char path[256];
    struct http_reader r;
    docker_path(d, path, sizeof path, "/containers/create?name=%s", b->name);
    const struct request q = {.what = "create the container",
                              .method = "POST",
                              .path = path,
                              .body = body->p,
                              .nbody = body->n,
                              .limit_ms = STEP_CREATE_MS};
    sy_status st = engine_call(&d->engine, &q, s, &r, err);
    if (st == SY_OK && r.status != 201) {
        st = answer_error(d, q.what, &r, err);
    } else if (st == SY_OK) {
        b->made = true;
    }
    http_done(&r);
    return st;
}

static sy_status verify(struct docker *d, struct box *b, const struct sy_launch *l,
                        char *const *binds, const struct span *s, struct sy_error *err)
{
    char path[256];
    struct http_reader r;
    docker_path(d, path, sizeof path, "/containers/%s/json", b->name);
    const struct request q = {.what = "show the container",
                              .method = "GET",
                              .path = path,
                              .limit_ms = STEP_FAST_MS};
    sy_status st = engine_call(&d->engine, &q, s, &r, err);
    if (st == SY_OK && r.status != 200) {
        st = answer_error(d, q.what, &r, err);
    } else if (st == SY_OK) {
        struct spec_base base;
        (void)pthread_mutex_lock(&d->lock);
        fill_base(d, binds, &base);
        const char *missing =
            spec_verify(l, &base, r.body.p != NULL ? r.body.p : "", r.body.n);
        (void)pthread_mutex_unlock(&d->lock);
        if (missing != NULL) {
            st = util_fail(err, SY_E_REFUSED,
                           "the engine did not take over the container's %s", missing);
        }
    }
    http_done(&r);
    return st;
}

static sy_status create(struct docker *d, struct box *b, const struct sy_launch *l,
                        const struct span *s, struct sy_error *err)
{
    struct bytes body;
    struct spec_base base;
    char **binds = NULL;
    sy_status st = make_binds(d, &binds, err);
    if (st != SY_OK) {
        return st;
    }
    bytes_init(&body, (size_t)1024 * 1024);
    (void)pthread_mutex_lock(&d->lock);
    fill_base(d, binds, &base);
    st = spec_body(l, &base, &body, err);
    (void)pthread_mutex_unlock(&d->lock);
    if (st == SY_OK) {
        st = send_create(d, b, &body, s, err);
    }
    if (st == SY_OK) {
        st = verify(d, b, l, binds, s, err);
    }
    bytes_done(&body);
    free_binds(d, binds);
    return st;
}

/* ---- attach, wait, start --------------------------------------------------------------- */

static sy_status attach(struct docker *d, struct box *b, const struct span *s,
                        struct sy_error *err)
{
    char path[256];
    struct http_reader r;
    docker_path(d, path, sizeof path,
                "/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1", b->name);
    const struct request q = {.what = "attach to the container",
                              .method = "POST",
                              .path = path,
                              .limit_ms = STEP_FAST_MS,
                              .upgrade = true};
    sy_status st = engine_open(&d->engine, &q, s, &b->attach_fd, &r, err);
    if (st == SY_OK && r.status != 101 && r.status != 200) {
        st = engine_rest(&d->engine, b->attach_fd, &q, s, &r, err);
        st = st == SY_OK ? answer_error(d, q.what, &r, err) : st;
    }
    http_done(&r);
    return st;
}

static sy_status wait_for_exit(struct docker *d, struct box *b, const struct span *s,
                               struct sy_error *err)
{
    char path[256];
    docker_path(d, path, sizeof path, "/containers/%s/wait?condition=next-exit", b->name);
    const struct request q = {.what = "wait for the container",
                              .method = "POST",
                              .path = path,
                              .limit_ms = STEP_FAST_MS};
    sy_status st = engine_open(&d->engine, &q, s, &b->wait_fd, &b->wait, err);
    if (st == SY_OK && b->wait.status != 200) {
        st = engine_rest(&d->engine, b->wait_fd, &q, s, &b->wait, err);
        st = st == SY_OK ? answer_error(d, q.what, &b->wait, err) : st;
    }
    return st;
}

static sy_status start(struct docker *d, struct box *b, const struct span *s,
                       struct sy_error *err)
{
    char path[256];
    struct http_reader r;
    docker_path(d, path, sizeof path, "/containers/%s/start", b->name);
    const struct request q = {.what = "start the container",
                              .method = "POST",
                              .path = path,
                              .limit_ms = STEP_START_MS};
    sy_status st = engine_call(&d->engine, &q, s, &r, err);
    if (st == SY_OK && r.status != 204 && r.status != 304) {
        st = answer_error(d, q.what, &r, err);
    }
    http_done(&r);
    return st;
}

/* ---- until it is up -------------------------------------------------------------------- */

static int take_early(void *ctx, int stream, const char *data, size_t len)
{
    struct box *b = ctx;
    if (stream == 1) {
        b->up = true;
    } else if (len <= b->early.max - b->early.n) {
        bytes_add(&b->early, data, len);
    }
    return 0;
}

/* Why it ended before it was up, for people. */
static sy_status not_up(struct docker *d, struct box *b, struct sy_error *err)
{
    int code = -1;
    bool oom = false;
    sy_status st = box_exit(d, b, &code, &oom, err);
    if (st != SY_OK) {
        return st;
    }
    if (code == 126 || code == 127) {
        return util_fail(err, SY_E_IO,
                         "executor unavailable: image %.80s has no python3 on its PATH",
                         d->image);
    }
    return util_fail(err, SY_E_IO,
                     "executor unavailable: the container ended (%d%s) before the "
                     "interpreter was up: %.*s",
                     code, oom ? ", out of memory" : "",
                     (int)(b->early.n < 100 ? b->early.n : 100),
                     b->early.p != NULL ? b->early.p : "");
}

static sy_status read_early(struct docker *d, struct box *b, struct sy_error *err)
{
    char block[4096];
    ssize_t n = recv(b->attach_fd, block, sizeof block, 0);
    if (n > 0 && frames_feed(&b->frames, block, (size_t)n, take_early, b) == FRAMES_BAD) {
        return util_fail(err, SY_E_IO,
                         "executor unavailable: the engine's attached stream cannot be "
                         "read");
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        return not_up(d, b, err);
    }
    return SY_OK;
}

static sy_status bring_up(struct docker *d, struct box *b, const struct sy_launch *l,
                          const struct span *s, struct sy_error *err)
{
    size_t at = 0;
    int64_t until_ms = engine_now(&d->engine) + STEP_UP_MS;
    while (!b->up) {
        short events = POLLIN;
        if (at < l->preamble.len) {
            ssize_t n = send(b->attach_fd, l->preamble.ptr + at, l->preamble.len - at,
                             MSG_NOSIGNAL);
            at += n > 0 ? (size_t)n : 0;
            if (n < 0 && errno != EAGAIN && errno != EINTR) {
                at = l->preamble.len; /* it has ended: what it wrote says why */
            }
        }
        if (at < l->preamble.len) {
            events = POLLIN | POLLOUT;
        }
        sy_status st = engine_wait(&d->engine, b->attach_fd, events, s, until_ms, err);
        if (st == SY_OK) {
            st = read_early(d, b, err);
        } else if (st == SY_E_IO) {
            return util_fail(err, st,
                             "executor unavailable: the interpreter in the container was "
                             "not up within %d s",
                             STEP_UP_MS / 1000);
        }
        if (st != SY_OK) {
            return st;
        }
    }
    return SY_OK;
}

sy_status box_make(struct docker *d, const struct sy_launch *l, const struct span *s,
                   struct box **out, struct sy_error *err)
{
    struct box *b = box_new(d, l, err);
    if (b == NULL) {
        return err != NULL && d->nlive >= LIVE_MAX ? SY_E_BUSY : SY_E_NOMEM;
    }
    (void)pthread_mutex_lock(&d->lock);
    bool waits_early = d->api >= API_INIT_WAIT;
    (void)pthread_mutex_unlock(&d->lock);
    sy_status st = create(d, b, l, s, err);
    if (st == SY_OK) {
        st = attach(d, b, s, err);
    }
    if (st == SY_OK && waits_early) {
        st = wait_for_exit(d, b, s, err);
    }
    if (st == SY_OK) {
        st = start(d, b, s, err);
    }
    if (st == SY_OK && !waits_early) {
        st = wait_for_exit(d, b, s, err);
    }
    if (st == SY_OK) {
        st = bring_up(d, b, l, s, err);
    }
    if (st != SY_OK) {
        if (st == SY_E_IO) {
            keeper_suspect(d);
        }
        box_end(d, b);
        return st;
    }
    b->made_ms = engine_now(&d->engine);
    *out = b;
    return SY_OK;
}

/* ---- how it ended ---------------------------------------------------------------------- */

static sy_status read_code(struct docker *d, struct box *b, int *code,
                           struct sy_error *err)
{
    const struct request q = {
        .what = "tell how the container ended", .method = "POST", .limit_ms = EXIT_MS};
    if (b->wait_fd < 0) {
        return util_fail(err, SY_E_IO, "executor unavailable: the engine is gone");
    }
    sy_status st = engine_rest(&d->engine, b->wait_fd, &q, &no_span, &b->wait, err);
    if (st != SY_OK) {
        return st;
    }
    const char *text = b->wait.body.p != NULL ? b->wait.body.p : "";
    cJSON *json = cJSON_ParseWithLength(text, b->wait.body.n);
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(json, "StatusCode");
    if (cJSON_IsNumber(v)) {
        *code = v->valueint;
    } else {
        st = util_fail(err, SY_E_IO,
                       "executor unavailable: the engine does not say how "
                       "the container ended");
    }
    cJSON_Delete(json);
    return st;
}

sy_status box_exit(struct docker *d, struct box *b, int *code, bool *oom,
                   struct sy_error *err)
{
    char path[256];
    struct http_reader r;
    sy_status st = read_code(d, b, code, err);
    if (st != SY_OK || *code != 137) {
        return st;
    }
    docker_path(d, path, sizeof path, "/containers/%s/json", b->name);
    const struct request q = {
        .what = "show the container", .method = "GET", .path = path, .limit_ms = EXIT_MS};
    st = engine_call(&d->engine, &q, &no_span, &r, err);
    if (st == SY_OK) {
        cJSON *json = cJSON_ParseWithLength(r.body.p != NULL ? r.body.p : "", r.body.n);
        const cJSON *state = cJSON_GetObjectItemCaseSensitive(json, "State");
        *oom = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(state, "OOMKilled"));
        cJSON_Delete(json);
    }
    http_done(&r);
    return st;
}
