/* Frames: the exact bytes of a request; answers fed whole, bytewise, after noise; every
 * length below, at and above its limit; out of memory. */
#include "exec/frame.h"
#include "support/test.h"

#define ID UINT64_C(0x1122334455667788)
#define CAP 64

static void add_u32(struct buf *b, size_t v)
{
    for (int i = 0; i < 4; i++) {
        buf_add_char(b, (char)(v >> (8 * i) & 0xff));
    }
}

static void add_field(struct buf *b, char tag, const char *text)
{
    buf_add_char(b, tag);
    add_u32(b, strlen(text));
    buf_add_c(b, text);
}

static void add_head(struct buf *b, char kind, uint64_t id, size_t len)
{
    buf_add_c(b, "SYF1");
    buf_add_char(b, kind);
    add_u32(b, (size_t)(id & UINT32_MAX));
    add_u32(b, (size_t)(id >> 32));
    add_u32(b, len);
}

static void add_frame(struct buf *b, char kind, uint64_t id, struct str body)
{
    add_head(b, kind, id, body.len);
    buf_add_str(b, body);
}

static enum status feed_all(struct str bytes, size_t step, struct frame_answer *a,
                            struct frame_reader **out)
{
    struct error err;
    enum status st = frame_reader_new(ID, CAP, out);
    assert_int_equal(st, ST_OK);
    st = ST_BUSY;
    for (size_t i = 0; i < bytes.len && st == ST_BUSY; i += step) {
        size_t n = bytes.len - i < step ? bytes.len - i : step;
        st = frame_feed(*out, str_n(bytes.ptr + i, n), a, &err);
    }
    return st;
}

/* Feed prefix and one answer of that body; the status, and the reader to free. */
static enum status answer_of(const char *prefix, size_t nprefix, char kind,
                             struct str body, size_t step, struct frame_answer *a,
                             struct frame_reader **r)
{
    struct buf b;
    buf_init(&b, 4096);
    buf_add(&b, prefix, nprefix);
    add_frame(&b, kind, ID, body);
    enum status st = feed_all(buf_str(&b), step, a, r);
    buf_done(&b);
    return st;
}

static void request_bytes(void **state)
{
    (void)state;
    static const char *const env[] = {"A=1"};
    const struct plan_call call = {.source = {"s", 1},
                                   .filename = "f",
                                   .function = "g",
                                   .args = {"{}", 2},
                                   .env = env,
                                   .nenv = 1};
    const struct launch_spec launch = {.cpu_seconds = 30,
                                       .mem_bytes = 1024,
                                       .open_files = SPAWN_NO_LIMIT,
                                       .file_bytes = SPAWN_NO_LIMIT,
                                       .processes = 7};
    static const char want[] = "SYF1Q\x88\x77\x66\x55\x44\x33\x22\x11\x37\0\0\0"
                               "\x01\x01\0\0\0s\x02\x01\0\0\0f\x03\x01\0\0\0g"
                               "\x04\x02\0\0\0{}\x05\x03\0\0\0A=1"
                               "\x06\x16\0\0\0cpu=30 as=1024 nproc=7";
    struct buf b;
    buf_init(&b, 1024);
    assert_int_equal(frame_request(&call, &launch, ID, &b), ST_OK);
    assert_int_equal(b.len, sizeof want - 1);
    /* The length is checked by itself, since the texts may change. */
    assert_int_equal((unsigned char)b.ptr[13], b.len - 17);
    assert_memory_equal(b.ptr, want, 13);
    assert_memory_equal(b.ptr + 17, want + 17, b.len - 17);
    buf_done(&b);
    buf_init(&b, 40);
    assert_int_equal(frame_request(&call, &launch, ID, &b), ST_TOO_LARGE);
    buf_done(&b);
    buf_init(&b, (size_t)1 << 30);
    assert_int_equal(frame_request(&call, &launch, ID, &b), ST_OK);
    buf_done(&b);
    buf_init(&b, ((size_t)1 << 30) + 1);
    assert_int_equal(frame_request(&call, &launch, ID, &b), ST_INVALID);
    buf_done(&b);
}

static bool request_once(uint64_t cpu_seconds)
{
    const struct plan_call call = {.filename = "f", .function = "g", .args = {"{}", 2}};
    const struct launch_spec launch = {.cpu_seconds = cpu_seconds,
                                       .mem_bytes = SPAWN_NO_LIMIT,
                                       .open_files = SPAWN_NO_LIMIT,
                                       .file_bytes = SPAWN_NO_LIMIT,
                                       .processes = SPAWN_NO_LIMIT};
    struct buf b;
    buf_init(&b, 1024);
    bool ok = frame_request(&call, &launch, ID, &b) == ST_OK;
    buf_done(&b);
    return ok;
}

static void requests_out_of_memory(void **state)
{
    (void)state;
    TEST_SWEEP(request_once(3));
    TEST_SWEEP(request_once(SPAWN_NO_LIMIT));
}

static void answers_at_every_step(void **state)
{
    (void)state;
    struct buf body;
    struct frame_answer a;
    struct frame_reader *r = NULL;
    buf_init(&body, 256);
    add_field(&body, 2, "j");
    add_field(&body, 1, "{\"x\": 1}");
    add_field(&body, 3, "");
    for (size_t step = 1; step < 40; step++) {
        assert_int_equal(answer_of("noise SYF", 9, 'R', buf_str(&body), step, &a, &r),
                         ST_OK);
        assert_false(a.is_error);
        assert_false(a.result_is_text);
        assert_str_is(a.result, "{\"x\": 1}");
        frame_reader_free(r);
    }
    buf_done(&body);
}

static void error_fields(void **state)
{
    (void)state;
    struct buf body;
    struct frame_answer a;
    struct frame_reader *r = NULL;
    buf_init(&body, 256);
    add_field(&body, 3, "SystemExit");
    add_field(&body, 4, "m");
    add_field(&body, 5, "tb");
    add_field(&body, 6, "exit");
    add_field(&body, 7, "255");
    assert_int_equal(answer_of("", 0, 'E', buf_str(&body), 1000, &a, &r), ST_OK);
    assert_true(a.is_error);
    assert_str_is(a.err_class, "SystemExit");
    assert_str_is(a.err_message, "m");
    assert_str_is(a.traceback, "tb");
    assert_str_is(a.cause, "exit");
    assert_int_equal(a.detail, 255);
    frame_reader_free(r);
    buf_done(&body);
}

/* A frame of another call, whatever length it claims, hides nothing. */
static void forged_frames_are_skipped(void **state)
{
    (void)state;
    struct buf b;
    struct buf body;
    struct frame_answer a;
    struct frame_reader *r = NULL;
    buf_init(&b, 4096);
    buf_init(&body, 256);
    add_field(&body, 1, "real");
    add_head(&b, 'R', 0, 4000000000U);
    add_head(&b, 'R', ID + 1, CAP);
    add_head(&b, 'H', ID, 0);
    add_head(&b, 'Q', ID, 3);
    buf_add_c(&b, "SYF1R\x88\x77SYF1SYSYF1R");
    add_frame(&b, 'R', ID, buf_str(&body));
    for (size_t step = 1; step < 60; step++) {
        assert_int_equal(feed_all(buf_str(&b), step, &a, &r), ST_OK);
        assert_str_is(a.result, "real");
        frame_reader_free(r);
    }
    buf_done(&b);
    buf_done(&body);
}

static void the_cap(void **state)
{
    (void)state;
    char text[CAP + 2];
    for (size_t n = CAP - 1; n <= CAP + 1; n++) {
        struct buf body;
        struct frame_answer a;
        struct frame_reader *r = NULL;
        memset(text, 'x', sizeof text);
        text[n - 5] = '\0';
        buf_init(&body, 256);
        add_field(&body, 1, text);
        enum status st = answer_of("", 0, 'R', buf_str(&body), 7, &a, &r);
        assert_int_equal(st, n <= CAP ? ST_OK : ST_TOO_LARGE);
        frame_reader_free(r);
        buf_done(&body);
    }
}

static void bad_payloads(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"", 0},                             /* no result */
        {"\x02\x01\0\0\0j", 6},              /* a form only */
        {"\x01\x05\0\0\0ab", 7},             /* longer than the payload */
        {"\x01\xff\xff\xff\xff", 5},         /* far longer */
        {"\x01\0\0", 3},                     /* cut in a head */
        {"\x01\x01\0\0\0x\x00\0\0\0\0", 11}, /* tag 0 */
        {"\x08\0\0\0\0", 5},                 /* unknown tag */
        {"\x01\x01\0\0\0\xff", 6},           /* no UTF-8 */
        {"\x07\x03\0\0\0"
         "256",
         8},                    /* detail over 255 */
        {"\x07\x01\0\0\0x", 6}, /* detail no number */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct frame_answer a = {.detail = 99};
        struct frame_reader *r = NULL;
        struct str body = str_n(bad[i].bytes, bad[i].len);
        assert_int_equal(answer_of("", 0, 'R', body, 3, &a, &r), ST_INVALID);
        assert_int_equal(a.detail, 99); /* outputs are written on success only */
        frame_reader_free(r);
    }
}

static void nothing_after_the_answer(void **state)
{
    (void)state;
    struct frame_answer a;
    struct error err;
    struct frame_reader *r = NULL;
    assert_int_equal(answer_of("", 0, 'R', str_n("\x01\0\0\0\0", 5), 100, &a, &r), ST_OK);
    assert_int_equal(a.result.len, 0);
    assert_int_equal(frame_feed(r, STR_LIT("x"), &a, &err), ST_INVALID);
    frame_reader_free(r);
    frame_reader_free(NULL);
}

static bool read_one(void)
{
    struct frame_answer a;
    struct frame_reader *r = NULL;
    struct error err;
    bool ok = false;
    if (frame_reader_new(ID, CAP, &r) == ST_OK) {
        static const char bytes[] = "SYF1R\x88\x77\x66\x55\x44\x33\x22\x11\x06\0\0\0"
                                    "\x01\x01\0\0\0x";
        ok = frame_feed(r, str_n(bytes, sizeof bytes - 1), &a, &err) == ST_OK;
    }
    frame_reader_free(r);
    return ok;
}

static void out_of_memory(void **state)
{
    (void)state;
    TEST_SWEEP(read_one());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_bytes),
        cmocka_unit_test(answers_at_every_step),
        cmocka_unit_test(error_fields),
        cmocka_unit_test(forged_frames_are_skipped),
        cmocka_unit_test(the_cap),
        cmocka_unit_test(bad_payloads),
        cmocka_unit_test(nothing_after_the_answer),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(requests_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
