/* Lanes: order within a key, keys side by side, fairness, limits, the end of the pool. */
#include "support/test.h"

#include "agent/lanes.h"
#include "base/clock.h"
#include "base/cond.h"

#include <sched.h>
#include <stdatomic.h>

/* A door that jobs wait at until the test opens it. */
struct door {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open;
    size_t arrived;
};

struct world {
    struct pool *pool;
    struct lanes *lanes;
    struct door door;
    /* guarded by the door's lock */
    char order[8192];
    size_t n;
};

static void make_pool(struct world *w, size_t threads, size_t queued)
{
    struct pool_config cfg = {
        .name = "lanes", .max_threads = threads, .max_queued = queued, .idle_ms = 1000};
    lanes_free(w->lanes);
    pool_free(w->pool);
    assert_int_equal(pool_new(&cfg, &w->pool, NULL), ST_OK);
    assert_int_equal(lanes_new(w->pool, &w->lanes, NULL), ST_OK);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    pthread_mutex_init(&w->door.lock, NULL);
    assert_int_equal(cond_init(&w->door.moved), ST_OK);
    make_pool(w, 4, LANES_MAX_WAITING + 4);
    *state = w;
    return 0;
}

static void door_open(struct door *d)
{
    pthread_mutex_lock(&d->lock);
    d->open = true;
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->lock);
}

static int teardown(void **state)
{
    struct world *w = *state;
    door_open(&w->door);
    pool_stop(w->pool);
    lanes_free(w->lanes);
    pool_free(w->pool);
    pthread_cond_destroy(&w->door.moved);
    pthread_mutex_destroy(&w->door.lock);
    free(w);
    return 0;
}

/* A job: stand at the door. */
static void at_door(void *arg)
{
    struct world *w = arg;
    int64_t until = clock_mono_ms() + 10000;
    pthread_mutex_lock(&w->door.lock);
    w->door.arrived++;
    pthread_cond_broadcast(&w->door.moved);
    while (!w->door.open && cond_wait_until(&w->door.moved, &w->door.lock, until)) {
    }
    pthread_mutex_unlock(&w->door.lock);
}

/* Waits until that many jobs stand at the door. */
static void wait_arrived(struct world *w, size_t n)
{
    int64_t until = clock_mono_ms() + 10000;
    bool in_time = true;
    pthread_mutex_lock(&w->door.lock);
    while (w->door.arrived < n && in_time) {
        in_time = cond_wait_until(&w->door.moved, &w->door.lock, until);
    }
    in_time = w->door.arrived >= n;
    pthread_mutex_unlock(&w->door.lock);
    assert_true(in_time);
}

static void wait_notes(struct world *w, size_t n)
{
    int64_t until = clock_mono_ms() + 10000;
    bool in_time = true;
    pthread_mutex_lock(&w->door.lock);
    while (w->n < n && in_time) {
        in_time = cond_wait_until(&w->door.moved, &w->door.lock, until);
    }
    pthread_mutex_unlock(&w->door.lock);
    assert_true(in_time);
}

struct note {
    struct world *w;
    char c;
};

/* A job: write one's letter down. */
static void write_down(void *arg)
{
    struct note *note = arg;
    struct world *w = note->w;
    pthread_mutex_lock(&w->door.lock);
    w->order[w->n++] = note->c;
    pthread_cond_broadcast(&w->door.moved);
    pthread_mutex_unlock(&w->door.lock);
    free(note);
}

static enum status submit_note(struct world *w, const char *key, char c)
{
    struct note *note = malloc(sizeof(*note));
    enum status st;
    assert_non_null(note);
    *note = (struct note){w, c};
    st = lanes_submit(w->lanes, str_c(key), write_down, note);
    if (st != ST_OK) {
        free(note);
    }
    return st;
}

static void submit_door(struct world *w, const char *key)
{
    assert_int_equal(lanes_submit(w->lanes, str_c(key), at_door, w), ST_OK);
}

/* Everything has run; nothing can come after it. */
static void finish(struct world *w)
{
    door_open(&w->door);
    pool_stop(w->pool);
    w->order[w->n] = '\0';
}

static void test_order_within_a_key(void **state)
{
    struct world *w = *state;
    submit_door(w, "a");
    wait_arrived(w, 1);
    for (char c = 'a'; c <= 'z'; c++) {
        assert_int_equal(submit_note(w, "a", c), ST_OK);
    }
    finish(w);
    assert_string_equal(w->order, "abcdefghijklmnopqrstuvwxyz");
}

/* Sessions never wait for each other; a call without a session waits for nobody. */
static void test_keys_side_by_side(void **state)
{
    struct world *w = *state;
    submit_door(w, "a");
    submit_door(w, "b");
    submit_door(w, "");
    submit_door(w, "");
    wait_arrived(w, 4);
    finish(w);
}

/* Keys are compared whole, also those of one bucket. */
static void test_one_of_a_key_at_a_time(void **state)
{
    struct world *w = *state;
    submit_door(w, "a");
    submit_door(w, "a");
    submit_door(w, "aa");
    submit_door(w, "A");
    wait_arrived(w, 3);
    pthread_mutex_lock(&w->door.lock);
    assert_int_equal(w->door.arrived, 3); /* the second a waits */
    pthread_mutex_unlock(&w->door.lock);
    finish(w);
    assert_int_equal(w->door.arrived, 4);
}

/* One thread, a busy session and a new one: the new one is not last. */
static void test_fairness(void **state)
{
    struct world *w = *state;
    make_pool(w, 1, LANES_MAX_WAITING + 1);
    submit_door(w, "a");
    wait_arrived(w, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(submit_note(w, "a", 'a'), ST_OK);
    }
    assert_int_equal(submit_note(w, "b", 'b'), ST_OK);
    assert_int_equal(submit_note(w, "b", 'b'), ST_OK);
    assert_int_equal(submit_note(w, "c", 'c'), ST_OK);
    door_open(&w->door);
    wait_notes(w, 8);
    finish(w);
    assert_int_equal(w->n, 8);
    assert_true(strchr(w->order, 'b') - w->order <= 1);
    assert_true(strchr(w->order, 'c') - w->order <= 3);
}

static void test_limit_of_a_lane(void **state)
{
    struct world *w = *state;
    submit_door(w, "a");
    wait_arrived(w, 1);
    for (int i = 0; i < LANE_MAX_WAITING; i++) {
        assert_int_equal(submit_note(w, "a", 'a'), ST_OK);
    }
    assert_int_equal(submit_note(w, "a", 'x'), ST_BUSY);
    assert_int_equal(submit_note(w, "b", 'b'), ST_OK); /* the others go on */
    finish(w);
    assert_int_equal(w->n, LANE_MAX_WAITING + 1);
    assert_null(strchr(w->order, 'x'));
}

static void test_limit_of_the_house(void **state)
{
    struct world *w = *state;
    char key[16];
    make_pool(w, 1, LANES_MAX_WAITING + 1);
    submit_door(w, "a");
    wait_arrived(w, 1);
    for (int i = 1; i < LANES_MAX_WAITING; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i % 2000);
        assert_int_equal(submit_note(w, i % 3 == 0 ? "" : key, 'n'), ST_OK);
    }
    assert_int_equal(submit_note(w, "new", 'x'), ST_BUSY);
    assert_int_equal(submit_note(w, "", 'x'), ST_BUSY);
    finish(w);
    assert_int_equal(w->n, LANES_MAX_WAITING - 1);
    assert_null(strchr(w->order, 'x'));
}

/* The end of the pool while jobs wait in lanes: each of them still runs, in order. */
static void test_stop_while_queued(void **state)
{
    struct world *w = *state;
    make_pool(w, 2, LANES_MAX_WAITING + 2);
    submit_door(w, "a");
    submit_door(w, "b");
    wait_arrived(w, 2);
    for (char c = '0'; c <= '9'; c++) {
        assert_int_equal(submit_note(w, "a", c), ST_OK);
    }
    finish(w);
    assert_string_equal(w->order, "0123456789");
    assert_int_equal(submit_note(w, "a", 'x'), ST_CANCELLED);
    assert_int_equal(submit_note(w, "", 'x'), ST_CANCELLED);
}

/* A pool that is too full refuses a lane; nothing of the job is left. */
static void test_pool_refuses(void **state)
{
    struct world *w = *state;
    make_pool(w, 1, 1);
    submit_door(w, "a");
    wait_arrived(w, 1);
    assert_int_equal(submit_note(w, "b", 'b'), ST_OK);
    assert_int_equal(submit_note(w, "c", 'x'), ST_BUSY);
    assert_int_equal(submit_note(w, "b", 'b'), ST_OK); /* its lane has been started */
    finish(w);
    assert_string_equal(w->order, "bb");
}

/* ---- many threads ---------------------------------------------------------------- */

#define KEYS 7
#define SENDERS 4
#define EACH 300

struct crowd {
    struct world *w;
    atomic_int running[KEYS];
    int last[KEYS][SENDERS]; /* guarded by the lane: one job of a key at a time */
    atomic_int faults, done;
};

struct item {
    struct crowd *crowd;
    int key, sender, number;
};

static void check_item(void *arg)
{
    struct item *i = arg;
    struct crowd *c = i->crowd;
    if (atomic_fetch_add(&c->running[i->key], 1) != 0 ||
        c->last[i->key][i->sender] >= i->number) {
        atomic_fetch_add(&c->faults, 1);
    }
    c->last[i->key][i->sender] = i->number;
    atomic_fetch_sub(&c->running[i->key], 1);
    atomic_fetch_add(&c->done, 1);
    free(i);
}

struct sender {
    struct crowd *crowd;
    int number;
};

static void *send_items(void *arg)
{
    struct sender *s = arg;
    for (int n = 1; n <= EACH; n++) {
        struct item *i = malloc(sizeof(*i));
        char key[2] = {0};
        if (i == NULL) {
            atomic_fetch_add(&s->crowd->faults, 1);
            return NULL;
        }
        *i = (struct item){s->crowd, (n + s->number) % KEYS, s->number, n};
        key[0] = (char)('a' + i->key);
        while (lanes_submit(s->crowd->w->lanes, str_c(key), check_item, i) == ST_BUSY) {
            sched_yield(); /* 32 wait: the bound, not an event, is what is tested */
        }
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    struct world *w = *state;
    struct crowd c = {.w = w};
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){&c, i};
        assert_int_equal(pthread_create(&threads[i], NULL, send_items, &senders[i]), 0);
    }
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    finish(w);
    assert_int_equal(atomic_load(&c.faults), 0);
    assert_int_equal(atomic_load(&c.done), SENDERS * EACH);
}

static bool makes(struct world *w)
{
    struct lanes *l = NULL;
    bool ok = lanes_new(w->pool, &l, NULL) == ST_OK;
    lanes_free(l);
    return ok;
}

static bool submits(struct world *w)
{
    enum status st = submit_note(w, "fresh", 'n');
    assert_true(st == ST_OK || st == ST_NOMEM);
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    struct world *w = *state;
    TEST_SWEEP(makes(w));
    TEST_SWEEP(submits(w));
    finish(w);
    assert_string_equal(w->order, "n");
    lanes_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order_within_a_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys_side_by_side, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_of_a_key_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fairness, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit_of_a_lane, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit_of_the_house, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_while_queued, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
