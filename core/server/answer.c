/* Comes in: what a response shall say. Goes out: its head, with the security headers, and
 * error bodies as JSON. Never lets a header through that could end the head early or
 * change the framing. */
#include "base/json.h"
#include "base/utf8.h"
#include "server/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void answer_date(int64_t unix_s, char out[32])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm = {0};
    time_t t = (time_t)unix_s;
    out[0] = 0;
    if (gmtime_r(&t, &tm)) {
        (void)snprintf(out, 32, "%s, %02u %s %04u %02u:%02u:%02u GMT",
                       days[tm.tm_wday % 7], (unsigned)tm.tm_mday % 100U,
                       months[tm.tm_mon % 12], (unsigned)(tm.tm_year + 1900) % 10000U,
                       (unsigned)tm.tm_hour % 100U, (unsigned)tm.tm_min % 100U,
                       (unsigned)tm.tm_sec % 100U);
    }
}

static struct str view(struct sy_str s)
{
    return str_n(s.ptr, s.len);
}

static bool name_is(const struct sy_pair *h, const char *name)
{
    return str_eq_nocase(view(h->name), str_c(name));
}

bool answer_header_ok(const struct sy_pair *h)
{
    static const char *const ours[] = {
        "content-length",         "transfer-encoding",   "connection", "date",
        "x-request-id",           "keep-alive",          "upgrade",    "trailer",
        "x-content-type-options", "sec-websocket-accept"};
    if (h->name.len == 0 || h->name.len > 128 || !h->name.ptr ||
        (h->value.len > 0 && !h->value.ptr) || h->value.len > 4096) {
        return false;
    }
    for (size_t i = 0; i < h->name.len; i++) {
        char c = h->name.ptr[i];
        if (c != '-' && c != '_' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
            !(c >= 'A' && c <= 'Z')) {
            return false;
        }
    }
    for (size_t i = 0; i < h->value.len; i++) {
        unsigned char c = (unsigned char)h->value.ptr[i];
        if (c < 0x20 || c == 0x7f) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (name_is(h, ours[i])) {
            return false;
        }
    }
    return utf8_valid(view(h->value));
}

static void add_header(struct buf *out, const char *name, struct str value)
{
    buf_add_c(out, name);
    buf_add_str(out, STR_LIT(": "));
    buf_add_str(out, value);
    buf_add_str(out, STR_LIT("\r\n"));
}

static bool given(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->nextra; i++) {
        if (name_is(&a->extra[i], name)) {
            return true;
        }
    }
    return false;
}

/* What a plugin may set otherwise. */
static void add_defaults(struct buf *out, const struct answer *a)
{
    const struct {
        const char *name;
        struct str value;
    } defaults[] = {
        {"Cache-Control", STR_LIT("no-store")},
        {"Content-Security-Policy",
         STR_LIT("default-src 'none'; frame-ancestors 'none'")},
        {"Referrer-Policy", STR_LIT("no-referrer")},
        {"X-Frame-Options", STR_LIT("DENY")},
        {"Cross-Origin-Resource-Policy",
         a->cors_origin ? STR_LIT("cross-origin") : STR_LIT("same-origin")},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        if (!given(a, defaults[i].name)) {
            add_header(out, defaults[i].name, defaults[i].value);
        }
    }
}

static void add_framing(struct buf *out, const struct answer *a)
{
    if (a->length >= 0) {
        buf_addf(out, "Content-Length: %lld\r\n", (long long)a->length);
    } else if (a->chunked) {
        buf_add_str(out, STR_LIT("Transfer-Encoding: chunked\r\n"));
    }
    if (a->status == 101) {
        buf_add_str(out, STR_LIT("Upgrade: websocket\r\nConnection: Upgrade\r\n"));
    } else if (a->upgrade_hint) {
        buf_add_str(out, STR_LIT("Upgrade: websocket\r\nConnection: Upgrade, close\r\n"));
    } else if (a->close) {
        buf_add_str(out, STR_LIT("Connection: close\r\n"));
    } else {
        buf_add_str(out, STR_LIT("Connection: keep-alive\r\n"));
    }
}

void answer_head(struct buf *out, const struct answer *a)
{
    buf_addf(out, "HTTP/1.1 %d ", a->status);
    buf_add_c(out, http_reason(a->status));
    buf_add_str(out, STR_LIT("\r\n"));
    add_header(out, "Date", str_c(a->date));
    add_header(out, "X-Request-Id", str_c(a->rid));
    if (a->type && !given(a, "Content-Type")) {
        add_header(out, "Content-Type", str_c(a->type));
    }
    add_framing(out, a);
    buf_add_str(out, STR_LIT("X-Content-Type-Options: nosniff\r\n"));
    add_defaults(out, a);
    if (a->cors_origin) {
        add_header(out, "Access-Control-Allow-Origin", str_c(a->cors_origin));
        buf_add_str(out, STR_LIT("Vary: Origin\r\n"));
    }
    if (a->allow.len > 0) {
        add_header(out, "Allow", a->allow);
    }
    if (a->retry_after_s > 0) {
        buf_addf(out, "Retry-After: %lld\r\n", (long long)a->retry_after_s);
    }
    if (a->challenge) {
        buf_add_str(out, STR_LIT("WWW-Authenticate: Bearer\r\n"));
    }
    for (size_t i = 0; i < a->nextra; i++) {
        buf_add_str(out, view(a->extra[i].name));
        buf_add_str(out, STR_LIT(": "));
        buf_add_str(out, view(a->extra[i].value));
        buf_add_str(out, STR_LIT("\r\n"));
    }
    buf_add_str(out, STR_LIT("\r\n"));
}

void answer_error_body(struct buf *out, const struct http_fault *f, const char *rid)
{
    buf_add_str(out, STR_LIT("{\"error\":{\"code\":"));
    json_add_string(out, str_c(f->code));
    buf_add_str(out, STR_LIT(",\"message\":"));
    json_add_string(out, str_c(f->message));
    buf_add_str(out, STR_LIT(",\"request_id\":"));
    json_add_string(out, str_c(rid));
    buf_add_str(out, STR_LIT("}}"));
}
