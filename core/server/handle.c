/* Comes in: requests that passed every check, and what a plugin does with their handles
 * from any thread. Goes out: calls into the plugin on the pool, bytes for the connection.
 * Never blocks a writer, never calls a plugin with a lock held, and never tells of a
 * client's going before the handler returned, after end(), or twice. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "plugin/plugin.h"
#include "server/internal.h"

#include <string.h>

static struct sy_str span(struct str s)
{
    return (struct sy_str){s.ptr, s.len};
}

/* Copy with a NUL behind it into the handle's own text. */
static struct sy_str keep(char **at, struct str s)
{
    char *to = *at;
    if (s.len > 0) {
        memcpy(to, s.ptr, s.len);
    }
    to[s.len] = 0;
    *at += s.len + 1;
    return (struct sy_str){to, s.len};
}

/* Room for every text of the request, and for the decoded query. */
static size_t text_bytes(const struct http_head *head, struct str path, struct str query)
{
    size_t n = head->method.len + path.len + query.len + 8;
    n += SERVER_RID_LEN + 1 + 32;
    for (size_t i = 0; i < head->nfields; i++) {
        n += head->fields[i].name.len + head->fields[i].value.len + 2;
    }
    return n;
}

static size_t count_params(struct str query)
{
    size_t n = 1;
    for (size_t i = 0; i < query.len; i++) {
        n += query.ptr[i] == '&';
    }
    return query.len > 0 ? n : 0;
}

static bool take_params(struct sy_http *h, struct str query, char *at, size_t cap)
{
    size_t used = 0;
    bool bad = false;
    struct http_field param;
    while (http_next_param(&query, at, cap, &used, &param, &bad)) {
        h->params[h->nparams].name = span(param.name);
        h->params[h->nparams].value = span(param.value);
        h->nparams++;
    }
    return !bad;
}

static void take_head(struct sy_http *h, const struct http_head *head, struct str path,
                      struct str query, char **at)
{
    h->head_only = str_eq_c(head->method, "HEAD");
    h->req.size = sizeof h->req;
    h->req.http = h;
    h->req.method = keep(at, h->head_only ? STR_LIT("GET") : head->method);
    h->req.path = keep(at, path);
    h->req.query = keep(at, query);
    for (size_t i = 0; i < head->nfields; i++) {
        h->fields[i].name = keep(at, head->fields[i].name);
        h->fields[i].value = keep(at, head->fields[i].value);
    }
    h->nfields = head->nfields;
    h->keep_alive = head->keep_alive;
    h->http10 = head->minor == 0;
    h->length_left = -1;
    h->body_want = head->content_length > 0 ? (uint64_t)head->content_length : 0;
}

struct sy_http *handle_new(struct server *s, struct route *r,
                           const struct http_head *head, struct str path,
                           struct str query, struct http_fault *fault)
{
    static const struct http_fault nomem = {503, "overloaded", "out of memory"};
    static const struct http_fault bad = {400, "bad_request", "the query is malformed"};
    size_t nparams = count_params(query);
    if (nparams > HTTP_PARAMS_MAX) {
        *fault = (struct http_fault){400, "bad_request", "too many query parameters"};
        return NULL;
    }
    size_t params_cap = query.len + 2 * nparams + 1;
    size_t npairs = head->nfields + nparams;
    size_t text = text_bytes(head, path, query) + params_cap;
    struct sy_http *h =
        mem_zalloc(sizeof *h + npairs * sizeof(struct sy_pair) + sizeof(void *) + text);
    *fault = nomem;
    if (!h) {
        return NULL;
    }
    /* The pairs come first; the flexible array begins at a pointer's alignment. */
    uintptr_t misfit = (uintptr_t)h->text % sizeof(void *);
    char *at = h->text + (misfit ? sizeof(void *) - misfit : 0);
    h->fields = (struct sy_pair *)(void *)at;
    h->params = h->fields + head->nfields;
    at += npairs * sizeof(struct sy_pair);
    h->s = s;
    h->route = r;
    buf_init(&h->out, SERVER_ANSWER_MAX);
    buf_init(&h->body, 0);
    if (pthread_mutex_init(&h->lock, NULL) != 0) {
        mem_free(h);
        return NULL;
    }
    atomic_init(&h->refs, 1);
    atomic_init(&h->dirty, false);
    take_head(h, head, path, query, &at);
    buf_init(&h->body, h->body_want);
    server_random_id(s, at);
    h->req.request_id = (struct sy_str){at, SERVER_RID_LEN};
    at += SERVER_RID_LEN + 1;
    if (head->upgrade && ws_accept(head->ws_key, at, 32)) {
        h->ws_accept = at;
    }
    at += 32;
    pthread_mutex_lock(&s->lock);
    s->handles++;
    pthread_mutex_unlock(&s->lock);
    if (!take_params(h, query, at, params_cap)) {
        *fault = bad;
        handle_unref(h);
        return NULL;
    }
    return h;
}

static void drop_inbox(struct sy_http *h)
{
    while (h->inbox) {
        struct ws_item *item = h->inbox;
        h->inbox = item->next;
        mem_free(item);
    }
    h->inbox_last = NULL;
    h->ninbox = 0;
}

void handle_unref(struct sy_http *h)
{
    if (atomic_fetch_sub(&h->refs, 1) != 1) {
        return;
    }
    struct server *s = h->s;
    drop_inbox(h);
    atomic_fetch_sub(&s->body_bytes, h->body.len);
    buf_done(&h->out);
    buf_done(&h->body);
    pthread_mutex_destroy(&h->lock);
    mem_free(h);
    pthread_mutex_lock(&s->lock);
    s->handles--;
    pthread_cond_broadcast(&s->quiet);
    pthread_mutex_unlock(&s->lock);
}

/* With the lock held: may gone() be called now? Takes the right to do it. */
static bool claim_gone(struct sy_http *h)
{
    if (!h->gone || h->ended || h->gone_told || h->calling || !h->started ||
        !h->route->gone) {
        return false;
    }
    h->gone_told = true;
    h->calling = true;
    return true;
}

/* With the lock held: the next message for the plugin, or NULL. */
static struct ws_item *claim_message(struct sy_http *h)
{
    if (h->ended || h->gone || h->calling || !h->inbox) {
        return NULL;
    }
    struct ws_item *item = h->inbox;
    h->inbox = item->next;
    h->inbox_last = h->inbox ? h->inbox_last : NULL;
    h->ninbox--;
    h->calling = true;
    return item;
}

/* A plugin that is being stopped gets nothing new, one that was stopped nothing at all. */
static bool may_call(const struct route *r, enum plugin_call why)
{
    return r->instance == NULL || plugin_call_begin(r->instance, why);
}

static void called(const struct route *r, enum plugin_call why)
{
    if (r->instance != NULL) {
        plugin_call_end(r->instance, why);
    }
}

static void tell(struct sy_http *h, const struct ws_item *item)
{
    struct route *r = h->route;
    if (!may_call(r, PLUGIN_CALL_FOLLOWS)) {
        return;
    }
    if (item) {
        r->message(r->ctx, h, (struct sy_str){item->text, item->len});
    } else {
        r->gone(r->ctx, h);
    }
    called(r, PLUGIN_CALL_FOLLOWS);
}

/* Call whatever is due, until nothing is. Consumes one reference and one call count. */
static void run_due(struct sy_http *h)
{
    struct server *s = h->s;
    for (;;) {
        pthread_mutex_lock(&h->lock);
        struct ws_item *item = claim_message(h);
        bool gone = !item && claim_gone(h);
        bool resume = item && h->ninbox == SERVER_WS_QUEUED_MAX / 2;
        pthread_mutex_unlock(&h->lock);
        if (!item && !gone) {
            break;
        }
        if (resume) {
            server_mark_dirty(h);
        }
        tell(h, item);
        mem_free(item);
        pthread_mutex_lock(&h->lock);
        h->calling = false;
        pthread_mutex_unlock(&h->lock);
    }
    handle_unref(h);
    server_call_end(s);
}

static void run_due_task(void *arg)
{
    run_due(arg);
}

/* The route's plugin is being stopped, so nobody else will answer. */
static void answer_stopped(struct sy_http *h)
{
    static const char text[] = "{\"error\":{\"code\":\"unavailable\",\"message\":\"this "
                               "channel is being stopped\"}}";
    static const struct sy_pair type = {{"Content-Type", 12}, {"application/json", 16}};

    if (handle_begin(h, 503, &type, 1, sizeof(text) - 1) == SY_OK) {
        (void)handle_write(h, (struct sy_str){text, sizeof(text) - 1});
    }
    handle_end(h);
}

/* The plugin never saw the handle, so nobody else will end it. */
static void run_handle(void *arg)
{
    struct sy_http *h = arg;
    pthread_mutex_lock(&h->lock);
    bool gone = h->gone;
    h->started = !gone;
    h->calling = !gone;
    pthread_mutex_unlock(&h->lock);
    if (gone) {
        handle_end(h);
    } else {
        if (may_call(h->route, PLUGIN_CALL_WORK)) {
            h->route->handle(h->route->ctx, &h->req);
            called(h->route, PLUGIN_CALL_WORK);
        } else {
            answer_stopped(h);
        }
        pthread_mutex_lock(&h->lock);
        h->calling = false;
        pthread_mutex_unlock(&h->lock);
    }
    run_due(h);
}

/* Two references: the plugin's, dropped by end(), and the task's. */
enum status handle_dispatch(struct sy_http *h)
{
    atomic_fetch_add(&h->refs, 2);
    server_call_begin(h->s);
    enum status st = pool_submit(h->s->pool, run_handle, h);
    if (st != ST_OK) {
        server_call_end(h->s);
        atomic_fetch_sub(&h->refs, 2);
    }
    return st;
}

/* Have run_due look on the pool; false when the pool is full. */
static bool submit_due(struct sy_http *h)
{
    atomic_fetch_add(&h->refs, 1);
    server_call_begin(h->s);
    if (pool_submit(h->s->pool, run_due_task, h) == ST_OK) {
        return true;
    }
    server_call_end(h->s);
    atomic_fetch_sub(&h->refs, 1);
    return false;
}

void handle_gone(struct sy_http *h)
{
    pthread_mutex_lock(&h->lock);
    h->gone = true;
    buf_done(&h->out);
    buf_init(&h->out, SERVER_ANSWER_MAX);
    h->inflight = 0;
    drop_inbox(h);
    bool due = h->started && !h->ended && !h->calling && h->route->gone && !h->gone_told;
    pthread_mutex_unlock(&h->lock);
    if (due && !submit_due(h)) {
        /* Told later: the list holds a reference. */
        atomic_fetch_add(&h->refs, 1);
        pthread_mutex_lock(&h->s->lock);
        h->next_untold = h->s->untold;
        h->s->untold = h;
        pthread_mutex_unlock(&h->s->lock);
        server_need_tick(h->s);
    }
}

void handle_tell_gone(struct server *s)
{
    for (;;) {
        pthread_mutex_lock(&s->lock);
        struct sy_http *h = s->untold;
        pthread_mutex_unlock(&s->lock);
        if (!h || !submit_due(h)) {
            return;
        }
        pthread_mutex_lock(&s->lock);
        s->untold = h->next_untold;
        pthread_mutex_unlock(&s->lock);
        handle_unref(h);
    }
}

enum status handle_ws_text(struct sy_http *h, struct str text)
{
    struct ws_item *item = mem_alloc(sizeof *item + text.len + 1);
    if (!item) {
        return ST_NOMEM;
    }
    item->next = NULL;
    item->len = text.len;
    if (text.len > 0) {
        memcpy(item->text, text.ptr, text.len);
    }
    item->text[text.len] = 0;
    pthread_mutex_lock(&h->lock);
    if (h->inbox_last) {
        h->inbox_last->next = item;
    } else {
        h->inbox = item;
    }
    h->inbox_last = item;
    h->ninbox++;
    bool full = h->ninbox >= SERVER_WS_QUEUED_MAX;
    /* A task that is queued or running takes the later ones too. */
    bool covered = h->calling || h->ninbox > 1;
    pthread_mutex_unlock(&h->lock);
    if (!covered && !submit_due(h)) {
        return ST_NOMEM;
    }
    return full ? ST_BUSY : ST_OK;
}

sy_status handle_header(struct sy_http *h, const char *name, struct sy_str *out)
{
    struct str want = str_c(name);
    for (size_t i = 0; i < h->nfields; i++) {
        if (str_eq_nocase(str_n(h->fields[i].name.ptr, h->fields[i].name.len), want)) {
            *out = h->fields[i].value;
            return SY_OK;
        }
    }
    return SY_E_INVALID;
}

sy_status handle_query(struct sy_http *h, const char *name, struct sy_str *out)
{
    const struct sy_pair *found = NULL;
    for (size_t i = 0; i < h->nparams; i++) {
        if (str_eq_c(str_n(h->params[i].name.ptr, h->params[i].name.len), name)) {
            if (found) {
                return SY_E_INVALID;
            }
            found = &h->params[i];
        }
    }
    if (!found) {
        return SY_E_INVALID;
    }
    *out = found->value;
    return SY_OK;
}

/* With the lock held. */
static void write_head(struct sy_http *h, const struct sy_pair *headers, size_t nheaders,
                       int64_t content_length)
{
    char date[32];
    answer_date(clock_unix_ms() / 1000, date);
    bool bodiless = h->status == 101 || h->status == 204 || h->status == 304;
    struct answer a = {
        .status = h->status,
        .length = bodiless ? -1 : content_length,
        .rid = h->req.request_id.ptr,
        .date = date,
        .cors_origin = h->cors_origin,
    };
    h->chunked = !bodiless && content_length < 0 && !h->http10;
    if (atomic_load(&h->s->draining) || (!bodiless && content_length < 0 && h->http10)) {
        h->keep_alive = false;
    }
    a.chunked = h->chunked;
    a.close = !h->keep_alive;
    struct sy_pair extra[34];
    if (nheaders > 0) {
        memcpy(extra, headers, nheaders * sizeof *headers);
    }
    if (h->status == 101) {
        extra[nheaders].name = span(STR_LIT("Sec-WebSocket-Accept"));
        extra[nheaders++].value = span(str_c(h->ws_accept));
        if (h->ws_protocol) {
            extra[nheaders].name = span(STR_LIT("Sec-WebSocket-Protocol"));
            extra[nheaders++].value = span(STR_LIT("soulacy"));
        }
    }
    a.extra = extra;
    a.nextra = nheaders;
    answer_head(&h->out, &a);
    h->length_left = bodiless ? 0 : content_length;
    h->upgraded = h->status == 101;
}

sy_status handle_begin(struct sy_http *h, int32_t status, const struct sy_pair *headers,
                       size_t nheaders, int64_t content_length)
{
    bool upgrade = status == 101;
    if ((!upgrade && (status < 200 || status > 599)) || content_length < -1 ||
        content_length > (int64_t)SERVER_ANSWER_MAX - 65536 || nheaders > 32 ||
        (nheaders > 0 && !headers) || (upgrade && !h->ws_accept)) {
        return SY_E_INVALID;
    }
    for (size_t i = 0; i < nheaders; i++) {
        if (!answer_header_ok(&headers[i])) {
            return SY_E_INVALID;
        }
    }
    sy_status st = SY_OK;
    pthread_mutex_lock(&h->lock);
    if (h->begun || h->ended) {
        st = SY_E_INVALID;
    } else {
        h->begun = true;
        h->status = status;
        if (h->gone) {
            st = SY_E_CANCELLED;
        } else {
            write_head(h, headers, nheaders, content_length);
            st = buf_status(&h->out) == ST_OK ? SY_OK : SY_E_NOMEM;
        }
    }
    pthread_mutex_unlock(&h->lock);
    if (st == SY_OK && (upgrade || content_length < 0)) {
        server_mark_dirty(h);
    }
    return st;
}

/* With the lock held; data is not empty. */
static void append(struct sy_http *h, struct sy_str data)
{
    struct str bytes = str_n(data.ptr, data.len);
    if (h->upgraded) {
        ws_add_frame(&h->out, WS_OP_TEXT, bytes);
    } else if (h->head_only) {
        return;
    } else if (h->chunked) {
        buf_addf(&h->out, "%zx\r\n", data.len);
        buf_add_str(&h->out, bytes);
        buf_add_str(&h->out, STR_LIT("\r\n"));
    } else {
        buf_add_str(&h->out, bytes);
    }
}

/* With the lock held. A stream that is not read piles up and is cut off; one write always
 * fits, and an answer of declared length is held whole. */
static sy_status try_append(struct sy_http *h, struct sy_str data)
{
    size_t outstanding = h->out.len + h->inflight;
    if (!h->begun || h->ended) {
        return SY_E_INVALID;
    }
    if (h->gone || h->slow) {
        return SY_E_CANCELLED;
    }
    if (h->length_left >= 0 && !h->upgraded) {
        if (data.len > (uint64_t)h->length_left) {
            return SY_E_INVALID;
        }
        h->length_left -= (int64_t)data.len;
    } else if (outstanding > 0 && (outstanding > SERVER_OUTSTANDING_MAX ||
                                   data.len > SERVER_OUTSTANDING_MAX - outstanding)) {
        h->slow = true;
        return SY_E_CANCELLED;
    }
    append(h, data);
    if (buf_status(&h->out) != ST_OK) {
        h->slow = true;
        return SY_E_CANCELLED;
    }
    return SY_OK;
}

sy_status handle_write(struct sy_http *h, struct sy_str data)
{
    if (data.len > 0 && !data.ptr) {
        return SY_E_INVALID;
    }
    if (h->websocket && !utf8_valid(str_n(data.ptr, data.len))) {
        return SY_E_INVALID;
    }
    pthread_mutex_lock(&h->lock);
    bool nothing = data.len == 0 && h->begun && !h->upgraded;
    sy_status st = nothing && !h->ended && !h->gone ? SY_OK : try_append(h, data);
    /* What fits one answer is sent when it is whole. */
    bool look = st == SY_E_CANCELLED ||
                (st == SY_OK && !nothing &&
                 (h->length_left < 0 || h->upgraded || h->out.len > 65536));
    pthread_mutex_unlock(&h->lock);
    if (look) {
        server_mark_dirty(h);
    }
    return st;
}

/* With the lock held: an answer that never began. */
static void write_missing(struct sy_http *h)
{
    static const struct http_fault fault = {500, "internal",
                                            "the handler gave no answer"};
    struct buf body;
    buf_init(&body, 4096);
    answer_error_body(&body, &fault, h->req.request_id.ptr);
    h->begun = true;
    h->status = 500;
    static const struct sy_pair type[] = {
        {{"Content-Type", 12}, {"application/json", 16}},
    };
    write_head(h, type, 1, (int64_t)body.len);
    h->length_left = 0;
    if (!h->head_only) {
        buf_add_str(&h->out, buf_str(&body));
    }
    buf_done(&body);
}

void handle_end(struct sy_http *h)
{
    pthread_mutex_lock(&h->lock);
    if (h->ended) {
        pthread_mutex_unlock(&h->lock);
        return;
    }
    if (!h->gone) {
        if (!h->begun) {
            write_missing(h);
        } else if (h->upgraded) {
            ws_add_close(&h->out, 1000);
        } else if (h->chunked && !h->head_only) {
            buf_add_str(&h->out, STR_LIT("0\r\n\r\n"));
        }
        if (!h->upgraded && h->length_left > 0 && !h->head_only) {
            /* Less than was promised: the client must not take it for whole. */
            h->slow = true;
        }
    }
    h->ended = true;
    pthread_mutex_unlock(&h->lock);
    atomic_fetch_sub(&h->route->active, 1);
    server_mark_dirty(h);
    handle_unref(h);
}
