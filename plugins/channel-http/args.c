/* Comes in: a request that the core let through. Goes out: the operation and its argument
 * object. Never looks into a body: whether it is strict JSON with the right fields is the
 * operation's to say. */
#include "args.h"

#include <string.h>

static const char *const no_params[] = {NULL};
static const char *const session_params[] = {"agent_id", ":before", ":limit", NULL};
static const char *const message_params[] = {":after", ":limit", NULL};

const struct endpoint endpoints[] = {
    {"POST", "/api/v1/chat", "chat", NULL, no_params},
    {"POST", "/api/v1/chat/cancel", "chat.cancel", NULL, no_params},
    {"POST", "/api/v1/tools/run", "tools.run", NULL, no_params},
    {"GET", "/api/v1/agents", "agents", NULL, no_params},
    {"GET", "/api/v1/agents/", "agents.get", "", no_params},
    {"GET", "/api/v1/agents/", "agents.tools", "/tools", no_params},
    {"GET", "/api/v1/sessions", "sessions", NULL, session_params},
    {"GET", "/api/v1/sessions/", "sessions.get", "", message_params},
    {"DELETE", "/api/v1/sessions/", "sessions.delete", "", no_params},
    {"GET", "/api/v1/status", "status", NULL, no_params},
};
const size_t nendpoints = sizeof endpoints / sizeof endpoints[0];

static bool same_route(const struct endpoint *a, const struct endpoint *b)
{
    return strcmp(a->method, b->method) == 0 && strcmp(a->path, b->path) == 0;
}

bool endpoint_is_first(size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (same_route(&endpoints[i], &endpoints[j])) {
            return false;
        }
    }
    return true;
}

/* Always false. */
static bool refuse(struct refusal *no, int status, const char *code, const char *message)
{
    *no = (struct refusal){.status = status, .code = code, .message = message};
    return false;
}

/* The id in the path when what follows it is the endpoint's tail. */
static bool match_id(const struct endpoint *e, struct sy_str path, struct sy_str *id)
{
    size_t start = strlen(e->path);
    size_t tail = strlen(e->tail);
    if (path.len <= start + tail ||
        memcmp(path.ptr + path.len - tail, e->tail, tail) != 0) {
        return false;
    }
    *id = (struct sy_str){path.ptr + start, path.len - start - tail};
    return !memchr(id->ptr, '/', id->len);
}

static const struct endpoint *find(const struct endpoint *route,
                                   const struct sy_request *req, struct sy_str *id)
{
    for (size_t i = 0; i < nendpoints; i++) {
        const struct endpoint *e = &endpoints[i];
        if (same_route(e, route) && (!e->tail || match_id(e, req->path, id))) {
            return e;
        }
    }
    return NULL;
}

/* A misspelt parameter would otherwise be ignored in silence. */
static bool known_params(const struct endpoint *e, struct sy_str query,
                         struct refusal *no)
{
    size_t i = 0;
    while (i < query.len) {
        const char *amp = memchr(query.ptr + i, '&', query.len - i);
        size_t end = amp ? (size_t)(amp - query.ptr) : query.len;
        const char *eq = memchr(query.ptr + i, '=', end - i);
        struct sy_str name = {query.ptr + i, (eq ? (size_t)(eq - query.ptr) : end) - i};
        bool known = end == i;
        for (size_t p = 0; e->params[p]; p++) {
            known = known || span_is(name, e->params[p] + (e->params[p][0] == ':'));
        }
        if (!known) {
            (void)refuse(no, 400, "invalid", "unknown query parameter");
            no->field = name;
            return false;
        }
        i = end + 1;
    }
    return true;
}

static bool is_number(struct sy_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return false;
        }
    }
    return s.len > 0 && s.len <= 18 && (s.len == 1 || s.ptr[0] != '0');
}

static void add_key(struct text *args, const char *name)
{
    text_add_c(args, args->len > 1 ? "," : "");
    text_add_string(args, span_c(name));
    text_add_c(args, ":");
}

static bool add_params(const struct sy_host_http *http, void *host,
                       const struct endpoint *e, const struct sy_request *req,
                       struct text *args, struct refusal *no)
{
    if (!known_params(e, req->query, no)) {
        return false;
    }
    for (size_t p = 0; e->params[p]; p++) {
        bool number = e->params[p][0] == ':';
        const char *name = e->params[p] + number;
        struct sy_str value = {0};
        if (http->query(host, req->http, name, &value) != SY_OK) {
            continue; /* absent; given twice counts as absent */
        }
        add_key(args, name);
        if (!number) {
            text_add_string(args, value);
        } else if (is_number(value)) {
            text_add(args, value);
        } else {
            (void)refuse(no, 400, "invalid", "must be a whole number");
            no->field = span_c(name);
            return false;
        }
    }
    return true;
}

static bool is_json(const struct sy_host_http *http, void *host,
                    const struct sy_request *req)
{
    static const char want[] = "application/json";
    struct sy_str type = {0};
    if (http->header(host, req->http, "Content-Type", &type) != SY_OK ||
        type.len < sizeof want - 1) {
        return false;
    }
    for (size_t i = 0; i < sizeof want - 1; i++) {
        char c = type.ptr[i];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (c != want[i]) {
            return false;
        }
    }
    return type.len == sizeof want - 1 || memchr("; \t", type.ptr[sizeof want - 1], 3);
}

/* A page can send text/plain anywhere without asking; application/json it cannot. */
static bool take_body(const struct sy_host_http *http, void *host,
                      const struct sy_request *req, struct text *args, struct refusal *no)
{
    if (!is_json(http, host, req)) {
        return refuse(no, 415, "unsupported_media_type",
                      "send Content-Type: application/json");
    }
    size_t i = 0;
    while (i < req->body.len && memchr(" \t\r\n", req->body.ptr[i], 4)) {
        i++;
    }
    if (i == req->body.len || req->body.ptr[i] != '{') {
        return refuse(no, 400, "invalid", "the body must be a JSON object");
    }
    text_add(args, req->body);
    return true;
}

bool args_from(const struct sy_host_http *http, void *host, const struct endpoint *route,
               const struct sy_request *req, struct wish *out, struct refusal *no)
{
    struct sy_str id = {0};
    struct text args = {0};
    const struct endpoint *e = find(route, req, &id);
    bool ok = true;
    if (!e) {
        return refuse(no, 404, "not_found", "there is nothing at this path");
    }
    if (strcmp(e->method, "POST") == 0) {
        ok = known_params(e, req->query, no) && take_body(http, host, req, &args, no);
    } else {
        text_add_c(&args, "{");
        if (e->tail) {
            add_key(&args, "id");
            text_add_string(&args, id);
        }
        ok = add_params(http, host, e, req, &args, no);
        text_add_c(&args, "}");
    }
    if (ok && args.failed) {
        ok = refuse(no, 503, "overloaded", "out of memory");
    }
    if (!ok) {
        text_done(&args);
        return false;
    }
    out->op = e->op;
    out->args = args;
    return true;
}
