/* The clocks. In: nothing, or a deadline. Out: milliseconds, or a date as text. Never
 * consults a time zone; dates outside the years 0-9999 come out as the nearest one. */
#include "base/clock.h"

#include <string.h>
#include <time.h>

#define DAY_MS INT64_C(86400000)
#define POLL_MAX_MS 3600000
#define YEAR_0_MS (INT64_C(-719528) * DAY_MS)
#define YEAR_10000_MS (INT64_C(2932897) * DAY_MS)

static int64_t read_us(clockid_t id)
{
    struct timespec ts = {0};
    clock_gettime(id, &ts); /* cannot fail for these two clocks */
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_mono_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clock_unix_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int clock_poll_timeout(int64_t deadline_ms)
{
    if (deadline_ms == CLOCK_NEVER) {
        return -1;
    }
    int64_t now = clock_mono_ms();
    if (deadline_ms <= now) {
        return 0;
    }
    return deadline_ms - now > POLL_MAX_MS ? POLL_MAX_MS : (int)(deadline_ms - now);
}

/* The last n decimal digits of v. */
static void put(char *at, size_t n, int v)
{
    for (; n != 0; n--) {
        at[n - 1] = (char)('0' + v % 10);
        v /= 10;
    }
}

void clock_format_utc(int64_t unix_ms, char out[32])
{
    if (unix_ms < YEAR_0_MS) {
        unix_ms = YEAR_0_MS;
    } else if (unix_ms >= YEAR_10000_MS) {
        unix_ms = YEAR_10000_MS - 1;
    }
    /* Days since 0000-03-01, counted in eras of 400 years (146097 days): the method of
     * https://howardhinnant.github.io/date_algorithms.html#civil_from_days . Shifted by
     * one era so that all is positive. */
    int64_t shifted = unix_ms + (719468 + 146097) * DAY_MS;
    int64_t days = shifted / DAY_MS;
    int ms = (int)(shifted % DAY_MS);
    int64_t era = days / 146097;
    int64_t doe = days % 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int day = (int)(doy - (153 * mp + 2) / 5 + 1);
    int month = (int)(mp < 10 ? mp + 3 : mp - 9);
    int year = (int)(yoe + (era - 1) * 400 + (month <= 2 ? 1 : 0));
    memcpy(out, "0000-00-00T00:00:00.000Z", 25);
    put(out, 4, year);
    put(out + 5, 2, month);
    put(out + 8, 2, day);
    put(out + 11, 2, ms / 3600000);
    put(out + 14, 2, ms / 60000 % 60);
    put(out + 17, 2, ms / 1000 % 60);
    put(out + 20, 3, ms % 1000);
}
