/* One request in, one answer out. Follows nothing, asks no proxy, and keeps the key out of
 * every text. */
#include "net/http.h"

#include "net/curl.h"

#include <string.h>

#define CONNECT_MS 5000

struct transfer {
    struct curl_api api;
    CURL *h;
    struct curl_slist *headers;
    struct http_answer *answer;
    bool failed; /* an option was not taken */
};

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;

    buf_add(&t->answer->body, p, size * n);
    return buf_status(&t->answer->body) == ST_OK ? size * n : 0;
}

static void set_text(struct transfer *t, CURLoption option, const char *value)
{
    t->failed = t->failed || t->api.easy_setopt(t->h, option, value) != CURLE_OK;
}

static void set_number(struct transfer *t, CURLoption option, long value)
{
    t->failed = t->failed || t->api.easy_setopt(t->h, option, value) != CURLE_OK;
}

static void add_header(struct transfer *t, const char *line)
{
    struct curl_slist *more = t->api.slist_append(t->headers, line);

    t->failed = t->failed || more == NULL;
    t->headers = more != NULL ? more : t->headers;
}

static void set_headers(struct transfer *t, const struct http_request *req)
{
    struct buf line;

    add_header(t, "Accept: application/json");
    add_header(t, "Expect:");
    if (req->body.ptr != NULL) {
        add_header(t, "Content-Type: application/json");
    }
    if (req->bearer != NULL && secret_is_set(req->bearer)) {
        buf_init(&line, (size_t)16 * 1024);
        buf_add_c(&line, "Authorization: Bearer ");
        buf_add_str(&line, secret_expose(req->bearer));
        t->failed = t->failed || buf_status(&line) != ST_OK;
        add_header(t, line.ptr);
        buf_wipe(&line);
    }
    t->failed =
        t->failed || t->api.easy_setopt(t->h, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK;
}

static void set_options(struct transfer *t, const struct http_request *req)
{
    set_text(t, CURLOPT_URL, req->url);
    set_text(t, CURLOPT_CUSTOMREQUEST, req->method);
    set_text(t, CURLOPT_PROTOCOLS_STR, "http,https");
    set_text(t, CURLOPT_PROXY, "");
    set_text(t, CURLOPT_NOPROXY, "*");
    set_text(t, CURLOPT_USERAGENT, "soulacy");
    set_number(t, CURLOPT_FOLLOWLOCATION, 0);
    set_number(t, CURLOPT_NOSIGNAL, 1);
    set_number(t, CURLOPT_CONNECTTIMEOUT_MS,
               (long)(req->connect_ms > 0 ? req->connect_ms : CONNECT_MS));
    set_number(t, CURLOPT_TIMEOUT_MS, (long)req->total_ms);
    set_headers(t, req);
    if (req->ca_file != NULL) {
        set_text(t, CURLOPT_CAINFO, req->ca_file);
    }
    if (req->body.ptr != NULL) {
        set_number(t, CURLOPT_POSTFIELDSIZE, (long)req->body.len);
        set_text(t, CURLOPT_POSTFIELDS, req->body.ptr);
    }
    t->failed = t->failed ||
                t->api.easy_setopt(t->h, CURLOPT_WRITEFUNCTION, on_body) != CURLE_OK ||
                t->api.easy_setopt(t->h, CURLOPT_WRITEDATA, t) != CURLE_OK;
}

static void lower_type(struct transfer *t)
{
    const char *type = NULL;
    size_t n = 0;

    if (t->api.easy_getinfo(t->h, CURLINFO_CONTENT_TYPE, &type) != CURLE_OK ||
        type == NULL) {
        return;
    }
    for (; type[n] != '\0' && type[n] != ';' && n + 1 < sizeof(t->answer->content_type);
         n++) {
        t->answer->content_type[n] = type[n];
        if (type[n] >= 'A' && type[n] <= 'Z') {
            t->answer->content_type[n] = (char)(type[n] - 'A' + 'a');
        }
    }
    while (n > 0 && t->answer->content_type[n - 1] == ' ') {
        n--;
    }
    t->answer->content_type[n] = '\0';
}

static const struct {
    CURLcode code;
    enum status status;
    const char *text;
} causes[] = {
    {CURLE_COULDNT_CONNECT, ST_IO, "connection refused"},
    {CURLE_COULDNT_RESOLVE_HOST, ST_IO, "no such host"},
    {CURLE_OPERATION_TIMEDOUT, ST_TIMEOUT, "no answer in time"},
    {CURLE_GOT_NOTHING, ST_IO, "the connection was closed without an answer"},
    {CURLE_RECV_ERROR, ST_IO, "the connection broke"},
    {CURLE_PARTIAL_FILE, ST_IO, "the answer was cut short"},
    {CURLE_PEER_FAILED_VERIFICATION, ST_AUTH, "its certificate cannot be verified"},
    {CURLE_URL_MALFORMAT, ST_INVALID, "not a URL"},
};

static enum status explain(const struct transfer *t, CURLcode code, const char *origin,
                           struct error *err)
{
    if (buf_status(&t->answer->body) != ST_OK) {
        return error_set(err, ST_TOO_LARGE, "%s: the answer is over %zu bytes", origin,
                         t->answer->body.max);
    }
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (causes[i].code == code) {
            return error_set(err, causes[i].status, "%s: %s", origin, causes[i].text);
        }
    }
    return error_set(err, ST_IO, "%s: %s", origin, t->api.easy_strerror(code));
}

static enum status perform(struct transfer *t, const char *origin, struct error *err)
{
    CURLcode code = t->api.easy_perform(t->h);

    if (code != CURLE_OK) {
        return explain(t, code, origin, err);
    }
    lower_type(t);
    (void)t->api.easy_getinfo(t->h, CURLINFO_RESPONSE_CODE, &t->answer->status);
    return ST_OK;
}

enum status http_send(const struct http_request *req, struct http_answer *out,
                      struct error *err)
{
    struct transfer t = {.answer = out};
    struct url_origin origin;
    struct buf name;
    enum status st;

    *out = (struct http_answer){0};
    buf_init(&out->body, req->max_bytes);
    buf_init(&name, 512);
    st = url_parse(str_c(req->url), &origin, NULL, err);
    if (st == ST_OK) {
        url_print_origin(&origin, &name);
        st = curl_api_open(&t.api, err);
    }
    if (st == ST_OK) {
        t.h = t.api.easy_init();
        if (t.h != NULL) {
            set_options(&t, req);
        }
        st = t.h != NULL && !t.failed
                 ? perform(&t, name.ptr, err)
                 : error_set(err, ST_NOMEM, "the request cannot be prepared");
    }
    if (t.h != NULL) {
        t.api.easy_cleanup(t.h);
        t.api.slist_free_all(t.headers);
    }
    buf_done(&name);
    return st;
}

void http_answer_done(struct http_answer *a)
{
    if (a != NULL) {
        buf_done(&a->body);
    }
}
