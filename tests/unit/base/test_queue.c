/* The queue: order, bounds, closing, and many threads at once. */
#include "support/test.h"

#include "base/clock.h"
#include "base/queue.h"

#include <pthread.h>

#define PUSHERS 3
#define POPPERS 3
#define EACH 2000

static int numbers[PUSHERS * EACH];

static void first_in_first_out(void **state)
{
    (void)state;
    struct queue *q = queue_new(3);
    assert_non_null(q);
    void *item = NULL;
    for (int round = 0; round < 5; round++) { /* the ring turns */
        assert_int_equal(queue_push(q, &numbers[0]), ST_OK);
        assert_int_equal(queue_push(q, &numbers[1]), ST_OK);
        assert_int_equal(queue_count(q), 2);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(queue_pop(q, 0, &item), ST_OK);
            assert_ptr_equal(item, &numbers[i]);
        }
    }
    assert_int_equal(queue_pop(q, 0, &item), ST_TIMEOUT);
    assert_int_equal(queue_pop(q, clock_mono_ms() + 5, &item), ST_TIMEOUT);
    assert_int_equal(queue_pop(q, -1, &item), ST_TIMEOUT);
    queue_free(q, NULL);
    queue_free(NULL, NULL);
}

static void bounds(void **state)
{
    (void)state;
    struct queue *q = queue_new(2);
    void *items[4] = {NULL};
    assert_non_null(q);
    assert_int_equal(queue_push(q, &numbers[0]), ST_OK);
    assert_int_equal(queue_push(q, &numbers[1]), ST_OK);
    assert_int_equal(queue_push(q, &numbers[2]), ST_BUSY);
    assert_int_equal(queue_take(q, items, 1), 1);
    assert_int_equal(queue_push(q, &numbers[2]), ST_OK);
    assert_int_equal(queue_take(q, items, 4), 2);
    assert_ptr_equal(items[0], &numbers[1]);
    assert_ptr_equal(items[1], &numbers[2]);
    assert_int_equal(queue_take(q, items, 4), 0);
    queue_free(q, NULL);
    q = queue_new(0);
    assert_non_null(q);
    assert_int_equal(queue_push(q, NULL), ST_BUSY);
    queue_free(q, NULL);
    assert_null(queue_new(SIZE_MAX));
}

static void count_drop(void *item)
{
    ++*(int *)item;
}

static void closing(void **state)
{
    (void)state;
    struct queue *q = queue_new(4);
    int dropped = 0;
    void *item = NULL;
    assert_non_null(q);
    assert_int_equal(queue_push(q, &dropped), ST_OK);
    assert_int_equal(queue_push(q, &dropped), ST_OK);
    queue_close(q);
    assert_int_equal(queue_push(q, &dropped), ST_CANCELLED);
    assert_int_equal(queue_pop(q, CLOCK_NEVER, &item), ST_OK); /* what is in comes out */
    queue_free(q, count_drop);
    assert_int_equal(dropped, 1);
    q = queue_new(1);
    assert_non_null(q);
    queue_close(q);
    assert_int_equal(queue_pop(q, CLOCK_NEVER, &item), ST_CANCELLED);
    queue_free(q, count_drop);
}

static void *push_range(void *arg)
{
    struct {
        struct queue *q;
        int first;
    } *job = arg;
    for (int i = 0; i < EACH;) {
        if (queue_push(job->q, &numbers[job->first + i]) == ST_OK) {
            i++;
        }
    }
    return NULL;
}

static void *pop_all(void *arg)
{
    void *item;
    while (queue_pop(arg, CLOCK_NEVER, &item) == ST_OK) {
        ++*(int *)item; /* each item belongs to one thread at a time */
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    struct {
        struct queue *q;
        int first;
    } jobs[PUSHERS];
    pthread_t pushers[PUSHERS];
    pthread_t poppers[POPPERS];
    struct queue *q = queue_new(16);
    assert_non_null(q);
    memset(numbers, 0, sizeof(numbers));
    for (int i = 0; i < POPPERS; i++) {
        assert_int_equal(pthread_create(&poppers[i], NULL, pop_all, q), 0);
    }
    for (int i = 0; i < PUSHERS; i++) {
        jobs[i].q = q;
        jobs[i].first = i * EACH;
        assert_int_equal(pthread_create(&pushers[i], NULL, push_range, &jobs[i]), 0);
    }
    for (int i = 0; i < PUSHERS; i++) {
        pthread_join(pushers[i], NULL);
    }
    queue_close(q);
    for (int i = 0; i < POPPERS; i++) {
        pthread_join(poppers[i], NULL);
    }
    for (int i = 0; i < PUSHERS * EACH; i++) {
        assert_int_equal(numbers[i], 1);
    }
    queue_free(q, NULL);
}

static bool can_make(void)
{
    struct queue *q = queue_new(8);
    bool ok = q != NULL;
    queue_free(q, NULL);
    return ok;
}

static void sweep(void **state)
{
    (void)state;
    TEST_SWEEP(can_make());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out),
        cmocka_unit_test(bounds),
        cmocka_unit_test(closing),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
