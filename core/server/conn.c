/* Comes in: bytes and events of one connection, on the server thread. Goes out: answers,
 * in the order of the requests. Never reads on while much is unsent or unanswered, never
 * waits longer than a deadline, and never calls a plugin. */
#include "base/clock.h"
#include "base/mem.h"
#include "server/internal.h"

#include <sys/socket.h>

#define WRITE_BYTES 65536U
#define UNSENT_MAX 65536U
#define INPUT_MAX (SERVER_PIPELINED_MAX + 65536U)

struct conn *conn_new(struct server *s, const struct net_addr *peer,
                      const struct net_addr *local)
{
    struct conn *c = mem_zalloc(sizeof *c);
    if (!c) {
        return NULL;
    }
    c->s = s;
    c->tcp_peer = *peer;
    c->local = *local;
    c->fresh = true;
    c->deadline_ms = clock_mono_ms() + s->head_ms;
    c->stall_ms = CLOCK_NEVER;
    buf_init(&c->in, INPUT_MAX);
    buf_init(&c->out, SERVER_ANSWER_MAX + UNSENT_MAX);
    c->next = s->conns;
    if (s->conns) {
        s->conns->prev = c;
    }
    s->conns = c;
    s->nconns++;
    pthread_mutex_lock(&s->lock);
    s->open++;
    pthread_mutex_unlock(&s->lock);
    return c;
}

/* The request is no longer this connection's; the client is away. */
static void detach_gone(struct conn *c)
{
    struct sy_http *h = c->req;
    if (!h) {
        return;
    }
    c->req = NULL;
    h->conn = NULL;
    if (c->phase == PH_BODY) {
        /* The plugin has not seen it. */
        atomic_fetch_sub(&h->route->active, 1);
    } else {
        handle_gone(h);
    }
    handle_unref(h);
}

void conn_closed(struct conn *c)
{
    struct server *s = c->s;
    detach_gone(c);
    ws_parser_free(c->ws);
    buf_done(&c->in);
    buf_done(&c->out);
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        s->conns = c->next;
    }
    if (c->next) {
        c->next->prev = c->prev;
    }
    s->current = s->current == c ? NULL : s->current;
    s->nconns--;
    s->ndying -= c->dead ? 1U : 0U;
    mem_free(c);
    pthread_mutex_lock(&s->lock);
    s->open--;
    pthread_cond_broadcast(&s->quiet);
    pthread_mutex_unlock(&s->lock);
}

void conn_kill(struct conn *c)
{
    if (!c->dead) {
        c->dead = true;
        c->s->ndying++;
        if (c->wsi && lws_partial_buffered(c->wsi)) {
            /* Else lws would wait for the rest to be sent. */
            (void)shutdown(lws_get_socket_fd(c->wsi), SHUT_RDWR);
        }
        if (c->s->current != c && c->wsi) {
            /* Not in its own callback, which would say so by its result. */
            lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        }
    }
}

/* ---- sending ---- */

static size_t unsent(const struct conn *c)
{
    return c->out.len - c->out_done;
}

static bool all_sent(const struct conn *c)
{
    return unsent(c) == 0 && !lws_partial_buffered(c->wsi);
}

/* Hand over as much as may be; what the socket does not take now stays with lws. */
static bool write_some(struct conn *c, const char *p, size_t n)
{
    unsigned char *bytes = (unsigned char *)(uintptr_t)p; /* lws only reads it */
    if (lws_write(c->wsi, bytes, n, LWS_WRITE_RAW) < 0) {
        conn_kill(c);
        return false;
    }
    return true;
}

static void watch(struct conn *c)
{
    if (c->dead) {
        return;
    }
    if (all_sent(c)) {
        c->stall_ms = CLOCK_NEVER;
        return;
    }
    c->stall_ms = clock_mono_ms() + c->s->stall_ms;
    lws_callback_on_writable(c->wsi);
}

static void flush(struct conn *c)
{
    while (!c->dead && unsent(c) > 0 && !lws_partial_buffered(c->wsi)) {
        size_t n = unsent(c) < WRITE_BYTES ? unsent(c) : WRITE_BYTES;
        if (write_some(c, c->out.ptr + c->out_done, n)) {
            c->out_done += n;
        }
    }
    if (unsent(c) == 0) {
        c->out_done = 0;
        if (c->out.cap > 1024) {
            buf_done(&c->out);
        } else {
            buf_clear(&c->out);
        }
    }
    watch(c);
}

void conn_send(struct conn *c, struct str bytes)
{
    if (c->dead) {
        return;
    }
    if (bytes.len <= WRITE_BYTES && all_sent(c)) {
        if (write_some(c, bytes.ptr, bytes.len)) {
            watch(c);
        }
        return;
    }
    buf_add_str(&c->out, bytes);
    if (buf_status(&c->out) != ST_OK) {
        conn_kill(c);
        return;
    }
    flush(c);
}

static void fill_in(struct conn *c, struct answer *a, char rid[SERVER_RID_LEN + 1])
{
    struct server *s = c->s;
    int64_t now_s = clock_unix_ms() / 1000;
    if (now_s != s->date_s) {
        s->date_s = now_s;
        answer_date(now_s, s->date);
    }
    server_random_id(s, rid);
    a->rid = rid;
    a->date = s->date;
    if (!c->keep_alive || atomic_load(&s->draining)) {
        a->close = true;
    }
}

static void send_answer(struct conn *c, struct answer *a, struct str body)
{
    struct server *s = c->s;
    a->length = a->status == 204 ? -1 : (int64_t)body.len;
    buf_clear(&s->scratch);
    answer_head(&s->scratch, a);
    if (!c->head_only) {
        buf_add_str(&s->scratch, body);
    }
    c->closing = c->closing || a->close;
    if (buf_status(&s->scratch) != ST_OK) {
        conn_kill(c);
        return;
    }
    conn_send(c, buf_str(&s->scratch));
    if (s->scratch.cap > WRITE_BYTES) {
        buf_done(&s->scratch);
    }
}

void conn_answer(struct conn *c, struct answer *a, struct str body)
{
    char rid[SERVER_RID_LEN + 1];
    fill_in(c, a, rid);
    send_answer(c, a, body);
}

void conn_error(struct conn *c, const struct http_fault *f, struct answer *a)
{
    char rid[SERVER_RID_LEN + 1];
    struct buf body;
    buf_init(&body, 2048);
    fill_in(c, a, rid);
    a->status = f->status;
    a->type = "application/json";
    answer_error_body(&body, f, rid);
    send_answer(c, a, buf_str(&body));
    buf_done(&body);
    a->rid = NULL; /* it was on this stack */
}

static void refuse(struct conn *c, int status, const char *code, const char *message)
{
    struct http_fault f = {status, code, message};
    struct answer a = {.status = status, .close = true};
    c->keep_alive = false;
    c->head_only = false;
    metric_add(c->s->metrics, METRIC_HTTP_REJECTED, 1);
    conn_error(c, &f, &a);
}

/* ---- receiving ---- */

/* false: more bytes are needed, or it was answered. */
static bool take_head(struct conn *c, struct str *in)
{
    if (c->skip > 0) {
        size_t n = in->len < c->skip ? in->len : (size_t)c->skip;
        c->skip -= n;
        *in = str_n(in->ptr + n, in->len - n);
        return true;
    }
    if (c->fresh) {
        /* An empty line before the request line is allowed; the deadline is not moved. */
        if (in->len >= 2 && in->ptr[0] == '\r' && in->ptr[1] == '\n') {
            *in = str_n(in->ptr + 2, in->len - 2);
            return true;
        }
        if (in->ptr[0] != '\r') {
            c->fresh = false;
            c->deadline_ms = clock_mono_ms() + c->s->head_ms;
        }
    }
    size_t end = http_head_end(*in, &c->scan);
    if (end > HTTP_HEAD_MAX || (end == 0 && in->len >= HTTP_HEAD_MAX)) {
        refuse(c, 431, "headers_too_large", "request line and headers are too large");
        return false;
    }
    if (end == 0) {
        char first = in->ptr[0];
        if (first != '\r' && !(first >= 'A' && first <= 'Z') &&
            !(first >= 'a' && first <= 'z')) {
            refuse(c, 400, "bad_request", "this is not HTTP");
        }
        return false;
    }
    c->scan = 0;
    c->fresh = true;
    c->deadline_ms = clock_mono_ms() + c->s->idle_ms;
    struct str raw = str_n(in->ptr, end);
    *in = str_n(in->ptr + end, in->len - end);
    check_head(c, raw);
    return true;
}

static void ws_end(struct conn *c, int code)
{
    struct buf frame;
    buf_init(&frame, 64);
    ws_add_close(&frame, code);
    conn_send(c, buf_str(&frame));
    buf_done(&frame);
    detach_gone(c);
    c->closing = true;
}

static void ws_pong(struct conn *c, struct str payload)
{
    struct buf frame;
    buf_init(&frame, 256);
    ws_add_frame(&frame, WS_OP_PONG, payload);
    conn_send(c, buf_str(&frame));
    buf_done(&frame);
}

static void pause_reading(struct conn *c)
{
    if (!c->paused && !c->dead) {
        c->paused = true;
        lws_rx_flow_control(c->wsi, 0);
    }
}

static bool take_frames(struct conn *c, struct str *in)
{
    struct str payload = STR_NONE;
    int code = 1002;
    c->pinged_ms = 0;
    switch (ws_next(c->ws, in, &payload, &code)) {
    case WS_MORE:
    case WS_PONG:
        return true;
    case WS_PING:
        ws_pong(c, payload);
        return true;
    case WS_TEXT: {
        enum status st = handle_ws_text(c->req, payload);
        if (st == ST_BUSY) {
            pause_reading(c);
            return false;
        }
        if (st != ST_OK) {
            ws_end(c, 1013);
        }
        return st == ST_OK;
    }
    case WS_CLOSE:
        ws_end(c, 1000);
        return false;
    case WS_BAD:
        ws_end(c, code);
        return false;
    }
    return false;
}

static bool take(struct conn *c, struct str *in)
{
    switch (c->phase) {
    case PH_HEAD:
        return take_head(c, in);
    case PH_BODY:
        return check_body_take(c, in);
    case PH_WS:
        return take_frames(c, in);
    case PH_BUSY:
        return false;
    case PH_LINGER:
        *in = STR_NONE;
        return false;
    }
    return false;
}

static void process(struct conn *c, struct str *in)
{
    while (in->len > 0 && !c->dead && !c->closing && unsent(c) < UNSENT_MAX) {
        if (!take(c, in)) {
            break;
        }
    }
    if (c->closing || c->dead) {
        *in = STR_NONE;
    }
}

/* Go on with bytes that wait. */
static void resume(struct conn *c)
{
    struct str in = buf_str(&c->in);
    process(c, &in);
    buf_consume(&c->in, c->in.len - in.len);
    if (c->in.len == 0) {
        buf_done(&c->in);
    }
    if (c->paused && !c->dead && c->in.len < SERVER_PIPELINED_MAX / 2) {
        c->paused = false;
        lws_rx_flow_control(c->wsi, 1);
    }
}

/* ---- the end of a request or of the connection ---- */

static void linger(struct conn *c)
{
    c->phase = PH_LINGER;
    c->deadline_ms = clock_mono_ms() + c->s->linger_ms;
    buf_done(&c->in);
    if (c->paused) {
        c->paused = false;
        lws_rx_flow_control(c->wsi, 1);
    }
    if (!c->s->names.tls) {
        /* Closing with unread bytes would reset the connection under the answer. */
        (void)shutdown(lws_get_socket_fd(c->wsi), SHUT_WR);
    }
}

static void request_done(struct conn *c)
{
    struct sy_http *h = c->req;
    c->req = NULL;
    h->conn = NULL;
    c->closing = c->closing || !h->keep_alive || c->phase == PH_WS;
    handle_unref(h);
    c->phase = PH_HEAD;
    c->fresh = true;
    c->deadline_ms = clock_mono_ms() + c->s->idle_ms;
}

static void settle(struct conn *c)
{
    if (!c->dead && c->closing && c->phase != PH_LINGER && all_sent(c)) {
        linger(c);
    }
}

/* What became of a request that the plugin answered. */
struct seen {
    bool slow, drained, upgraded, refund;
};

/* Take the handle's bytes when ours are out. */
static struct seen pull(struct conn *c, struct sy_http *h)
{
    struct seen seen = {0};
    pthread_mutex_lock(&h->lock);
    if (unsent(c) == 0 && h->out.len > 0) {
        struct buf mine = c->out;
        c->out = h->out;
        c->out_done = 0;
        h->out = mine;
        h->out.max = SERVER_ANSWER_MAX;
        buf_clear(&h->out);
    }
    h->inflight = unsent(c);
    seen.slow = h->slow;
    seen.drained = h->ended && h->out.len == 0;
    seen.upgraded = h->upgraded;
    seen.refund = h->refund && h->begun && !h->refunded && h->status < 400;
    h->refunded = h->refunded || seen.refund;
    pthread_mutex_unlock(&h->lock);
    return seen;
}

static void upgrade(struct conn *c, struct sy_http *h)
{
    c->ws = ws_parser_new((size_t)h->route->max_body);
    if (!c->ws) {
        conn_kill(c);
        return;
    }
    c->phase = PH_WS;
    c->deadline_ms = clock_mono_ms() + c->s->ping_ms;
}

void conn_look(struct conn *c)
{
    struct sy_http *h = c->req;
    if (c->dead || !h || (c->phase != PH_BUSY && c->phase != PH_WS)) {
        return;
    }
    for (;;) {
        struct seen seen = pull(c, h);
        if (seen.refund) {
            limits_refund(c->s->rate, &h->peer_addr);
        }
        if (seen.slow) {
            conn_kill(c);
            return;
        }
        if (seen.upgraded && c->phase == PH_BUSY) {
            upgrade(c, h);
        }
        size_t before = unsent(c);
        flush(c);
        if (c->dead) {
            return;
        }
        if (seen.drained && unsent(c) == 0) {
            request_done(c);
            break;
        }
        if (before == 0 || unsent(c) > 0) {
            break;
        }
    }
    settle(c);
    if (c->in.len > 0 || c->paused) {
        resume(c);
        settle(c);
    }
}

void conn_rx(struct conn *c, struct str data)
{
    if (c->dead || c->closing || c->phase == PH_LINGER) {
        return;
    }
    if (c->in.len == 0) {
        process(c, &data);
        buf_add_str(&c->in, data);
    } else {
        buf_add_str(&c->in, data);
        struct str in = buf_str(&c->in);
        process(c, &in);
        buf_consume(&c->in, c->in.len - in.len);
    }
    if (buf_status(&c->in) != ST_OK) {
        conn_kill(c);
        return;
    }
    if (c->in.len == 0) {
        buf_done(&c->in);
    } else if (c->in.len > SERVER_PIPELINED_MAX) {
        pause_reading(c);
    }
    settle(c);
}

void conn_writeable(struct conn *c)
{
    flush(c);
    if (c->dead) {
        return;
    }
    if (c->req) {
        conn_look(c);
    } else if (unsent(c) < UNSENT_MAX && (c->in.len > 0 || c->paused)) {
        resume(c);
    }
    settle(c);
}

/* ---- time ---- */

static void body_late(struct conn *c)
{
    static const struct http_fault f = {408, "timeout", "the body did not come in time"};
    struct answer a = {.status = 408, .close = true};
    check_abandon(c, &f, &a);
}

static void ws_tick(struct conn *c, int64_t now_ms)
{
    if (c->pinged_ms != 0) {
        conn_kill(c); /* a whole interval without a word */
        return;
    }
    struct buf frame;
    buf_init(&frame, 64);
    ws_add_frame(&frame, WS_OP_PING, STR_NONE);
    conn_send(c, buf_str(&frame));
    buf_done(&frame);
    c->pinged_ms = now_ms;
    c->deadline_ms = now_ms + c->s->ping_ms;
}

void conn_tick(struct conn *c, int64_t now_ms)
{
    if (c->dead) {
        return;
    }
    if (now_ms >= c->stall_ms) {
        conn_kill(c);
        return;
    }
    if (now_ms < c->deadline_ms || c->phase == PH_BUSY) {
        return;
    }
    switch (c->phase) {
    case PH_HEAD:
        if (c->fresh) {
            conn_kill(c);
        } else {
            refuse(c, 408, "timeout", "the request did not come in time");
        }
        break;
    case PH_BODY:
        body_late(c);
        break;
    case PH_WS:
        ws_tick(c, now_ms);
        break;
    case PH_LINGER:
        conn_kill(c);
        break;
    case PH_BUSY:
        break;
    }
    settle(c);
}
