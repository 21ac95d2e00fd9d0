/* Baseline of own_rss_mb: a program that links the libraries the gateway links, initialises
 * each as the gateway does, listens on loopback, prints "ready" and waits for end of file. */
#include <cjson/cJSON.h>
#include <libwebsockets.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pcre2.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <yaml.h>

static int callback(struct lws *wsi, enum lws_callback_reasons reason, void *user,
                    void *in, size_t len)
{
    return lws_callback_http_dummy(wsi, reason, user, in, len);
}

static void use_yaml(void)
{
    static const unsigned char text[] = "a: [1, 2]\n";
    yaml_parser_t p;
    yaml_event_t e;
    int type;

    yaml_parser_initialize(&p);
    yaml_parser_set_input_string(&p, text, sizeof(text) - 1);
    do {
        if (!yaml_parser_parse(&p, &e)) {
            break;
        }
        type = (int)e.type;
        yaml_event_delete(&e);
    } while (type != YAML_STREAM_END_EVENT);
    yaml_parser_delete(&p);
}

static void use_sqlite(const char *path)
{
    sqlite3 *db = NULL;

    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                     "CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(1)",
                     NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
    /* left open, as the gateway's is */
}

static void use_small(void)
{
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned int n;
    int code;
    size_t at;
    pcre2_code *re =
        pcre2_compile((PCRE2_SPTR) "^a+$", PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
    cJSON *j = cJSON_Parse("{\"a\":1}");

    EVP_Digest("x", 1, md, &n, EVP_sha256(), NULL);
    cJSON_Delete(j);
    pcre2_code_free(re);
}

int main(int argc, char **argv)
{
    static const struct lws_protocols protocols[] = {
        {.name = "http", .callback = callback}, {.name = NULL}};
    struct lws_context_creation_info info = {
        .port = 0, .iface = "127.0.0.1", .protocols = protocols};
    struct lws_context *ctx;

    if (argc != 2) {
        fprintf(stderr, "usage: bare_libs DATABASE\n");
        return 2;
    }
    lws_set_log_level(0, NULL);
    use_yaml();
    use_sqlite(argv[1]);
    use_small();
    ctx = lws_create_context(&info);
    if (ctx == NULL) {
        return 1;
    }
    lws_service(ctx, -1);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    lws_context_destroy(ctx);
    return 0;
}
