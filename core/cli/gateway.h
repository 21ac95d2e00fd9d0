/* Requests to the running gateway. Private to core/cli. */
#ifndef SOULACY_CLI_GATEWAY_H
#define SOULACY_CLI_GATEWAY_H

#include "cli/command.h"
#include "net/http.h"

struct gateway {
    struct cli *c;
    char base[320]; /* "http://127.0.0.1:18789" */
    bool own;       /* the origin of this configuration: it gets the key */
};

/* The gateway that --url or the configuration names. c->cfg is loaded here. */
enum cli_exit gateway_find(struct cli *c, struct gateway *out);
/* The origin at which a gateway of this configuration is reached. Pure. */
enum status gateway_origin(const struct config *cfg, struct url_origin *out,
                           struct error *err) SY_MUST_CHECK;

/* One request; path begins with '/', body "" for none. CLI_DONE: status 2xx, *doc is the
 * parsed body (cJSON_Delete) and raw its text. Anything else was told on stderr. */
enum cli_exit gateway_ask(const struct gateway *g, const char *method, const char *path,
                          struct str body, cJSON **doc, struct buf *raw);
/* The same without judging the status. */
enum cli_exit gateway_send(const struct gateway *g, const char *method, const char *path,
                           struct str body, struct http_answer *out);
/* Tells on stderr what an answer that is no 2xx means, and what to do. */
enum cli_exit gateway_explain(const struct gateway *g, const struct http_answer *a);

#endif
