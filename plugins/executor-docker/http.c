/* HTTP/1.1 answers (RFC 9112) of a container engine. Comes in: bytes, split anywhere. Goes
 * out: status, body. It never trusts a length over its limits and takes no answer that
 * could be read in two ways. Pure. */
#include "http.h"

#include <string.h>
#include <strings.h>

enum {
    PH_STATUS,
    PH_HEADER,
    PH_BODY,    /* `left` bytes */
    PH_TO_EOF,  /* until the connection ends */
    PH_SIZE,    /* a chunk's size line */
    PH_CHUNK,   /* `left` bytes of it */
    PH_AFTER,   /* the line end behind a chunk */
    PH_TRAILER, /* lines behind the last chunk */
    PH_DONE,
    PH_BAD
};

void http_init(struct http_reader *r, size_t max_body)
{
    memset(r, 0, sizeof *r);
    bytes_init(&r->body, max_body);
}

void http_done(struct http_reader *r)
{
    bytes_done(&r->body);
}

static bool status_line(struct http_reader *r)
{
    uint64_t code = 0;
    if (r->nline < 12 || memcmp(r->line, "HTTP/1.", 7) != 0 ||
        (r->line[7] != '0' && r->line[7] != '1') || r->line[8] != ' ' ||
        !util_number(r->line + 9, 3, 599, &code) || code < 100 ||
        (r->nline > 12 && r->line[12] != ' ')) {
        return false;
    }
    r->status = (int)code;
    return true;
}

static bool is_name(const char *text, size_t len, const char *name)
{
    return len == strlen(name) && strncasecmp(text, name, len) == 0;
}

static bool header_line(struct http_reader *r)
{
    const char *colon = memchr(r->line, ':', r->nline);
    if (colon == NULL || colon == r->line || r->line[0] == ' ' || r->line[0] == '\t') {
        return false;
    }
    size_t nname = (size_t)(colon - r->line);
    const char *value = colon + 1;
    size_t n = r->nline - nname - 1;
    while (n > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        n--;
    }
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t')) {
        n--;
    }
    if (is_name(r->line, nname, "Content-Length")) {
        uint64_t v = 0;
        bool fresh = !r->has_length;
        if (!util_number(value, n, INT64_MAX, &v) || (!fresh && v != r->left)) {
            return false;
        }
        r->has_length = true;
        r->left = v;
    } else if (is_name(r->line, nname, "Transfer-Encoding")) {
        if (r->chunked || !is_name(value, n, "chunked")) {
            return false;
        }
        r->chunked = true;
    } else if (is_name(r->line, nname, "Api-Version") && n < sizeof r->api_version) {
        memcpy(r->api_version, value, n);
        r->api_version[n] = '\0';
    }
    return true;
}

/* The empty line behind the headers: what follows? */
static void end_of_head(struct http_reader *r)
{
    if (r->status < 200 && r->status != 101) {
        r->phase = PH_STATUS; /* 100 Continue and the like: the real one comes */
        r->chunked = r->has_length = false;
        r->left = 0;
        return;
    }
    r->head_done = true;
    if (r->status == 101 || r->status == 204 || r->status == 304) {
        r->phase = PH_DONE;
    } else if (r->chunked) {
        r->phase = r->has_length ? PH_BAD : PH_SIZE;
    } else if (r->has_length) {
        r->phase = r->left > 0 ? PH_BODY : PH_DONE;
        if (r->left > r->body.max) {
            r->phase = PH_BAD;
        }
    } else {
        r->phase = PH_TO_EOF;
    }
}

static bool chunk_size(struct http_reader *r)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < r->nline; i++) {
        char c = r->line[i];
        uint64_t digit;
        if (c >= '0' && c <= '9') {
            digit = (uint64_t)(c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            digit = (uint64_t)((c | 0x20) - 'a') + 10;
        } else {
            break;
        }
        if (i >= 15) {
            return false;
        }
        v = v * 16 + digit;
    }
    if (i == 0 || (i < r->nline && r->line[i] != ';' && r->line[i] != ' ') ||
        v > r->body.max) {
        return false;
    }
    r->left = v;
    return true;
}

static void on_line(struct http_reader *r)
{
    bool ok = true;
    switch (r->phase) {
    case PH_STATUS:
        ok = status_line(r);
        r->phase = PH_HEADER;
        break;
    case PH_HEADER:
        if (r->nline == 0) {
            end_of_head(r);
        } else {
            ok = header_line(r);
        }
        break;
    case PH_SIZE:
        ok = chunk_size(r);
        r->phase = r->left > 0 ? PH_CHUNK : PH_TRAILER;
        break;
    case PH_AFTER:
        ok = r->nline == 0;
        r->phase = PH_SIZE;
        break;
    case PH_TRAILER:
    default:
        if (r->nline == 0) {
            r->phase = PH_DONE;
        }
        break;
    }
    if (!ok) {
        r->phase = PH_BAD;
    }
    r->nline = 0;
}

static void line_byte(struct http_reader *r, char c)
{
    /* NOLINTNEXTLINE(bugprone-branch-clone): two reasons, one end */
    if (!r->head_done && ++r->nhead > HTTP_HEAD_MAX) {
        r->phase = PH_BAD;
    } else if (c == '\n') {
        if (r->nline > 0 && r->line[r->nline - 1] == '\r') {
            r->nline--;
        }
        on_line(r);
    } else if (c == '\0' || r->nline >= sizeof r->line) {
        r->phase = PH_BAD;
    } else {
        r->line[r->nline++] = c;
    }
}

/* Body bytes: how many were taken. */
static size_t body_bytes(struct http_reader *r, const char *data, size_t len)
{
    size_t n = len;
    if (r->phase != PH_TO_EOF && n > r->left) {
        n = (size_t)r->left;
    }
    bytes_add(&r->body, data, n);
    if (r->body.bad) {
        r->phase = PH_BAD;
        return n;
    }
    if (r->phase != PH_TO_EOF) {
        r->left -= n;
        if (r->left == 0) {
            r->phase = r->phase == PH_BODY ? PH_DONE : PH_AFTER;
        }
    }
    return n;
}

static enum http_step step_of(const struct http_reader *r)
{
    if (r->phase == PH_BAD) {
        return HTTP_BAD;
    }
    return r->phase == PH_DONE ? HTTP_DONE : HTTP_MORE;
}

static enum http_step feed(struct http_reader *r, const char *data, size_t len,
                           size_t *used, bool head_only)
{
    size_t i = 0;
    while (i < len && r->phase != PH_DONE && r->phase != PH_BAD &&
           !(head_only && r->head_done)) {
        if (r->phase == PH_BODY || r->phase == PH_CHUNK || r->phase == PH_TO_EOF) {
            i += body_bytes(r, data + i, len - i);
        } else {
            line_byte(r, data[i++]);
        }
    }
    *used = i;
    return step_of(r);
}

enum http_step http_feed(struct http_reader *r, const char *data, size_t len,
                         size_t *used)
{
    return feed(r, data, len, used, false);
}

enum http_step http_feed_head(struct http_reader *r, const char *data, size_t len,
                              size_t *used)
{
    return feed(r, data, len, used, true);
}

enum http_step http_eof(struct http_reader *r)
{
    if (r->phase == PH_TO_EOF) {
        r->phase = PH_DONE;
    } else if (r->phase != PH_DONE) {
        r->phase = PH_BAD;
    }
    return step_of(r);
}
