/* One libwebsockets listener for everything: its thread never blocks. Routes belong to
 * plugins (soulacy.host.http/1) or to the core. In order, before a handler sees a request:
 * connection and header caps and time limits, rate limit, Host and Origin checks, route,
 * method, body cap, key. Handlers run on the http pool. */
#ifndef SOULACY_SERVER_SERVER_H
#define SOULACY_SERVER_SERVER_H

#include "base/log.h"
#include "base/pool.h"
#include "config/config.h"
#include "metrics/metrics.h"

#include <soulacy/channel.h>

struct server;

/* Answers the core gives itself, on the server thread: must not block. */
struct server_status {
    void *ctx;
    /* Body of /readyz: JSON; true = 200, false = 503. detail: the caller showed the key (or
     * server.open_metrics): the state of each part; otherwise only {"ready":true|false}. */
    bool (*ready)(void *ctx, bool detail, struct buf *out);
};

enum status server_new(const struct config *cfg, struct pool *http,
                       struct metrics *metrics, struct log *log,
                       const struct server_status *status, struct server **out,
                       struct error *err) SY_MUST_CHECK;
/* Bind, listen, start the thread. The error names host, port and cause. */
enum status server_start(struct server *s, struct error *err) SY_MUST_CHECK;
/* Take over another configuration: api_key, open_metrics, allowed_hosts, allowed_origins
 * at once; what else is in `server` needs a restart. cfg and the one before it live as long
 * as the server. [any] */
void server_reload(struct server *s, const struct config *cfg);
/* No new connections; open requests may end until deadline_ms, then they are closed. */
void server_drain(struct server *s, int64_t deadline_ms);
/* Stops the thread; NULL is fine. Stop the channels and the http pool's users first: a
 * request that is not ended yet keeps the memory of the server for good (and is logged). */
void server_free(struct server *s);

/* Where it listens, from getsockname: "127.0.0.1", port; loopback_only says whether every
 * listening address is a loopback one. Valid after server_start. */
const char *server_address(const struct server *s);
int server_port(const struct server *s);
bool server_loopback_only(const struct server *s);
/* A keyless gateway counts as open to the network when it is bound beyond loopback or has
 * allowed_hosts or trusted_proxies (security-rules.md 24). */
bool server_open_to_network(const struct server *s);

/* The service granted to channels. Its ctx is the plugin instance's, whose
 * PLUGIN_SLOT_HTTP must hold the server before the instance starts: routes are added in
 * start(). */
const struct sy_host_http *server_http_service(void);
/* Direct form for core and tests: owner is the plugin's name ("http", "whatsapp", ...);
 * names not of this repository may only use /channels/NAME/. */
enum status server_add_route(struct server *s, const char *owner,
                             const struct sy_route *route,
                             struct error *err) SY_MUST_CHECK;

#endif
