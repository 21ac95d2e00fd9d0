#define _GNU_SOURCE /* vasprintf, recursive mutexes come with XOPEN */
/* In: calls of a plugin to struct sy_host and to host.channel. Out: records of them that
 * a test can read. It decides nothing and loses nothing. */
#include "plugin/mock_internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *must(void *p)
{
    if (p == NULL) {
        (void)fputs("mock host: out of memory\n", stderr);
        abort();
    }
    return p;
}

void mock_lock(struct mock_host *m)
{
    (void)pthread_mutex_lock(&m->lock);
}

void mock_unlock(struct mock_host *m)
{
    (void)pthread_cond_broadcast(&m->changed);
    (void)pthread_mutex_unlock(&m->lock);
}

void *mock_keep(struct mock_list *l, void *item)
{
    if (l->n == MOCK_MAX) {
        (void)fputs("mock host: too many records\n", stderr);
        abort();
    }
    l->items[l->n++] = must(item);
    return item;
}

char *mock_copy(struct mock_host *m, struct sy_str s)
{
    char *copy = must(calloc(1, s.len + 1));
    if (s.len > 0) {
        memcpy(copy, s.ptr, s.len);
    }
    return mock_keep(&m->strings, copy);
}

char *mock_printf(struct mock_host *m, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return mock_keep(&m->strings, n < 0 ? NULL : text);
}

void mock_fault(struct mock_host *m, const char *fmt, ...)
{
    va_list ap;
    mock_lock(m);
    m->faults++;
    va_start(ap, fmt);
    (void)vsnprintf(m->last_fault, sizeof m->last_fault, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, "mock host: %s\n", m->last_fault);
    mock_unlock(m);
}

bool mock_span_ok(struct mock_host *m, const char *what, struct sy_str s)
{
    if (s.ptr == NULL && s.len > 0) {
        mock_fault(m, "%s: a length but no bytes", what);
        return false;
    }
    return true;
}

bool mock_str_eq(struct sy_str s, const char *text)
{
    size_t n = strlen(text);
    return s.len == n && (n == 0 || memcmp(s.ptr, text, n) == 0);
}

int64_t mock_now_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void host_log(void *ctx, int32_t level, struct sy_str line)
{
    struct mock_host *m = ctx;
    mock_lock(m);
    if (level < SY_LOG_DEBUG || level > SY_LOG_ERROR) {
        mock_fault(m, "log: level %d", (int)level);
    }
    if (mock_span_ok(m, "log", line)) {
        (void)mock_keep(&m->logs, strndup(line.ptr != NULL ? line.ptr : "", line.len));
    }
    mock_unlock(m);
}

static void host_health(void *ctx, int32_t state, struct sy_str text)
{
    struct mock_host *m = ctx;
    mock_lock(m);
    m->health = state;
    if (mock_span_ok(m, "health", text)) {
        (void)snprintf(m->health_text, sizeof m->health_text, "%.*s", (int)text.len,
                       text.ptr != NULL ? text.ptr : "");
    }
    mock_unlock(m);
}

static int64_t host_now_ms(void *ctx)
{
    (void)ctx;
    return mock_now_ms();
}

static const void *host_service(void *ctx, const char *id)
{
    static const struct {
        const char *id;
        const void *table;
    } services[] = {
        {SY_HOST_CHANNEL_ID, &mock_channel_service},
        {SY_HOST_HTTP_ID, &mock_http_service},
        {SY_HOST_FETCH_ID, &mock_fetch_service},
        {SY_HOST_GATEWAY_ID, &mock_gateway_service},
        {SY_HOST_SPAWN_ID, &mock_spawn_service},
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
        if (strcmp(services[i].id, id) == 0) {
            return services[i].table;
        }
    }
    return NULL;
}

static sy_status deliver(void *ctx, const struct sy_message *msgs, size_t n,
                         struct sy_error *err)
{
    struct mock_host *m = ctx;
    (void)err;
    mock_lock(m);
    sy_status st = m->deliver_answer;
    for (size_t i = 0; st == SY_OK && i < n; i++) {
        const struct sy_message *s =
            (const void *)((const char *)msgs + i * msgs[0].size);
        struct mock_message *r = mock_keep(&m->messages, calloc(1, sizeof *r));
        r->chat = s->chat;
        r->sent_ms = s->sent_ms;
        r->id = mock_copy(m, s->id);
        r->account = mock_copy(m, s->account);
        r->conversation = mock_copy(m, s->conversation);
        r->sender = mock_copy(m, s->sender);
        r->sender_name = mock_copy(m, s->sender_name);
        r->agent = mock_copy(m, s->agent);
        r->reply_to = mock_copy(m, s->reply_to);
        r->text = mock_copy(m, s->text);
        r->nsender_ids = s->nsender_ids;
        r->nattachments = s->nattachments;
        r->attachment_fd =
            s->nattachments > 0 ? fcntl(s->attachments[0].fd, F_DUPFD_CLOEXEC, 3) : -1;
        if (s->nattachments > 0 && r->attachment_fd < 0) {
            mock_fault(m, "deliver: attachment without an open file");
        }
    }
    mock_unlock(m);
    return st;
}

static sy_status report(void *ctx, const struct sy_delivery *items, size_t n,
                        struct sy_error *err)
{
    struct mock_host *m = ctx;
    (void)err;
    mock_lock(m);
    sy_status st = m->deliver_answer;
    for (size_t i = 0; st == SY_OK && i < n; i++) {
        const struct sy_delivery *d =
            (const void *)((const char *)items + i * items[0].size);
        char *text = mock_printf(m, "%u %s %s", d->state, mock_copy(m, d->transport_id),
                                 mock_copy(m, d->reason));
        (void)mock_keep(&m->deliveries, text);
    }
    mock_unlock(m);
    return st;
}

const struct sy_host_channel mock_channel_service = {
    .size = sizeof mock_channel_service, .deliver = deliver, .report = report};

struct mock_host *mock_new(void)
{
    pthread_mutexattr_t recursive;
    pthread_condattr_t monotonic;
    struct mock_host *m = must(calloc(1, sizeof *m));
    (void)pthread_mutexattr_init(&recursive);
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&m->lock, &recursive);
    (void)pthread_mutexattr_destroy(&recursive);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&m->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    m->table.size = sizeof m->table;
    m->table.abi_minor = SY_ABI_MINOR;
    m->table.ctx = m;
    m->table.log = host_log;
    m->table.service = host_service;
    m->table.health = host_health;
    m->table.now_ms = host_now_ms;
    m->health = -1;
    return m;
}

static void free_list(struct mock_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i]);
    }
    l->n = 0;
}

void mock_free(struct mock_host *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < m->messages.n; i++) {
        const struct mock_message *r = m->messages.items[i];
        if (r->attachment_fd >= 0) {
            (void)close(r->attachment_fd);
        }
    }
    mock_spawn_done(m);
    mock_http_done(m);
    free_list(&m->logs);
    free_list(&m->messages);
    free_list(&m->answers);
    free_list(&m->calls);
    free_list(&m->strings);
    (void)pthread_cond_destroy(&m->changed);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

const struct sy_host *mock_table(struct mock_host *m)
{
    return &m->table;
}

const struct sy_plugin *mock_open(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const void *entry = handle != NULL ? dlsym(handle, "soulacy_plugin_v1") : NULL;
    if (entry == NULL) {
        (void)fprintf(stderr, "mock host: %s\n", dlerror());
    }
    return entry;
}

int mock_faults(struct mock_host *m, char last[256])
{
    mock_lock(m);
    int n = m->faults;
    if (last != NULL) {
        memcpy(last, m->last_fault, sizeof m->last_fault);
    }
    mock_unlock(m);
    return n;
}

int mock_logged(struct mock_host *m, const char *text)
{
    int n = 0;
    mock_lock(m);
    for (size_t i = 0; i < m->logs.n; i++) {
        n += strstr(m->logs.items[i], text) != NULL ? 1 : 0;
    }
    mock_unlock(m);
    return n;
}

int32_t mock_health(struct mock_host *m, char text[256])
{
    mock_lock(m);
    int32_t state = m->health;
    if (text != NULL) {
        memcpy(text, m->health_text, sizeof m->health_text);
    }
    mock_unlock(m);
    return state;
}

bool mock_wait(struct mock_host *m, bool (*done)(void *arg), void *arg, int64_t within_ms)
{
    int64_t until = mock_now_ms() + within_ms;
    const struct timespec ts = {.tv_sec = until / 1000,
                                .tv_nsec = until % 1000 * 1000000};
    (void)pthread_mutex_lock(&m->lock);
    bool yes = done(arg);
    while (!yes && pthread_cond_timedwait(&m->changed, &m->lock, &ts) == 0) {
        yes = done(arg);
    }
    (void)pthread_mutex_unlock(&m->lock);
    return yes || done(arg);
}

void mock_deliver_answers(struct mock_host *m, sy_status st)
{
    mock_lock(m);
    m->deliver_answer = st;
    mock_unlock(m);
}

static void *item(struct mock_host *m, const struct mock_list *l, size_t i)
{
    mock_lock(m);
    void *p = i < l->n ? l->items[i] : NULL;
    mock_unlock(m);
    return p;
}

static size_t count(struct mock_host *m, const struct mock_list *l)
{
    mock_lock(m);
    size_t n = l->n;
    mock_unlock(m);
    return n;
}

size_t mock_messages(struct mock_host *m)
{
    return count(m, &m->messages);
}

const struct mock_message *mock_message(struct mock_host *m, size_t i)
{
    return item(m, &m->messages, i);
}

size_t mock_deliveries(struct mock_host *m)
{
    return count(m, &m->deliveries);
}

const char *mock_delivery(struct mock_host *m, size_t i)
{
    return item(m, &m->deliveries, i);
}

size_t mock_routes(struct mock_host *m)
{
    return count(m, &m->route_texts);
}

const char *mock_route(struct mock_host *m, size_t i)
{
    return item(m, &m->route_texts, i);
}

size_t mock_fetches(struct mock_host *m)
{
    return count(m, &m->fetches);
}

const char *mock_fetched(struct mock_host *m, size_t i)
{
    return item(m, &m->fetches, i);
}
