/* Log text: characters split over reads, bad bytes, long lines, the cap. */
#include "base/utf8.h"
#include "exec/logtext.h"
#include "support/test.h"

struct sink {
    struct buf all;
    size_t pieces, longest;
    bool bad;
};

static void take(void *ctx, struct str text)
{
    struct sink *s = ctx;
    buf_add_str(&s->all, text);
    s->pieces++;
    s->bad = s->bad || !utf8_valid(text) || text.len == 0;
    s->longest = text.len > s->longest ? text.len : s->longest;
}

static void open_sink(struct sink *s, struct logtext *t)
{
    *s = (struct sink){.pieces = 0};
    buf_init(&s->all, (size_t)8 * 1024 * 1024);
    logtext_init(t, take, s);
}

static void close_sink(struct sink *s, struct logtext *t)
{
    assert_false(s->bad);
    assert_true(s->longest <= LOGTEXT_PIECE);
    logtext_done(t);
    buf_done(&s->all);
}

static void whole_lines(void **state)
{
    (void)state;
    struct sink s;
    struct logtext t;
    open_sink(&s, &t);
    logtext_feed(&t, STR_LIT("one\ntwo\nthr"));
    assert_str_is(buf_str(&s.all), "one\ntwo\n");
    logtext_feed(&t, STR_LIT("ee"));
    assert_int_equal(s.pieces, 1);
    logtext_flush(&t);
    assert_str_is(buf_str(&s.all), "one\ntwo\nthree");
    logtext_flush(&t);
    assert_int_equal(s.pieces, 2);
    close_sink(&s, &t);
}

/* The same text whatever the size of the reads. */
static void split_anywhere(void **state)
{
    (void)state;
    static const char text[] =
        "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\n\xff\xc3(\xe2\x82";
    static const char want[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\n\xef\xbf\xbd"
                               "\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd";
    for (size_t step = 1; step < sizeof text; step++) {
        struct sink s;
        struct logtext t;
        open_sink(&s, &t);
        for (size_t i = 0; i < sizeof text - 1; i += step) {
            size_t left = sizeof text - 1 - i;
            logtext_feed(&t, str_n(text + i, left < step ? left : step));
        }
        logtext_flush(&t);
        assert_str_is(buf_str(&s.all), want);
        close_sink(&s, &t);
    }
}

/* No newline at all: pieces of 4 KiB that cut no character. */
static void long_line(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        struct sink s;
        struct logtext t;
        open_sink(&s, &t);
        logtext_feed(&t, str_n("xxx", shift));
        for (int i = 0; i < 5000; i++) {
            logtext_feed(&t, STR_LIT("\xf0\x9f\x98\x80"));
        }
        logtext_flush(&t);
        assert_int_equal(s.all.len, shift + 20000);
        assert_int_equal(str_find(buf_str(&s.all), STR_LIT("\xef\xbf\xbd")), SIZE_MAX);
        close_sink(&s, &t);
    }
}

/* A piece that ends inside a character of two, three or four bytes. */
static void cut_characters(void **state)
{
    (void)state;
    static const char *const chars[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t c = 0; c < 3; c++) {
        for (size_t before = LOGTEXT_PIECE - 5; before <= LOGTEXT_PIECE; before++) {
            struct sink s;
            struct logtext t;
            open_sink(&s, &t);
            for (size_t i = 0; i < before; i++) {
                logtext_feed(&t, STR_LIT("x"));
            }
            logtext_feed(&t, str_c(chars[c]));
            logtext_feed(&t, STR_LIT("yyyyy"));
            logtext_flush(&t);
            assert_int_equal(s.all.len, before + strlen(chars[c]) + 5);
            assert_int_equal(str_find(buf_str(&s.all), STR_LIT("\xef\xbf\xbd")),
                             SIZE_MAX);
            close_sink(&s, &t);
        }
    }
}

static void only_bad_bytes(void **state)
{
    (void)state;
    struct sink s;
    struct logtext t;
    char raw[10000];
    memset(raw, 0xff, sizeof raw);
    open_sink(&s, &t);
    logtext_feed(&t, str_n(raw, sizeof raw));
    memset(raw, 0x80, sizeof raw);
    logtext_feed(&t, str_n(raw, sizeof raw));
    logtext_flush(&t);
    assert_int_equal(s.all.len, 3 * 20000);
    close_sink(&s, &t);
}

static size_t with_bytes(size_t n)
{
    struct sink s;
    struct logtext t;
    char line[1024];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    open_sink(&s, &t);
    for (size_t left = n; left > 0;) {
        size_t take_now = left < sizeof line ? left : sizeof line;
        logtext_feed(&t, str_n(line, take_now));
        left -= take_now;
    }
    logtext_flush(&t);
    size_t len = s.all.len;
    close_sink(&s, &t);
    return len;
}

static void the_cap(void **state)
{
    (void)state;
    size_t note = strlen("\n[log cut: more than 1 MB]\n");
    assert_int_equal(with_bytes(LOGTEXT_MAX - 1), LOGTEXT_MAX - 1);
    assert_int_equal(with_bytes(LOGTEXT_MAX), LOGTEXT_MAX);
    assert_int_equal(with_bytes(LOGTEXT_MAX + 1), LOGTEXT_MAX + note);
    assert_int_equal(with_bytes(LOGTEXT_MAX * 2), LOGTEXT_MAX + note);
}

static void out_of_memory(void **state)
{
    (void)state;
    struct sink s;
    struct logtext t;
    open_sink(&s, &t);
    buf_add_c(&s.all, "");
    mem_fail_after(1);
    logtext_feed(&t, STR_LIT("lost\n"));
    mem_fail_after(0);
    logtext_feed(&t, STR_LIT("kept\n"));
    logtext_flush(&t);
    assert_str_is(buf_str(&s.all), "kept\n");
    close_sink(&s, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines),    cmocka_unit_test(split_anywhere),
        cmocka_unit_test(long_line),      cmocka_unit_test(only_bad_bytes),
        cmocka_unit_test(cut_characters), cmocka_unit_test(the_cap),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
