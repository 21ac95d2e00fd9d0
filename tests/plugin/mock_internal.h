/* What the files of the mock host share. */
#ifndef SOULACY_TESTS_MOCK_INTERNAL_H
#define SOULACY_TESTS_MOCK_INTERNAL_H

#include "plugin/mock_host.h"

#include <pthread.h>

#define MOCK_MAX 4096

struct mock_list { /* of heap pointers, at most MOCK_MAX */
    void *items[MOCK_MAX];
    size_t n;
};

struct mock_host {
    struct sy_host table;
    pthread_mutex_t lock; /* guards all below; recursive: handlers call back in */
    pthread_cond_t changed;
    int faults;
    char last_fault[256];
    int32_t health;
    char health_text[256];
    sy_status deliver_answer;
    struct mock_list logs, messages, deliveries, routes, route_texts, clients;
    struct mock_list answers, fetches, calls, launches, children, strings;
    mock_gateway_fn gateway_fn;
    void *gateway_arg;
    uint64_t next_call, next_child, next_launch;
    int spawn_fails, spawned;
    char spawn_text[240];
};

void mock_lock(struct mock_host *m);
void mock_unlock(struct mock_host *m); /* and wake whoever waits */
void mock_fault(struct mock_host *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void *mock_keep(struct mock_list *l,
                void *item); /* returns item; NULL ends the process */
char *mock_copy(struct mock_host *m, struct sy_str s); /* freed by mock_free */
char *mock_printf(struct mock_host *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool mock_span_ok(struct mock_host *m, const char *what, struct sy_str s);
bool mock_str_eq(struct sy_str s, const char *text);

extern const struct sy_host_channel mock_channel_service;
extern const struct sy_host_http mock_http_service;
extern const struct sy_host_fetch mock_fetch_service;
extern const struct sy_host_gateway mock_gateway_service;
extern const struct sy_host_spawn mock_spawn_service;

void mock_http_done(struct mock_host *m);
void mock_spawn_done(struct mock_host *m);

#endif
