/* Every status has a name of its own, and numbers that are none are survived. */
#include "support/test.h"

#include "base/status.h"

static void every_code_has_its_own_name(void **state)
{
    (void)state;
    static const enum status all[] = {
        ST_OK,       ST_INVALID,   ST_NOMEM,    ST_UNSUPPORTED, ST_REFUSED,
        ST_TIMEOUT,  ST_CANCELLED, ST_BUSY,     ST_IO,          ST_AUTH,
        ST_INTERNAL, ST_NOT_FOUND, ST_CONFLICT, ST_TOO_LARGE,
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_string_not_equal(status_name(all[i]), "unknown status");
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(status_name(all[i]), status_name(all[k]));
        }
    }
}

static void other_numbers_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(status_name((enum status)1), "unknown status");
    assert_string_equal(status_name((enum status) - 11), "unknown status");
    assert_string_equal(status_name((enum status) - 103), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_own_name),
        cmocka_unit_test(other_numbers_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
