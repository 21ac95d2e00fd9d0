/*
 * Comes in: operations from channel-http, which is linked in under another name. Goes out:
 * what a gateway would answer, at once, from another thread, or only when it is cancelled,
 * as the operation and its arguments ask for.
 */
#include "api.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "server/internal.h"

#include <stdio.h>
#include <string.h>

extern const struct sy_plugin channel_http_plugin;

#define HELD_MAX 64

static struct played {
    struct server *s;
    void *channel;
    pthread_mutex_t lock;
    struct held {
        uint64_t id;
        struct sy_gateway_call call;
    } held[HELD_MAX];
    size_t nheld;
    uint64_t next_id;
    unsigned cancelled;
} played;

static void say(const struct sy_gateway_call *c, uint32_t kind, const char *json)
{
    c->line(c->ctx, kind, (struct sy_str){json, strlen(json)});
}

static void echo(const struct sy_gateway_call *c)
{
    struct buf b;
    buf_init(&b, 64U << 20);
    buf_add_c(&b, "{\"op\":");
    json_add_string(&b, str_n(c->op.ptr, c->op.len));
    buf_add_c(&b, ",\"args\":");
    buf_add_str(&b, str_n(c->args.ptr, c->args.len));
    buf_addf(&b, ",\"local\":%u,\"events\":%u,\"cancelled\":%u,\"peer\":", c->local,
             c->events, played.cancelled);
    json_add_string(&b, str_n(c->peer.ptr, c->peer.len));
    buf_add_c(&b, ",\"request_id\":");
    json_add_string(&b, str_n(c->request_id.ptr, c->request_id.len));
    buf_add_c(&b, "}");
    c->line(c->ctx, SY_LINE_RESULT, (struct sy_str){b.ptr, b.len});
    buf_done(&b);
}

static void *answer_later(void *arg)
{
    struct held *h = arg;
    say(&h->call, SY_LINE_EVENT, "{}");
    say(&h->call, SY_LINE_RESULT, "{\"later\":true}");
    mem_free(h);
    return NULL;
}

static void later(const struct sy_gateway_call *c)
{
    struct held *h = mem_zalloc(sizeof *h);
    pthread_t thread;
    if (h) {
        h->call = *c;
        if (pthread_create(&thread, NULL, answer_later, h) == 0) {
            (void)pthread_detach(thread);
        }
    }
}

static bool has(struct sy_str args, const char *word)
{
    return str_find(str_n(args.ptr, args.len), str_c(word)) != SIZE_MAX;
}

static sy_status call(void *ctx, const struct sy_gateway_call *c, uint64_t *id,
                      struct sy_error *err)
{
    (void)ctx;
    pthread_mutex_lock(&played.lock);
    *id = ++played.next_id;
    bool hold = has(c->args, "\"hold\"") && played.nheld < HELD_MAX;
    if (hold) {
        played.held[played.nheld++] = (struct held){*id, *c};
    }
    pthread_mutex_unlock(&played.lock);
    if (hold) {
        return SY_OK;
    }
    if (has(c->args, "\"busy\"")) {
        (void)snprintf(err->text, sizeof err->text, "too many operations");
        return SY_E_BUSY;
    }
    if (has(c->args, "\"mute\"")) {
        return SY_E_INTERNAL;
    }
    if (has(c->args, "\"later\"")) {
        later(c);
    } else if (has(c->args, "\"bad\"")) {
        say(c, SY_LINE_ERROR,
            "{\"code\":\"invalid\", \"message\":\"has \\\"quotes\\\" and {\","
            "\"field\":\"a.b\",\"status\" : 409 }");
    } else if (has(c->args, "\"odd\"")) {
        say(c, SY_LINE_ERROR, "{\"status\":200}");
    } else {
        echo(c);
    }
    return SY_OK;
}

static void cancel(void *ctx, uint64_t id)
{
    (void)ctx;
    struct held found = {0};
    pthread_mutex_lock(&played.lock);
    for (size_t i = 0; i < played.nheld; i++) {
        if (played.held[i].id == id) {
            found = played.held[i];
            played.held[i] = played.held[--played.nheld];
            played.cancelled++;
            break;
        }
    }
    pthread_mutex_unlock(&played.lock);
    if (found.id) {
        say(&found.call, SY_LINE_ERROR,
            "{\"code\":\"cancelled\",\"message\":\"cancelled\",\"status\":503}");
    }
}

/* ---- the host ---- */

static sy_status add_route(void *ctx, const struct sy_route *route, struct sy_error *err)
{
    (void)ctx;
    struct error e = {0};
    enum status st = server_add_route(played.s, "http", route, &e);
    (void)snprintf(err->text, sizeof err->text, "%.200s", e.text);
    return st == ST_OK ? SY_OK : SY_E_INVALID;
}

static sy_status header(void *ctx, struct sy_http *h, const char *name,
                        struct sy_str *out)
{
    (void)ctx;
    return handle_header(h, name, out);
}

static sy_status param(void *ctx, struct sy_http *h, const char *name, struct sy_str *out)
{
    (void)ctx;
    return handle_query(h, name, out);
}

static sy_status begin(void *ctx, struct sy_http *h, int32_t status,
                       const struct sy_pair *headers, size_t n, int64_t length)
{
    (void)ctx;
    return handle_begin(h, status, headers, n, length);
}

static sy_status write_bytes(void *ctx, struct sy_http *h, struct sy_str data)
{
    (void)ctx;
    return handle_write(h, data);
}

static void end(void *ctx, struct sy_http *h)
{
    (void)ctx;
    handle_end(h);
}

static const void *service(void *ctx, const char *id)
{
    static const struct sy_host_http http = {
        .size = sizeof http,
        .add_route = add_route,
        .header = header,
        .query = param,
        .begin = begin,
        .write = write_bytes,
        .end = end,
    };
    static const struct sy_host_gateway gateway = {
        .size = sizeof gateway,
        .call = call,
        .cancel = cancel,
    };
    (void)ctx;
    if (strcmp(id, SY_HOST_HTTP_ID) == 0) {
        return &http;
    }
    return strcmp(id, SY_HOST_GATEWAY_ID) == 0 ? &gateway : NULL;
}

bool api_start(struct server *s)
{
    static struct sy_host host = {.size = sizeof host, .service = service};
    struct sy_error err = {.size = sizeof err};
    const struct sy_plugin *p = &channel_http_plugin;
    played.s = s;
    pthread_mutex_init(&played.lock, NULL);
    if (p->create(&host, NULL, 0, &played.channel, &err) != SY_OK) {
        fprintf(stderr, "%s\n", err.text);
        return false;
    }
    const struct sy_channel *c = p->query(played.channel, SY_CHANNEL_ID);
    if (c->start(played.channel, &err) != SY_OK) {
        fprintf(stderr, "%s\n", err.text);
        return false;
    }
    return true;
}

size_t api_stop(void)
{
    const struct sy_plugin *p = &channel_http_plugin;
    const struct sy_channel *c = p->query(played.channel, SY_CHANNEL_ID);
    c->stop(played.channel);
    p->destroy(played.channel);
    return played.nheld;
}
