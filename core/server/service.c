/* Comes in: calls of channels through soulacy.host.http/1. Goes out: the same calls on the
 * server, once the caller was found to be an instance that may call now. The server is
 * what the instance's PLUGIN_SLOT_HTTP holds. Never trusts a span or a struct's size. */
#include "plugin/plugin.h"
#include "server/internal.h"

#define BODY_MAX ((size_t)SERVER_ANSWER_MAX)

static sy_status add_route(void *ctx, const struct sy_route *route, struct sy_error *out)
{
    struct error err = {0};
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "http.add_route", PLUGIN_FROM_CREATE_CORE);
    if (!p) {
        return SY_E_INVALID;
    }
    struct server *s = plugin_slot(p, PLUGIN_SLOT_HTTP);
    sy_status st = SY_OK;
    if (!s) {
        (void)error_set(&err, ST_UNSUPPORTED, "routes are added in start()");
        st = plugin_give_error(&err, out);
    } else if (routes_add(s, plugin_name(p), p, route, &err) != ST_OK) {
        plugin_misbehaved(p, "http.add_route: %s", err.text);
        st = plugin_give_error(&err, out);
    }
    plugin_upcall_end(p);
    return st;
}

static sy_status header(void *ctx, struct sy_http *http, const char *name,
                        struct sy_str *out)
{
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "http.header", PLUGIN_FROM_CREATE);
    if (!p) {
        return SY_E_INVALID;
    }
    sy_status st = http && name && out ? handle_header(http, name, out) : SY_E_INVALID;
    plugin_upcall_end(p);
    return st;
}

static sy_status query(void *ctx, struct sy_http *http, const char *name,
                       struct sy_str *out)
{
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "http.query", PLUGIN_FROM_CREATE);
    if (!p) {
        return SY_E_INVALID;
    }
    sy_status st = http && name && out ? handle_query(http, name, out) : SY_E_INVALID;
    plugin_upcall_end(p);
    return st;
}

static sy_status begin(void *ctx, struct sy_http *http, int32_t status,
                       const struct sy_pair *headers, size_t nheaders,
                       int64_t content_length)
{
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "http.begin", PLUGIN_FROM_CREATE);
    if (!p) {
        return SY_E_INVALID;
    }
    sy_status st = http ? handle_begin(http, status, headers, nheaders, content_length)
                        : SY_E_INVALID;
    if (st == SY_E_INVALID) {
        plugin_misbehaved(p, "http.begin: twice, or with a status, header or length that "
                             "may not be sent");
    }
    plugin_upcall_end(p);
    return st;
}

static sy_status write_bytes(void *ctx, struct sy_http *http, struct sy_str data)
{
    struct plugin_instance *p =
        plugin_upcall_begin(ctx, "http.write", PLUGIN_FROM_CREATE);
    if (!p) {
        return SY_E_INVALID;
    }
    sy_status st = http && data.len <= BODY_MAX ? handle_write(http, data) : SY_E_INVALID;
    if (st == SY_E_INVALID) {
        plugin_misbehaved(p,
                          "http.write: before begin, beyond the declared length, or no "
                          "UTF-8 on a WebSocket");
    }
    plugin_upcall_end(p);
    return st;
}

/* Ending is taken even from an instance that may not call any more: a handle that is
 * never ended keeps the server's memory. */
static void end(void *ctx, struct sy_http *http)
{
    struct plugin_instance *p = plugin_upcall_begin(ctx, "http.end", PLUGIN_FROM_CREATE);
    if (http) {
        handle_end(http);
    }
    if (p) {
        plugin_upcall_end(p);
    }
}

static const struct sy_host_http table = {
    .size = sizeof table,
    .add_route = add_route,
    .header = header,
    .query = query,
    .begin = begin,
    .write = write_bytes,
    .end = end,
};

const struct sy_host_http *server_http_service(void)
{
    return &table;
}
