/* From a request to the operation's name and arguments. */
#ifndef CHANNEL_HTTP_ARGS_H
#define CHANNEL_HTTP_ARGS_H

#include "text.h"

/* One route of the API. */
struct endpoint {
    const char *method, *path, *op;
    const char *tail; /* what follows the id in the path, "" or "/tools"; NULL: no id */
    const char *const *params; /* query parameters; ends with NULL. ":name" is a number */
};

extern const struct endpoint endpoints[];
extern const size_t nendpoints;

struct refusal {
    int status;
    const char *code, *message;
    struct sy_str field; /* empty: none */
};

struct wish {
    const char *op;
    struct text args;
};

/* Which endpoint a request of this route means, and its arguments. The route is known by
 * its first endpoint, since several may share a prefix. */
bool args_from(const struct sy_host_http *http, void *host, const struct endpoint *route,
               const struct sy_request *req, struct wish *out, struct refusal *no);
/* The first endpoint with that method and path, the one its route is added for. */
bool endpoint_is_first(size_t i);

#endif
