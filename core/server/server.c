/* Comes in: the configuration, then events of libwebsockets on the server's own thread and
 * wake-ups of others. Goes out: calls into conn.c and listen.c. libwebsockets is the event
 * loop, TLS and the wake-up; HTTP is read by http.c, which refuses more and answers every
 * fault as JSON. Never blocks on the server thread. */
#include "server/server.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/io.h"
#include "base/mem.h"
#include "server/internal.h"

#include <string.h>

#define STACK_BYTES (256U * 1024U)
#define RATE_BUCKETS 2048U
#define BAD_KEY_BUCKETS 512U
#define DRAIN_GRACE_MS 5000

/* ---- shared with the other files ---- */

static void wake(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->wakeable) {
        lws_cancel_service(s->lws);
    }
    pthread_mutex_unlock(&s->lock);
}

void server_mark_dirty(struct sy_http *h)
{
    struct server *s = h->s;
    if (atomic_exchange(&h->dirty, true)) {
        return;
    }
    atomic_fetch_add(&h->refs, 1);
    pthread_mutex_lock(&s->lock);
    bool first = !s->dirty;
    h->next_dirty = s->dirty;
    s->dirty = h;
    if (first && s->wakeable) {
        lws_cancel_service(s->lws);
    }
    pthread_mutex_unlock(&s->lock);
}

void server_call_begin(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    s->calls++;
    pthread_mutex_unlock(&s->lock);
}

void server_call_end(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    s->calls--;
    pthread_cond_broadcast(&s->quiet);
    pthread_mutex_unlock(&s->lock);
}

void server_random_id(struct server *s, char out[SERVER_RID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    if (s->random_left < SERVER_RID_LEN / 2) {
        if (io_random(s->random, sizeof s->random, NULL) != ST_OK) {
            memset(s->random, 0, sizeof s->random); /* an id is no secret */
        }
        s->random_left = sizeof s->random;
    }
    for (size_t i = 0; i < SERVER_RID_LEN / 2; i++) {
        unsigned char b = s->random[--s->random_left];
        *out++ = digits[b >> 4];
        *out++ = digits[b & 15U];
    }
    *out = 0;
}

/* ---- the server thread ---- */

static void tick(lws_sorted_usec_list_t *sul)
{
    char *member = (char *)sul; /* by way of void, for the cast's alignment */
    struct server *s = (struct server *)(void *)(member - offsetof(struct server, tick));
    int64_t now = clock_mono_ms();
    s->ticking = false;
    listen_resume(s);
    handle_tell_gone(s);
    for (struct conn *c = s->conns; c; c = c->next) {
        conn_tick(c, now);
    }
    pthread_mutex_lock(&s->lock);
    bool untold = s->untold != NULL;
    pthread_mutex_unlock(&s->lock);
    if (s->nconns > 0 || s->accept_paused || untold) {
        server_need_tick(s);
    }
}

void server_need_tick(struct server *s)
{
    if (!s->ticking) {
        s->ticking = true;
        lws_sul_schedule(s->lws, 0, &s->tick, tick, s->tick_ms * 1000);
    }
}

static void look_at_dirty(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    struct sy_http *h = s->dirty;
    s->dirty = NULL;
    pthread_mutex_unlock(&s->lock);
    while (h) {
        struct sy_http *next = h->next_dirty;
        atomic_store(&h->dirty, false);
        if (h->conn) {
            conn_look(h->conn);
        }
        handle_unref(h);
        h = next;
    }
}

static void look_at_drain(struct server *s)
{
    if (!atomic_load(&s->draining)) {
        return;
    }
    if (!s->listeners_closed) {
        s->listeners_closed = true;
        listen_close(s);
    }
    bool all = atomic_load(&s->drain_now);
    for (struct conn *c = s->conns; c; c = c->next) {
        if (all || (c->phase == PH_HEAD && c->fresh && !c->closing)) {
            conn_kill(c);
        }
    }
}

static bool given(const char *text)
{
    return text && text[0] != 0;
}

static void set_names(struct server *s)
{
    const struct config *cfg = s->cfg;
    s->names.allowed_hosts = (const char *const *)cfg->server.allowed_hosts.items;
    s->names.nallowed_hosts = cfg->server.allowed_hosts.n;
    s->names.allowed_origins = (const char *const *)cfg->server.allowed_origins.items;
    s->names.nallowed_origins = cfg->server.allowed_origins.n;
}

static void woken(struct server *s)
{
    if (atomic_exchange(&s->reloaded, false)) {
        set_names(s);
    }
    look_at_dirty(s);
    look_at_drain(s);
    handle_tell_gone(s);
}

static int on_connection(struct conn *c, struct lws *wsi,
                         enum lws_callback_reasons reason, struct str data)
{
    struct server *s = c->s;
    c->wsi = wsi;
    s->current = c;
    if (reason == LWS_CALLBACK_RAW_RX) {
        conn_rx(c, data);
    } else if (reason == LWS_CALLBACK_RAW_WRITEABLE) {
        conn_writeable(c);
    }
    s->current = NULL;
    return c->dead ? -1 : 0;
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user,
                    void *in, size_t len)
{
    (void)user;
    struct server *s = lws_context_user(lws_get_context(wsi));
    struct conn *c = NULL;
    /* Only reasons of connections are named; wsi is a stand-in in some others. */
    switch ((int)reason) {
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        woken(s);
        return 0;
    case LWS_CALLBACK_RAW_RX_FILE:
        listen_accept(s, lws_get_socket_fd(wsi));
        return 0;
    case LWS_CALLBACK_RAW_ADOPT:
    case LWS_CALLBACK_RAW_RX:
    case LWS_CALLBACK_RAW_WRITEABLE:
        c = lws_get_opaque_user_data(wsi);
        return c ? on_connection(c, wsi, reason, str_n(in, len)) : 0;
    case LWS_CALLBACK_RAW_CLOSE:
    case LWS_CALLBACK_RAW_SKT_DROP_PROTOCOL:
    case LWS_CALLBACK_WSI_DESTROY:
        c = lws_get_opaque_user_data(wsi);
        if (c) {
            lws_set_opaque_user_data(wsi, NULL);
            conn_closed(c);
        }
        return 0;
    default:
        return 0;
    }
}

static void *serve(void *arg)
{
    struct server *s = arg;
    while (!atomic_load(&s->stop) && lws_service(s->lws, 0) >= 0) {
    }
    return NULL;
}

/* ---- set-up ---- */

static enum status parse_trusted(struct server *s, struct error *err)
{
    const struct str_list *list = &s->cfg->server.trusted_proxies;
    if (list->n == 0) {
        return ST_OK;
    }
    s->trusted = mem_array(list->n, sizeof *s->trusted);
    if (!s->trusted) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < list->n; i++) {
        if (!net_range_parse(str_c(list->items[i]), &s->trusted[i])) {
            return error_set(err, ST_INVALID,
                             "server.trusted_proxies: %s is no address or network",
                             list->items[i]);
        }
    }
    s->ntrusted = list->n;
    return ST_OK;
}

static void set_times(struct server *s)
{
    s->tick_ms = SERVER_TICK_MS;
    s->head_ms = SERVER_HEAD_MS;
    s->body_ms = SERVER_BODY_MS;
    s->idle_ms = SERVER_IDLE_MS;
    s->stall_ms = SERVER_STALL_MS;
    s->linger_ms = SERVER_LINGER_MS;
    s->ping_ms = SERVER_PING_MS;
    s->max_conns = SERVER_CONNECTIONS_MAX;
    s->max_peer_conns = SERVER_PEER_CONNECTIONS_MAX;
}

static enum status make_limits(struct server *s, struct error *err)
{
    uint64_t seeds[2];
    enum status st = io_random(seeds, sizeof seeds, err);
    if (st != ST_OK) {
        return st;
    }
    s->rate = limits_new(s->cfg->server.rate_limit_per_minute, RATE_BUCKETS, seeds[0]);
    s->bad_keys = limits_new(SERVER_BAD_KEYS_PER_MINUTE, BAD_KEY_BUCKETS, seeds[1]);
    return s->rate && s->bad_keys ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
}

static enum status init_locks(struct server *s, struct error *err)
{
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        return error_set(err, ST_NOMEM, "cannot make a lock");
    }
    if (pthread_mutex_init(&s->routes_lock, NULL) != 0) {
        pthread_mutex_destroy(&s->lock);
        return error_set(err, ST_NOMEM, "cannot make a lock");
    }
    if (cond_init(&s->quiet) != ST_OK) {
        pthread_mutex_destroy(&s->routes_lock);
        pthread_mutex_destroy(&s->lock);
        return error_set(err, ST_NOMEM, "cannot make a condition");
    }
    return ST_OK;
}

enum status server_new(const struct config *cfg, struct pool *http,
                       struct metrics *metrics, struct log *log,
                       const struct server_status *status, struct server **out,
                       struct error *err)
{
    struct server *s = mem_zalloc(sizeof *s);
    if (!s) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    s->cfg = cfg;
    s->pool = http;
    s->metrics = metrics;
    s->log = log;
    s->spare_fd = -1;
    for (size_t i = 0; i < SERVER_LISTENERS_MAX; i++) {
        s->fds[i] = -1;
    }
    buf_init(&s->scratch, SERVER_ANSWER_MAX);
    if (status) {
        s->status = *status;
    }
    set_times(s);
    set_names(s);
    s->names.tls = given(cfg->server.tls_cert);
    s->max_body = (uint64_t)cfg->server.max_body_mb * 1024 * 1024;
    enum status st = init_locks(s, err);
    if (st != ST_OK) {
        mem_free(s);
        return st;
    }
    st = parse_trusted(s, err);
    if (st == ST_OK) {
        st = make_limits(s, err);
    }
    if (st == ST_OK && given(cfg->server.tls_cert) != given(cfg->server.tls_key)) {
        st = error_set(err, ST_INVALID,
                       "server.tls_cert and server.tls_key are needed both");
    }
    if (st != ST_OK) {
        server_free(s);
        return st;
    }
    *out = s;
    return ST_OK;
}

static enum status make_context(struct server *s, struct error *err)
{
    static const struct lws_protocols protocols[] = {
        {.name = "soulacy", .callback = on_event},
        {.name = NULL},
    };
    const struct config *cfg = s->cfg;
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    lws_set_log_level(0, NULL);
    info.port = s->names.tls ? CONTEXT_PORT_NO_LISTEN_SERVER : CONTEXT_PORT_NO_LISTEN;
    info.protocols = protocols;
    info.user = s;
    info.pt_serv_buf_size = 8192;
    info.max_http_header_pool = 1;
    info.max_http_header_data = 64;
    info.fd_limit_per_thread = SERVER_CONNECTIONS_MAX + 128;
    if (s->names.tls) {
        info.options |=
            LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
        info.ssl_cert_filepath = cfg->server.tls_cert;
        info.ssl_private_key_filepath = cfg->server.tls_key;
        info.alpn = "http/1.1";
        info.ssl_options_set = SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 |
                               SSL_OP_NO_RENEGOTIATION;
    }
    s->lws = lws_create_context(&info);
    s->vhost = s->lws ? lws_get_vhost_by_name(s->lws, "default") : NULL;
    if (!s->vhost) {
        return error_set(err, ST_IO,
                         s->names.tls ? "the listener cannot be set up: check "
                                        "server.tls_cert and server.tls_key"
                                      : "the listener cannot be set up");
    }
    for (size_t i = 0; i < s->nfds; i++) {
        lws_sock_file_fd_type fd;
        memset(&fd, 0, sizeof fd);
        fd.filefd = s->fds[i];
        s->listeners[i] = lws_adopt_descriptor_vhost(s->vhost, LWS_ADOPT_RAW_FILE_DESC,
                                                     fd, "soulacy", NULL);
        if (!s->listeners[i]) {
            s->fds[i] = -1;
            return error_set(err, ST_NOMEM, "the listener cannot be set up");
        }
    }
    return ST_OK;
}

static enum status start_thread(struct server *s, struct error *err)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    int rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (rc == 0) {
        rc = pthread_create(&s->thread, &attr, serve, s);
    }
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        return error_set_errno(err, ST_IO, rc, "cannot start the server's thread");
    }
    s->has_thread = true;
    return ST_OK;
}

enum status server_start(struct server *s, struct error *err)
{
    enum status st = listen_open(s, err);
    if (st == ST_OK) {
        st = make_context(s, err);
    }
    if (st == ST_OK) {
        pthread_mutex_lock(&s->lock);
        s->wakeable = true;
        pthread_mutex_unlock(&s->lock);
        st = start_thread(s, err);
    }
    return st;
}

static bool wait_quiet(struct server *s, int64_t deadline_ms)
{
    bool quiet = false;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        quiet = s->open == 0 && s->calls == 0 && !s->untold;
        if (quiet || !cond_wait_until(&s->quiet, &s->lock, deadline_ms)) {
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return quiet;
}

void server_reload(struct server *s, const struct config *cfg)
{
    s->cfg = cfg;
    atomic_store(&s->reloaded, true);
    wake(s);
}

void server_drain(struct server *s, int64_t deadline_ms)
{
    if (!s->has_thread) {
        return;
    }
    atomic_store(&s->draining, true);
    wake(s);
    if (wait_quiet(s, deadline_ms)) {
        return;
    }
    atomic_store(&s->drain_now, true);
    wake(s);
    if (!wait_quiet(s, clock_mono_ms() + DRAIN_GRACE_MS)) {
        log_line(s->log, LOG_WARN, "server", "handlers still run after the drain");
    }
}

static void drop_lists(struct server *s)
{
    while (s->dirty) {
        struct sy_http *h = s->dirty;
        s->dirty = h->next_dirty;
        handle_unref(h);
    }
    while (s->untold) {
        struct sy_http *h = s->untold;
        s->untold = h->next_untold;
        handle_unref(h);
    }
}

void server_free(struct server *s)
{
    if (!s) {
        return;
    }
    atomic_store(&s->stop, true);
    wake(s);
    if (s->has_thread) {
        (void)pthread_join(s->thread, NULL);
    }
    pthread_mutex_lock(&s->lock);
    s->wakeable = false;
    pthread_mutex_unlock(&s->lock);
    if (s->lws) {
        lws_context_destroy(s->lws); /* closes what is open: conn_closed for each */
        s->lws = NULL;
        memset(s->listeners, 0, sizeof s->listeners);
    } else {
        listen_close(s);
    }
    (void)wait_quiet(s, clock_mono_ms() + DRAIN_GRACE_MS);
    drop_lists(s);
    io_close(&s->spare_fd);
    if (s->handles > 0) {
        /* Somebody may still write to one: its memory, and ours, must stay. */
        log_line(s->log, LOG_ERROR, "server", "%zu requests were never ended",
                 s->handles);
        return;
    }
    routes_free(s);
    limits_free(s->rate);
    limits_free(s->bad_keys);
    mem_free(s->trusted);
    buf_done(&s->scratch);
    pthread_cond_destroy(&s->quiet);
    pthread_mutex_destroy(&s->routes_lock);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

const char *server_address(const struct server *s)
{
    return s->address;
}

int server_port(const struct server *s)
{
    return s->port;
}

bool server_loopback_only(const struct server *s)
{
    return s->loopback_only;
}

bool server_open_to_network(const struct server *s)
{
    return !s->loopback_only || s->cfg->server.allowed_hosts.n > 0 ||
           s->cfg->server.trusted_proxies.n > 0;
}
