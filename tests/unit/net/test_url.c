/* URLs: origins, what is refused, path segments. */
#include "support/test.h"

#include "net/http.h"

static void check(const char *url, const char *origin, const char *path)
{
    struct url_origin o;
    struct str rest = STR_NONE;
    struct error err = {0};
    struct buf text;

    assert_int_equal(url_parse(str_c(url), &o, &rest, &err), ST_OK);
    buf_init(&text, 1024);
    url_print_origin(&o, &text);
    assert_str_is(buf_str(&text), origin);
    assert_str_is(rest, path);
    buf_done(&text);
}

static void origins(void **state)
{
    (void)state;
    check("http://127.0.0.1:18789", "http://127.0.0.1:18789", "");
    check("http://Host.Example/", "http://host.example:80", "/");
    check("https://host/a?b=c@d", "https://host:443", "/a?b=c@d");
    check("http://host?x", "http://host:80", "?x");
    check("http://[::1]:8/x", "http://[::1]:8", "/x");
    check("http://[::1]", "http://[::1]:80", "");
    check("http://a:65535", "http://a:65535", "");
    check("http://a:1#f", "http://a:1", "#f");
}

static void refused(void **state)
{
    static const char *const bad[] = {
        "",           "127.0.0.1:1",   "ftp://a",    "HTTP://a",      "http:/a",
        "http://",    "http://:1",     "http://a:",  "http://a:0",    "http://a:65536",
        "http://a:x", "http://a:-1",   "http://u@a", "http://u:p@a/", "http://[::1",
        "http://[]",  "http://[::1]x", "http://[a/", "http://a b",    "http://a\nb",
        "http://a%41"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct url_origin o = {.port = 7};
        struct error err = {0};

        if (url_parse(str_c(bad[i]), &o, NULL, &err) != ST_INVALID || o.port != 7) {
            fail_msg("%s was taken", bad[i]);
        }
        assert_true(err.text[0] != '\0');
    }
}

static void host_limit(void **state)
{
    char url[300] = "http://";
    struct url_origin o;
    struct error err = {0};

    (void)state;
    memset(url + 7, 'a', 255);
    assert_int_equal(url_parse(str_n(url, 7 + 255), &o, NULL, &err), ST_OK);
    memset(url + 7, 'a', 256);
    assert_int_equal(url_parse(str_n(url, 7 + 256), &o, NULL, &err), ST_INVALID);
}

static bool same(const char *a, const char *b)
{
    struct url_origin x, y;
    struct error err = {0};

    assert_int_equal(url_parse(str_c(a), &x, NULL, &err), ST_OK);
    assert_int_equal(url_parse(str_c(b), &y, NULL, &err), ST_OK);
    return url_same_origin(&x, &y);
}

static void same_origin(void **state)
{
    (void)state;
    assert_true(same("http://a", "http://A:80/x"));
    assert_false(same("http://a:1", "http://a:2"));
    assert_false(same("http://a:443", "https://a"));
    assert_false(same("http://127.0.0.1:1", "http://localhost:1"));
    assert_false(same("http://a.b", "http://a"));
}

static void segments(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 256);
    url_add_segment(&out, STR_LIT("Az09-_~ab.c"));
    assert_str_is(buf_str(&out), "Az09-_~ab.c");
    buf_clear(&out);
    url_add_segment(&out, STR_LIT(".."));
    assert_str_is(buf_str(&out), "%2E%2E");
    buf_clear(&out);
    url_add_segment(&out, STR_LIT("../a b\n\303\244%"));
    assert_str_is(buf_str(&out), "..%2Fa%20b%0A%C3%A4%25");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(origins),    cmocka_unit_test(refused),
        cmocka_unit_test(host_limit), cmocka_unit_test(same_origin),
        cmocka_unit_test(segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
