/* Counters, gauges, their text form. */
#include "support/test.h"

#include "metrics/metrics.h"

#include <pthread.h>

static void counts(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    assert_non_null(m);
    metric_add(m, METRIC_TURNS, 1);
    metric_add(m, METRIC_TURNS, 2);
    metric_add(m, METRIC_TURNS_ACTIVE, 1);
    metric_add(m, METRIC_TURNS_ACTIVE, -1);
    assert_int_equal(metric_get(m, METRIC_TURNS), 3);
    assert_int_equal(metric_get(m, METRIC_TURNS_ACTIVE), 0);
    assert_int_equal(metric_get(m, METRIC_MESSAGES), 0);
    /* Beyond the last one nothing happens. */
    metric_add(m, METRIC_COUNT_, 1);
    metric_add(m, (enum metric)1000, 1);
    assert_int_equal(metric_get(m, METRIC_COUNT_), 0);
    metric_add(NULL, METRIC_TURNS, 1);
    assert_int_equal(metric_get(NULL, METRIC_TURNS), 0);
    metrics_free(m);
    metrics_free(NULL);
}

/* Each metric has a help line, a type line and a value line, in this order; a counter
 * ends in _total and a gauge does not. */
static void prints_prometheus_text(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    struct buf text;
    struct str rest;
    struct str line;
    size_t metrics = 0;
    assert_non_null(m);
    metric_add(m, METRIC_TOOL_DENIED, 7);
    buf_init(&text, 65536);
    metrics_print(m, &text);
    assert_int_equal(buf_status(&text), ST_OK);
    assert_non_null(strstr(text.ptr, "\nsoulacy_tool_denied_total 7\n"));
    assert_non_null(strstr(text.ptr, "# TYPE soulacy_runs_active gauge\n"));
    rest = buf_str(&text);
    while (rest.len != 0) {
        char name[128];
        char want[256];
        assert_true(str_split(&rest, '\n', &line));
        assert_true(str_starts(line, STR_LIT("# HELP ")));
        line = str_n(line.ptr + 7, line.len - 7);
        size_t n = str_find_char(line, ' ');
        assert_true(n < sizeof(name));
        memcpy(name, line.ptr, n);
        name[n] = '\0';
        bool counter = str_ends(str_c(name), STR_LIT("_total"));
        assert_true(str_split(&rest, '\n', &line));
        snprintf(want, sizeof(want), "# TYPE %s %s", name, counter ? "counter" : "gauge");
        assert_str_is(line, want);
        assert_true(str_split(&rest, '\n', &line));
        snprintf(want, sizeof(want), "%s ", name);
        assert_true(str_starts(line, str_c(want)));
        metrics++;
    }
    assert_int_equal(metrics, METRIC_COUNT_ + 1);
    const char *resident = strstr(text.ptr, "\nprocess_resident_memory_bytes ");
    assert_non_null(resident);
    assert_true(resident[strlen("\nprocess_resident_memory_bytes ")] != '0');
    buf_done(&text);
    metrics_free(m);
}

static void *add_many(void *arg)
{
    for (int i = 0; i < 10000; i++) {
        metric_add(arg, METRIC_HTTP_REQUESTS, 1);
    }
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct metrics *m = metrics_new();
    assert_non_null(m);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, m), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(metric_get(m, METRIC_HTTP_REQUESTS), 40000);
    metrics_free(m);
}

static void out_of_memory_is_told(void **state)
{
    (void)state;
    mem_fail_after(1);
    assert_null(metrics_new());
    mem_fail_after(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(prints_prometheus_text),
        cmocka_unit_test(threads_lose_nothing),
        cmocka_unit_test(out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
