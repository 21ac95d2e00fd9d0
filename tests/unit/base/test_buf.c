/* Buffers: the maximum is below, at and above; failure is sticky; a NUL always follows. */
#include "support/test.h"

#include "base/buf.h"

#include <wchar.h>

static void check_nul(const struct buf *b)
{
    assert_non_null(b->ptr);
    assert_int_equal(b->ptr[b->len], '\0');
}

static void pieces_add_up(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 10000);
    check_nul(&b);
    assert_str_is(buf_str(&b), "");
    buf_add(&b, "ab", 2);
    buf_add(&b, NULL, 0);
    buf_add_str(&b, STR_NONE);
    buf_add_str(&b, STR_LIT("cd"));
    buf_add_c(&b, "ef");
    buf_add_char(&b, 'g');
    buf_addf(&b, "-%d-", 5);
    buf_add_hex(&b, "\x00\xAF", 2);
    buf_add_hex(&b, NULL, 0);
    check_nul(&b);
    assert_str_is(buf_str(&b), "abcdefg-5-00af");
    buf_consume(&b, 10);
    assert_str_is(buf_str(&b), "00af");
    buf_consume(&b, 0);
    buf_consume(&b, 99);
    check_nul(&b);
    assert_int_equal(b.len, 0);
    for (int i = 0; i < 100; i++) {
        buf_addf(&b, "%050d", i);
    }
    assert_int_equal(b.len, 5000);
    buf_addf(&b, "%01000d", 1); /* longer than the small buffer inside */
    assert_int_equal(b.len, 6000);
    check_nul(&b);
    assert_int_equal(buf_status(&b), ST_OK);
    buf_clear(&b);
    assert_str_is(buf_str(&b), "");
    buf_done(&b);
    buf_done(&b);
    check_nul(&b);
}

static void the_maximum_holds(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 8);
    buf_add(&b, "1234567", 7);
    buf_add_char(&b, '8');
    assert_int_equal(buf_status(&b), ST_OK);
    assert_str_is(buf_str(&b), "12345678");
    buf_add_char(&b, '9');
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    buf_add(&b, "", 0);
    buf_consume(&b, 4);
    buf_add_char(&b, 'x'); /* sticky, though there would be room */
    assert_str_is(buf_str(&b), "5678");
    assert_null(buf_take(&b));
    assert_null(buf_room(&b, 1));
    buf_clear(&b);
    assert_int_equal(buf_status(&b), ST_OK);
    buf_add_hex(&b, "\x01\x02\x03\x04", 4);
    assert_int_equal(buf_status(&b), ST_OK);
    buf_add_hex(&b, "\x01", 1);
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    buf_clear(&b);
    buf_addf(&b, "%0300d", 1);
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    buf_clear(&b);
    buf_add_hex(&b, "", SIZE_MAX);
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    assert_int_equal(b.len, 0);
    buf_wipe(&b);
    static const wchar_t unknown[] = {0x7FFFFFFF, 0}; /* vsnprintf fails on it */
    buf_init(&b, 8);
    buf_addf(&b, "%ls", unknown);
    assert_int_equal(buf_status(&b), ST_INVALID);
    buf_done(&b);
    buf_init(&b, SIZE_MAX); /* no room for the NUL: refused rather than wrapped */
    buf_add_char(&b, 'a');
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    buf_done(&b);
}

static void zeroed_and_null_are_fine(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_add_char(&b, 'a');
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    buf_wipe(&b);
    buf_done(NULL);
    buf_wipe(NULL);
}

static void room_is_zeroed(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    buf_add(&b, "aaaaaaaaaa", 10);
    buf_clear(&b);
    char *p = buf_room(&b, 9);
    assert_non_null(p);
    assert_memory_equal(p, "\0\0\0\0\0\0\0\0\0\0", 10);
    p[0] = 'x';
    b.len += 1;
    check_nul(&b);
    assert_null(buf_room(&b, 100));
    assert_int_equal(buf_status(&b), ST_TOO_LARGE);
    buf_done(&b);
}

static void taking_empties(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 100);
    char *p = buf_take(&b);
    assert_non_null(p);
    assert_string_equal(p, "");
    mem_free(p);
    buf_add_c(&b, "abc");
    p = buf_take(&b);
    assert_string_equal(p, "abc");
    mem_free(p);
    check_nul(&b);
    assert_int_equal(b.len, 0);
    buf_add_c(&b, "still usable");
    assert_int_equal(buf_status(&b), ST_OK);
    buf_wipe(&b);
}

static bool can_build(void)
{
    struct buf b;
    buf_init(&b, 5000);
    for (int i = 0; i < 10; i++) {
        buf_addf(&b, "%0400d", i);
        buf_add_hex(&b, "abc", 3);
    }
    bool ok = buf_status(&b) == ST_OK;
    assert_true(ok || buf_status(&b) == ST_NOMEM);
    check_nul(&b);
    char *p = buf_take(&b);
    assert_true((p != NULL) == ok);
    mem_free(p);
    buf_done(&b);
    return ok;
}

static bool can_take_empty(void)
{
    struct buf b;
    buf_init(&b, 10);
    char *p = buf_take(&b);
    mem_free(p);
    return p != NULL;
}

static void sweep(void **state)
{
    (void)state;
    TEST_SWEEP(can_build());
    TEST_SWEEP(can_take_empty());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_add_up),
        cmocka_unit_test(the_maximum_holds),
        cmocka_unit_test(zeroed_and_null_are_fine),
        cmocka_unit_test(room_is_zeroed),
        cmocka_unit_test(taking_empties),
        cmocka_unit_test(sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
