/* Throw-away 3: a channel that lives in another process. This stub forwards messages,
 * replies and their descriptors (attachments, cancel_fd) over a socket. It shows that
 * nothing in the ABI needs a shared address space. Not built into the product. */
#include <soulacy/channel.h>

#include "plugin/proxy_wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct proxy {
    const struct sy_host *host;
    const struct sy_host_channel *channel;
    int socket; /* borrowed from the test, which plays the process's parent */
    pthread_t reader;
    pthread_mutex_t sending; /* one send at a time: the wire has no call ids */
    pthread_mutex_t lock;    /* guards the answer */
    pthread_cond_t answered;
    int have_answer, closed;
    struct wire reply;
};

static struct sy_str text(const char *s)
{
    return (struct sy_str){s, strlen(s)};
}

static void copy(char *to, size_t cap, struct sy_str s)
{
    size_t n = s.len < cap - 1 ? s.len : cap - 1;
    memset(to, 0, cap);
    if (n > 0) {
        memcpy(to, s.ptr, n);
    }
}

/* A message came from the other process. */
static void on_message(struct proxy *p, const struct wire *w, const int fds[2])
{
    struct sy_error err = {.size = sizeof err};
    struct wire back = {.what = WIRE_STORED};
    const struct sy_attachment file = {
        .fd = fds[0], .kind = SY_MEDIA_FILE, .mime = {"text/plain", 10}};
    const struct sy_message msg = {.size = sizeof msg,
                                   .id = text(w->id),
                                   .conversation = text(w->conversation),
                                   .sender = text(w->sender),
                                   .text = text(w->text),
                                   .attachments = &file,
                                   .nattachments = w->nfds > 0 ? 1 : 0};
    back.status = p->channel->deliver(p->host->ctx, &msg, 1, &err);
    (void)wire_put(p->socket, &back, NULL);
}

static void *reader(void *arg)
{
    struct proxy *p = arg;
    struct wire w;
    int fds[2];
    while (wire_get(p->socket, &w, fds) == 0) {
        if (w.what == WIRE_MESSAGE) {
            on_message(p, &w, fds);
        } else if (w.what == WIRE_SENT) {
            (void)pthread_mutex_lock(&p->lock);
            p->reply = w;
            p->have_answer = 1;
            (void)pthread_cond_broadcast(&p->answered);
            (void)pthread_mutex_unlock(&p->lock);
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i] >= 0) {
                (void)close(fds[i]);
            }
        }
    }
    (void)pthread_mutex_lock(&p->lock);
    p->closed = 1;
    (void)pthread_cond_broadcast(&p->answered);
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static sy_status send_reply(void *self, const struct sy_outgoing *msg,
                            struct sy_sent *out, struct sy_error *err)
{
    struct proxy *p = self;
    struct wire w = {.what = WIRE_SEND, .nfds = msg->nattachments > 0 ? 2 : 1};
    int fds[2] = {msg->cancel_fd, msg->nattachments > 0 ? msg->attachments[0].fd : -1};
    (void)err;
    copy(w.id, sizeof w.id, msg->id);
    copy(w.conversation, sizeof w.conversation, msg->conversation);
    copy(w.text, sizeof w.text, msg->text);
    (void)pthread_mutex_lock(&p->sending);
    (void)pthread_mutex_lock(&p->lock);
    p->have_answer = 0;
    int sent = wire_put(p->socket, &w, fds) == 0;
    /* The other side watches cancel_fd and its own clock, so it always answers. */
    while (sent && !p->have_answer && !p->closed) {
        (void)pthread_cond_wait(&p->answered, &p->lock);
    }
    out->outcome = p->have_answer ? p->reply.outcome
                   : sent         ? SY_SENT_UNKNOWN
                                  : SY_SENT_RETRY;
    if (p->have_answer) {
        memcpy(out->transport_id, p->reply.text, sizeof p->reply.text);
    }
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_mutex_unlock(&p->sending);
    return SY_OK;
}

static sy_status start(void *self, struct sy_error *err)
{
    struct proxy *p = self;
    (void)err;
    return pthread_create(&p->reader, NULL, reader, p) == 0 ? SY_OK : SY_E_NOMEM;
}

static void stop(void *self)
{
    struct proxy *p = self;
    (void)shutdown(p->socket, SHUT_RDWR);
    (void)pthread_join(p->reader, NULL);
}

static sy_status create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err)
{
    struct proxy *p = calloc(1, sizeof *p);
    (void)err;
    if (p == NULL) {
        return SY_E_NOMEM;
    }
    p->host = host;
    p->channel = host->service(host->ctx, SY_HOST_CHANNEL_ID);
    p->socket = ncfg == 1 ? (int)cfg[0].i : -1;
    (void)pthread_mutex_init(&p->sending, NULL);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->answered, NULL);
    *out = p;
    return SY_OK;
}

static void destroy(void *self)
{
    struct proxy *p = self;
    if (p != NULL) {
        (void)pthread_cond_destroy(&p->answered);
        (void)pthread_mutex_destroy(&p->lock);
        (void)pthread_mutex_destroy(&p->sending);
        free(p);
    }
}

static const void *query(void *self, const char *id)
{
    static const struct sy_channel table = {
        .size = sizeof table, .start = start, .stop = stop, .send = send_reply};
    (void)self;
    return strcmp(id, SY_CHANNEL_ID) == 0 ? &table : NULL;
}

static const struct sy_cfg_key keys[] = {
    {"socket_fd", SY_CFG_INT, 1, NULL, "Descriptor of the socket to the other process."},
    {NULL, 0, 0, NULL, NULL}};

const struct sy_plugin soulacy_plugin_v1 = {.size = sizeof soulacy_plugin_v1,
                                            .abi_minor = SY_ABI_MINOR,
                                            .kind = SY_KIND_CHANNEL,
                                            .name = "proxy",
                                            .version = "0",
                                            .keys = keys,
                                            .create = create,
                                            .destroy = destroy,
                                            .query = query};
