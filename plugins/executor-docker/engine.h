/* Requests to a container engine over its unix socket. */
#ifndef SOULACY_DOCKER_ENGINE_H
#define SOULACY_DOCKER_ENGINE_H

#include "http.h"

/* The API versions this plugin speaks. Between the two it takes min(ours, the engine's). */
#define API_OLDEST 24 /* 1.24 */
#define API_NEWEST 51 /* 1.51 */

struct engine {
    const struct sy_host *host;
    const char *socket; /* absolute path */
};

/* The call that a request is part of. */
struct span {
    int cancel_fd;       /* -1: none */
    int64_t deadline_ms; /* INT64_MAX: none */
};

struct request {
    const char *what; /* for error lines: "create the container" */
    const char *method;
    const char *path;
    const char *body; /* JSON, or NULL */
    size_t nbody;
    int64_t limit_ms; /* of this step alone, inside the span */
    bool upgrade;     /* ask for the raw connection */
};

int64_t engine_now(const struct engine *e);

/* One request, its whole answer. Any status counts as an answer. SY_E_IO: the engine does
 * not answer, err begins with "executor unavailable". SY_E_TIMEOUT, SY_E_CANCELLED: of the
 * span. *r is initialised here; http_done it in every case. */
sy_status engine_call(const struct engine *e, const struct request *q,
                      const struct span *s, struct http_reader *r, struct sy_error *err);

/* As engine_call, and returns with the head: what follows is still to be read from *fd,
 * which is the caller's on SY_OK. */
sy_status engine_open(const struct engine *e, const struct request *q,
                      const struct span *s, int *fd, struct http_reader *r,
                      struct sy_error *err);

/* Read what is left of an answer begun by engine_open. */
sy_status engine_rest(const struct engine *e, int fd, const struct request *q,
                      const struct span *s, struct http_reader *r, struct sy_error *err);

/* Wait for events on fd within the span and until_ms. SY_E_IO: until_ms has passed. */
sy_status engine_wait(const struct engine *e, int fd, short events, const struct span *s,
                      int64_t until_ms, struct sy_error *err);

/* What an engine says of an error: its JSON "message" or plain text, in one short line. */
void engine_reason(const struct http_reader *r, char *out, size_t cap);

/* "1.41" to 41; 0: not an API version. */
unsigned engine_api(const char *text);

#endif
