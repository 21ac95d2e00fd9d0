/* A URL in, its origin and path out; and text in, a path segment out. Pure. */
#include "net/http.h"

#include <string.h>

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool host_char(char c, bool six)
{
    return is_alnum(c) || c == '.' || (six ? c == ':' : c == '-' || c == '_');
}

static enum status take_host(struct str host, bool six, struct url_origin *o,
                             struct error *err)
{
    if (host.len == 0 || host.len >= sizeof(o->host)) {
        return error_set(err, ST_INVALID, "the URL has no host, or too long a one");
    }
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (!host_char(c, six)) {
            return error_set(err, ST_INVALID, "the URL's host is not well formed");
        }
        o->host[i] = c;
        if (c >= 'A' && c <= 'Z') {
            o->host[i] = (char)(c - 'A' + 'a');
        }
    }
    o->host[host.len] = '\0';
    return ST_OK;
}

static enum status take_port(struct str port, struct url_origin *o, struct error *err)
{
    int64_t n = o->https ? 443 : 80;

    if (port.len > 0 && str_to_i64(port, 1, 65535, &n) != ST_OK) {
        return error_set(err, ST_INVALID, "the URL's port is not a number of 1..65535");
    }
    o->port = (int)n;
    return ST_OK;
}

static enum status take_authority(struct str s, struct url_origin *o, struct error *err)
{
    struct str host = s, port = STR_NONE;
    bool six = s.len > 0 && s.ptr[0] == '[';
    size_t at;
    enum status st;

    if (six) {
        at = str_find_char(s, ']');
        if (at == SIZE_MAX || (at + 1 < s.len && s.ptr[at + 1] != ':')) {
            return error_set(err, ST_INVALID, "the URL's host is not well formed");
        }
        host = str_n(s.ptr + 1, at - 1);
        at = at + 1 < s.len ? at + 1 : SIZE_MAX;
    } else {
        at = str_find_char(s, ':');
        host.len = at != SIZE_MAX ? at : s.len;
    }
    if (at != SIZE_MAX) {
        port = str_n(s.ptr + at + 1, s.len - at - 1);
        if (port.len == 0) {
            return error_set(err, ST_INVALID, "the URL has a colon without a port");
        }
    }
    st = take_host(host, six, o, err);
    return st == ST_OK ? take_port(port, o, err) : st;
}

enum status url_parse(struct str url, struct url_origin *out, struct str *path,
                      struct error *err)
{
    struct url_origin o = {0};
    struct str rest = url;
    size_t end = 0;
    enum status st;

    o.https = str_starts(url, STR_LIT("https://"));
    if (!o.https && !str_starts(url, STR_LIT("http://"))) {
        return error_set(err, ST_INVALID,
                         "a URL begins with http:// or https://, as in "
                         "http://127.0.0.1:18789");
    }
    rest.ptr += o.https ? 8 : 7;
    rest.len -= o.https ? 8 : 7;
    while (end < rest.len && strchr("/?#", rest.ptr[end]) == NULL) {
        if (rest.ptr[end] == '@') {
            return error_set(err, ST_INVALID, "a URL with user info is not accepted");
        }
        end++;
    }
    st = take_authority(str_n(rest.ptr, end), &o, err);
    if (st != ST_OK) {
        return st;
    }
    *out = o;
    if (path != NULL) {
        *path = str_n(rest.ptr + end, rest.len - end);
    }
    return ST_OK;
}

bool url_same_origin(const struct url_origin *a, const struct url_origin *b)
{
    return a->https == b->https && a->port == b->port && strcmp(a->host, b->host) == 0;
}

void url_print_origin(const struct url_origin *o, struct buf *out)
{
    bool six = strchr(o->host, ':') != NULL;

    buf_addf(out, "%s://%s%s%s:%d", o->https ? "https" : "http", six ? "[" : "", o->host,
             six ? "]" : "", o->port);
}

void url_add_segment(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (is_alnum(c) || c == '-' || c == '_' || c == '~' || (c == '.' && s.len > 2)) {
            buf_add_char(out, c);
        } else {
            buf_addf(out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
}
