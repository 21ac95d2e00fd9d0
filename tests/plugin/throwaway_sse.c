/* Throw-away 1: a channel whose replies leave as server-sent events. It shows that routes,
 * handles that outlive their handler, gone() and writes from any thread suffice for a
 * stream. GET /channels/sse/stream?as=NAME listens, POST /channels/sse/say?as=NAME
 * speaks. Not built into the product. */
#include <soulacy/channel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS 8

struct stream {
    struct sy_http *http; /* NULL: free */
    char as[64];
};

struct sse {
    const struct sy_host *host;
    const struct sy_host_channel *channel;
    const struct sy_host_http *http;
    pthread_mutex_t lock; /* guards streams */
    struct stream streams[STREAMS];
    uint32_t next_id;
};

static void answer(const struct sse *s, struct sy_http *http, int32_t status)
{
    (void)s->http->begin(s->host->ctx, http, status, NULL, 0, 0);
    s->http->end(s->host->ctx, http);
}

static int who(const struct sse *s, const struct sy_request *req, char as[64])
{
    struct sy_str name;
    if (s->http->query(s->host->ctx, req->http, "as", &name) != SY_OK || name.len == 0 ||
        name.len > 63) {
        return 0;
    }
    memcpy(as, name.ptr, name.len);
    as[name.len] = '\0';
    return 1;
}

static void on_stream(void *ctx, const struct sy_request *req)
{
    static const struct sy_pair headers[] = {
        {{"Content-Type", 12}, {"text/event-stream", 17}}};
    struct sse *s = ctx;
    struct stream *free_slot = NULL;
    char as[64];
    if (!who(s, req, as)) {
        answer(s, req->http, 400);
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < STREAMS && free_slot == NULL; i++) {
        free_slot = s->streams[i].http == NULL ? &s->streams[i] : NULL;
    }
    if (free_slot != NULL) {
        memcpy(free_slot->as, as, sizeof as);
        free_slot->http = req->http;
        (void)s->http->begin(s->host->ctx, req->http, 200, headers, 1, -1);
        (void)s->http->write(s->host->ctx, req->http, (struct sy_str){": hello\n\n", 9});
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (free_slot == NULL) {
        answer(s, req->http, 503);
    }
}

static void on_gone(void *ctx, struct sy_http *http)
{
    struct sse *s = ctx;
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < STREAMS; i++) {
        if (s->streams[i].http == http) {
            s->streams[i].http = NULL;
            s->http->end(s->host->ctx, http);
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static void on_say(void *ctx, const struct sy_request *req)
{
    struct sse *s = ctx;
    struct sy_error err = {.size = sizeof err};
    char as[64], id[32];
    if (!who(s, req, as)) {
        answer(s, req->http, 400);
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    int n = snprintf(id, sizeof id, "sse-%u", ++s->next_id);
    (void)pthread_mutex_unlock(&s->lock);
    const struct sy_message msg = {.size = sizeof msg,
                                   .chat = SY_CHAT_DIRECT,
                                   .id = {id, (size_t)n},
                                   .conversation = {as, strlen(as)},
                                   .sender = {as, strlen(as)},
                                   .text = req->body};
    sy_status st = s->channel->deliver(s->host->ctx, &msg, 1, &err);
    answer(s, req->http, st == SY_OK ? 202 : st == SY_E_BUSY ? 503 : 400);
}

static sy_status create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err)
{
    struct sse *s = calloc(1, sizeof *s);
    (void)cfg;
    (void)ncfg;
    (void)err;
    if (s == NULL) {
        return SY_E_NOMEM;
    }
    s->host = host;
    s->channel = host->service(host->ctx, SY_HOST_CHANNEL_ID);
    s->http = host->service(host->ctx, SY_HOST_HTTP_ID);
    if (s->channel == NULL || s->http == NULL ||
        pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return SY_E_UNSUPPORTED;
    }
    *out = s;
    return SY_OK;
}

static void destroy(void *self)
{
    struct sse *s = self;
    if (s != NULL) {
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
    }
}

static sy_status start(void *self, struct sy_error *err)
{
    struct sse *s = self;
    const struct sy_route stream = {.size = sizeof stream,
                                    .auth = SY_AUTH_KEY,
                                    .method = "GET",
                                    .path = "/channels/sse/stream",
                                    .max_parallel = STREAMS,
                                    .ctx = s,
                                    .handle = on_stream,
                                    .gone = on_gone};
    const struct sy_route say = {.size = sizeof say,
                                 .auth = SY_AUTH_KEY,
                                 .method = "POST",
                                 .path = "/channels/sse/say",
                                 .max_body = 4096,
                                 .ctx = s,
                                 .handle = on_say};
    sy_status st = s->http->add_route(s->host->ctx, &stream, err);
    return st == SY_OK ? s->http->add_route(s->host->ctx, &say, err) : st;
}

static void stop(void *self)
{
    struct sse *s = self;
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < STREAMS; i++) {
        if (s->streams[i].http != NULL) {
            s->http->end(s->host->ctx, s->streams[i].http);
            s->streams[i].http = NULL;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static sy_status send_reply(void *self, const struct sy_outgoing *msg,
                            struct sy_sent *out, struct sy_error *err)
{
    struct sse *s = self;
    sy_status st = SY_E_CANCELLED;
    (void)err;
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < STREAMS; i++) {
        const struct stream *t = &s->streams[i];
        if (t->http != NULL && strlen(t->as) == msg->conversation.len &&
            memcmp(t->as, msg->conversation.ptr, msg->conversation.len) == 0) {
            st = s->http->write(s->host->ctx, t->http, (struct sy_str){"data: ", 6});
            st = st == SY_OK ? s->http->write(s->host->ctx, t->http, msg->text) : st;
            st = st == SY_OK
                     ? s->http->write(s->host->ctx, t->http, (struct sy_str){"\n\n", 2})
                     : st;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    out->outcome = st == SY_OK ? SY_SENT : SY_SENT_RETRY;
    return SY_OK;
}

static const void *query(void *self, const char *id)
{
    static const struct sy_channel table = {
        .size = sizeof table, .start = start, .stop = stop, .send = send_reply};
    (void)self;
    return strcmp(id, SY_CHANNEL_ID) == 0 ? &table : NULL;
}

const struct sy_plugin soulacy_plugin_v1 = {.size = sizeof soulacy_plugin_v1,
                                            .abi_minor = SY_ABI_MINOR,
                                            .kind = SY_KIND_CHANNEL,
                                            .name = "sse",
                                            .version = "0",
                                            .create = create,
                                            .destroy = destroy,
                                            .query = query};
