/* A host for testing one plugin without a gateway: real threads and real children, but no
 * sockets. It records what the plugin says, plays the client of its routes, answers its
 * fetches and gateway calls from a script, and counts every breach of the ABI it can see
 * (mock_faults: a test should end with 0).
 *
 * The plugin is a shared object (mock_open) or linked in under another name of its entry
 * (-Dsoulacy_plugin_v1=soulacy_plugin_echo_v1). Assertions belong on the test's thread;
 * nothing here asserts. Memory running out ends the process: this is a test. */
#ifndef SOULACY_TESTS_MOCK_HOST_H
#define SOULACY_TESTS_MOCK_HOST_H

#include <soulacy/channel.h>
#include <soulacy/executor.h>

#include <stdbool.h>

struct mock_host;
struct mock_client; /* the other end of one HTTP request */

struct mock_host *mock_new(void);
void mock_free(struct mock_host *m);
/* The table for create(). All services are granted. */
const struct sy_host *mock_table(struct mock_host *m);
/* The entry of a shared object, or NULL with the reason on stderr. Never unloaded. */
const struct sy_plugin *mock_open(const char *path);
int64_t mock_now_ms(void);
/* Breaches seen; the last one as text. */
int mock_faults(struct mock_host *m, char last[256]);
/* How many log lines contain text. */
int mock_logged(struct mock_host *m, const char *text);
/* Last SY_HEALTH_* reported, -1 none; text may be NULL. */
int32_t mock_health(struct mock_host *m, char text[256]);
/* Wait until done(arg) is true; it is asked again after each thing the plugin does. */
bool mock_wait(struct mock_host *m, bool (*done)(void *arg), void *arg,
               int64_t within_ms);

/* ---- host.channel ---- */

struct mock_message { /* copies; attachments are duplicated descriptors */
    uint32_t chat;
    int64_t sent_ms;
    char *id, *account, *conversation, *sender, *sender_name, *agent, *reply_to, *text;
    size_t nsender_ids, nattachments;
    int attachment_fd; /* of the first, or -1 */
};
/* What deliver() and report() answer from now on. */
void mock_deliver_answers(struct mock_host *m, sy_status st);
size_t mock_messages(struct mock_host *m);
/* Stays valid until mock_free. NULL when there is none. */
const struct mock_message *mock_message(struct mock_host *m, size_t i);
size_t mock_deliveries(struct mock_host *m);
/* "STATE TRANSPORT_ID REASON" */
const char *mock_delivery(struct mock_host *m, size_t i);

/* ---- host.http: play a client ---- */

struct mock_request {
    const char *method, *path;
    const char *query; /* raw, or NULL */
    const char *body;  /* or NULL */
    size_t body_len;   /* 0: strlen(body) */
    const struct sy_pair *headers;
    size_t nheaders;
    const char *peer;   /* NULL: 127.0.0.1 */
    bool authenticated; /* the key was right; SY_AUTH_KEY routes answer 401 without */
    bool local;
};
/* Finds the route, checks auth, method and body as the core does, and calls handle() on
 * the caller's thread. Never NULL: without a route the status is 404. */
struct mock_client *mock_send(struct mock_host *m, const struct mock_request *req);
/* Wait until the plugin has ended the answer. */
bool mock_client_wait(struct mock_client *c, int64_t within_ms);
/* Wait until the body so far contains text. */
bool mock_client_wait_text(struct mock_client *c, const char *text, int64_t within_ms);
int mock_client_status(struct mock_client *c); /* 0 before begin() */
bool mock_client_ended(struct mock_client *c);
/* Copies; NULL when absent. They stay valid until mock_free. */
const char *mock_client_header(struct mock_client *c, const char *name);
const char *mock_client_body(struct mock_client *c); /* WebSocket: one message a line */
/* The client hangs up: gone() is called, writes answer SY_E_CANCELLED. */
void mock_client_drop(struct mock_client *c);
/* Bytes the client has not "read" count against 256 KiB once it is slow. */
void mock_client_slow(struct mock_client *c);
/* WebSocket: one message from the client. */
void mock_client_message(struct mock_client *c, const char *text);
/* Routes added so far; "METHOD PATH AUTH FLAGS". */
size_t mock_routes(struct mock_host *m);
const char *mock_route(struct mock_host *m, size_t i);

/* ---- host.fetch: scripted servers ---- */

/* The next fetch whose URL contains part is answered by this; later ones by later calls,
 * the last one for good. st other than SY_OK: no answer came. */
void mock_fetch_answer(struct mock_host *m, const char *part, sy_status st, int status,
                       const char *body, int64_t retry_after_ms);
size_t mock_fetches(struct mock_host *m);
/* "METHOD URL\nHeader: value\n...\nbearer: ...\n\nBODY" of a fetch. */
const char *mock_fetched(struct mock_host *m, size_t i);

/* ---- host.gateway: a scripted core ---- */

/* Called for each call() on the caller's thread, with the call_id the plugin got. It
 * answers now or later, from any thread, through mock_gateway_line. NULL: each call gets
 * one result line {"op":OP}. */
typedef void (*mock_gateway_fn)(void *arg, uint64_t call_id, const char *op,
                                const char *args);
void mock_gateway_script(struct mock_host *m, mock_gateway_fn fn, void *arg);
void mock_gateway_line(struct mock_host *m, uint64_t call_id, uint32_t kind,
                       const char *json);
bool mock_gateway_cancelled(struct mock_host *m, uint64_t call_id);

/* ---- host.spawn: real children, no sandbox ---- */

/* A launch whose children run argv (NULL-ended, argv[0] absolute). preamble may be NULL.
 * The result stays valid until mock_free. */
const struct sy_launch *mock_launch(struct mock_host *m, const char *const *argv,
                                    const char *preamble, uint64_t must);
/* From now on spawn answers SY_E_INVALID for it, as after retire(). */
void mock_launch_retire(struct mock_host *m, const struct sy_launch *l);
/* The next n children cannot be set up: exit_fd is readable at once, setup says text. */
void mock_spawn_fails(struct mock_host *m, int n, const char *text);
int mock_children(struct mock_host *m);       /* spawned and not reaped */
int mock_children_total(struct mock_host *m); /* spawned ever */

/* A sink that keeps what it gets. */
struct mock_sink {
    struct sy_sink sink; /* give this to run() */
    char answer[65536], log[65536], layers[512];
    size_t nanswer, nlog;
    size_t enough;         /* say enough after so many answer bytes; 0 = never */
    const char *enough_at; /* or once the answer contains this; NULL = never */
    int started;
};
void mock_sink_init(struct mock_sink *s);

#endif
