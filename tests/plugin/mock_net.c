/* In: fetches and gateway calls of a plugin, and the answers a test wrote down for them.
 * Out: those answers. Nothing is sent anywhere. */
#include "plugin/mock_internal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct answer {
    char *part, *body;
    sy_status st;
    int status;
    int64_t retry_after_ms;
    bool used;
};

struct call {
    uint64_t id;
    void *ctx;
    void (*line)(void *ctx, uint32_t kind, struct sy_str json);
    bool events, cancelled, ended;
};

void mock_fetch_answer(struct mock_host *m, const char *part, sy_status st, int status,
                       const char *body, int64_t retry_after_ms)
{
    mock_lock(m);
    struct answer *a = mock_keep(&m->answers, calloc(1, sizeof *a));
    a->part = mock_printf(m, "%s", part);
    a->body = mock_printf(m, "%s", body != NULL ? body : "");
    a->st = st;
    a->status = status;
    a->retry_after_ms = retry_after_ms;
    mock_unlock(m);
}

/* The first unused answer for the URL, else the last used one. */
static struct answer *find_answer(struct mock_host *m, const char *url)
{
    struct answer *last = NULL;
    for (size_t i = 0; i < m->answers.n; i++) {
        struct answer *a = m->answers.items[i];
        if (strstr(url, a->part) != NULL) {
            last = a;
            if (!a->used) {
                break;
            }
        }
    }
    if (last != NULL) {
        last->used = true;
    }
    return last;
}

static void record_fetch(struct mock_host *m, const struct sy_fetch *req)
{
    char *headers = mock_printf(m, "%s", "");
    for (size_t i = 0; i < req->nheaders; i++) {
        headers =
            mock_printf(m, "%s%s: %s\n", headers, mock_copy(m, req->headers[i].name),
                        mock_copy(m, req->headers[i].value));
    }
    (void)mock_keep(&m->fetches,
                    mock_printf(m, "%s %s\n%sbearer: %s\n\n%s", req->method,
                                mock_copy(m, req->url), headers,
                                mock_copy(m, req->bearer), mock_copy(m, req->body)));
}

static sy_status fetch(void *ctx, const struct sy_fetch *req, void *out_ctx,
                       int32_t (*out)(void *out_ctx, struct sy_str data),
                       struct sy_fetched *res, struct sy_error *err)
{
    struct mock_host *m = ctx;
    (void)err;
    mock_lock(m);
    record_fetch(m, req);
    const struct answer *a = find_answer(m, mock_copy(m, req->url));
    if (req->nallowed_hosts == 0) {
        mock_fault(m, "fetch: no allowed hosts");
    }
    mock_unlock(m);
    res->sent = 1;
    res->retry_after_ms = -1;
    if (a == NULL) {
        /* A server that does not answer. */
        struct pollfd p = {.fd = req->cancel_fd, .events = POLLIN};
        int64_t left = req->deadline_ms - mock_now_ms();
        int n = poll(&p, 1, left < 0 ? 0 : (int)(left > 60000 ? 60000 : left));
        return n > 0 ? SY_E_CANCELLED : SY_E_TIMEOUT;
    }
    res->status = a->status;
    res->retry_after_ms = a->retry_after_ms;
    if (a->st == SY_OK && out != NULL && a->body[0] != '\0') {
        (void)out(out_ctx, (struct sy_str){a->body, strlen(a->body)});
    }
    return a->st;
}

const struct sy_host_fetch mock_fetch_service = {.size = sizeof mock_fetch_service,
                                                 .fetch = fetch};

static sy_status gateway_call(void *ctx, const struct sy_gateway_call *in,
                              uint64_t *call_id, struct sy_error *err)
{
    struct mock_host *m = ctx;
    (void)err;
    if (in->line == NULL || in->op.len == 0) {
        mock_fault(m, "call: no op, or no line()");
        return SY_E_INVALID;
    }
    mock_lock(m);
    struct call *c = mock_keep(&m->calls, calloc(1, sizeof *c));
    c->id = ++m->next_call;
    c->ctx = in->ctx;
    c->line = in->line;
    c->events = in->events != 0;
    const char *op = mock_copy(m, in->op);
    const char *args = mock_copy(m, in->args);
    const char *plain = mock_printf(m, "{\"op\":\"%s\"}", op);
    mock_gateway_fn fn = m->gateway_fn;
    void *arg = m->gateway_arg;
    uint64_t id = c->id;
    mock_unlock(m);
    *call_id = id;
    if (fn != NULL) {
        fn(arg, id, op, args);
    } else {
        mock_gateway_line(m, id, SY_LINE_RESULT, plain);
    }
    return SY_OK;
}

static void gateway_cancel(void *ctx, uint64_t call_id)
{
    struct mock_host *m = ctx;
    mock_lock(m);
    for (size_t i = 0; i < m->calls.n; i++) {
        struct call *c = m->calls.items[i];
        c->cancelled = c->cancelled || c->id == call_id;
    }
    mock_unlock(m);
}

const struct sy_host_gateway mock_gateway_service = {
    .size = sizeof mock_gateway_service, .call = gateway_call, .cancel = gateway_cancel};

void mock_gateway_script(struct mock_host *m, mock_gateway_fn fn, void *arg)
{
    mock_lock(m);
    m->gateway_fn = fn;
    m->gateway_arg = arg;
    mock_unlock(m);
}

void mock_gateway_line(struct mock_host *m, uint64_t call_id, uint32_t kind,
                       const char *json)
{
    struct call found = {0};
    mock_lock(m);
    for (size_t i = 0; i < m->calls.n; i++) {
        struct call *c = m->calls.items[i];
        if (c->id == call_id && !c->ended) {
            found = *c;
            c->ended = kind != SY_LINE_EVENT;
        }
    }
    mock_unlock(m);
    if (found.line != NULL && (kind != SY_LINE_EVENT || found.events)) {
        found.line(found.ctx, kind, (struct sy_str){json, strlen(json)});
    }
}

bool mock_gateway_cancelled(struct mock_host *m, uint64_t call_id)
{
    bool yes = false;
    mock_lock(m);
    for (size_t i = 0; i < m->calls.n; i++) {
        const struct call *c = m->calls.items[i];
        yes = yes || (c->id == call_id && c->cancelled);
    }
    mock_unlock(m);
    return yes;
}
