/* One connection for each request. Comes in: a request with its own time limit inside the
 * call's. Goes out: an answer, or which of engine, limit, deadline and cancel ended it. It
 * never blocks longer than that, and reads no byte behind the head of a raw connection. */
#include "engine.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BODY_MAX ((size_t)4 * 1024 * 1024)

int64_t engine_now(const struct engine *e)
{
    return e->host->now_ms(e->host->ctx);
}

unsigned engine_api(const char *text)
{
    uint64_t v = 0;
    if (strncmp(text, "1.", 2) != 0 ||
        !util_number(text + 2, strlen(text + 2), 999, &v)) {
        return 0;
    }
    return (unsigned)v;
}

void engine_reason(const struct http_reader *r, char *out, size_t cap)
{
    const char *text = r->body.p != NULL ? r->body.p : "";
    cJSON *json = cJSON_ParseWithLength(text, r->body.n);
    const cJSON *message = cJSON_GetObjectItemCaseSensitive(json, "message");
    if (cJSON_IsString(message)) {
        text = message->valuestring;
    }
    size_t n = 0;
    for (; *text != '\0' && n + 1 < cap; text++) {
        bool blank = (unsigned char)*text <= ' ' || *text == 0x7f;
        if (!blank || (n > 0 && out[n - 1] != ' ')) {
            out[n++] = blank ? ' ' : *text;
        }
    }
    while (n > 0 && (out[n - 1] == ' ' || ((unsigned char)out[n - 1] & 0x80) != 0)) {
        n--; /* never half a character */
    }
    out[n] = '\0';
    cJSON_Delete(json);
}

sy_status engine_wait(const struct engine *e, int fd, short events, const struct span *s,
                      int64_t until_ms, struct sy_error *err)
{
    struct pollfd p[2] = {{.fd = fd, .events = events},
                          {.fd = s->cancel_fd, .events = POLLIN}};
    for (;;) {
        int64_t now = engine_now(e);
        int64_t by = s->deadline_ms < until_ms ? s->deadline_ms : until_ms;
        int64_t left = by > now ? by - now : 0;
        int n = poll(p, 2, left > 60000 ? 60000 : (int)left);
        if (n > 0 && p[1].revents != 0) {
            return util_fail(err, SY_E_CANCELLED, "cancelled");
        }
        if (n > 0) {
            return SY_OK;
        }
        if (n < 0 && errno != EINTR) {
            return util_fail(err, SY_E_INTERNAL, "poll failed");
        }
        if (engine_now(e) >= by) {
            return by == s->deadline_ms
                       ? util_fail(err, SY_E_TIMEOUT, "the deadline has passed")
                       : util_fail(err, SY_E_IO,
                                   "executor unavailable: no answer in time");
        }
    }
}

/* ---- connecting ---------------------------------------------------------------------- */

static sy_status connect_error(const struct engine *e, int number, struct sy_error *err)
{
    const char *text = "cannot be reached; is the engine running?";
    if (number == ENOENT || number == ENOTDIR) {
        text = "no such socket; start the engine (systemctl start docker) or set "
               "executor.docker_socket";
    } else if (number == EACCES || number == EPERM) {
        text = "permission denied; add the gateway's user to the socket's group (docker) "
               "and restart it";
    } else if (number == ECONNREFUSED) {
        text = "no engine answers; start it (systemctl start docker)";
    }
    sy_status st =
        util_fail(err, SY_E_IO, "executor unavailable: %s: %.90s", text, e->socket);
    if (err != NULL) {
        err->os_errno = number;
    }
    return st;
}

static sy_status engine_connect(const struct engine *e, const struct span *s,
                                int64_t until_ms, int *out, struct sy_error *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(e->socket);
    if (n >= sizeof to.sun_path) {
        return util_fail(err, SY_E_IO,
                         "executor unavailable: executor.docker_socket is "
                         "too long for a socket");
    }
    memcpy(to.sun_path, e->socket, n);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            return connect_error(e, errno, err);
        }
        if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) {
            *out = fd;
            return SY_OK;
        }
        int number = errno;
        (void)close(fd);
        if (number != EAGAIN && number != EINTR) {
            return connect_error(e, number, err);
        }
        /* The backlog is full: there is nothing to poll for. */
        int64_t pause = engine_now(e) + 20;
        sy_status st = engine_wait(e, -1, 0, s, pause < until_ms ? pause : until_ms, err);
        if (st != SY_E_IO || engine_now(e) >= until_ms) {
            return st;
        }
    }
}

/* ---- one exchange -------------------------------------------------------------------- */

static sy_status slow(const struct request *q, sy_status st, struct sy_error *err)
{
    if (st != SY_E_IO) {
        return st;
    }
    return util_fail(err, st,
                     "executor unavailable: the engine did not %s within %lld s; see its "
                     "log (journalctl -u docker)",
                     q->what, (long long)((q->limit_ms + 999) / 1000));
}

static sy_status gone(const struct request *q, struct sy_error *err)
{
    return util_fail(err, SY_E_IO,
                     "executor unavailable: the engine closed the connection when it "
                     "should %s; is it restarting?",
                     q->what);
}

static sy_status write_all(const struct engine *e, int fd, const struct request *q,
                           const struct bytes *text, const struct span *s,
                           int64_t until_ms, struct sy_error *err)
{
    size_t at = 0;
    while (at < text->n) {
        ssize_t n = send(fd, text->p + at, text->n - at, MSG_NOSIGNAL);
        if (n > 0) {
            at += (size_t)n;
        } else if (errno == EAGAIN) {
            sy_status st = engine_wait(e, fd, POLLOUT, s, until_ms, err);
            if (st != SY_OK) {
                return slow(q, st, err);
            }
        } else if (errno != EINTR) {
            return SY_OK; /* the answer may be there all the same: read it */
        }
    }
    return SY_OK;
}

static void request_text(const struct request *q, struct bytes *out)
{
    bytes_text(out, q->method);
    bytes_text(out, " ");
    bytes_text(out, q->path);
    bytes_text(out, " HTTP/1.1\r\nHost: docker\r\nUser-Agent: soulacy\r\n");
    bytes_text(out, q->upgrade ? "Connection: Upgrade\r\nUpgrade: tcp\r\n"
                               : "Connection: close\r\n");
    if (q->body != NULL) {
        bytes_text(out, "Content-Type: application/json\r\n");
    }
    if (q->body != NULL || strcmp(q->method, "POST") == 0) {
        bytes_fmt(out, "Content-Length: %zu\r\n", q->body != NULL ? q->nbody : 0);
    }
    bytes_text(out, "\r\n");
    if (q->body != NULL) {
        bytes_add(out, q->body, q->nbody);
    }
}

/* Read until complete, or until the head is there. */
static sy_status read_answer(const struct engine *e, int fd, const struct request *q,
                             const struct span *s, int64_t until_ms, bool head_only,
                             struct http_reader *r, struct sy_error *err)
{
    char block[16384];
    enum http_step step = HTTP_MORE;
    while (step == HTTP_MORE && !(head_only && r->head_done)) {
        /* Peeked at first: what follows the head stays in the socket. */
        ssize_t n = recv(fd, block, sizeof block, head_only ? MSG_PEEK : 0);
        size_t used = 0;
        if (n < 0 && errno == EAGAIN) {
            sy_status st = engine_wait(e, fd, POLLIN, s, until_ms, err);
            if (st != SY_OK) {
                return slow(q, st, err);
            }
        } else if (n == 0) {
            if (!r->head_done || http_eof(r) == HTTP_BAD) {
                return gone(q, err);
            }
            return SY_OK;
        } else if (n < 0 && errno != EINTR) {
            return gone(q, err);
        } else if (n > 0 && head_only) {
            step = http_feed_head(r, block, (size_t)n, &used);
            if (used > 0 && recv(fd, block, used, 0) != (ssize_t)used) {
                return gone(q, err);
            }
        } else if (n > 0) {
            step = http_feed(r, block, (size_t)n, &used);
        }
    }
    if (step == HTTP_BAD) {
        return util_fail(
            err, SY_E_IO,
            "executor unavailable: what answers on %s is no container engine", e->socket);
    }
    return SY_OK;
}

sy_status engine_open(const struct engine *e, const struct request *q,
                      const struct span *s, int *fd, struct http_reader *r,
                      struct sy_error *err)
{
    struct bytes text;
    int64_t until_ms = engine_now(e) + q->limit_ms;
    int made = -1;
    http_init(r, BODY_MAX);
    bytes_init(&text, BODY_MAX);
    request_text(q, &text);
    sy_status st = text.bad ? util_fail(err, SY_E_NOMEM, "out of memory")
                            : engine_connect(e, s, until_ms, &made, err);
    if (st == SY_OK) {
        st = write_all(e, made, q, &text, s, until_ms, err);
    }
    if (st == SY_OK) {
        st = read_answer(e, made, q, s, until_ms, true, r, err);
    }
    bytes_done(&text);
    if (st != SY_OK && made >= 0) {
        (void)close(made);
    } else if (st == SY_OK) {
        *fd = made;
    }
    return st;
}

sy_status engine_rest(const struct engine *e, int fd, const struct request *q,
                      const struct span *s, struct http_reader *r, struct sy_error *err)
{
    return read_answer(e, fd, q, s, engine_now(e) + q->limit_ms, false, r, err);
}

sy_status engine_call(const struct engine *e, const struct request *q,
                      const struct span *s, struct http_reader *r, struct sy_error *err)
{
    int fd = -1;
    int64_t began = engine_now(e);
    sy_status st = engine_open(e, q, s, &fd, r, err);
    if (st == SY_OK) {
        st = read_answer(e, fd, q, s, began + q->limit_ms, false, r, err);
        (void)close(fd);
    }
    return st;
}
