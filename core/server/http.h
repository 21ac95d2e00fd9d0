/* The head of an HTTP/1 request and its target, taken apart. Pure: no socket, no clock.
 * Everything a strict reading of RFC 9112 leaves open is refused, so that a proxy before
 * us and we never disagree about where a request ends. */
#ifndef SOULACY_SERVER_HTTP_H
#define SOULACY_SERVER_HTTP_H

#include "base/str.h"

#define HTTP_HEAD_MAX 16384U  /* request line and headers, all bytes */
#define HTTP_TARGET_MAX 8192U /* path and query */
#define HTTP_FIELDS_MAX 100U
#define HTTP_PARAMS_MAX 64U

/* Why a request is refused: becomes the status line and the error body. Static text. */
struct http_fault {
    int status;
    const char *code;
    const char *message;
};

struct http_field {
    struct str name, value;
};

/* Views into the bytes that were parsed. */
struct http_head {
    struct str method, target, host;
    struct str origin, authorization, content_type; /* ptr NULL: absent */
    struct str ws_key;                              /* ptr NULL: absent */
    struct str ws_protocols;                        /* ptr NULL: absent */
    struct str forwarded_for; /* the last X-Forwarded-For; ptr NULL: absent */
    size_t nforwarded_for;
    int64_t content_length; /* -1: absent */
    int minor;              /* of HTTP/1.x */
    bool keep_alive;
    bool expect_continue;
    bool upgrade;       /* a well-formed WebSocket handshake, version 13 */
    bool upgrade_asked; /* Upgrade: websocket, well-formed or not */
    bool forwarded;     /* any of X-Forwarded-*, Forwarded, Via, X-Real-IP */
    size_t nfields;
    struct http_field fields[HTTP_FIELDS_MAX];
};

/* Where the head ends: bytes up to and with the empty line, or 0 when it is not all
 * there. *scan (0 at first) remembers how far we looked. */
size_t http_head_end(struct str in, size_t *scan);

/* in is exactly one head. false: fault says why; the connection must then be closed. */
bool http_parse_head(struct str in, struct http_head *out, struct http_fault *fault);

/* Split and check the target. path is decoded into out (cap bytes, NUL-terminated; the
 * target's length + 1 is enough), query is the raw view. */
bool http_parse_target(struct str target, char *out, size_t cap, struct str *path,
                       struct str *query, struct http_fault *fault);

/* Take the next parameter of a raw query, decoded into out (as above, filled from *used
 * on; names and values end in NUL). false at the end; *bad tells a fault from the end. */
bool http_next_param(struct str *query, char *out, size_t cap, size_t *used,
                     struct http_field *param, bool *bad);

/* First header of that name, or ptr NULL. */
struct str http_field_get(const struct http_head *h, const char *name);

/* The reason phrase of a status. */
const char *http_reason(int status);

#endif
