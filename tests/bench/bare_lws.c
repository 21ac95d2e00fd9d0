/*
 * Comes in: nothing. Goes out: "PORT n", then the same answer as /healthz for every
 * request, by libwebsockets' own HTTP server with nothing around it, until it is killed. It
 * is what http_rps is measured against and does nothing else.
 */
#include <libwebsockets.h>
#include <stdio.h>
#include <string.h>

static const char body[] = "{\"status\":\"ok\"}";

static int answer_head(struct lws *wsi)
{
    unsigned char buf[LWS_PRE + 512];
    unsigned char *start = buf + LWS_PRE;
    unsigned char *p = start;
    unsigned char *end = buf + sizeof buf - 1;
    if (lws_add_http_common_headers(wsi, HTTP_STATUS_OK, "application/json",
                                    sizeof body - 1, &p, end) ||
        lws_finalize_write_http_header(wsi, start, &p, end)) {
        return 1;
    }
    lws_callback_on_writable(wsi);
    return 0;
}

static int answer_body(struct lws *wsi)
{
    unsigned char buf[LWS_PRE + sizeof body];
    memcpy(buf + LWS_PRE, body, sizeof body - 1);
    if (lws_write(wsi, buf + LWS_PRE, sizeof body - 1, LWS_WRITE_HTTP_FINAL) < 0) {
        return 1;
    }
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user,
                    void *in, size_t len)
{
    switch ((int)reason) {
    case LWS_CALLBACK_HTTP:
        return answer_head(wsi);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return answer_body(wsi);
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, len);
    }
}

int main(void)
{
    static const struct lws_protocols protocols[] = {
        {.name = "http", .callback = on_event},
        {.name = NULL},
    };
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    lws_set_log_level(0, NULL);
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    struct lws_context *ctx = lws_create_context(&info);
    info.port = 0;
    info.iface = "127.0.0.1";
    info.protocols = protocols;
    struct lws_vhost *vh = ctx ? lws_create_vhost(ctx, &info) : NULL;
    if (!vh) {
        fputs("cannot listen\n", stderr);
        return 1;
    }
    printf("PORT %d\n", lws_get_vhost_port(vh));
    fflush(stdout);
    while (lws_service(ctx, 0) >= 0) {
    }
    lws_context_destroy(ctx);
    return 0;
}
