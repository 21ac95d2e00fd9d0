/* Words and options, likeness of names, text made harmless, and the origin that may get
 * the key. */
#include "support/test.h"

#include "cli/args.h"
#include "cli/command.h"
#include "cli/gateway.h"

static const struct arg_option options[] = {
    {"agent", "ID", ""}, {"json", NULL, ""}, {"help", NULL, ""}, {NULL, NULL, NULL}};

static enum status parse(struct args *out, struct error *err, int n,
                         const char *const *words)
{
    static char text[32][64];
    char *argv[32];

    for (int i = 0; i < n; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "%s", words[i]);
        argv[i] = text[i];
    }
    return args_parse(n, argv, options, out, err);
}

#define PARSE(out, err, ...) \
    parse((out), (err), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), \
          (const char *[]){__VA_ARGS__})

static void options_and_words(void **state)
{
    struct error err = {0};
    struct args a;

    (void)state;
    assert_int_equal(PARSE(&a, &err, "one", "--agent", "x", "two", "--json"), ST_OK);
    assert_int_equal(a.nwords, 2);
    assert_string_equal(a.words[0], "one");
    assert_string_equal(a.words[1], "two");
    assert_string_equal(args_value(&a, "agent"), "x");
    assert_non_null(args_value(&a, "json"));
    assert_null(args_value(&a, "help"));
    assert_int_equal(PARSE(&a, &err, "--agent=x=y"), ST_OK);
    assert_string_equal(args_value(&a, "agent"), "x=y");
    assert_int_equal(PARSE(&a, &err, "--agent="), ST_OK);
    assert_string_equal(args_value(&a, "agent"), "");
    assert_int_equal(PARSE(&a, &err, "-h"), ST_OK);
    assert_non_null(args_value(&a, "help"));
}

static void words_after_two_dashes(void **state)
{
    struct error err = {0};
    struct args a;

    (void)state;
    assert_int_equal(PARSE(&a, &err, "--", "--agent", "-", "--"), ST_OK);
    assert_int_equal(a.nwords, 3);
    assert_string_equal(a.words[0], "--agent");
    assert_null(args_value(&a, "agent"));
    assert_int_equal(PARSE(&a, &err, "-"), ST_OK);
    assert_string_equal(a.words[0], "-");
}

static void wrong_options(void **state)
{
    struct error err = {0};
    struct args a;

    (void)state;
    assert_int_equal(PARSE(&a, &err, "--agnet", "x"), ST_INVALID);
    assert_non_null(strstr(err.text, "did you mean --agent?"));
    assert_int_equal(PARSE(&a, &err, "--frobnicate"), ST_INVALID);
    assert_null(strstr(err.text, "did you mean"));
    assert_int_equal(PARSE(&a, &err, "--agent"), ST_INVALID);
    assert_non_null(strstr(err.text, "--agent ID"));
    assert_int_equal(PARSE(&a, &err, "--json=yes"), ST_INVALID);
    assert_int_equal(PARSE(&a, &err, "--agent", "a", "--agent", "b"), ST_INVALID);
    assert_int_equal(PARSE(&a, &err, "-x"), ST_INVALID);
    assert_int_equal(PARSE(&a, &err, "--agents", "x"), ST_INVALID);
}

static void too_many_words(void **state)
{
    static char word[] = "w";
    char *argv[ARGS_MAX_WORDS + 1];
    struct error err = {0};
    struct args a;

    (void)state;
    for (size_t i = 0; i <= ARGS_MAX_WORDS; i++) {
        argv[i] = word;
    }
    assert_int_equal(args_parse(ARGS_MAX_WORDS, argv, options, &a, &err), ST_OK);
    assert_int_equal(args_parse(ARGS_MAX_WORDS + 1, argv, options, &a, &err), ST_INVALID);
}

static void nearest(void **state)
{
    static const char *const names[] = {"chat", "serve", "status", "ab"};

    (void)state;
    assert_string_equal(args_nearest("caht", names, 4), "chat");
    assert_string_equal(args_nearest("statsu", names, 4), "status");
    assert_null(args_nearest("frobnicate", names, 4));
    assert_null(args_nearest("xy", names, 4));
    assert_null(args_nearest("", names, 4));
}

static void text_cannot_drive_a_terminal(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 1024);
    cli_text(&out, STR_LIT("a\033[2J\r\b\177\tb\n\302\233c \303\244"));
    assert_str_is(buf_str(&out), "a\\x1b[2J\\x0d\\x08\\x7f\tb\n\\x9bc \303\244");
    buf_clear(&out);
    cli_text(&out, STR_LIT("cut \302"));
    assert_str_is(buf_str(&out), "cut \302");
    buf_clear(&out);
    cli_indent(&out, "> ", STR_LIT("one\n\ntwo\n\n"));
    assert_str_is(buf_str(&out), "> one\n> \n> two\n");
    buf_done(&out);
}

static char *origin_of(const char *host, int64_t port, const char *cert, char out[400])
{
    struct config cfg = {0};
    struct url_origin o;
    struct error err = {0};
    struct buf text;
    char host_copy[300], cert_copy[32];

    (void)snprintf(host_copy, sizeof(host_copy), "%s", host);
    (void)snprintf(cert_copy, sizeof(cert_copy), "%s", cert);
    cfg.server.host = host_copy;
    cfg.server.port = port;
    cfg.server.tls_cert = cert_copy;
    buf_init(&text, 399);
    if (gateway_origin(&cfg, &o, &err) == ST_OK) {
        url_print_origin(&o, &text);
    }
    (void)snprintf(out, 400, "%s", text.ptr);
    buf_done(&text);
    return out;
}

static void origin_of_a_configuration(void **state)
{
    char out[400];

    (void)state;
    assert_string_equal(origin_of("127.0.0.1", 18789, "", out), "http://127.0.0.1:18789");
    assert_string_equal(origin_of("", 1, "", out), "http://127.0.0.1:1");
    assert_string_equal(origin_of("0.0.0.0", 1, "", out), "http://127.0.0.1:1");
    assert_string_equal(origin_of("::", 1, "", out), "http://[::1]:1");
    assert_string_equal(origin_of("::1", 1, "", out), "http://[::1]:1");
    assert_string_equal(origin_of("[::1]", 1, "", out), "http://[::1]:1");
    assert_string_equal(origin_of("GW.example", 65535, "/c.pem", out),
                        "https://gw.example:65535");
    assert_string_equal(origin_of("127.0.0.1", 0, "", out), "");
    assert_string_equal(origin_of("a b", 1, "", out), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_words),
        cmocka_unit_test(words_after_two_dashes),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(too_many_words),
        cmocka_unit_test(nearest),
        cmocka_unit_test(text_cannot_drive_a_terminal),
        cmocka_unit_test(origin_of_a_configuration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
