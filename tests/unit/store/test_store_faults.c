/* The store when things go wrong: a kill at any moment, a full, read-only, locked or
 * damaged disk, a file that is moved away; and that it recovers without a restart. */
#include "support/test.h"

#include "base/clock.h"
#include "base/io.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct test_dir dir;
    char state[PATH_MAX], db[PATH_MAX];
    struct store *store;
    struct arena *arena;
    bool mounted;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    test_dir_make(&f->dir);
    test_path(&f->dir, "state", f->state);
    test_path(&f->dir, "state/soulacy.db", f->db);
    assert_int_equal(mkdir(f->state, 0700), 0);
    f->arena = arena_new((size_t)16 * 1024 * 1024);
    assert_non_null(f->arena);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    arena_free(f->arena);
    if (f->mounted) {
        umount2(f->state, MNT_DETACH);
    }
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static void open_store(struct fixture *f)
{
    struct error err = {.text = ""};
    enum status st = store_open(f->state, &f->store, &err);
    if (st != ST_OK) {
        print_error("%s\n", err.text);
    }
    assert_int_equal(st, ST_OK);
}

static struct session_key key_of(const char *conversation)
{
    return (struct session_key){
        .agent = STR_LIT("a"),
        .channel = STR_LIT("http"),
        .conversation = str_c(conversation),
    };
}

static enum status say(struct store *s, const char *conversation, struct str text,
                       struct error *err)
{
    struct message m = {.role = ROLE_USER, .at_unix_ms = 1, .text = text};
    return store_append(s, key_of(conversation), STR_NONE, STR_NONE, &m, 1, NULL, err);
}

static size_t count(struct fixture *f, const char *conversation)
{
    struct message *out = NULL;
    size_t n = 0;
    assert_int_equal(store_history(f->store, key_of(conversation), SIZE_MAX, SIZE_MAX,
                                   f->arena, &out, &n, NULL),
                     ST_OK);
    return n;
}

static void assert_says(const struct error *err, const char *words)
{
    if (strstr(err->text, words) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", err->text, words);
        fail();
    }
}

/* Health is told by the last write, or by the small one that asking has queued. */
static void assert_recovers(struct fixture *f)
{
    struct error err;
    int64_t until = clock_mono_ms() + 5000;
    enum status st;
    do {
        st = store_health(f->store, &err);
        sched_yield();
    } while (st != ST_OK && clock_mono_ms() < until);
    assert_int_equal(st, ST_OK);
    assert_int_equal(say(f->store, "after", STR_LIT("x"), &err), ST_OK);
    assert_int_equal(store_health(f->store, &err), ST_OK);
}

/* In the child: append for ever; a byte for each acknowledged message, by thread. */
struct writer {
    struct store *store;
    int ack_fd;
    char name[4];
};

static void *append_for_ever(void *arg)
{
    struct writer *w = arg;
    for (;;) {
        if (say(w->store, w->name, STR_LIT("acknowledged or not"), NULL) != ST_OK ||
            write(w->ack_fd, w->name, 1) != 1) {
            return NULL;
        }
    }
}

static void child(const char *dir, int ack_fd)
{
    struct writer writers[3];
    pthread_t thread;
    struct store *s = NULL;
    if (store_open(dir, &s, NULL) != ST_OK) {
        _exit(1);
    }
    for (int i = 0; i < 3; i++) {
        writers[i] = (struct writer){.store = s, .ack_fd = ack_fd};
        writers[i].name[0] = (char)('a' + i);
        if (i < 2 && pthread_create(&thread, NULL, append_for_ever, &writers[i]) != 0) {
            _exit(1);
        }
    }
    append_for_ever(&writers[2]);
    _exit(1);
}

static void what_was_acknowledged_survives_a_kill(void **state)
{
    struct fixture *f = *state;
    size_t acked[3] = {0};
    for (int round = 0; round < 5; round++) {
        int ack_read = -1;
        int ack_write = -1;
        size_t want = (size_t)(30 + 37 * round);
        assert_int_equal(io_pipe(&ack_read, &ack_write, NULL), ST_OK);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(ack_read);
            child(f->state, ack_write);
        }
        close(ack_write);
        char acks[64];
        size_t seen = 0;
        bool killed = false;
        ssize_t n = io_read(ack_read, acks, sizeof(acks));
        while (n > 0) {
            for (ssize_t i = 0; i < n; i++) {
                assert_in_range(acks[i], 'a', 'c');
                acked[acks[i] - 'a']++;
                seen++;
            }
            if (seen >= want && !killed) {
                assert_int_equal(kill(pid, SIGKILL), 0);
                killed = true;
            }
            n = io_read(ack_read, acks, sizeof(acks));
        }
        close(ack_read);
        int how = 0;
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFSIGNALED(how) && killed);
        open_store(f);
        for (int i = 0; i < 3; i++) {
            char name[2] = {(char)('a' + i), '\0'};
            size_t have = count(f, name);
            /* One more for each kill may have been written and not acknowledged. */
            assert_in_range(have, acked[i], acked[i] + (size_t)round + 1);
        }
        store_close(f->store);
        f->store = NULL;
    }
}

/* Fill the disk, see it said, give it room, see it gone. */
static void full_and_back(struct fixture *f, const char *words, void (*fill)(void *ctx),
                          void (*give_room)(void *ctx), void *ctx)
{
    struct error err = {.text = ""};
    size_t size = 300000;
    char *big = malloc(size);
    assert_non_null(big);
    memset(big, 'x', size);
    assert_int_equal(say(f->store, "c", STR_LIT("before"), &err), ST_OK);
    assert_int_equal(store_health(f->store, &err), ST_OK);
    fill(ctx);
    enum status st = say(f->store, "c", str_n(big, size), &err);
    struct error health = {.text = ""};
    enum status health_st = store_health(f->store, &health);
    size_t readable = count(f, "c");
    give_room(ctx);
    free(big);
    assert_int_equal(st, ST_IO);
    assert_says(&err, words);
    assert_int_equal(health_st, ST_IO);
    assert_says(&health, words);
    assert_int_equal(readable, 1); /* reading goes on */
    assert_recovers(f);
    assert_int_equal(count(f, "c"), 1);
    assert_int_equal(count(f, "after"), 1);
}

static void fill_tmpfs(void *ctx)
{
    const struct fixture *f = ctx;
    char path[PATH_MAX];
    static const char zeros[65536];
    int fd = open(test_path(&f->dir, "state/ballast", path),
                  O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof(zeros)) > 0) {
    }
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void empty_tmpfs(void *ctx)
{
    const struct fixture *f = ctx;
    char path[PATH_MAX];
    unlink(test_path(&f->dir, "state/ballast", path));
}

static void a_full_disk_is_told_and_got_over(void **state)
{
    struct fixture *f = *state;
    if (mount("tmpfs", f->state, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=0700") !=
        0) {
        print_message("skipped: cannot mount a tmpfs: %s\n", strerror(errno));
        skip();
    }
    f->mounted = true;
    open_store(f);
    full_and_back(f, "the disk is full", fill_tmpfs, empty_tmpfs, f);
}

static void limit_files(void *ctx)
{
    struct rlimit *before = ctx;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, before), 0);
    struct rlimit now = *before;
    now.rlim_cur = 60000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

static void unlimit_files(void *ctx)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, ctx), 0);
}

/* Another kind of failed write: here the connection itself has to be opened anew. */
static void a_failing_write_is_told_and_got_over(void **state)
{
    struct fixture *f = *state;
    struct rlimit before;
    open_store(f);
    full_and_back(f, "writing failed", limit_files, unlimit_files, &before);
}

static void a_read_only_disk_is_told(void **state)
{
    struct fixture *f = *state;
    struct error err = {.text = ""};
    open_store(f);
    store_close(f->store);
    f->store = NULL;
    if (mount(f->state, f->state, "none", MS_BIND, NULL) != 0) {
        print_message("skipped: cannot bind-mount: %s\n", strerror(errno));
        skip();
    }
    f->mounted = true;
    if (mount("none", f->state, "none", MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0) {
        print_message("skipped: cannot remount read-only: %s\n", strerror(errno));
        skip();
    }
    size_t fds = test_open_fds();
    assert_int_equal(store_open(f->state, &f->store, &err), ST_IO);
    assert_says(&err, "Read-only");
    assert_null(f->store);
    assert_int_equal(test_open_fds(), fds);
}

static void a_lock_from_outside_is_waited_for_and_told(void **state)
{
    struct fixture *f = *state;
    struct error err = {.text = ""};
    sqlite3 *outside = NULL;
    open_store(f);
    assert_int_equal(say(f->store, "c", STR_LIT("x"), &err), ST_OK);
    assert_int_equal(sqlite3_open(f->db, &outside), SQLITE_OK);
    assert_int_equal(sqlite3_exec(outside, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    enum status st = say(f->store, "c", STR_LIT("y"), &err);
    size_t readable = count(f, "c");
    assert_int_equal(sqlite3_exec(outside, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(outside);
    assert_int_equal(st, ST_IO);
    assert_says(&err, "locked by another process");
    assert_int_equal(readable, 1);
    assert_recovers(f);
}

/* The bytes of the database file, from `at`. */
static void copy_bytes(const char *path, bool to_file, off_t at, char *bytes, size_t n)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t done = to_file ? pwrite(fd, bytes, n, at) : pread(fd, bytes, n, at);
    assert_int_equal(done, n);
    close(fd);
}

static void a_damaged_file_is_told_and_got_over(void **state)
{
    struct fixture *f = *state;
    struct error err = {.text = ""};
    struct message *out = NULL;
    struct stat sb;
    size_t n = 0;
    open_store(f);
    assert_int_equal(say(f->store, "c", STR_LIT("x"), &err), ST_OK);
    store_close(f->store);
    f->store = NULL;
    assert_int_equal(stat(f->db, &sb), 0);
    size_t size = (size_t)sb.st_size;
    char *good = malloc(size);
    char *bad = calloc(1, size);
    assert_non_null(good);
    assert_non_null(bad);
    copy_bytes(f->db, false, 0, good, size);
    memset(bad, 0x5a, size);
    /* All pages but the first. */
    copy_bytes(f->db, true, 4096, bad, size - 4096);
    open_store(f);
    assert_int_equal(
        store_history(f->store, key_of("c"), 9, 99, f->arena, &out, &n, &err), ST_IO);
    assert_says(&err, "damaged");
    assert_int_equal(say(f->store, "c", STR_LIT("y"), &err), ST_IO);
    assert_says(&err, "damaged");
    assert_int_equal(store_health(f->store, &err), ST_IO);
    copy_bytes(f->db, true, 0, good, size);
    assert_recovers(f);
    assert_int_equal(count(f, "c"), 1);
    store_close(f->store);
    f->store = NULL;
    /* The first page: not a database at all. */
    copy_bytes(f->db, true, 0, bad, 4096);
    assert_int_equal(store_open(f->state, &f->store, &err), ST_IO);
    assert_says(&err, "damaged");
    assert_says(&err, "soulacy.db");
    free(good);
    free(bad);
}

static void a_moved_file_is_told_and_never_made_anew(void **state)
{
    struct fixture *f = *state;
    struct error err = {.text = ""};
    struct stat sb;
    char away[PATH_MAX];
    test_path(&f->dir, "state/away.db", away);
    open_store(f);
    assert_int_equal(say(f->store, "c", STR_LIT("x"), &err), ST_OK);
    assert_int_equal(rename(f->db, away), 0);
    assert_int_equal(say(f->store, "c", STR_LIT("y"), &err), ST_IO);
    assert_int_not_equal(stat(f->db, &sb), 0);
    /* An empty file in its place is not taken for it. */
    test_write_file(f->db, "");
    assert_int_equal(say(f->store, "c", STR_LIT("y"), &err), ST_IO);
    assert_says(&err, "replaced");
    assert_int_equal(store_health(f->store, &err), ST_IO);
    assert_int_equal(rename(away, f->db), 0);
    assert_recovers(f);
    assert_int_equal(count(f, "c"), 1);
}

/* One write that is refused takes none of its neighbours with it. */
static void a_refused_write_leaves_its_batch_alone(void **state)
{
    struct fixture *f = *state;
    struct error err;
    open_store(f);
    assert_int_equal(store_put_later(f->store, "a", STR_LIT("1"), &err), ST_OK);
    assert_int_equal(store_session_delete(f->store, STR_LIT("none"), &err), ST_NOT_FOUND);
    assert_int_equal(store_put(f->store, "b", STR_LIT("1"), &err), ST_OK);
    struct str v;
    assert_int_equal(store_get(f->store, "a", f->arena, &v, &err), ST_OK);
    assert_int_equal(store_health(f->store, &err), ST_OK);
    struct store_stats stats;
    store_stats(f->store, &stats);
    assert_int_equal(stats.failures, 1);
}

/* Writes that nobody waits for cannot pile up without bound, and none that was taken is
 * lost, not even when the store is closed over them. */
static void the_queue_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct error err = {.text = ""};
    sqlite3 *outside = NULL;
    char name[32];
    int taken = 0;
    enum status st = ST_OK;
    open_store(f);
    assert_int_equal(sqlite3_open(f->db, &outside), SQLITE_OK);
    assert_int_equal(sqlite3_exec(outside, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    while (st == ST_OK && taken < 5000) {
        snprintf(name, sizeof(name), "v%d", taken);
        st = store_put_later(f->store, name, STR_LIT("x"), &err);
        taken += st == ST_OK ? 1 : 0;
    }
    assert_int_equal(sqlite3_exec(outside, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(outside);
    assert_int_equal(st, ST_BUSY);
    assert_says(&err, "overloaded");
    assert_in_range(taken, 1024, 1024 + 128);
    store_close(f->store);
    open_store(f);
    for (int i = 0; i < taken; i++) {
        struct str v;
        snprintf(name, sizeof(name), "v%d", i);
        assert_int_equal(store_get(f->store, name, f->arena, &v, &err), ST_OK);
    }
}

#define FAULT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(what_was_acknowledged_survives_a_kill),
        FAULT_TEST(a_full_disk_is_told_and_got_over),
        FAULT_TEST(a_failing_write_is_told_and_got_over),
        FAULT_TEST(a_read_only_disk_is_told),
        FAULT_TEST(a_lock_from_outside_is_waited_for_and_told),
        FAULT_TEST(a_damaged_file_is_told_and_got_over),
        FAULT_TEST(a_moved_file_is_told_and_never_made_anew),
        FAULT_TEST(a_refused_write_leaves_its_batch_alone),
        FAULT_TEST(the_queue_is_bounded),
    };
    signal(SIGXFSZ, SIG_IGN); /* a write over the limit fails instead */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
