/* Outgoing HTTP over libcurl, which is opened by name at the first request, so that a
 * program that asks nothing never maps it. One request at a time, no redirects, no proxy
 * of the environment, http and https only. */
#ifndef SOULACY_NET_HTTP_H
#define SOULACY_NET_HTTP_H

#include "base/buf.h"
#include "base/error.h"
#include "base/secret.h"

struct http_request {
    const char *method;          /* "GET", "POST", "DELETE" */
    const char *url;             /* absolute */
    struct str body;             /* sent as application/json when ptr is not NULL */
    const struct secret *bearer; /* NULL, or unset: no Authorization */
    const char *ca_file;         /* https: trust these instead of the system's; NULL */
    int64_t connect_ms;          /* 0: 5 s */
    int64_t total_ms;            /* 0: no limit */
    size_t max_bytes;            /* of the answer's body */
};

struct http_answer {
    long status;
    char content_type[96]; /* lower case, without parameters; "" when absent */
    struct buf body;
};

/* ST_OK whenever an answer came, whatever its status; free it with http_answer_done, also
 * after a failure. ST_UNSUPPORTED: no libcurl here. ST_IO: no connection, or it broke.
 * ST_TIMEOUT, ST_TOO_LARGE, ST_INVALID (the URL). The error names the origin, never a
 * key. */
enum status http_send(const struct http_request *req, struct http_answer *out,
                      struct error *err) SY_MUST_CHECK;
void http_answer_done(struct http_answer *a);

/* ---- URLs (pure) ----------------------------------------------------------------- */

struct url_origin {
    bool https;
    char host[256]; /* lower case, an IPv6 address without brackets */
    int port;       /* 1..65535, the scheme's default filled in */
};

/* http://HOST[:PORT][/PATH]; user info is refused. path (may be NULL) gets what follows
 * the authority, "" or beginning with '/'. */
enum status url_parse(struct str url, struct url_origin *out, struct str *path,
                      struct error *err) SY_MUST_CHECK;
bool url_same_origin(const struct url_origin *a, const struct url_origin *b);
/* "http://127.0.0.1:18789", without a slash at the end. */
void url_print_origin(const struct url_origin *o, struct buf *out);
/* s as one segment of a path: all but unreserved characters escaped. */
void url_add_segment(struct buf *out, struct str s);

#endif
