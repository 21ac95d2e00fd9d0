/* Comes in: the bytes of one request head, or a request target. Goes out: views of its
 * parts, or the fault that the client is told. Never reads past the view it was given,
 * never allocates, never guesses: what is not plainly right is refused. */
#include "server/http.h"

#include "base/utf8.h"

#include <string.h>

#define METHOD_MAX 32U

static bool fail(struct http_fault *fault, int status, const char *code,
                 const char *message)
{
    *fault = (struct http_fault){status, code, message};
    return false;
}

static bool bad(struct http_fault *fault, const char *message)
{
    return fail(fault, 400, "bad_request", message);
}

static bool is_alnum(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (!is_alnum(c) && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c))) {
            return false;
        }
    }
    return s.len > 0;
}

size_t http_head_end(struct str in, size_t *scan)
{
    size_t from = *scan > 3 ? *scan - 3 : 0;
    while (from + 4 <= in.len) {
        const char *cr = memchr(in.ptr + from, '\r', in.len - from - 3);
        if (!cr) {
            break;
        }
        if (memcmp(cr, "\r\n\r\n", 4) == 0) {
            return (size_t)(cr - in.ptr) + 4;
        }
        from = (size_t)(cr - in.ptr) + 1;
    }
    *scan = in.len;
    return 0;
}

/* Take one line that ends in CRLF; a bare CR, LF or NUL in it is a fault. */
static bool take_line(struct str *in, struct str *line)
{
    const char *lf = in->len > 0 ? memchr(in->ptr, '\n', in->len) : NULL;
    if (!lf || lf == in->ptr || lf[-1] != '\r') {
        return false;
    }
    *line = str_n(in->ptr, (size_t)(lf - in->ptr) - 1);
    *in = str_n(lf + 1, in->len - line->len - 2);
    return !(line->len > 0 &&
             (memchr(line->ptr, '\r', line->len) || memchr(line->ptr, 0, line->len)));
}

static bool parse_version(struct str v, struct http_head *out, struct http_fault *fault)
{
    if (str_eq_c(v, "HTTP/1.1")) {
        out->minor = 1;
        return true;
    }
    if (str_eq_c(v, "HTTP/1.0")) {
        out->minor = 0;
        return true;
    }
    if (v.len == 8 && str_starts(v, STR_LIT("HTTP/"))) {
        return fail(fault, 505, "version", "only HTTP/1.1 and HTTP/1.0 are spoken here");
    }
    return bad(fault, "the request line is malformed");
}

static bool parse_request_line(struct str line, struct http_head *out,
                               struct http_fault *fault)
{
    struct str rest = line;
    struct str method;
    struct str target;
    if (!str_split(&rest, ' ', &method) || !str_split(&rest, ' ', &target) ||
        !is_token(method) || method.len > METHOD_MAX || target.len == 0) {
        return bad(fault, "the request line is malformed");
    }
    if (target.len > HTTP_TARGET_MAX) {
        return fail(fault, 414, "target_too_long", "the path and query are too long");
    }
    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.ptr[i];
        if (c <= 0x20 || c >= 0x7f) {
            return bad(fault, "the path has bytes that must be percent-encoded");
        }
    }
    out->method = method;
    out->target = target;
    return parse_version(rest, out, fault);
}

static bool value_ok(struct str v)
{
    for (size_t i = 0; i < v.len; i++) {
        unsigned char c = (unsigned char)v.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return utf8_valid(v);
}

static bool parse_length(struct str v, struct http_head *out, struct http_fault *fault)
{
    int64_t n = 0;
    if (out->content_length >= 0) {
        return bad(fault, "Content-Length is given twice");
    }
    if (v.len == 0 || v.len > 18 || v.ptr[0] == '-' ||
        str_to_i64(v, 0, INT64_MAX, &n) != ST_OK) {
        return bad(fault, "Content-Length is no number");
    }
    out->content_length = n;
    return true;
}

/* What of Connection, Upgrade and the handshake headers was seen. */
struct seen {
    bool close, keep, upgrade_token, websocket, version13, encoded, expect_other;
};

static void parse_connection(struct str v, struct seen *seen)
{
    struct str part;
    while (str_split(&v, ',', &part)) {
        part = str_trim(part);
        seen->close = seen->close || str_eq_nocase(part, STR_LIT("close"));
        seen->keep = seen->keep || str_eq_nocase(part, STR_LIT("keep-alive"));
        seen->upgrade_token =
            seen->upgrade_token || str_eq_nocase(part, STR_LIT("upgrade"));
    }
}

/* Headers that may come once, each into its place. */
static bool take_single(const struct http_field *f, struct http_head *out, bool *taken,
                        struct http_fault *fault)
{
    const struct {
        const char *name;
        struct str *place;
    } singles[] = {
        {"host", &out->host},
        {"origin", &out->origin},
        {"authorization", &out->authorization},
        {"content-type", &out->content_type},
        {"sec-websocket-key", &out->ws_key},
        {"sec-websocket-protocol", &out->ws_protocols},
    };
    *taken = false;
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) {
        if (!str_eq_nocase(f->name, str_c(singles[i].name))) {
            continue;
        }
        if (singles[i].place->ptr) {
            return bad(fault, "a header that may come once is given twice");
        }
        *singles[i].place = f->value;
        *taken = true;
    }
    return true;
}

static bool is_forwarding(struct str name)
{
    return str_eq_nocase(name, STR_LIT("forwarded")) ||
           str_eq_nocase(name, STR_LIT("via")) ||
           str_eq_nocase(name, STR_LIT("x-real-ip")) ||
           (name.len > 12 && str_eq_nocase(str_n(name.ptr, 12), STR_LIT("x-forwarded-")));
}

static bool take_field(const struct http_field *f, struct http_head *out,
                       struct seen *seen, struct http_fault *fault)
{
    bool taken = false;
    if (!take_single(f, out, &taken, fault)) {
        return false;
    }
    if (taken) {
        return true;
    }
    if (str_eq_nocase(f->name, STR_LIT("content-length"))) {
        return parse_length(f->value, out, fault);
    }
    if (str_eq_nocase(f->name, STR_LIT("connection"))) {
        parse_connection(f->value, seen);
    } else if (str_eq_nocase(f->name, STR_LIT("transfer-encoding"))) {
        seen->encoded = true;
    } else if (str_eq_nocase(f->name, STR_LIT("expect"))) {
        bool cont = str_eq_nocase(f->value, STR_LIT("100-continue"));
        out->expect_continue = cont;
        seen->expect_other = !cont;
    } else if (str_eq_nocase(f->name, STR_LIT("upgrade"))) {
        seen->websocket = str_eq_nocase(f->value, STR_LIT("websocket"));
    } else if (str_eq_nocase(f->name, STR_LIT("sec-websocket-version"))) {
        seen->version13 = str_eq_c(f->value, "13");
    } else if (is_forwarding(f->name)) {
        out->forwarded = true;
        if (str_eq_nocase(f->name, STR_LIT("x-forwarded-for"))) {
            out->forwarded_for = f->value;
            out->nforwarded_for++;
        }
    }
    return true;
}

static bool parse_field(struct str line, struct http_field *f, struct http_fault *fault)
{
    struct str rest = line;
    /* A line that begins with a blank continues the one before: smuggling by folding. */
    if (!str_split(&rest, ':', &f->name) || f->name.len == line.len ||
        !is_token(f->name)) {
        return bad(fault, "a header line is malformed");
    }
    f->value = str_trim(str_n(line.ptr + f->name.len + 1, line.len - f->name.len - 1));
    if (!value_ok(f->value)) {
        return bad(fault, "a header value has control bytes or is not UTF-8");
    }
    return true;
}

static bool finish(struct http_head *out, const struct seen *seen,
                   struct http_fault *fault)
{
    if (!out->host.ptr || out->host.len == 0) {
        return bad(fault, "the Host header is missing");
    }
    if (seen->encoded) {
        if (out->content_length >= 0 || out->minor == 0) {
            return bad(fault,
                       "Transfer-Encoding and Content-Length contradict each other");
        }
        return fail(fault, 411, "length_required",
                    "send the body with Content-Length, not chunked");
    }
    if (seen->expect_other) {
        return fail(fault, 417, "expectation", "that expectation cannot be met");
    }
    out->keep_alive = out->minor == 1 ? !seen->close : (seen->keep && !seen->close);
    out->upgrade_asked = seen->websocket;
    out->upgrade = seen->websocket && seen->upgrade_token && seen->version13 &&
                   out->minor == 1 && out->ws_key.len == 24;
    return true;
}

bool http_parse_head(struct str in, struct http_head *out, struct http_fault *fault)
{
    /* The fields are not cleared: nfields says how many there are. */
    memset(out, 0, offsetof(struct http_head, fields));
    out->content_length = -1;
    struct seen seen = {0};
    struct str line;
    if (!take_line(&in, &line)) {
        return bad(fault, "the request line is malformed");
    }
    if (!parse_request_line(line, out, fault)) {
        return false;
    }
    for (;;) {
        if (!take_line(&in, &line)) {
            return bad(fault, "a header line is malformed");
        }
        if (line.len == 0) {
            break;
        }
        if (out->nfields == HTTP_FIELDS_MAX) {
            return fail(fault, 431, "headers_too_large", "too many headers");
        }
        struct http_field *f = &out->fields[out->nfields];
        if (!parse_field(line, f, fault) || !take_field(f, out, &seen, fault)) {
            return false;
        }
        out->nfields++;
    }
    return finish(out, &seen, fault);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of the escape at s[i] ("%41"), or -1. */
static int escape_at(struct str s, size_t i)
{
    if (s.len - i < 3) {
        return -1;
    }
    int high = hex_digit(s.ptr[i + 1]);
    int low = hex_digit(s.ptr[i + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool decode_path(struct str raw, char *out, size_t cap, size_t *len,
                        const char **why)
{
    size_t n = 0;
    for (size_t i = 0; i < raw.len; i++) {
        int c = (unsigned char)raw.ptr[i];
        bool escaped = c == '%';
        if (escaped) {
            c = escape_at(raw, i);
            i += 2;
        }
        if (c < 0x20 || c == 0x7f) {
            *why = "the path has a broken escape or a control byte";
            return false;
        }
        if (c == '\\' || c == '#' || (escaped && c == '/')) {
            *why = "the path has a slash, backslash or # where none may be";
            return false;
        }
        if (n + 1 >= cap) {
            *why = "the path is too long";
            return false;
        }
        out[n++] = (char)c;
    }
    out[n] = 0;
    *len = n;
    return true;
}

static bool segments_ok(struct str path)
{
    struct str rest = str_n(path.ptr + 1, path.len - 1);
    struct str part;
    while (rest.len > 0 && str_split(&rest, '/', &part)) {
        if (part.len == 0 || str_eq_c(part, ".") || str_eq_c(part, "..")) {
            return false;
        }
    }
    return true;
}

bool http_parse_target(struct str target, char *out, size_t cap, struct str *path,
                       struct str *query, struct http_fault *fault)
{
    if (target.len == 0 || target.ptr[0] != '/') {
        return bad(fault, "the path must begin with a slash");
    }
    size_t mark = str_find_char(target, '?');
    struct str raw = mark == SIZE_MAX ? target : str_n(target.ptr, mark);
    struct str rest = mark == SIZE_MAX
                          ? str_n("", 0)
                          : str_n(target.ptr + mark + 1, target.len - mark - 1);
    const char *why = NULL;
    size_t len = 0;
    if (!decode_path(raw, out, cap, &len, &why)) {
        return bad(fault, why);
    }
    struct str decoded = str_n(out, len);
    if (!utf8_valid(decoded)) {
        return bad(fault, "the path is not UTF-8");
    }
    if (!segments_ok(decoded)) {
        return bad(fault, "the path has empty, . or .. parts");
    }
    *path = decoded;
    *query = rest;
    return true;
}

/* Decode one name or value behind *used; a NUL follows it. */
static bool decode_part(struct str raw, char *out, size_t cap, size_t *used,
                        struct str *part)
{
    size_t n = *used;
    for (size_t i = 0; i < raw.len; i++) {
        int c = (unsigned char)raw.ptr[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            c = escape_at(raw, i);
            i += 2;
        }
        if (c <= 0 || n + 1 >= cap) {
            return false;
        }
        out[n++] = (char)c;
    }
    if (n >= cap) {
        return false;
    }
    out[n] = 0;
    *part = str_n(out + *used, n - *used);
    *used = n + 1;
    return utf8_valid(*part);
}

bool http_next_param(struct str *query, char *out, size_t cap, size_t *used,
                     struct http_field *param, bool *bad_param)
{
    struct str pair = STR_NONE;
    *bad_param = false;
    while (pair.len == 0) {
        if (query->len == 0 || !str_split(query, '&', &pair)) {
            return false;
        }
    }
    size_t eq = str_find_char(pair, '=');
    struct str name = eq == SIZE_MAX ? pair : str_n(pair.ptr, eq);
    struct str value =
        eq == SIZE_MAX ? str_n("", 0) : str_n(pair.ptr + eq + 1, pair.len - eq - 1);
    if (!decode_part(name, out, cap, used, &param->name) ||
        !decode_part(value, out, cap, used, &param->value)) {
        *bad_param = true;
        return false;
    }
    return true;
}

struct str http_field_get(const struct http_head *h, const char *name)
{
    struct str want = str_c(name);
    for (size_t i = 0; i < h->nfields; i++) {
        if (str_eq_nocase(h->fields[i].name, want)) {
            return h->fields[i].value;
        }
    }
    return STR_NONE;
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return status < 400 ? "OK" : "Error";
}
