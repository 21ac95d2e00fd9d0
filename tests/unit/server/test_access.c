/*
 * Comes in: addresses, names and times. Goes out: whether access.c and limits.c judge them
 * right; every branch of the pure functions.
 */
#include "server/access.h"
#include "server/limits.h"
#include "support/test.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct net_addr addr(const char *text)
{
    struct net_addr a;
    assert_true(net_addr_parse(str_c(text), &a));
    return a;
}

static struct net_range range(const char *text)
{
    struct net_range r;
    assert_true(net_range_parse(str_c(text), &r));
    return r;
}

static bool is(struct net_addr a, const char *text)
{
    char printed[NET_ADDR_TEXT];
    net_addr_print(&a, printed);
    return strcmp(printed, text) == 0;
}

static void test_addresses(void **state)
{
    (void)state;
    struct net_addr a;
    static const char *const bad[] = {
        "",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.4 ",
        "01.2.3.4x",
        "localhost",
        "::1%lo",
        "[::1]",
        ":::",
        "0x7f.1",
        "12345::",
        "aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(net_addr_parse(str_c(bad[i]), &a));
    }
    assert_false(net_addr_parse(str_n("1.2.3.4\0x", 9), &a));
    assert_true(is(addr("::ffff:192.0.2.7"), "192.0.2.7"));
    assert_true(is(addr("2001:DB8::1"), "2001:db8::1"));
    a = addr("127.9.9.9");
    assert_true(net_addr_is_loopback(&a));
    a = addr("::1");
    assert_true(net_addr_is_loopback(&a));
    a = addr("::2");
    assert_false(net_addr_is_loopback(&a));
    a = addr("128.0.0.1");
    assert_false(net_addr_is_loopback(&a));
    a = addr("0.0.0.0");
    assert_true(net_addr_is_any(&a));
    a = addr("::");
    assert_true(net_addr_is_any(&a));
    a = addr("0.0.0.1");
    assert_false(net_addr_is_any(&a));
    a = addr("2001:db8:1:2:3:4:5:6");
    assert_true(is(net_addr_group(&a), "2001:db8:1:2::"));
    a = addr("192.0.2.7");
    assert_true(is(net_addr_group(&a), "192.0.2.7"));
}

static void test_sockaddr(void **state)
{
    (void)state;
    struct sockaddr_storage sa;
    struct net_addr a;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    memset(&sa, 0, sizeof sa);
    memcpy(&sa, &in, sizeof in);
    assert_true(net_addr_from_sockaddr(&sa, &a) && is(a, "127.0.0.1"));
    memcpy(&sa, &in6, sizeof in6);
    assert_true(net_addr_from_sockaddr(&sa, &a) && is(a, "::1"));
    sa.ss_family = AF_UNIX;
    assert_false(net_addr_from_sockaddr(&sa, &a));
}

static void test_ranges(void **state)
{
    (void)state;
    struct net_range r;
    static const char *const bad[] = {"10.0.0.0/33",  "10.0.0.0/",  "10.0.0.0/-1",
                                      "::/129",       "/8",         "x/8",
                                      "10.0.0.0/8/8", "10.0.0.0/ 8"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(net_range_parse(str_c(bad[i]), &r));
    }
    const struct net_range some[] = {range("10.0.0.0/9"), range("2001:db8::/33"),
                                     range("192.0.2.7")};
    struct {
        const char *text;
        bool in;
    } cases[] = {
        {"10.0.0.0", true},  {"10.127.255.255", true},   {"10.128.0.0", false},
        {"11.0.0.0", false}, {"2001:db8:7fff::1", true}, {"2001:db8:8000::1", false},
        {"192.0.2.7", true}, {"192.0.2.6", false},       {"::ffff:10.1.1.1", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct net_addr a = addr(cases[i].text);
        assert_int_equal(net_range_has(some, 3, &a), cases[i].in);
    }
    struct net_range all = range("0.0.0.0/0");
    struct net_addr a = addr("203.0.113.9");
    assert_true(net_range_has(&all, 1, &a));
    a = addr("2001:db8::1");
    assert_false(net_range_has(&all, 1, &a));
    all = range("::/0");
    assert_true(net_range_has(&all, 1, &a));
}

static void test_forwarded(void **state)
{
    (void)state;
    const struct net_range trusted[] = {range("127.0.0.0/8"), range("10.0.0.0/8")};
    struct net_addr peer = addr("127.0.0.1");
    const struct {
        const char *first, *second, *want;
    } cases[] = {
        {"192.0.2.1", NULL, "192.0.2.1"},
        {"6.6.6.6, 192.0.2.1", "10.0.0.1", "192.0.2.1"},
        {"6.6.6.6", "10.0.0.1, 10.0.0.2", "6.6.6.6"},
        {"10.0.0.9", "10.0.0.1", "10.0.0.9"}, /* all trusted: the left-most */
        {"6.6.6.6, x", "10.0.0.1", "10.0.0.1"},
        {"6.6.6.6,", NULL, "127.0.0.1"},
        {"", NULL, "127.0.0.1"},
        {"[::1", NULL, "127.0.0.1"},
        {"[2001:db8::1]:1", NULL, "2001:db8::1"},
        {"1.2.3.4:99", NULL, "1.2.3.4"},
        {":99", NULL, "127.0.0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str lists[] = {str_c(cases[i].first), str_c(cases[i].second)};
        size_t n = cases[i].second ? 2 : 1;
        assert_true(is(access_forwarded(&peer, lists, n, trusted, 2), cases[i].want));
    }
    struct str list = STR_LIT("192.0.2.1");
    struct net_addr stranger = addr("203.0.113.5");
    assert_true(is(access_forwarded(&stranger, &list, 1, trusted, 2), "203.0.113.5"));
}

static void test_host(void **state)
{
    (void)state;
    static const char *const hosts[] = {"gw.example", "x.example:8443", "[broken"};
    struct access_names names = {.port = 18789,
                                 .loopback_names = true,
                                 .allowed_hosts = hosts,
                                 .nallowed_hosts = 3};
    struct net_addr local = addr("192.0.2.7");
    static const char *const good[] = {
        "localhost:18789", "127.0.0.1:18789", "[::1]:18789",
        "192.0.2.7:18789", "GW.example",      "gw.example:18789",
        "gw.example:443",  "gw.example:80",   "x.example:8443"};
    static const char *const bad[] = {"",
                                      "localhost",
                                      "localhost:1",
                                      "localhost:",
                                      ":18789",
                                      "[::1]18789",
                                      "[::1]:",
                                      "[::1",
                                      "gw.example:8443",
                                      "x.example",
                                      "x.example:18789",
                                      "gw.example.:18789",
                                      "192.0.2.8:18789",
                                      "localhost:018789x",
                                      "localhost:65536",
                                      "a.gw.example",
                                      "[192.0.2.7:18789"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(access_host_ok(&names, &local, str_c(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(access_host_ok(&names, &local, str_c(bad[i])));
    }
    names.loopback_names = false;
    assert_false(access_host_ok(&names, &local, STR_LIT("localhost:18789")));
    local = addr("2001:db8::1");
    assert_true(access_host_ok(&names, &local, STR_LIT("[2001:db8:0::1]:18789")));
    names.port = 80;
    assert_true(access_host_ok(&names, &local, STR_LIT("[2001:db8::1]")));
    names.tls = true;
    assert_false(access_host_ok(&names, &local, STR_LIT("[2001:db8::1]")));
    names.port = 443;
    assert_true(access_host_ok(&names, &local, STR_LIT("[2001:db8::1]")));
}

static void test_origin(void **state)
{
    (void)state;
    static const char *const origins[] = {"https://app.example", "null"};
    struct access_names names = {
        .port = 18789, .allowed_origins = origins, .nallowed_origins = 2};
    struct str host = STR_LIT("gw.example:18789");
    const struct {
        const char *origin;
        bool tls, proxied;
        enum access_origin want;
    } cases[] = {
        {NULL, false, false, ORIGIN_ABSENT},
        {"", false, false, ORIGIN_REFUSED},
        {"null", false, false, ORIGIN_REFUSED},
        {"https://APP.example", false, false, ORIGIN_LISTED},
        {"https://app.example.", false, false, ORIGIN_REFUSED},
        {"http://gw.example:18789", false, false, ORIGIN_OWN},
        {"http://GW.example:18789", false, false, ORIGIN_OWN},
        {"https://gw.example:18789", false, false, ORIGIN_REFUSED},
        {"https://gw.example:18789", true, false, ORIGIN_OWN},
        {"http://gw.example:18789", true, false, ORIGIN_REFUSED},
        {"https://gw.example:18789", false, true, ORIGIN_OWN},
        {"http://gw.example", false, false, ORIGIN_REFUSED},
        {"http://", false, false, ORIGIN_REFUSED},
        {"gw.example:18789", false, false, ORIGIN_REFUSED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        names.tls = cases[i].tls;
        assert_int_equal(
            access_origin_check(&names, host, str_c(cases[i].origin), cases[i].proxied),
            cases[i].want);
    }
    names.tls = false;
    assert_int_equal(access_origin_check(&names, STR_LIT("gw.example"),
                                         STR_LIT("http://gw.example:80"), false),
                     ORIGIN_OWN);
    assert_int_equal(access_origin_check(&names, STR_LIT("[broken"),
                                         STR_LIT("http://gw.example"), false),
                     ORIGIN_REFUSED);
}

static void test_limits(void **state)
{
    (void)state;
    struct limits *l = limits_new(60, 16, 7);
    struct net_addr a = addr("192.0.2.1");
    struct net_addr b = addr("192.0.2.2");
    int64_t retry = 0;
    assert_non_null(l);
    for (int i = 0; i < 60; i++) {
        assert_true(limits_left(l, &a, 1000, &retry));
        assert_true(limits_take(l, &a, 1000, &retry));
    }
    assert_false(limits_left(l, &a, 1000, &retry));
    assert_false(limits_take(l, &a, 1000, &retry));
    assert_int_equal(retry, 1000);
    assert_true(limits_take(l, &b, 1000, &retry));
    assert_false(limits_take(l, &a, 1999, &retry));
    assert_int_equal(retry, 1);
    assert_true(limits_take(l, &a, 2000, &retry));
    assert_false(limits_take(l, &a, 2000, &retry));
    limits_refund(l, &a);
    assert_true(limits_take(l, &a, 2000, &retry));
    /* A clock that stands or goes back gives nothing. */
    assert_false(limits_take(l, &a, 1500, &retry));
    /* A day later it is full, not more than full. */
    for (int i = 0; i < 60; i++) {
        assert_true(limits_take(l, &a, 86400000, &retry));
    }
    assert_false(limits_take(l, &a, 86400000, &retry));
    limits_refund(l, &b);
    limits_free(l);
    limits_free(NULL);
}

static void test_limits_group_ipv6(void **state)
{
    (void)state;
    struct limits *l = limits_new(1, 8, 7);
    struct net_addr a = addr("2001:db8:1:2::1");
    struct net_addr same = addr("2001:db8:1:2:ffff::2");
    struct net_addr other = addr("2001:db8:1:3::1");
    struct net_addr mapped = addr("::ffff:192.0.2.1");
    struct net_addr plain = addr("192.0.2.1");
    int64_t retry = 0;
    assert_true(limits_take(l, &a, 1, &retry));
    assert_false(limits_take(l, &same, 1, &retry));
    assert_true(limits_take(l, &other, 1, &retry));
    assert_true(limits_take(l, &mapped, 1, &retry));
    assert_false(limits_take(l, &plain, 1, &retry));
    limits_free(l);
}

static void test_limits_are_bounded(void **state)
{
    (void)state;
    struct limits *l = limits_new(1, 8, 7); /* one row */
    struct net_addr a = addr("10.0.0.0");
    int64_t retry = 0;
    for (unsigned char i = 0; i < 8; i++) {
        a.b[15] = i;
        assert_true(limits_take(l, &a, 10 + i, &retry));
    }
    a.b[15] = 7;
    assert_false(limits_take(l, &a, 18, &retry));
    a.b[15] = 8; /* takes the place of 0, idle longest */
    assert_true(limits_take(l, &a, 18, &retry));
    a.b[15] = 1;
    assert_false(limits_take(l, &a, 19, &retry));
    a.b[15] = 0;
    assert_true(limits_take(l, &a, 19, &retry));
    limits_free(l);
    l = limits_new(0, 8, 7);
    for (int i = 0; i < 100; i++) {
        assert_true(limits_take(l, &a, 1, &retry) && limits_left(l, &a, 1, &retry));
    }
    limits_refund(l, &a);
    limits_free(l);
    TEST_SWEEP((l = limits_new(1, 8, 7)) != NULL);
    limits_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_sockaddr),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_forwarded),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_origin),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_group_ipv6),
        cmocka_unit_test(test_limits_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
