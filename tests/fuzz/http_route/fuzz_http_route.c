/*
 * Comes in: bytes as a client could send them. Goes out: nothing, or an abort when a
 * promise of the parsers does not hold: views lie in the input, decoded paths are UTF-8
 * without empty, . or .. parts, whole WebSocket messages are UTF-8 and within the maximum.
 */
#include "base/utf8.h"
#include "server/access.h"
#include "server/http.h"
#include "server/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static bool inside(struct str view, struct str in)
{
    return !view.ptr || view.len == 0 ||
           (view.ptr >= in.ptr && view.ptr + view.len <= in.ptr + in.len);
}

static void check_path(struct str path)
{
    must(path.len > 0 && path.ptr[0] == '/', "the path begins with a slash");
    must(utf8_valid(path), "the path is UTF-8");
    must(!memchr(path.ptr, 0, path.len), "no NUL in the path");
    must(str_find(path, STR_LIT("//")) == SIZE_MAX, "no empty part");
    must(str_find(path, STR_LIT("/../")) == SIZE_MAX && !str_ends(path, STR_LIT("/..")),
         "no .. part");
    must(path.ptr[path.len] == 0, "a NUL follows");
}

static void try_target(struct str target)
{
    char text[HTTP_TARGET_MAX + 2 * HTTP_PARAMS_MAX + 1];
    struct str path;
    struct str query;
    struct http_fault fault;
    struct http_field param;
    if (!http_parse_target(target, text, sizeof text, &path, &query, &fault)) {
        must(fault.status >= 400 && fault.code && fault.message, "a fault says why");
        return;
    }
    check_path(path);
    size_t used = 0;
    bool bad = false;
    while (http_next_param(&query, text, sizeof text, &used, &param, &bad)) {
        must(used <= sizeof text, "parameters fit");
        must(utf8_valid(param.name) && utf8_valid(param.value), "parameters are UTF-8");
        must(param.value.ptr[param.value.len] == 0, "a NUL follows");
    }
}

static void try_access(const struct http_head *head)
{
    static const char *const hosts[] = {"gw.example", "[2001:db8::1]:8443"};
    static const char *const origins[] = {"https://app.example"};
    const struct access_names names = {.port = 18789,
                                       .loopback_names = true,
                                       .allowed_hosts = hosts,
                                       .nallowed_hosts = 2,
                                       .allowed_origins = origins,
                                       .nallowed_origins = 1};
    struct net_addr local;
    struct net_range range;
    must(net_addr_parse(STR_LIT("127.0.0.1"), &local), "an address is read");
    must(net_range_parse(STR_LIT("127.0.0.0/8"), &range), "a network is read");
    bool host_ok = access_host_ok(&names, &local, head->host);
    enum access_origin origin =
        access_origin_check(&names, head->host, head->origin, false);
    if (head->origin.ptr && host_ok && origin == ORIGIN_OWN) {
        must(str_starts(head->origin, STR_LIT("http://")), "own origins have our scheme");
    }
    struct net_addr peer = access_forwarded(&local, &head->forwarded_for,
                                            head->forwarded_for.ptr ? 1 : 0, &range, 1);
    char text[NET_ADDR_TEXT];
    net_addr_print(&peer, text);
    must(text[0] != 0, "addresses print");
}

static void try_head(struct str in, struct http_head *head)
{
    size_t scan = 0;
    size_t end = http_head_end(in, &scan);
    size_t slow_scan = 0;
    size_t slow = 0;
    for (size_t n = 0; n <= in.len && slow == 0; n += 7) {
        slow = http_head_end(str_n(in.ptr, n), &slow_scan);
    }
    must(slow == 0 || slow == end, "the end is the same however it comes");
    if (end == 0) {
        return;
    }
    struct http_fault fault;
    if (!http_parse_head(str_n(in.ptr, end), head, &fault)) {
        must(fault.status >= 400 && fault.code && fault.message, "a fault says why");
        return;
    }
    must(inside(head->method, in) && inside(head->target, in) && inside(head->host, in),
         "views lie in the input");
    for (size_t i = 0; i < head->nfields; i++) {
        must(inside(head->fields[i].name, in) && inside(head->fields[i].value, in),
             "headers lie in the input");
        must(utf8_valid(head->fields[i].value), "headers are UTF-8");
    }
    try_target(head->target);
    try_access(head);
}

static void try_ws(struct str in)
{
    struct ws_parser *p = ws_parser_new(4096);
    struct str payload = STR_NONE;
    int code = 0;
    for (;;) {
        enum ws_event ev = p ? ws_next(p, &in, &payload, &code) : WS_MORE;
        if (ev == WS_TEXT) {
            must(payload.len <= 4096 && utf8_valid(payload), "messages are checked");
        }
        if (ev == WS_BAD) {
            must(code >= 1002 && code <= 1009, "a close code says why");
        }
        if (ev == WS_MORE || ev == WS_BAD || ev == WS_CLOSE) {
            break;
        }
    }
    ws_parser_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_head *head = malloc(sizeof *head);
    if (!head || size == 0 || size > 65536) {
        free(head);
        return 0;
    }
    struct str in = str_n((const char *)data, size);
    if (data[0] == 'T') {
        try_target(str_n(in.ptr + 1, in.len - 1));
    } else if (data[0] == 'W') {
        try_ws(str_n(in.ptr + 1, in.len - 1));
    } else {
        try_head(in, head);
    }
    free(head);
    return 0;
}
