#define _GNU_SOURCE /* strcasestr family: strcasecmp comes with it */
/* In: routes and answers of a plugin through host.http, and requests of a test. Out: the
 * answer as its client saw it. A handle used after end() is a fault, and the request's
 * bytes are overwritten at end(), so that a plugin that keeps a span is seen. */
#include "plugin/mock_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OUTSTANDING_MAX ((size_t)256 * 1024)

struct sy_http {
    struct mock_client *client;
};

struct mock_client {
    struct mock_host *m;
    struct sy_http http;
    const struct sy_route *route;
    struct sy_request req;
    char *bytes; /* what the request's spans point to; poisoned at end() */
    size_t nbytes;
    struct sy_pair headers[64];
    size_t nheaders;
    int status;
    int64_t length; /* announced, or -1 */
    bool ended, dropped, slow, gone_told;
    char *body;
    size_t nbody, unread;
    struct sy_pair answer[64];
    size_t nanswer;
};

/* The client of a handle that is still alive, or NULL and a fault. */
static struct mock_client *alive(struct mock_host *m, struct sy_http *http,
                                 const char *what)
{
    if (http == NULL || http->client->ended) {
        mock_fault(m, "%s: no handle, or one that was ended", what);
        return NULL;
    }
    return http->client;
}

static void keep_copy(struct mock_host *m, struct sy_route *r, const struct sy_route *in)
{
    memcpy(r, in, in->size < sizeof *r ? in->size : sizeof *r);
    r->method = mock_printf(m, "%s", in->method);
    r->path = mock_printf(m, "%s", in->path);
}

static sy_status add_route(void *ctx, const struct sy_route *in, struct sy_error *err)
{
    struct mock_host *m = ctx;
    (void)err;
    mock_lock(m);
    struct sy_route *r = mock_keep(&m->routes, calloc(1, sizeof *r));
    keep_copy(m, r, in);
    if (r->handle == NULL || r->path[0] != '/' || r->auth < SY_AUTH_KEY ||
        r->auth > SY_AUTH_NONE) {
        mock_fault(m, "add_route: no handler, path or kind of auth");
    }
    (void)mock_keep(&m->route_texts,
                    mock_printf(m, "%s %s %u %u", r->method, r->path, r->auth, r->flags));
    mock_unlock(m);
    return SY_OK;
}

static sy_status header(void *ctx, struct sy_http *http, const char *name,
                        struct sy_str *out)
{
    struct mock_host *m = ctx;
    sy_status st = SY_E_INVALID;
    mock_lock(m);
    struct mock_client *c = alive(m, http, "header");
    for (size_t i = 0; c != NULL && st != SY_OK && i < c->nheaders; i++) {
        if (strlen(name) == c->headers[i].name.len &&
            strncasecmp(c->headers[i].name.ptr, name, strlen(name)) == 0) {
            *out = c->headers[i].value;
            st = SY_OK;
        }
    }
    mock_unlock(m);
    return st;
}

/* name=value&... without percent-decoding: a test does not need more. */
static sy_status query(void *ctx, struct sy_http *http, const char *name,
                       struct sy_str *out)
{
    struct mock_host *m = ctx;
    int found = 0;
    size_t n = strlen(name);
    mock_lock(m);
    struct mock_client *c = alive(m, http, "query");
    struct sy_str q = c != NULL ? c->req.query : (struct sy_str){NULL, 0};
    for (size_t at = 0; at < q.len;) {
        const char *part = q.ptr + at;
        const char *end = memchr(part, '&', q.len - at);
        size_t len = end != NULL ? (size_t)(end - part) : q.len - at;
        if (len > n && memcmp(part, name, n) == 0 && part[n] == '=') {
            *out = (struct sy_str){part + n + 1, len - n - 1};
            found++;
        }
        at += len + 1;
    }
    mock_unlock(m);
    return found == 1 ? SY_OK : SY_E_INVALID;
}

static sy_status begin(void *ctx, struct sy_http *http, int32_t status,
                       const struct sy_pair *headers, size_t nheaders,
                       int64_t content_length)
{
    struct mock_host *m = ctx;
    sy_status st = SY_E_INVALID;
    mock_lock(m);
    struct mock_client *c = alive(m, http, "begin");
    if (c != NULL && c->status != 0) {
        mock_fault(m, "begin: twice for one request");
    } else if (c != NULL && nheaders <= 64) {
        c->status = status;
        c->length = content_length;
        for (size_t i = 0; i < nheaders; i++) {
            c->answer[i].name.ptr = mock_copy(m, headers[i].name);
            c->answer[i].value.ptr = mock_copy(m, headers[i].value);
        }
        c->nanswer = nheaders;
        st = c->dropped ? SY_E_CANCELLED : SY_OK;
    }
    mock_unlock(m);
    return st;
}

static void append(struct mock_client *c, struct sy_str data)
{
    char *grown = realloc(c->body, c->nbody + data.len + 2);
    if (grown == NULL) {
        abort();
    }
    c->body = grown;
    if (data.len > 0) {
        memcpy(c->body + c->nbody, data.ptr, data.len);
        c->nbody += data.len;
    }
    if ((c->route->flags & SY_ROUTE_WEBSOCKET) != 0) {
        c->body[c->nbody++] = '\n';
    }
    c->body[c->nbody] = '\0';
}

static sy_status write_body(void *ctx, struct sy_http *http, struct sy_str data)
{
    struct mock_host *m = ctx;
    sy_status st = SY_E_INVALID;
    mock_lock(m);
    struct mock_client *c = alive(m, http, "write");
    if (c != NULL && c->status == 0) {
        mock_fault(m, "write: before begin");
    } else if (c != NULL && mock_span_ok(m, "write", data)) {
        c->unread += c->slow ? data.len : 0;
        c->dropped = c->dropped || c->unread > OUTSTANDING_MAX;
        st = c->dropped ? SY_E_CANCELLED : SY_OK;
        if (st == SY_OK) {
            append(c, data);
        }
    }
    mock_unlock(m);
    return st;
}

static void end(void *ctx, struct sy_http *http)
{
    struct mock_host *m = ctx;
    mock_lock(m);
    struct mock_client *c = alive(m, http, "end");
    if (c != NULL) {
        if (c->length >= 0 && (size_t)c->length != c->nbody && !c->dropped) {
            mock_fault(m, "end: %zu bytes written, %lld announced", c->nbody,
                       (long long)c->length);
        }
        if (c->status == 0 && !c->dropped) {
            mock_fault(m, "end: no answer was begun");
        }
        c->ended = true;
        memset(c->bytes, 0xdd, c->nbytes);
    }
    mock_unlock(m);
}

const struct sy_host_http mock_http_service = {.size = sizeof mock_http_service,
                                               .add_route = add_route,
                                               .header = header,
                                               .query = query,
                                               .begin = begin,
                                               .write = write_body,
                                               .end = end};

/* ---- the client's side ---- */

static const struct sy_route *find_route(const struct mock_host *m, const char *method,
                                         const char *path, bool *other_method)
{
    for (size_t i = 0; i < m->routes.n; i++) {
        const struct sy_route *r = m->routes.items[i];
        bool prefix = (r->flags & SY_ROUTE_PREFIX) != 0;
        if (prefix ? strncmp(r->path, path, strlen(r->path)) == 0
                   : strcmp(r->path, path) == 0) {
            if (strcmp(r->method, method) == 0) {
                return r;
            }
            *other_method = true;
        }
    }
    return NULL;
}

/* Copies text behind what is there already and gives its span there. */
static struct sy_str put(struct mock_client *c, const char *text, size_t len)
{
    char *to = c->bytes + c->nbytes;
    if (len > 0) {
        memcpy(to, text, len);
    }
    to[len] = '\0';
    c->nbytes += len + 1;
    return (struct sy_str){to, len};
}

static void fill_request(struct mock_client *c, const struct mock_request *in)
{
    const char *body = in->body != NULL ? in->body : "";
    const char *query_text = in->query != NULL ? in->query : "";
    const char *peer = in->peer != NULL ? in->peer : "127.0.0.1";
    size_t nbody = in->body_len > 0 ? in->body_len : strlen(body);
    size_t need = nbody + strlen(query_text) + strlen(in->path) + strlen(peer) + 64;
    for (size_t i = 0; i < in->nheaders; i++) {
        need += in->headers[i].name.len + in->headers[i].value.len + 2;
    }
    c->bytes = calloc(1, need);
    if (c->bytes == NULL || in->nheaders > 64) {
        abort();
    }
    for (size_t i = 0; i < in->nheaders; i++) {
        c->headers[i].name = put(c, in->headers[i].name.ptr, in->headers[i].name.len);
        c->headers[i].value = put(c, in->headers[i].value.ptr, in->headers[i].value.len);
    }
    c->nheaders = in->nheaders;
    c->req.size = sizeof c->req;
    c->req.authenticated = in->authenticated ? 1 : 0;
    c->req.local = in->local ? 1 : 0;
    c->req.http = &c->http;
    c->req.method = put(c, in->method, strlen(in->method));
    c->req.path = put(c, in->path, strlen(in->path));
    c->req.query = put(c, query_text, strlen(query_text));
    c->req.body = put(c, body, nbody);
    c->req.peer = put(c, peer, strlen(peer));
    c->req.request_id = put(c, "req-mock", 8);
}

struct mock_client *mock_send(struct mock_host *m, const struct mock_request *req)
{
    bool other_method = false;
    mock_lock(m);
    struct mock_client *c = mock_keep(&m->clients, calloc(1, sizeof *c));
    c->m = m;
    c->http.client = c;
    c->length = -1;
    fill_request(c, req);
    c->route = find_route(m, req->method, req->path, &other_method);
    if (c->route == NULL) {
        c->status = other_method ? 405 : 404;
    } else if (c->route->auth == SY_AUTH_KEY && !req->authenticated) {
        c->status = 401;
    } else if (c->route->max_body > 0 && c->req.body.len > c->route->max_body) {
        c->status = 413;
    }
    c->ended = c->status != 0;
    bool handle = !c->ended;
    mock_unlock(m);
    if (handle) {
        c->route->handle(c->route->ctx, &c->req);
    }
    return c;
}

static bool has_ended(void *arg)
{
    const struct mock_client *c = arg;
    return c->ended;
}

bool mock_client_wait(struct mock_client *c, int64_t within_ms)
{
    return mock_wait(c->m, has_ended, c, within_ms);
}

struct text_wait {
    const struct mock_client *c;
    const char *text;
};

static bool has_text(void *arg)
{
    const struct text_wait *w = arg;
    return w->c->body != NULL && strstr(w->c->body, w->text) != NULL;
}

bool mock_client_wait_text(struct mock_client *c, const char *text, int64_t within_ms)
{
    struct text_wait w = {c, text};
    return mock_wait(c->m, has_text, &w, within_ms);
}

int mock_client_status(struct mock_client *c)
{
    mock_lock(c->m);
    int status = c->status;
    mock_unlock(c->m);
    return status;
}

bool mock_client_ended(struct mock_client *c)
{
    mock_lock(c->m);
    bool ended = c->ended;
    mock_unlock(c->m);
    return ended;
}

const char *mock_client_header(struct mock_client *c, const char *name)
{
    const char *value = NULL;
    mock_lock(c->m);
    for (size_t i = 0; value == NULL && i < c->nanswer; i++) {
        if (strcasecmp(c->answer[i].name.ptr, name) == 0) {
            value = c->answer[i].value.ptr;
        }
    }
    mock_unlock(c->m);
    return value;
}

const char *mock_client_body(struct mock_client *c)
{
    mock_lock(c->m);
    const char *body = mock_copy(c->m, (struct sy_str){c->body, c->nbody});
    mock_unlock(c->m);
    return body;
}

void mock_client_drop(struct mock_client *c)
{
    mock_lock(c->m);
    bool tell = !c->ended && !c->gone_told && c->route->gone != NULL;
    c->dropped = true;
    c->gone_told = true;
    mock_unlock(c->m);
    if (tell) {
        c->route->gone(c->route->ctx, &c->http);
    }
}

void mock_client_slow(struct mock_client *c)
{
    mock_lock(c->m);
    c->slow = true;
    mock_unlock(c->m);
}

void mock_client_message(struct mock_client *c, const char *text)
{
    mock_lock(c->m);
    bool tell = !c->ended && c->status == 101;
    mock_unlock(c->m);
    if (tell) {
        c->route->message(c->route->ctx, &c->http, (struct sy_str){text, strlen(text)});
    }
}

void mock_http_done(struct mock_host *m)
{
    for (size_t i = 0; i < m->clients.n; i++) {
        struct mock_client *c = m->clients.items[i];
        free(c->bytes);
        free(c->body);
        free(c);
    }
    for (size_t i = 0; i < m->routes.n; i++) {
        free(m->routes.items[i]);
    }
}
