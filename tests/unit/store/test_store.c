/* The store: sessions, messages, values, pages, the schema, the lock, group commit. */
#include "support/test.h"

#include "base/clock.h"
#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

struct fixture {
    struct test_dir dir;
    struct store *store;
    struct arena *arena;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct error err;
    assert_non_null(f);
    test_dir_make(&f->dir);
    assert_int_equal(store_open(f->dir.path, &f->store, &err), ST_OK);
    f->arena = arena_new((size_t)64 * 1024 * 1024);
    assert_non_null(f->arena);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    arena_free(f->arena);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static struct session_key key_of(const char *agent, const char *conversation)
{
    return (struct session_key){
        .agent = str_c(agent),
        .channel = STR_LIT("http"),
        .conversation = str_c(conversation),
    };
}

static struct message user_says(const char *text)
{
    return (struct message){.role = ROLE_USER, .at_unix_ms = 1000, .text = str_c(text)};
}

static enum status say(struct store *s, struct session_key key, const char *text)
{
    struct message m = user_says(text);
    char id[33];
    return store_append(s, key, STR_NONE, STR_NONE, &m, 1, id, NULL);
}

static void keeps_every_field(void **state)
{
    struct fixture *f = *state;
    const struct message in[] = {
        {.role = ROLE_USER,
         .at_unix_ms = 5,
         .run_id = STR_LIT("r1"),
         .text = STR_LIT("h\xc3\xa9llo\0end")},
        {.role = ROLE_ASSISTANT,
         .at_unix_ms = 6,
         .run_id = STR_LIT("r1"),
         .tool_calls = STR_LIT("[{\"id\":\"c1\"}]")},
        {.role = ROLE_TOOL,
         .at_unix_ms = 7,
         .is_error = true,
         .run_id = STR_LIT("r1"),
         .text = STR_LIT("no"),
         .call_id = STR_LIT("c1"),
         .tool_name = STR_LIT("add")},
    };
    char id[33] = "";
    struct error err;
    assert_int_equal(store_append(f->store, key_of("a", "c"), STR_LIT("u1"),
                                  STR_LIT("Uma"), in, 3, id, &err),
                     ST_OK);
    assert_int_equal(strlen(id), 32);
    assert_int_equal(strspn(id, "0123456789abcdef"), 32);
    struct message *out = NULL;
    size_t n = 0;
    assert_int_equal(
        store_history(f->store, key_of("a", "c"), 10, 1000, f->arena, &out, &n, &err),
        ST_OK);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(out[i].role, in[i].role);
        assert_int_equal(out[i].at_unix_ms, in[i].at_unix_ms);
        assert_int_equal(out[i].is_error, in[i].is_error);
        assert_true(str_eq(out[i].run_id, in[i].run_id));
        assert_true(str_eq(out[i].text, in[i].text));
        assert_true(str_eq(out[i].tool_calls, in[i].tool_calls));
        assert_true(str_eq(out[i].call_id, in[i].call_id));
        assert_true(str_eq(out[i].tool_name, in[i].tool_name));
        assert_true(i == 0 || out[i].id > out[i - 1].id);
    }
    struct session_info info;
    assert_int_equal(store_session(f->store, str_c(id), f->arena, &info, &err), ST_OK);
    assert_string_equal(info.id, id);
    assert_str_is(info.agent, "a");
    assert_str_is(info.channel, "http");
    assert_str_is(info.conversation, "c");
    assert_str_is(info.user, "u1");
    assert_str_is(info.username, "Uma");
    assert_int_equal(info.messages, 3);
    assert_true(info.created_unix_ms > 0);
}

static void one_key_is_one_session(void **state)
{
    struct fixture *f = *state;
    struct message m = user_says("x");
    char a[33];
    char b[33];
    char c[33];
    assert_int_equal(store_append(f->store, key_of("a", "c"), STR_LIT("u"), STR_LIT("U"),
                                  &m, 1, a, NULL),
                     ST_OK);
    assert_int_equal(
        store_append(f->store, key_of("a", "c"), STR_NONE, STR_NONE, &m, 1, b, NULL),
        ST_OK);
    struct session_key other = key_of("a", "c");
    other.channel = STR_LIT("whatsapp");
    assert_int_equal(store_append(f->store, other, STR_NONE, STR_NONE, &m, 1, c, NULL),
                     ST_OK);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    struct session_info info;
    assert_int_equal(store_session(f->store, str_c(a), f->arena, &info, NULL), ST_OK);
    assert_str_is(info.user, "u"); /* an empty name does not wipe it */
    assert_int_equal(info.messages, 2);
}

static void times_are_set_when_absent(void **state)
{
    struct fixture *f = *state;
    struct message m = {.role = ROLE_USER, .text = STR_LIT("x")};
    struct message *out = NULL;
    size_t n = 0;
    assert_int_equal(
        store_append(f->store, key_of("a", ""), STR_NONE, STR_NONE, &m, 1, NULL, NULL),
        ST_OK);
    assert_int_equal(
        store_history(f->store, key_of("a", ""), 1, 10, f->arena, &out, &n, NULL), ST_OK);
    assert_int_equal(n, 1);
    assert_true(out[0].at_unix_ms > INT64_C(1600000000000));
}

static size_t history(struct fixture *f, size_t max, size_t bytes, struct message **out)
{
    size_t n = 99;
    assert_int_equal(
        store_history(f->store, key_of("a", "c"), max, bytes, f->arena, out, &n, NULL),
        ST_OK);
    return n;
}

static void history_is_the_newest_within_limits(void **state)
{
    struct fixture *f = *state;
    struct message *out = NULL;
    assert_int_equal(history(f, 10, 100, &out), 0);
    for (int i = 0; i < 5; i++) {
        char text[] = {(char)('0' + i), 'x', '\0'};
        assert_int_equal(say(f->store, key_of("a", "c"), text), ST_OK);
    }
    assert_int_equal(say(f->store, key_of("a", "other"), "no"), ST_OK);
    assert_int_equal(history(f, 4, 100, &out), 4);
    assert_str_is(out[0].text, "1x");
    assert_str_is(out[3].text, "4x");
    assert_int_equal(history(f, 5, 100, &out), 5);
    assert_int_equal(history(f, 6, 100, &out), 5);
    assert_int_equal(history(f, 0, 100, &out), 0);
    assert_int_equal(history(f, SIZE_MAX, SIZE_MAX, &out), 5);
    assert_int_equal(history(f, 9, 5, &out), 2); /* 3 would be 6 bytes */
    assert_str_is(out[0].text, "3x");
    assert_int_equal(history(f, 9, 6, &out), 3);
    assert_int_equal(history(f, 9, 1, &out), 0);
}

static void sessions_are_paged_without_ties(void **state)
{
    struct fixture *f = *state;
    enum { TOTAL = 23 };
    for (int i = 0; i < TOTAL; i++) {
        char name[] = {'c', (char)('a' + i), '\0'};
        assert_int_equal(say(f->store, key_of(i % 2 == 0 ? "even" : "odd", name), "x"),
                         ST_OK);
    }
    int64_t before = 0;
    size_t seen = 0;
    size_t n = 0;
    do {
        struct session_info *page = NULL;
        assert_int_equal(
            store_sessions(f->store, STR_NONE, before, 5, f->arena, &page, &n, NULL),
            ST_OK);
        for (size_t i = 0; i < n; i++) {
            char name[] = {'c', (char)('a' + TOTAL - 1 - (int)seen), '\0'};
            assert_str_is(page[i].conversation, name);
            before = page[i].updated_unix_ms;
            seen++;
        }
    } while (n == 5);
    assert_int_equal(seen, TOTAL);
    struct session_info *odd = NULL;
    assert_int_equal(
        store_sessions(f->store, STR_LIT("odd"), 0, 100, f->arena, &odd, &n, NULL),
        ST_OK);
    assert_int_equal(n, TOTAL / 2);
    assert_str_is(odd[0].agent, "odd");
    /* A message brings its session to the front. */
    assert_int_equal(say(f->store, key_of("even", "ca"), "again"), ST_OK);
    assert_int_equal(store_sessions(f->store, STR_NONE, 0, 1, f->arena, &odd, &n, NULL),
                     ST_OK);
    assert_int_equal(n, 1);
    assert_str_is(odd[0].conversation, "ca");
    assert_int_equal(odd[0].messages, 2);
}

static void messages_of_a_session_are_paged(void **state)
{
    struct fixture *f = *state;
    char id[33];
    for (int i = 0; i < 7; i++) {
        struct message m = user_says("x");
        assert_int_equal(
            store_append(f->store, key_of("a", "c"), STR_NONE, STR_NONE, &m, 1, id, NULL),
            ST_OK);
        assert_int_equal(say(f->store, key_of("a", "between"), "y"), ST_OK);
    }
    int64_t after = 0;
    size_t seen = 0;
    size_t n = 0;
    do {
        struct message *page = NULL;
        assert_int_equal(store_session_messages(f->store, str_c(id), after, 3, f->arena,
                                                &page, &n, NULL),
                         ST_OK);
        for (size_t i = 0; i < n; i++) {
            assert_str_is(page[i].text, "x");
            assert_true(page[i].id > after);
            after = page[i].id;
            seen++;
        }
    } while (n == 3);
    assert_int_equal(seen, 7);
}

static void a_deleted_session_is_gone_with_its_messages(void **state)
{
    struct fixture *f = *state;
    struct message m = user_says("x");
    struct message *out = NULL;
    struct session_info info;
    struct error err;
    char id[33];
    char again[33];
    size_t n = 0;
    assert_int_equal(
        store_append(f->store, key_of("a", "c"), STR_NONE, STR_NONE, &m, 1, id, NULL),
        ST_OK);
    assert_int_equal(history(f, 9, 99, &out), 1);
    int64_t old_row = out[0].id;
    assert_int_equal(store_session_delete(f->store, str_c(id), &err), ST_OK);
    assert_int_equal(history(f, 9, 99, &out), 0);
    assert_int_equal(store_session(f->store, str_c(id), f->arena, &info, &err),
                     ST_NOT_FOUND);
    assert_int_equal(
        store_session_messages(f->store, str_c(id), 0, 9, f->arena, &out, &n, &err),
        ST_NOT_FOUND);
    assert_int_equal(store_session_delete(f->store, str_c(id), &err), ST_NOT_FOUND);
    assert_int_equal(store_session_delete(f->store, STR_LIT("' OR 1=1"), &err),
                     ST_NOT_FOUND);
    /* Neither the name nor the row numbers come back. */
    assert_int_equal(
        store_append(f->store, key_of("a", "c"), STR_NONE, STR_NONE, &m, 1, again, NULL),
        ST_OK);
    assert_string_not_equal(id, again);
    assert_int_equal(history(f, 9, 99, &out), 1);
    assert_true(out[0].id > old_row);
}

static void bad_input_is_refused(void **state)
{
    struct fixture *f = *state;
    struct message good = user_says("x");
    struct message bad[2] = {good, {.role = (enum message_role)4}};
    struct error err;
    char big[1025];
    char id[33] = "untouched";
    memset(big, 'k', sizeof(big));
    assert_int_equal(
        store_append(f->store, key_of("a", "c"), STR_NONE, STR_NONE, bad, 2, id, &err),
        ST_INVALID);
    assert_int_equal(
        store_append(f->store, key_of("", "c"), STR_NONE, STR_NONE, &good, 1, id, &err),
        ST_INVALID);
    struct session_key key = key_of("a", "c");
    key.conversation = str_n(big, 1025);
    assert_int_equal(store_append(f->store, key, STR_NONE, STR_NONE, &good, 1, id, &err),
                     ST_TOO_LARGE);
    assert_string_equal(id, "untouched");
    key.conversation = str_n(big, 1024);
    assert_int_equal(store_append(f->store, key, STR_NONE, STR_NONE, &good, 1, id, &err),
                     ST_OK);
    struct message *out = NULL;
    assert_int_equal(history(f, 9, 99, &out), 0);
    assert_int_equal(store_health(f->store, &err), ST_OK);
}

static void values_are_kept(void **state)
{
    struct fixture *f = *state;
    struct str v = STR_NONE;
    struct error err;
    assert_int_equal(store_get(f->store, "audit.head", f->arena, &v, &err), ST_NOT_FOUND);
    assert_int_equal(store_put(f->store, "audit.head", STR_LIT("one"), &err), ST_OK);
    assert_int_equal(store_put_later(f->store, "audit.head", STR_LIT("two"), &err),
                     ST_OK);
    assert_int_equal(store_put_later(f->store, "empty", STR_NONE, &err), ST_OK);
    assert_int_equal(store_put(f->store, "fence", STR_LIT("x"), &err), ST_OK);
    assert_int_equal(store_get(f->store, "audit.head", f->arena, &v, &err), ST_OK);
    assert_str_is(v, "two");
    assert_int_equal(store_get(f->store, "empty", f->arena, &v, &err), ST_OK);
    assert_str_is(v, "");
    char name[202];
    memset(name, 'n', 201);
    name[201] = '\0';
    assert_int_equal(store_put(f->store, name, STR_LIT("x"), &err), ST_TOO_LARGE);
    assert_int_equal(store_put_later(f->store, name, STR_LIT("x"), &err), ST_TOO_LARGE);
    assert_int_equal(store_put(f->store, name + 1, STR_LIT("x"), &err), ST_OK);
    /* What was put last is there after closing at once. */
    assert_int_equal(store_put_later(f->store, "last", STR_LIT("yes"), &err), ST_OK);
    store_close(f->store);
    assert_int_equal(store_open(f->dir.path, &f->store, &err), ST_OK);
    assert_int_equal(store_get(f->store, "last", f->arena, &v, &err), ST_OK);
    assert_str_is(v, "yes");
}

static void is_private_and_locked(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    char pid[32];
    struct stat sb;
    struct store *second = NULL;
    struct error err;
    static const char *const names[] = {"soulacy.db", "soulacy.db-wal", "lock"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_int_equal(stat(test_path(&f->dir, names[i], path), &sb), 0);
        assert_int_equal(sb.st_mode & 0777, 0600);
    }
    size_t fds = test_open_fds();
    assert_int_equal(store_open(f->dir.path, &second, &err), ST_BUSY);
    snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
    assert_non_null(strstr(err.text, pid));
    assert_null(second);
    assert_int_equal(test_open_fds(), fds);
    test_path(&f->dir, "new/deep", path);
    assert_int_equal(store_open(path, &second, &err), ST_OK);
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_mode & 0777, 0700);
    store_close(second);
    assert_int_equal(test_open_fds(), fds);
}

static void raw_sql(const struct test_dir *dir, const char *sql)
{
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(test_path(dir, "soulacy.db", path), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void an_empty_file_of_version_0_is_brought_forward(void **state)
{
    struct fixture *f = *state;
    struct test_dir dir;
    char path[PATH_MAX];
    struct store *s = NULL;
    struct error err;
    (void)f;
    test_dir_make(&dir);
    test_write_file(test_path(&dir, "soulacy.db", path), "");
    assert_int_equal(store_open(dir.path, &s, &err), ST_OK);
    assert_int_equal(say(s, key_of("a", "c"), "x"), ST_OK);
    store_close(s);
    /* And the current version is opened as it is. */
    assert_int_equal(store_open(dir.path, &s, &err), ST_OK);
    store_close(s);
    test_dir_remove(&dir);
}

static void refuse(struct fixture *f, const char *sql, enum status st, const char *word)
{
    struct error err = {.text = ""};
    struct store *s = NULL;
    store_close(f->store);
    f->store = NULL;
    raw_sql(&f->dir, sql);
    size_t fds = test_open_fds();
    assert_int_equal(store_open(f->dir.path, &s, &err), st);
    assert_null(s);
    assert_int_equal(test_open_fds(), fds);
    if (strstr(err.text, word) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", err.text, word);
        fail();
    }
}

static void a_newer_schema_is_refused_by_number(void **state)
{
    refuse(*state, "PRAGMA user_version = 4711", ST_UNSUPPORTED, "4711");
}

static void another_programs_database_is_refused(void **state)
{
    refuse(*state, "PRAGMA application_id = 7", ST_REFUSED, "another program");
    refuse(*state, "PRAGMA user_version = 0", ST_REFUSED, "another program");
}

static void history_does_not_read_other_sessions(void **state)
{
    struct fixture *f = *state;
    struct message *out = NULL;
    assert_int_equal(say(f->store, key_of("a", "c"), "first"), ST_OK);
    store_close(f->store);
    raw_sql(&f->dir,
            "PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; BEGIN;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            " WHERE i < 1000)"
            " INSERT INTO session SELECT i + 10, 'p' || i, 'b', 'http', 's' || i, '', '',"
            " i, i, 1000 FROM n;"
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
            " WHERE i < 999999)"
            " INSERT INTO message (session, role, at_ms, is_error, run_id, body,"
            " tool_calls, call_id, tool_name)"
            " SELECT 11 + i / 1000, 1, 1, 0, '', 'text', '', '', '' FROM n;"
            "COMMIT;");
    assert_int_equal(store_open(f->dir.path, &f->store, NULL), ST_OK);
    assert_int_equal(say(f->store, key_of("a", "c"), "last"), ST_OK);
    int64_t start = clock_mono_us();
    assert_int_equal(history(f, 100, 100000, &out), 2);
    int64_t took = clock_mono_us() - start;
    assert_str_is(out[1].text, "last");
    /* Reading a million rows takes hundreds of times as long as this bound. */
    assert_true(took < 50000);
    struct session_info *page = NULL;
    size_t n = 0;
    start = clock_mono_us();
    assert_int_equal(
        store_sessions(f->store, STR_LIT("a"), 0, 50, f->arena, &page, &n, NULL), ST_OK);
    assert_int_equal(n, 1);
    assert_true(clock_mono_us() - start < 50000);
}

struct appender {
    struct store *store;
    pthread_t thread;
    char conversation[16];
    enum status st;
};

static void *append_once(void *arg)
{
    struct appender *a = arg;
    a->st = say(a->store, key_of("a", a->conversation), "x");
    return NULL;
}

/* Waiting writes share a transaction: a lock from outside makes all of them wait. */
static void waiting_writes_share_a_transaction(void **state)
{
    struct fixture *f = *state;
    enum { THREADS = 32 };
    struct appender all[THREADS];
    struct store_stats before;
    struct store_stats now;
    char path[PATH_MAX];
    sqlite3 *outside = NULL;
    assert_int_equal(sqlite3_open(test_path(&f->dir, "soulacy.db", path), &outside),
                     SQLITE_OK);
    store_stats(f->store, &before);
    assert_int_equal(sqlite3_exec(outside, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct appender){.store = f->store};
        snprintf(all[i].conversation, sizeof(all[i].conversation), "c%d", i);
        assert_int_equal(pthread_create(&all[i].thread, NULL, append_once, &all[i]), 0);
    }
    int64_t until = clock_mono_ms() + 1000; /* well within the store's own patience */
    do {
        sched_yield();
        store_stats(f->store, &now);
    } while (now.queued < THREADS / 2 && clock_mono_ms() < until);
    assert_int_equal(sqlite3_exec(outside, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(outside);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].st, ST_OK);
    }
    store_stats(f->store, &now);
    assert_int_equal(now.writes - before.writes, THREADS);
    assert_in_range(now.transactions - before.transactions, 1, THREADS / 2 + 1);
    assert_int_equal(now.failures, before.failures);
}

static void *read_and_write(void *arg)
{
    struct appender *a = arg;
    struct arena *arena = arena_new((size_t)1024 * 1024);
    struct message *out = NULL;
    size_t n = 0;
    a->st = arena != NULL ? ST_OK : ST_NOMEM;
    for (size_t i = 1; a->st == ST_OK && i <= 20; i++) {
        a->st = say(a->store, key_of("a", a->conversation), "x");
        if (a->st == ST_OK) {
            a->st = store_history(a->store, key_of("a", a->conversation), 100, 1000,
                                  arena, &out, &n, NULL);
        }
        if (a->st == ST_OK && n != i) {
            a->st = ST_INTERNAL; /* one's own write is seen at once */
        }
    }
    arena_free(arena);
    return NULL;
}

static void threads_see_their_own_writes(void **state)
{
    struct fixture *f = *state;
    enum { THREADS = 8 };
    struct appender all[THREADS];
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct appender){.store = f->store};
        snprintf(all[i].conversation, sizeof(all[i].conversation), "c%d", i);
        assert_int_equal(pthread_create(&all[i].thread, NULL, read_and_write, &all[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].st, ST_OK);
    }
}

static bool open_and_use(const char *path)
{
    struct store *s = NULL;
    struct arena *a = arena_new(100000);
    struct message *out = NULL;
    struct str v;
    size_t n = 0;
    struct error err;
    bool ok = a != NULL && store_open(path, &s, &err) == ST_OK &&
              say(s, key_of("a", "c"), "x") == ST_OK &&
              store_put_later(s, "v", STR_LIT("1"), &err) == ST_OK &&
              store_put(s, "w", STR_LIT("1"), &err) == ST_OK &&
              store_get(s, "v", a, &v, &err) == ST_OK &&
              store_history(s, key_of("a", "c"), 9, 99, a, &out, &n, &err) == ST_OK;
    store_close(s);
    arena_free(a);
    return ok;
}

static void survives_failing_allocations(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    test_path(&f->dir, "swept", path);
    size_t fds = test_open_fds();
    TEST_SWEEP(open_and_use(path));
    assert_int_equal(test_open_fds(), fds);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(keeps_every_field),
        STORE_TEST(one_key_is_one_session),
        STORE_TEST(times_are_set_when_absent),
        STORE_TEST(history_is_the_newest_within_limits),
        STORE_TEST(sessions_are_paged_without_ties),
        STORE_TEST(messages_of_a_session_are_paged),
        STORE_TEST(a_deleted_session_is_gone_with_its_messages),
        STORE_TEST(bad_input_is_refused),
        STORE_TEST(values_are_kept),
        STORE_TEST(is_private_and_locked),
        STORE_TEST(an_empty_file_of_version_0_is_brought_forward),
        STORE_TEST(a_newer_schema_is_refused_by_number),
        STORE_TEST(another_programs_database_is_refused),
        STORE_TEST(history_does_not_read_other_sessions),
        STORE_TEST(waiting_writes_share_a_transaction),
        STORE_TEST(threads_see_their_own_writes),
        STORE_TEST(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
