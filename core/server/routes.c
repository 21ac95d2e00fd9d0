/* Comes in: routes, from the control thread; methods and paths, from the server thread.
 * Goes out: the route, or what the path would allow. Never removes a route while the
 * server lives, so that a pointer to one stays good. */
#include "base/mem.h"
#include "base/utf8.h"
#include "server/internal.h"

#include <string.h>

#define ROUTES_MAX 512U
#define ROUTE_PATH_MAX 512U

static bool is_method(const char *m)
{
    static const char *const methods[] = {"GET", "POST", "DELETE", "PUT"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (m && strcmp(m, methods[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_core_path(const char *path)
{
    return strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0 ||
           strcmp(path, "/metrics") == 0;
}

/* Our own channel-http serves the API and the console; all others their own folder. */
static bool path_allowed(const char *owner, const char *path)
{
    if (strcmp(owner, "http") == 0 || strcmp(owner, "core") == 0) {
        return !is_core_path(path) && !str_starts(str_c(path), STR_LIT("/channels/"));
    }
    struct str rest = str_c(path);
    struct str parts[3] = {STR_NONE, STR_LIT("channels"), str_c(owner)};
    for (size_t i = 0; i < 3; i++) {
        struct str part;
        if (!str_split(&rest, '/', &part) || !str_eq(part, parts[i])) {
            return false;
        }
    }
    return rest.len > 0;
}

static bool path_ok(const struct sy_route *r)
{
    struct str raw = str_c(r->path);
    char decoded[ROUTE_PATH_MAX];
    struct str path;
    struct str query;
    struct http_fault fault;
    bool prefix = (r->flags & SY_ROUTE_PREFIX) != 0;
    return raw.len > 0 && raw.len < sizeof decoded && utf8_valid(raw) &&
           http_parse_target(raw, decoded, sizeof decoded, &path, &query, &fault) &&
           str_eq(path, raw) && query.len == 0 &&
           (!prefix || raw.ptr[raw.len - 1] == '/');
}

static const char *fault_of(const char *owner, const struct sy_route *r)
{
    bool websocket = (r->flags & SY_ROUTE_WEBSOCKET) != 0;
    if (!owner || owner[0] == 0) {
        return "no owner";
    }
    if (!is_method(r->method)) {
        return "method must be GET, POST, DELETE or PUT";
    }
    if (!r->path || !path_ok(r)) {
        return "path is not normalised, or a prefix that does not end in a slash";
    }
    if (!path_allowed(owner, r->path)) {
        return "path belongs to others; use /channels/NAME/";
    }
    if (!r->handle) {
        return "no handle function";
    }
    if ((r->flags & ~(SY_ROUTE_WEBSOCKET | SY_ROUTE_PREFIX)) != 0) {
        return "unknown flag";
    }
    if (websocket && (strcmp(r->method, "GET") != 0 || !r->message)) {
        return "a WebSocket route needs method GET and a message function";
    }
    if (r->auth != SY_AUTH_KEY && r->auth != SY_AUTH_PLUGIN && r->auth != SY_AUTH_NONE) {
        return "unknown kind of authentication";
    }
    if (r->auth == SY_AUTH_NONE &&
        (strcmp(r->method, "GET") != 0 || websocket || strcmp(owner, "http") != 0)) {
        return "public routes are for the static files of channel http";
    }
    return NULL;
}

static void route_free(struct route *r)
{
    if (r) {
        mem_free(r->owner);
        mem_free(r->method);
        mem_free(r->path);
        mem_free(r);
    }
}

static struct route *route_new(const char *owner, const struct sy_route *from,
                               uint64_t max_body)
{
    struct route *r = mem_zalloc(sizeof *r);
    if (!r) {
        return NULL;
    }
    r->owner = mem_strdup(owner);
    r->method = mem_strdup(from->method);
    r->path = mem_strdup(from->path);
    r->auth = from->auth;
    r->flags = from->flags;
    r->max_parallel = from->max_parallel > 0 ? from->max_parallel : 1024;
    r->max_body =
        from->max_body > 0 && from->max_body < max_body ? from->max_body : max_body;
    r->ctx = from->ctx;
    r->handle = from->handle;
    r->gone = from->gone;
    r->message = from->message;
    if (!r->owner || !r->method || !r->path) {
        route_free(r);
        return NULL;
    }
    return r;
}

static enum status append(struct server *s, struct route *r, struct error *err)
{
    for (size_t i = 0; i < s->nroutes; i++) {
        const struct route *other = s->routes[i];
        if (strcmp(other->path, r->path) == 0 && strcmp(other->method, r->method) == 0 &&
            other->flags == r->flags) {
            return error_set(err, ST_CONFLICT, "route %s %s is there already, of %s",
                             r->method, r->path, other->owner);
        }
    }
    if (s->nroutes == ROUTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "more than %u routes", ROUTES_MAX);
    }
    if (s->nroutes % 16 == 0) {
        void *grown = mem_realloc(s->routes, (s->nroutes + 16) * sizeof(struct route *));
        if (!grown) {
            return error_set(err, ST_NOMEM, "out of memory");
        }
        s->routes = grown;
    }
    s->routes[s->nroutes++] = r;
    return ST_OK;
}

enum status routes_add(struct server *s, const char *owner,
                       struct plugin_instance *instance, const struct sy_route *route,
                       struct error *err)
{
    if (!route || route->size < offsetof(struct sy_route, gone)) {
        return error_set(err, ST_INVALID, "route is too short a struct");
    }
    struct sy_route copy = {0};
    memcpy(&copy, route, route->size < sizeof copy ? route->size : sizeof copy);
    const char *why = fault_of(owner, &copy);
    if (why) {
        return error_set(err, ST_INVALID, "route %s %s of %s: %s",
                         copy.method ? copy.method : "?", copy.path ? copy.path : "?",
                         owner ? owner : "?", why);
    }
    struct route *r = route_new(owner, &copy, s->max_body);
    if (!r) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    r->instance = instance;
    pthread_mutex_lock(&s->routes_lock);
    enum status st = append(s, r, err);
    pthread_mutex_unlock(&s->routes_lock);
    if (st != ST_OK) {
        route_free(r);
    }
    return st;
}

enum status server_add_route(struct server *s, const char *owner,
                             const struct sy_route *route, struct error *err)
{
    return routes_add(s, owner, NULL, route, err);
}

static bool path_matches(const struct route *r, struct str path)
{
    struct str own = str_c(r->path);
    return (r->flags & SY_ROUTE_PREFIX) != 0 ? str_starts(path, own) : str_eq(path, own);
}

/* An exact path wins over a prefix, a longer prefix over a shorter one. */
static bool is_better(const struct route *r, const struct route *than)
{
    if (!than) {
        return true;
    }
    bool exact = (r->flags & SY_ROUTE_PREFIX) == 0;
    bool than_exact = (than->flags & SY_ROUTE_PREFIX) == 0;
    return exact != than_exact ? exact : strlen(r->path) > strlen(than->path);
}

enum route_found routes_find(struct server *s, struct str method, struct str path,
                             struct route **out, struct buf *allow)
{
    struct route *best = NULL;
    /* HEAD is GET without the body. */
    struct str want = str_eq_c(method, "HEAD") ? STR_LIT("GET") : method;
    pthread_mutex_lock(&s->routes_lock);
    for (size_t i = 0; i < s->nroutes; i++) {
        struct route *r = s->routes[i];
        if (!path_matches(r, path)) {
            continue;
        }
        if (str_eq_c(want, r->method)) {
            best = is_better(r, best) ? r : best;
        }
        if (allow->len > 0) {
            buf_add_str(allow, STR_LIT(", "));
        }
        buf_add_c(allow, r->method);
        if (strcmp(r->method, "GET") == 0 && (r->flags & SY_ROUTE_WEBSOCKET) == 0) {
            buf_add_str(allow, STR_LIT(", HEAD"));
        }
    }
    pthread_mutex_unlock(&s->routes_lock);
    if (best) {
        *out = best;
        return ROUTE_FOUND;
    }
    return allow->len > 0 ? ROUTE_OTHER_METHOD : ROUTE_NONE;
}

void routes_free(struct server *s)
{
    for (size_t i = 0; i < s->nroutes; i++) {
        route_free(s->routes[i]);
    }
    mem_free(s->routes);
    s->routes = NULL;
    s->nroutes = 0;
}
