/* Requests of the commands to a running gateway. The key goes to the origin of its own
 * configuration and to no other. */
#include "cli/gateway.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_MAX ((size_t)320 * 1024 * 1024)
#define GRACE_MS 30000 /* on top of the longest run */

static bool is_any(const char *host)
{
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "*") == 0;
}

enum status gateway_origin(const struct config *cfg, struct url_origin *out,
                           struct error *err)
{
    const char *host = cfg->server.host;
    bool https = cfg->server.tls_cert[0] != '\0';
    struct buf url;
    enum status st;

    if (cfg->server.port == 0) {
        return error_set(err, ST_INVALID,
                         "server.port is 0, so the gateway takes any free port");
    }
    /* A listener on all interfaces is reached over loopback. */
    if (is_any(host)) {
        host = "127.0.0.1";
    } else if (strcmp(host, "::") == 0 || strcmp(host, "[::]") == 0) {
        host = "::1";
    }
    buf_init(&url, 1024);
    buf_addf(&url, "%s://%s%s%s:%lld", https ? "https" : "http",
             strchr(host, ':') != NULL && host[0] != '[' ? "[" : "", host,
             strchr(host, ':') != NULL && host[0] != '[' ? "]" : "",
             (long long)cfg->server.port);
    st = buf_status(&url) == ST_OK ? url_parse(buf_str(&url), out, NULL, err)
                                   : error_set(err, ST_INVALID, "too long");
    buf_done(&url);
    return st == ST_OK ? ST_OK : error_context(err, "server.host");
}

enum cli_exit gateway_find(struct cli *c, struct gateway *out)
{
    const char *url = args_value(&c->args, "url");
    struct url_origin own, asked;
    struct str path = STR_NONE;
    struct error err = {0}, url_err = {0};
    struct buf text;
    enum status st;
    enum cli_exit result = cli_config(c, false);

    if (result != CLI_DONE) {
        return result;
    }
    st = gateway_origin(c->cfg, &own, &err);
    if (st != ST_OK && url == NULL) {
        return cli_misuse(c, "%s; say where the gateway is with --url", err.text);
    }
    if (url == NULL) {
        asked = own;
    } else if (url_parse(str_c(url), &asked, &path, &url_err) != ST_OK) {
        return cli_misuse(c, "--url: %s", url_err.text);
    }
    if (path.len > 0 && !str_eq_c(path, "/")) {
        return cli_misuse(c, "--url is the gateway's address, without a path");
    }
    *out = (struct gateway){.c = c, .own = st == ST_OK && url_same_origin(&own, &asked)};
    buf_init(&text, sizeof(out->base) - 1);
    url_print_origin(&asked, &text);
    (void)snprintf(out->base, sizeof(out->base), "%s", text.ptr);
    buf_done(&text);
    return CLI_DONE;
}

static enum cli_exit no_answer(const struct gateway *g, const struct error *err)
{
    if (err->status == ST_IO) {
        return cli_fail(g->c, "no gateway at %s; start one with `soulacy serve`%s",
                        err->text,
                        args_value(&g->c->args, "url") == NULL
                            ? ", or say where it is with --url or --config"
                            : "");
    }
    return cli_fail(g->c, "%s", err->text);
}

enum cli_exit gateway_send(const struct gateway *g, const char *method, const char *path,
                           struct str body, struct http_answer *out)
{
    const struct config *cfg = g->c->cfg;
    struct http_request req = {.method = method,
                               .bearer = g->own ? &cfg->server.api_key : NULL,
                               .total_ms = cfg->runtime.run_timeout_ms + GRACE_MS,
                               .max_bytes = ANSWER_MAX};
    struct error err = {0};
    struct buf url;
    enum status st;

    if (g->own && cfg->server.tls_cert[0] != '\0') {
        req.ca_file = cfg->server.tls_cert;
    }
    if (body.len > 0) {
        req.body = body;
    }
    buf_init(&url, 8192);
    buf_addf(&url, "%s%s", g->base, path);
    req.url = url.ptr;
    st = buf_status(&url) == ST_OK
             ? http_send(&req, out, &err)
             : error_set(&err, ST_INVALID, "the request is too long");
    if (st != ST_OK && buf_status(&url) == ST_OK) {
        http_answer_done(out);
    }
    buf_done(&url);
    return st == ST_OK ? CLI_DONE : no_answer(g, &err);
}

static const char *advice(const struct gateway *g, long status)
{
    if (status == 401) {
        if (!g->own) {
            return "; the key of this configuration is sent to its own host and port "
                   "only: "
                   "use --config with the gateway's config.yaml";
        }
        return secret_is_set(&g->c->cfg->server.api_key)
                   ? "; the gateway runs with another key than this configuration's"
                   : "; this configuration has no server.api_key: use --config";
    }
    return status == 429 ? "; wait a minute" : "";
}

enum cli_exit gateway_explain(const struct gateway *g, const struct http_answer *a)
{
    struct str code = STR_NONE, message = STR_NONE, row = STR_NONE;
    struct error ignored;
    const cJSON *error = NULL;
    cJSON *doc = NULL;

    if (json_parse(buf_str(&a->body), &doc, &ignored) == ST_OK) {
        error = json_get(doc, "error");
        (void)json_get_str(error, "code", &code);
        (void)json_get_str(error, "message", &message);
        (void)json_get_str(json_get(error, "row"), "text", &row);
    }
    if (message.len == 0) {
        (void)cli_fail(g->c,
                       "%s answers %ld and not as a soulacy gateway does; is "
                       "something else on that port?",
                       g->base, a->status);
    } else {
        (void)cli_fail(g->c, "%.*s (%ld %.*s%s%.*s)%s", STR_ARG(message), a->status,
                       STR_ARG(code), row.len > 0 ? ": " : "", STR_ARG(row),
                       advice(g, a->status));
    }
    cJSON_Delete(doc);
    return CLI_FAILED;
}

enum cli_exit gateway_ask(const struct gateway *g, const char *method, const char *path,
                          struct str body, cJSON **doc, struct buf *raw)
{
    struct http_answer a = {0};
    struct error err = {0};
    enum cli_exit result = gateway_send(g, method, path, body, &a);

    if (result != CLI_DONE) {
        return result;
    }
    if (a.status < 200 || a.status > 299) {
        result = gateway_explain(g, &a);
    } else if (json_parse(buf_str(&a.body), doc, &err) != ST_OK) {
        result = cli_fail(g->c, "%s: the answer is not JSON: %s", g->base, err.text);
    } else if (raw != NULL) {
        buf_add_str(raw, buf_str(&a.body));
        if (raw->len > 0 && raw->ptr[raw->len - 1] != '\n') {
            buf_add_char(raw, '\n');
        }
    }
    http_answer_done(&a);
    return result;
}
