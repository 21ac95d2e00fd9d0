/* Clocks: dates against known ones, poll time-outs at their borders. */
#include "support/test.h"

#include "base/clock.h"

static void check_date(int64_t ms, const char *wanted)
{
    char out[32];
    clock_format_utc(ms, out);
    assert_string_equal(out, wanted);
}

static void dates_are_right(void **state)
{
    (void)state;
    check_date(0, "1970-01-01T00:00:00.000Z");
    check_date(-1, "1969-12-31T23:59:59.999Z");
    check_date(951782400000, "2000-02-29T00:00:00.000Z");
    check_date(951868800000, "2000-03-01T00:00:00.000Z");
    check_date(1769860800123, "2026-01-31T12:00:00.123Z");
    check_date(4107542399999, "2100-02-28T23:59:59.999Z");
    check_date(4107542400000, "2100-03-01T00:00:00.000Z");
    check_date(-2203891200000, "1900-03-01T00:00:00.000Z");
    check_date(-62167219200000, "0000-01-01T00:00:00.000Z");
    check_date(-62167219200001, "0000-01-01T00:00:00.000Z");
    check_date(INT64_MIN, "0000-01-01T00:00:00.000Z");
    check_date(253402300799999, "9999-12-31T23:59:59.999Z");
    check_date(253402300800000, "9999-12-31T23:59:59.999Z");
    check_date(INT64_MAX, "9999-12-31T23:59:59.999Z");
}

static void poll_timeouts(void **state)
{
    (void)state;
    int64_t now = clock_mono_ms();
    assert_int_equal(clock_poll_timeout(CLOCK_NEVER), -1);
    assert_int_equal(clock_poll_timeout(now - 5), 0);
    assert_int_equal(clock_poll_timeout(INT64_MIN), 0);
    assert_int_equal(clock_poll_timeout(CLOCK_NEVER - 1), 3600000);
    int t = clock_poll_timeout(now + 60000);
    assert_true(t > 0 && t <= 60000);
}

static void clocks_run_forward(void **state)
{
    (void)state;
    int64_t us = clock_mono_us();
    int64_t ms = clock_mono_ms();
    assert_true(ms >= us / 1000);
    assert_true(clock_mono_us() >= us);
    assert_true(clock_unix_ms() > 1700000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_right),
        cmocka_unit_test(poll_timeouts),
        cmocka_unit_test(clocks_run_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
