/* The answer of one HTTP/1.1 request, read piece by piece. Pure. */
#ifndef SOULACY_DOCKER_HTTP_H
#define SOULACY_DOCKER_HTTP_H

#include "util.h"

#define HTTP_LINE_MAX 4096
#define HTTP_HEAD_MAX 32768

enum http_step { HTTP_MORE, HTTP_DONE, HTTP_BAD };

struct http_reader {
    /* Read these once head_done. */
    int status;
    bool head_done;
    char api_version[16]; /* header Api-Version, or "" */
    struct bytes body;

    int phase; /* the reader's own from here on */
    char line[HTTP_LINE_MAX];
    size_t nline, nhead;
    bool chunked, has_length;
    uint64_t left; /* of the body or of a chunk */
};

void http_init(struct http_reader *r, size_t max_body);
void http_done(struct http_reader *r);
/* Take in up to len bytes; *used: how many were the answer's. HTTP_DONE: complete. An
 * answer 101 is complete with its head. */
enum http_step http_feed(struct http_reader *r, const char *data, size_t len,
                         size_t *used);
/* As http_feed, and stops behind the head (HTTP_MORE with head_done when there is a body). */
enum http_step http_feed_head(struct http_reader *r, const char *data, size_t len,
                              size_t *used);
/* The other side has closed: completes a body that has no length, is HTTP_BAD elsewhere. */
enum http_step http_eof(struct http_reader *r);

#endif
