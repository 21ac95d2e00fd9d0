/* The smallest channel: people write with POST /channels/mailbox/in?from=NAME, the body is
 * the message, and fetch what was answered with GET /channels/mailbox/out?from=NAME.
 *
 * It shows the parts every channel has: its keys, its routes, delivering a message before
 * it is acknowledged, and sending. Whether NAME may speak, and what is answered, is none
 * of its business. */
#include <soulacy/channel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 63

struct letter {
    struct letter *next;
    char to[NAME_MAX_BYTES + 1];
    size_t len;
    char text[];
};

struct mailbox {
    const struct sy_host *host;
    const struct sy_host_channel *channel;
    const struct sy_host_http *http;
    int64_t keep; /* letters kept at most */

    pthread_mutex_t lock; /* guards what follows: handlers and send() run on any thread */
    struct letter *first;
    int64_t count;
    unsigned long next_id;
};

static void answer(const struct mailbox *m, struct sy_http *http, int32_t status,
                   struct sy_str body)
{
    static const struct sy_pair headers[] = {
        {{"Content-Type", 12}, {"text/plain; charset=utf-8", 25}}};
    void *ctx = m->host->ctx;
    /* A client that has gone shows in the results of begin and write; end() is due either
     * way. */
    if (m->http->begin(ctx, http, status, headers, 1, (int64_t)body.len) == SY_OK) {
        (void)m->http->write(ctx, http, body);
    }
    m->http->end(ctx, http);
}

/* Who writes; spans of the core are good until end(). */
static int sender_of(const struct mailbox *m, const struct sy_request *req,
                     struct sy_str *from)
{
    return m->http->query(m->host->ctx, req->http, "from", from) == SY_OK &&
           from->len > 0 && from->len <= NAME_MAX_BYTES;
}

static void on_in(void *ctx, const struct sy_request *req)
{
    struct mailbox *m = ctx;
    struct sy_error err = {.size = sizeof err};
    struct sy_str from;
    char id[32];
    if (!sender_of(m, req, &from)) {
        answer(m, req->http, 400, (struct sy_str){"from is missing\n", 16});
        return;
    }
    pthread_mutex_lock(&m->lock);
    int n = snprintf(id, sizeof id, "%lu", ++m->next_id);
    pthread_mutex_unlock(&m->lock);
    const struct sy_message msg = {.size = sizeof msg,
                                   .chat = SY_CHAT_DIRECT,
                                   .id = {id, (size_t)n},
                                   .conversation = from,
                                   .sender = from,
                                   .text = req->body};
    /* Only what is stored may be acknowledged. */
    sy_status st = m->channel->deliver(m->host->ctx, &msg, 1, &err);
    if (st == SY_OK) {
        answer(m, req->http, 202, (struct sy_str){"", 0});
    } else if (st == SY_E_BUSY || st == SY_E_IO) {
        answer(m, req->http, 503, (struct sy_str){"try later\n", 10});
    } else {
        answer(m, req->http, 400, (struct sy_str){err.text, strlen(err.text)});
    }
}

/* Take the first letter for somebody out of the box; NULL when there is none. */
static struct letter *take(struct mailbox *m, struct sy_str to)
{
    struct letter *found = NULL;
    pthread_mutex_lock(&m->lock);
    for (struct letter **at = &m->first; *at != NULL; at = &(*at)->next) {
        if (strlen((*at)->to) == to.len && memcmp((*at)->to, to.ptr, to.len) == 0) {
            found = *at;
            *at = found->next;
            m->count--;
            break;
        }
    }
    pthread_mutex_unlock(&m->lock);
    return found;
}

static void on_out(void *ctx, const struct sy_request *req)
{
    struct mailbox *m = ctx;
    struct sy_str from;
    if (!sender_of(m, req, &from)) {
        answer(m, req->http, 400, (struct sy_str){"from is missing\n", 16});
        return;
    }
    struct letter *l = take(m, from);
    if (l == NULL) {
        answer(m, req->http, 204, (struct sy_str){"", 0});
        return;
    }
    answer(m, req->http, 200, (struct sy_str){l->text, l->len});
    free(l);
}

static sy_status send_letter(void *self, const struct sy_outgoing *msg,
                             struct sy_sent *out, struct sy_error *err)
{
    struct mailbox *m = self;
    if (msg->conversation.len == 0 || msg->conversation.len > NAME_MAX_BYTES) {
        out->outcome = SY_SENT_NEVER;
        snprintf(err->text, sizeof err->text, "no such mailbox");
        return SY_OK;
    }
    struct letter *l = calloc(1, sizeof *l + msg->text.len);
    if (l == NULL) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return SY_E_NOMEM;
    }
    memcpy(l->to, msg->conversation.ptr, msg->conversation.len);
    l->len = msg->text.len;
    if (l->len > 0) {
        memcpy(l->text, msg->text.ptr, l->len);
    }
    pthread_mutex_lock(&m->lock);
    int full = m->count >= m->keep;
    if (!full) {
        struct letter **at = &m->first;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = l;
        m->count++;
    }
    pthread_mutex_unlock(&m->lock);
    if (full) {
        free(l);
    }
    out->outcome = full ? SY_SENT_RETRY : SY_SENT;
    return SY_OK;
}

static sy_status start(void *self, struct sy_error *err)
{
    struct mailbox *m = self;
    const struct sy_route in = {.size = sizeof in,
                                .auth = SY_AUTH_KEY,
                                .method = "POST",
                                .path = "/channels/mailbox/in",
                                .max_body = 65536,
                                .ctx = m,
                                .handle = on_in};
    const struct sy_route out = {.size = sizeof out,
                                 .auth = SY_AUTH_KEY,
                                 .method = "GET",
                                 .path = "/channels/mailbox/out",
                                 .ctx = m,
                                 .handle = on_out};
    sy_status st = m->http->add_route(m->host->ctx, &in, err);
    return st == SY_OK ? m->http->add_route(m->host->ctx, &out, err) : st;
}

static void stop(void *self)
{
    (void)self; /* no thread of our own, and no request is kept open */
}

static void destroy(void *self)
{
    struct mailbox *m = self;
    if (m == NULL) {
        return;
    }
    while (m->first != NULL) {
        struct letter *next = m->first->next;
        free(m->first);
        m->first = next;
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static sy_status create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err)
{
    struct mailbox *m = calloc(1, sizeof *m);
    if (m == NULL || pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        snprintf(err->text, sizeof err->text, "out of memory");
        return SY_E_NOMEM;
    }
    for (size_t i = 0; i < ncfg; i++) { /* one key: "keep" */
        m->keep = cfg[i].i;
    }
    m->host = host;
    m->channel = host->service(host->ctx, SY_HOST_CHANNEL_ID);
    m->http = host->service(host->ctx, SY_HOST_HTTP_ID);
    const char *fault = m->channel == NULL || m->http == NULL
                            ? "this core lacks a service"
                        : m->keep < 1 ? "keep: at least 1 is needed"
                                      : NULL;
    if (fault != NULL) {
        snprintf(err->text, sizeof err->text, "%s", fault);
        destroy(m);
        return SY_E_INVALID;
    }
    *out = m;
    return SY_OK;
}

static const void *query(void *self, const char *id)
{
    static const struct sy_channel channel = {
        .size = sizeof channel, .start = start, .stop = stop, .send = send_letter};
    (void)self;
    return strcmp(id, SY_CHANNEL_ID) == 0 ? &channel : NULL;
}

static const struct sy_cfg_key keys[] = {
    {"keep", SY_CFG_INT, 0, "100", "How many answers wait to be fetched at most."},
    {NULL, 0, 0, NULL, NULL}};

const struct sy_plugin soulacy_plugin_v1 = {.size = sizeof soulacy_plugin_v1,
                                            .abi_minor = SY_ABI_MINOR,
                                            .min_host_minor = 0,
                                            .kind = SY_KIND_CHANNEL,
                                            .name = "mailbox",
                                            .version = "1.0",
                                            .keys = keys,
                                            .create = create,
                                            .destroy = destroy,
                                            .query = query};
