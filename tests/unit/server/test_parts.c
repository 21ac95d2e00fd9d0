/*
 * Comes in: request heads, targets, frames and answers. Goes out: whether http.c, ws.c and
 * answer.c take them apart and put them together right. The attacks on them are in
 * tests/security/http.
 */
#include "server/internal.h"
#include "support/test.h"

static struct http_head head;
static struct http_fault fault;

static bool parse(const char *text)
{
    return http_parse_head(str_c(text), &head, &fault);
}

static void test_head(void **state)
{
    (void)state;
    assert_true(parse("POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n"
                      "Authorization:Bearer k\r\nORIGIN: o\r\nx-forwarded-for: 1\r\n"
                      "X-Forwarded-For: 2\r\nExpect: 100-Continue\r\nX:  v \t\r\n\r\n"));
    assert_str_is(head.method, "POST");
    assert_str_is(head.target, "/a?b");
    assert_str_is(head.host, "h");
    assert_str_is(head.origin, "o");
    assert_str_is(head.authorization, "Bearer k");
    assert_str_is(head.forwarded_for, "2");
    assert_int_equal(head.nforwarded_for, 2);
    assert_int_equal(head.content_length, 12);
    assert_true(head.keep_alive && head.expect_continue && head.forwarded);
    assert_str_is(http_field_get(&head, "x"), "v");
    assert_null(http_field_get(&head, "y").ptr);
    assert_true(parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: x , CLOSE\r\n\r\n"));
    assert_false(head.keep_alive);
    assert_int_equal(head.content_length, -1);
    assert_false(head.forwarded);
    assert_true(parse("GET / HTTP/1.0\r\nHost: h\r\n\r\n"));
    assert_false(head.keep_alive);
    assert_true(parse("GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"));
    assert_true(head.keep_alive);
    assert_false(parse("GET / HTTP/1.1\r\nHost: h\r\n"));
    assert_false(parse("GET / HTTP/1.1"));
    assert_false(parse(""));
}

static void test_upgrade(void **state)
{
    (void)state;
    static const char ok[] = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\n"
                             "Connection: keep-alive, Upgrade\r\n"
                             "Sec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    char out[32];
    assert_true(parse(ok) && head.upgrade && head.upgrade_asked);
    assert_true(ws_accept(head.ws_key, out, sizeof out));
    assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="); /* RFC 6455, 1.3 */
    assert_false(ws_accept(head.ws_key, out, 28));
    assert_false(ws_accept(STR_LIT("short"), out, sizeof out));
    assert_true(parse("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\n\r\n"));
    assert_false(head.upgrade || head.upgrade_asked);
}

static void test_head_end(void **state)
{
    (void)state;
    size_t scan = 0;
    struct str all = STR_LIT("a\r\n\r\r\n\r\nrest");
    for (size_t n = 0; n < 8; n++) {
        assert_int_equal(http_head_end(str_n(all.ptr, n), &scan), 0);
    }
    assert_int_equal(http_head_end(all, &scan), 8);
    scan = 0;
    assert_int_equal(http_head_end(all, &scan), 8);
}

static void test_target(void **state)
{
    (void)state;
    char out[64];
    struct str path;
    struct str query;
    assert_true(http_parse_target(STR_LIT("/a%20b/%C3%a9/?x=/../"), out, sizeof out,
                                  &path, &query, &fault));
    assert_str_is(path, "/a b/\xc3\xa9/");
    assert_str_is(query, "x=/../");
    assert_true(http_parse_target(STR_LIT("/"), out, 2, &path, &query, &fault));
    assert_str_is(query, "");
    assert_false(http_parse_target(STR_LIT("/a"), out, 2, &path, &query, &fault));
    assert_int_equal(fault.status, 400);
    assert_false(http_parse_target(STR_NONE, out, 2, &path, &query, &fault));
    assert_true(
        http_parse_target(STR_LIT("/...?"), out, sizeof out, &path, &query, &fault));
}

static void test_params(void **state)
{
    (void)state;
    char out[32];
    size_t used = 0;
    bool bad = true;
    struct str query = STR_LIT("&&a=1&b&=c&d=%26+%3d&&");
    struct http_field p;
    static const char *const want[][2] = {{"a", "1"}, {"b", ""}, {"", "c"}, {"d", "& ="}};
    for (size_t i = 0; i < 4; i++) {
        assert_true(http_next_param(&query, out, sizeof out, &used, &p, &bad));
        assert_str_is(p.name, want[i][0]);
        assert_str_is(p.value, want[i][1]);
    }
    assert_false(http_next_param(&query, out, sizeof out, &used, &p, &bad));
    assert_false(bad);
    query = STR_LIT("abc=def");
    used = 0;
    assert_false(http_next_param(&query, out, 7, &used, &p, &bad));
    assert_true(bad);
    query = STR_LIT("abc=def");
    used = 0;
    assert_true(http_next_param(&query, out, 8, &used, &p, &bad));
    used = 32;
    query = STR_LIT("=");
    assert_false(http_next_param(&query, out, 32, &used, &p, &bad));
}

static void test_reasons(void **state)
{
    (void)state;
    assert_string_equal(http_reason(431), "Request Header Fields Too Large");
    assert_string_equal(http_reason(299), "OK");
    assert_string_equal(http_reason(599), "Error");
}

static void test_ws_frames(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 125, 126, 65535, 65536};
    struct buf b;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        buf_init(&b, 1U << 20);
        char *text = calloc(1, sizes[i] + 1);
        ws_add_frame(&b, WS_OP_TEXT, str_n(text, sizes[i]));
        size_t head_len = sizes[i] < 126 ? 2 : sizes[i] < 65536 ? 4 : 10;
        assert_int_equal(b.len, head_len + sizes[i]);
        free(text);
        buf_done(&b);
    }
}

static void test_ws_parser_memory(void **state)
{
    (void)state;
    static const char frame[] = "\x81\x85\x00\x00\x00\x00hello";
    struct ws_parser *p = NULL;
    TEST_SWEEP((p = ws_parser_new(5)) != NULL);
    struct str payload = STR_NONE;
    int code = 0;
    for (int i = 0; i < 3; i++) {
        struct str in = str_n(frame, sizeof frame - 1);
        assert_int_equal(ws_next(p, &in, &payload, &code), WS_TEXT);
        assert_str_is(payload, "hello");
        assert_int_equal(in.len, 0);
    }
    struct str in = str_n(frame, sizeof frame - 1);
    mem_fail_after(1);
    enum ws_event ev = ws_next(p, &in, &payload, &code);
    mem_fail_after(0);
    assert_int_equal(ev, WS_BAD);
    assert_int_equal(code, 1009);
    ws_parser_free(p);
    ws_parser_free(NULL);
}

static void test_date(void **state)
{
    (void)state;
    char out[32];
    answer_date(784111777, out); /* the example of RFC 9110 */
    assert_string_equal(out, "Sun, 06 Nov 1994 08:49:37 GMT");
    answer_date(0, out);
    assert_string_equal(out, "Thu, 01 Jan 1970 00:00:00 GMT");
    answer_date(1709164800, out);
    assert_string_equal(out, "Thu, 29 Feb 2024 00:00:00 GMT");
}

static struct sy_pair pair(const char *name, const char *value)
{
    return (struct sy_pair){{name, strlen(name)}, {value, strlen(value)}};
}

static void test_headers(void **state)
{
    (void)state;
    static const char *const ours[] = {"Content-Length",
                                       "TRANSFER-ENCODING",
                                       "Connection",
                                       "Date",
                                       "X-Request-Id",
                                       "",
                                       "A B",
                                       "A:",
                                       "A\r\n"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        struct sy_pair h = pair(ours[i], "x");
        assert_false(answer_header_ok(&h));
    }
    static const char *const values[] = {"a\r\nb", "a\nb", "\x01", "\x7f", "\xff"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct sy_pair h = pair("X", values[i]);
        assert_false(answer_header_ok(&h));
    }
    struct sy_pair h = pair("X_-9z", "\xc3\xa9 ok");
    assert_true(answer_header_ok(&h));
    h.value = (struct sy_str){NULL, 1};
    assert_false(answer_header_ok(&h));
    h = (struct sy_pair){{NULL, 1}, {"x", 1}};
    assert_false(answer_header_ok(&h));
}

static bool holds(const struct buf *b, const char *text)
{
    return str_find(buf_str(b), str_c(text)) != SIZE_MAX;
}

static void test_answer(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 4096);
    const struct sy_pair extra[] = {pair("cache-control", "max-age=5"),
                                    pair("Content-Type", "text/css")};
    struct answer a = {.status = 200,
                       .type = "application/json",
                       .length = -1,
                       .chunked = true,
                       .rid = "r",
                       .date = "d",
                       .extra = extra,
                       .nextra = 2};
    answer_head(&b, &a);
    assert_true(holds(&b, "HTTP/1.1 200 OK\r\n"));
    assert_true(holds(&b, "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n"));
    assert_true(holds(&b, "cache-control: max-age=5\r\nContent-Type: text/css\r\n\r\n"));
    assert_false(holds(&b, "no-store"));
    assert_false(holds(&b, "application/json"));
    assert_false(holds(&b, "Allow"));
    buf_clear(&b);
    a = (struct answer){.status = 429,
                        .length = 2,
                        .close = true,
                        .rid = "r",
                        .date = "d",
                        .cors_origin = "https://o",
                        .allow = STR_LIT("GET"),
                        .retry_after_s = 7,
                        .challenge = true};
    answer_head(&b, &a);
    assert_true(holds(&b, "Content-Length: 2\r\nConnection: close\r\n"));
    assert_true(holds(&b, "Access-Control-Allow-Origin: https://o\r\nVary: Origin\r\n"));
    assert_true(holds(&b, "Retry-After: 7\r\n"));
    assert_true(holds(&b, "WWW-Authenticate: Bearer\r\n"));
    assert_true(holds(&b, "Cross-Origin-Resource-Policy: cross-origin\r\n"));
    buf_clear(&b);
    const struct http_fault f = {400, "a\"b", "c\nd"};
    answer_error_body(&b, &f, "r");
    assert_str_is(buf_str(&b), "{\"error\":{\"code\":\"a\\\"b\",\"message\":\"c\\nd\","
                               "\"request_id\":\"r\"}}");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),      cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_head_end),  cmocka_unit_test(test_target),
        cmocka_unit_test(test_params),    cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_ws_frames), cmocka_unit_test(test_ws_parser_memory),
        cmocka_unit_test(test_date),      cmocka_unit_test(test_headers),
        cmocka_unit_test(test_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
