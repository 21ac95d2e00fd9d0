/* In: routes of the plugin. Out: one request to each, and complaints about handles that
 * are used wrongly or never ended. */
#include "check.h"

#include <stdio.h>
#include <string.h>

/* The handle when it may still be used; else a breach. */
static bool usable(struct plugin_instance *p, struct check *c, const struct sy_http *h,
                   const char *what)
{
    (void)pthread_mutex_lock(&c->lock);
    bool known = h >= c->handles && h < c->handles + c->nhandles;
    bool ended = known && h->ended;
    (void)pthread_mutex_unlock(&c->lock);
    if (!known || ended) {
        plugin_misbehaved(p, "%s: %s", what,
                          known ? "the handle was ended" : "not a handle of the core");
    }
    return known && !ended;
}

static sy_status add_route(void *ctx, const struct sy_route *route, struct sy_error *err)
{
    struct check *c = NULL;
    struct sy_route r;
    struct plugin_instance *p =
        check_enter(ctx, "add_route", PLUGIN_FROM_CREATE_CORE, &c);
    if (p == NULL) {
        return check_refuse(err, SY_E_INVALID);
    }
    bool ok = plugin_take_struct(p, "add_route", route, sizeof r, &r, sizeof r);
    if (ok && (r.handle == NULL || r.method == NULL || r.path == NULL ||
               r.path[0] != '/' || r.auth < SY_AUTH_KEY || r.auth > SY_AUTH_NONE)) {
        plugin_misbehaved(p, "add_route: no handler, method, path or kind of auth");
        ok = false;
    }
    bool own = plugin_is_own(p);
    char prefix[64];
    (void)snprintf(prefix, sizeof prefix, "/channels/%s/", plugin_name(p));
    if (ok && !own && strncmp(r.path, prefix, strlen(prefix)) != 0) {
        plugin_misbehaved(p, "add_route: %s is not below %s", r.path, prefix);
        ok = false;
    }
    plugin_upcall_end(p);
    if (!ok || check_fails(c)) {
        return check_refuse(err, ok ? SY_E_NOMEM : SY_E_INVALID);
    }
    (void)pthread_mutex_lock(&c->lock);
    bool room = c->nroutes < CHECK_ROUTES;
    if (room) {
        struct check_route *to = &c->routes[c->nroutes++];
        to->route = r;
        (void)snprintf(to->method, sizeof to->method, "%s", r.method);
        (void)snprintf(to->path, sizeof to->path, "%s", r.path);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return room ? SY_OK : check_refuse(err, SY_E_NOMEM);
}

static sy_status lookup(void *ctx, struct sy_http *http, const char *name,
                        const char *what)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, what, PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return SY_E_INVALID;
    }
    if (usable(p, c, http, what) && name == NULL) {
        plugin_misbehaved(p, "%s: no name", what);
    }
    plugin_upcall_end(p);
    (void)check_fails(c);
    return SY_E_INVALID; /* absent: every plugin has to live with that */
}

static sy_status header(void *ctx, struct sy_http *http, const char *name,
                        struct sy_str *out)
{
    (void)out;
    return lookup(ctx, http, name, "header");
}

static sy_status query(void *ctx, struct sy_http *http, const char *name,
                       struct sy_str *out)
{
    (void)out;
    return lookup(ctx, http, name, "query");
}

static sy_status begin(void *ctx, struct sy_http *http, int32_t status,
                       const struct sy_pair *headers, size_t nheaders,
                       int64_t content_length)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, "begin", PLUGIN_FROM_START, &c);
    (void)content_length;
    if (p == NULL) {
        return SY_E_INVALID;
    }
    bool ok = usable(p, c, http, "begin");
    if (ok && (http->begun || status < 100 || status > 599 ||
               (nheaders > 0 && headers == NULL))) {
        plugin_misbehaved(p, "begin: twice, or no status, or no headers");
        ok = false;
    }
    for (size_t i = 0; ok && i < nheaders; i++) {
        ok = plugin_check_text(p, "begin: header", headers[i].name, 256) &&
             plugin_check_text(p, "begin: header", headers[i].value, 8192);
    }
    if (ok) {
        http->begun = true;
    }
    plugin_upcall_end(p);
    return !ok ? SY_E_INVALID : check_fails(c) ? SY_E_CANCELLED : SY_OK;
}

static sy_status write_body(void *ctx, struct sy_http *http, struct sy_str data)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, "write", PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return SY_E_INVALID;
    }
    bool ok = usable(p, c, http, "write");
    if (ok && (!http->begun || (data.ptr == NULL && data.len > 0))) {
        plugin_misbehaved(p, "write: before begin, or a length but no bytes");
        ok = false;
    }
    plugin_upcall_end(p);
    return !ok ? SY_E_INVALID : check_fails(c) ? SY_E_CANCELLED : SY_OK;
}

static void end(void *ctx, struct sy_http *http)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, "end", PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return;
    }
    if (usable(p, c, http, "end")) {
        (void)pthread_mutex_lock(&c->lock);
        http->ended = true;
        (void)pthread_cond_broadcast(&c->changed);
        (void)pthread_mutex_unlock(&c->lock);
    }
    plugin_upcall_end(p);
}

const struct sy_host_http check_http_service = {.size = sizeof check_http_service,
                                                .add_route = add_route,
                                                .header = header,
                                                .query = query,
                                                .begin = begin,
                                                .write = write_body,
                                                .end = end};

static struct sy_http *new_handle(struct check *c, const struct check_route *route)
{
    struct sy_http *h = NULL;
    (void)pthread_mutex_lock(&c->lock);
    if (c->nhandles < CHECK_HANDLES) {
        h = &c->handles[c->nhandles++];
        memset(h, 0, sizeof *h);
        h->check = c;
        h->route = route;
    }
    (void)pthread_mutex_unlock(&c->lock);
    return h;
}

static bool is_open(struct check *c, const struct sy_http *h)
{
    (void)pthread_mutex_lock(&c->lock);
    bool open = !h->ended;
    (void)pthread_mutex_unlock(&c->lock);
    return open;
}

/* One request with a body that few will understand. Its spans are good until end(): the
 * loan of a handle that is still open is kept until the plugin has stopped. */
static void request(struct check *c, const struct check_route *r, const char *body)
{
    struct sy_http *h = new_handle(c, r);
    if (h == NULL) {
        return;
    }
    loan_open(&h->loan);
    struct sy_request q;
    memset(&q, 0, sizeof q);
    q.size = sizeof q;
    q.authenticated = r->route.auth == SY_AUTH_KEY ? 1 : 0;
    q.http = h;
    q.method = loan_text(&h->loan, r->method);
    q.path = loan_text(&h->loan, r->path);
    q.query = loan_text(&h->loan, "a=1&b=%20");
    q.body = loan_text(&h->loan, body);
    q.peer = loan_text(&h->loan, "192.0.2.1");
    q.request_id = loan_text(&h->loan, "check");
    const struct sy_request *lent = loan_copy(&h->loan, &q, sizeof q);
    loan_note("a route's handle()");
    r->route.handle(r->route.ctx, lent);
    if (is_open(c, h) && r->route.message != NULL) {
        loan_note("a route's message()");
        r->route.message(r->route.ctx, h, loan_text(&h->loan, body));
    }
    if (is_open(c, h) && r->route.gone != NULL) {
        loan_note("a route's gone()");
        r->route.gone(r->route.ctx, h);
    }
    if (!is_open(c, h)) {
        loan_revoke(&h->loan, "a request");
    }
}

void check_http_requests(struct check *c)
{
    static const char *const bodies[] = {"", "{}", "{\"a\":[1,2", "\xff\xfe"};
    for (size_t i = 0; i < c->nroutes; i++) {
        for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++) {
            bool text = b < 3 || (c->routes[i].route.flags & SY_ROUTE_WEBSOCKET) == 0;
            request(c, &c->routes[i], text ? bodies[b] : "x");
        }
    }
}

void check_http_done(struct check *c)
{
    size_t open = 0;
    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->nhandles; i++) {
        open += c->handles[i].ended ? 0 : 1;
        loan_close(&c->handles[i].loan);
    }
    c->nhandles = 0;
    c->nroutes = 0;
    (void)pthread_mutex_unlock(&c->lock);
    if (open > 0) {
        check_fail(c, "left %zu requests without end() when stop() had returned", open);
    }
}
