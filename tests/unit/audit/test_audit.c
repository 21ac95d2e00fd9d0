/* The audit log: the chain, what verify finds, coalescing, failures. */
#include "support/test.h"

#include "audit/audit.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

struct fake_anchor {
    char head[65];
    uint64_t count, saves;
};

struct fixture {
    struct test_dir dir;
    char file[PATH_MAX], key[PATH_MAX];
    struct fake_anchor kept;
    struct audit_anchor anchor;
    struct audit *a;
    struct buf text;
};

static _Atomic int64_t fake_ms = 1;

static int64_t fake_clock(void)
{
    return atomic_load(&fake_ms);
}

static void save(void *ctx, const char *head_hex, uint64_t count)
{
    struct fake_anchor *f = ctx;
    assert_int_equal(strlen(head_hex), 64);
    memcpy(f->head, head_hex, 65);
    f->count = count;
    f->saves++;
}

static bool load(void *ctx, char head_hex[65], uint64_t *count)
{
    const struct fake_anchor *f = ctx;
    memcpy(head_hex, f->head, 65);
    *count = f->count;
    return f->head[0] != '\0';
}

static void open_audit(struct fixture *f, bool required)
{
    struct error err = {.text = ""};
    enum status st = audit_open(f->file, f->key, required, &f->anchor, &f->a, &err);
    if (st != ST_OK) {
        print_error("%s\n", err.text);
    }
    assert_int_equal(st, ST_OK);
    audit_set_clock(f->a, fake_clock);
}

static void close_audit(struct fixture *f)
{
    audit_close(f->a);
    f->a = NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    test_dir_make(&f->dir);
    test_path(&f->dir, "audit.jsonl", f->file);
    test_path(&f->dir, "audit.key", f->key);
    f->anchor = (struct audit_anchor){.ctx = &f->kept, .save = save, .load = load};
    buf_init(&f->text, (size_t)1024 * 1024);
    open_audit(f, false);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close_audit(f);
    buf_done(&f->text);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static struct audit_record record_of(const char *verdict, const char *tool)
{
    return (struct audit_record){
        .event = "call",
        .entry = "chat",
        .agent = STR_LIT("a"),
        .channel = STR_LIT("http"),
        .sender = STR_LIT("me"),
        .tool = str_c(tool),
        .verdict = verdict,
        .row = "7",
        .took_ms = -1,
    };
}

static void write_allow(struct fixture *f, const char *tool)
{
    struct audit_record r = record_of("allow", tool);
    struct error err;
    assert_int_equal(audit_write(f->a, &r, &err), ST_OK);
}

static void deny(struct fixture *f, const char *tool)
{
    struct audit_record r = record_of("deny", tool);
    assert_int_equal(audit_write(f->a, &r, NULL), ST_OK);
}

static void read_file(struct fixture *f)
{
    buf_clear(&f->text);
    assert_int_equal(io_read_file(f->file, 1000000, &f->text, NULL), ST_OK);
}

static size_t lines(struct fixture *f)
{
    size_t n = 0;
    read_file(f);
    for (size_t i = 0; i < f->text.len; i++) {
        n += f->text.ptr[i] == '\n' ? 1 : 0;
    }
    return n;
}

/* Line number `at` (from 0) of the file; the buffer is read anew. */
static struct str line_at(struct fixture *f, size_t at)
{
    struct str line = STR_NONE;
    read_file(f);
    struct str rest = buf_str(&f->text);
    for (size_t i = 0; i <= at; i++) {
        assert_true(str_split(&rest, '\n', &line));
    }
    return line;
}

static bool line_has(struct fixture *f, size_t at, const char *part)
{
    return str_find(line_at(f, at), str_c(part)) != SIZE_MAX;
}

static void assert_good(struct fixture *f, uint64_t n)
{
    struct error err = {.text = ""};
    uint64_t records = 0;
    enum status st = audit_verify(f->file, &f->anchor, &records, &err);
    if (st != ST_OK) {
        print_error("%s\n", err.text);
    }
    assert_int_equal(st, ST_OK);
    assert_int_equal(records, n);
}

static void assert_bad(struct fixture *f, const char *words)
{
    struct error err = {.text = ""};
    uint64_t records = 77;
    assert_int_equal(audit_verify(f->file, &f->anchor, &records, &err), ST_INVALID);
    assert_int_equal(records, 77);
    if (strstr(err.text, words) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", err.text, words);
        fail();
    }
}

static void writes_strict_json_without_arguments(void **state)
{
    struct fixture *f = *state;
    struct audit_record r = record_of("allow", "shell\n\"x\"\xff");
    cJSON *json = NULL;
    struct str hex;
    struct str again;
    int64_t number = 0;
    r.args = STR_LIT("{\"password\":\"hunter2\"}");
    r.run_id = STR_LIT("r1");
    r.session = STR_LIT("s1");
    r.cause = "exit";
    r.detail = STR_LIT("done");
    r.took_ms = 0;
    assert_int_equal(audit_write(f->a, &r, NULL), ST_OK);
    assert_int_equal(audit_write(f->a, &r, NULL), ST_OK);
    write_allow(f, "other");
    assert_false(line_has(f, 0, "hunter2"));
    assert_false(line_has(f, 2, "args"));
    assert_int_equal(json_parse(line_at(f, 1), &json, NULL), ST_OK);
    assert_true(json_get_str(json, "args", &again));
    char copy[65];
    assert_int_equal(again.len, 64);
    memcpy(copy, again.ptr, 64);
    copy[64] = '\0';
    cJSON_Delete(json);
    assert_int_equal(json_parse(line_at(f, 0), &json, NULL), ST_OK);
    assert_true(json_get_str(json, "args", &hex));
    assert_str_is(hex, copy); /* equal arguments can be found again */
    assert_true(json_get_i64(json, "seq", &number));
    assert_int_equal(number, 1);
    assert_true(json_get_i64(json, "took_ms", &number));
    assert_int_equal(number, 0);
    static const char *const keys[] = {
        "at",      "event",   "entry", "run",   "agent",  "channel", "sender", "tool",
        "session", "verdict", "row",   "cause", "detail", "prev",    "hash"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        assert_non_null(json_get(json, keys[i]));
    }
    cJSON_Delete(json);
    assert_good(f, 3);
    /* Keyed: another key gives another hash of the same arguments. */
    close_audit(f);
    unlink(f->key);
    open_audit(f, false);
    assert_int_equal(audit_write(f->a, &r, NULL), ST_OK);
    assert_false(line_has(f, 3, copy));
    assert_good(f, 4);
}

static void long_fields_are_cut(void **state)
{
    struct fixture *f = *state;
    char *big = malloc(100000);
    assert_non_null(big);
    memset(big, '\x01', 100000); /* the worst to escape */
    struct audit_record r = record_of("allow", "t");
    struct str long_text = str_n(big, 100000);
    r.run_id = long_text;
    r.agent = long_text;
    r.channel = long_text;
    r.sender = long_text;
    r.tool = long_text;
    r.session = long_text;
    r.detail = long_text;
    r.args = long_text;
    assert_int_equal(audit_write(f->a, &r, NULL), ST_OK);
    assert_int_equal(audit_failed(f->a), 0);
    assert_good(f, 1);
    free(big);
}

static void goes_on_after_opening_again(void **state)
{
    struct fixture *f = *state;
    struct stat sb;
    write_allow(f, "one");
    close_audit(f);
    open_audit(f, true);
    write_allow(f, "two");
    assert_good(f, 2);
    assert_int_equal(f->kept.saves, 2);
    assert_int_equal(f->kept.count, 2);
    assert_int_equal(stat(f->file, &sb), 0);
    assert_int_equal(sb.st_mode & 0777, 0600);
    assert_int_equal(stat(f->key, &sb), 0);
    assert_int_equal(sb.st_mode & 0777, 0600);
    assert_int_equal(sb.st_size, 32);
    assert_int_equal(line_has(f, 0, "000000\",\"hash\""), true);
}

static void refuses_what_it_cannot_trust(void **state)
{
    struct fixture *f = *state;
    struct audit *second = NULL;
    struct error err;
    size_t fds = test_open_fds();
    assert_int_equal(audit_open(f->file, f->key, false, NULL, &second, &err), ST_BUSY);
    close_audit(f);
    assert_int_equal(chmod(f->key, 0644), 0);
    assert_int_equal(audit_open(f->file, f->key, false, NULL, &second, &err), ST_REFUSED);
    assert_int_equal(chmod(f->key, 0600), 0);
    assert_int_equal(truncate(f->key, 31), 0);
    assert_int_equal(audit_open(f->file, f->key, false, NULL, &second, &err), ST_INVALID);
    assert_int_equal(unlink(f->key), 0);
    assert_int_equal(audit_open("/dev/null", f->key, false, NULL, &second, &err),
                     ST_INVALID);
    assert_int_equal(audit_open(f->dir.path, f->key, false, NULL, &second, &err), ST_IO);
    test_write_file(f->file, "not a record\n");
    assert_int_equal(audit_open(f->file, f->key, false, NULL, &second, &err),
                     ST_CONFLICT);
    assert_null(second);
    assert_int_equal(test_open_fds(), fds - 1);
}

static void rewrite(struct fixture *f)
{
    int fd = open(f->file, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, f->text.ptr, f->text.len), (ssize_t)f->text.len);
    close(fd);
}

/* Five records in f->text; the file is closed. */
static void five(struct fixture *f)
{
    static const char *const tools[] = {"t1", "t2", "t3", "t4", "t5"};
    for (size_t i = 0; i < 5; i++) {
        write_allow(f, tools[i]);
    }
    close_audit(f);
    assert_good(f, 5);
    read_file(f);
}

static size_t start_of(struct fixture *f, size_t line)
{
    size_t at = 0;
    for (size_t i = 0; i < line; i++) {
        const char *end = memchr(f->text.ptr + at, '\n', f->text.len - at);
        assert_non_null(end);
        at = (size_t)(end - f->text.ptr) + 1;
    }
    return at;
}

static void verify_finds_every_edit(void **state)
{
    struct fixture *f = *state;
    five(f);
    size_t from = start_of(f, 2);
    size_t to = start_of(f, 3);
    /* Each byte of the third line in turn, its newline included. */
    for (size_t i = from; i < to; i++) {
        f->text.ptr[i] ^= 0x01;
        rewrite(f);
        assert_bad(f, "line 3");
        f->text.ptr[i] ^= 0x01;
    }
    rewrite(f);
    assert_good(f, 5);
}

static void verify_finds_removal_reorder_and_repeats(void **state)
{
    struct fixture *f = *state;
    five(f);
    struct buf whole;
    buf_init(&whole, 100000);
    buf_add_str(&whole, buf_str(&f->text));
    size_t at[6];
    for (size_t i = 0; i < 6; i++) {
        at[i] = start_of(f, i);
    }
    static const struct {
        size_t order[6], n;
        const char *words;
    } cases[] = {
        {{0, 1, 3, 4}, 4, "line 3: record 4 where record 3 belongs"},
        {{1, 2, 3, 4}, 4, "line 1: record 2 where record 1 belongs"},
        {{0, 2, 1, 3, 4}, 5, "line 2"},
        {{0, 1, 1, 2, 3, 4}, 6, "line 3"},
        {{0, 1, 2, 3}, 4, "records 5 to 5 are missing at the end"},
        {{0}, 1, "records 2 to 5 are missing"},
        {{0}, 0, "records 1 to 5 are missing"},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        buf_clear(&f->text);
        for (size_t i = 0; i < cases[c].n; i++) {
            size_t k = cases[c].order[i];
            buf_add(&f->text, whole.ptr + at[k], at[k + 1] - at[k]);
        }
        rewrite(f);
        assert_bad(f, cases[c].words);
    }
    /* Cut within the last line. */
    buf_clear(&f->text);
    buf_add(&f->text, whole.ptr, whole.len - 1);
    rewrite(f);
    assert_bad(f, "line 5: unfinished");
    buf_done(&whole);
}

/* Somebody writes the whole file anew with hashes that fit: the head outside tells. */
static void verify_finds_a_forged_file(void **state)
{
    struct fixture *f = *state;
    five(f);
    struct fake_anchor known = f->kept;
    unlink(f->file);
    memset(&f->kept, 0, sizeof(f->kept));
    open_audit(f, false);
    for (int i = 0; i < 6; i++) {
        write_allow(f, "forged");
    }
    close_audit(f);
    assert_good(f, 6);
    f->kept = known;
    assert_bad(f, "line 5");
    struct error err;
    uint64_t records = 0;
    assert_int_equal(audit_verify(f->file, NULL, &records, &err), ST_OK);
    unlink(f->file);
    assert_int_equal(audit_verify(f->file, NULL, &records, &err), ST_NOT_FOUND);
}

static void a_long_line_is_no_record(void **state)
{
    struct fixture *f = *state;
    five(f);
    for (int i = 0; i < 20000; i++) {
        buf_add_c(&f->text, "0123456789");
    }
    rewrite(f);
    assert_bad(f, "line 6");
}

static void a_moved_file_is_told_and_can_be_joined(void **state)
{
    struct fixture *f = *state;
    char old[PATH_MAX];
    five(f);
    assert_int_equal(rename(f->file, test_path(&f->dir, "audit.1", old)), 0);
    open_audit(f, false);
    write_allow(f, "t6");
    assert_true(line_has(f, 0, "moved away"));
    assert_bad(f, "line 1: record 6 where record 1 belongs");
    /* Both files together are whole. */
    struct buf both;
    buf_init(&both, 100000);
    assert_int_equal(io_read_file(old, 100000, &both, NULL), ST_OK);
    assert_int_equal(io_read_file(f->file, 100000, &both, NULL), ST_OK);
    assert_int_equal(io_write_file(f->file, buf_str(&both), 0600, NULL), ST_OK);
    assert_good(f, 7);
    buf_done(&both);
}

static void a_cut_file_is_told(void **state)
{
    struct fixture *f = *state;
    five(f);
    f->text.len = start_of(f, 3);
    rewrite(f);
    open_audit(f, false);
    assert_true(line_has(f, 3, "not the known head"));
    assert_bad(f, "line 4");
}

/* A crash between the record and the anchor: the file is ahead, and that is fine. */
static void a_file_ahead_of_its_anchor_is_good(void **state)
{
    struct fixture *f = *state;
    write_allow(f, "one");
    struct fake_anchor known = f->kept;
    write_allow(f, "two");
    close_audit(f);
    f->kept = known;
    assert_good(f, 2);
    open_audit(f, false);
    assert_int_equal(lines(f), 2);
    write_allow(f, "three");
    assert_good(f, 3);
}

/* A crash at any byte of the last record. */
static void a_torn_record_is_taken_off(void **state)
{
    struct fixture *f = *state;
    five(f);
    struct buf whole;
    buf_init(&whole, 100000);
    buf_add_str(&whole, buf_str(&f->text));
    size_t last = start_of(f, 4);
    for (size_t len = last + 1; len < whole.len; len += 7) {
        buf_clear(&f->text);
        buf_add(&f->text, whole.ptr, len);
        rewrite(f);
        f->kept.head[0] = '\0'; /* no anchor */
        open_audit(f, false);
        write_allow(f, "after");
        close_audit(f);
        assert_good(f, 6);
        assert_true(line_has(f, 4, "unfinished"));
    }
    buf_done(&whole);
}

static void denials_of_a_kind_are_coalesced(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        deny(f, "shell_exec");
    }
    deny(f, "write_file"); /* another kind */
    assert_int_equal(lines(f), 2);
    atomic_fetch_add(&fake_ms, 999);
    deny(f, "shell_exec"); /* within the second still */
    assert_int_equal(lines(f), 2);
    atomic_fetch_add(&fake_ms, 1);
    write_allow(f, "x"); /* any write tells */
    assert_int_equal(lines(f), 4);
    assert_true(line_has(f, 2, "\"count\":100"));
    assert_true(line_has(f, 2, "\"tool\":\"shell_exec\""));
    assert_true(line_has(f, 2, "\"verdict\":\"deny\""));
    assert_true(line_has(f, 2, "\"row\":\"7\""));
    /* The next one is written at once again, and closing tells the rest. */
    deny(f, "shell_exec");
    deny(f, "shell_exec");
    assert_int_equal(lines(f), 5);
    close_audit(f);
    assert_int_equal(lines(f), 6);
    assert_true(line_has(f, 5, "\"count\":1"));
    assert_good(f, 6);
}

static void allowed_calls_are_never_coalesced(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        write_allow(f, "x");
    }
    assert_int_equal(lines(f), 50);
}

/* More kinds at once than there is room for: the oldest is told early, none is lost. */
static void many_kinds_of_denials_lose_nothing(void **state)
{
    struct fixture *f = *state;
    enum { KINDS = 40 };
    char tool[16];
    for (int i = 0; i < KINDS; i++) {
        snprintf(tool, sizeof(tool), "t%d", i);
        deny(f, tool);
        deny(f, tool);
        deny(f, tool);
    }
    close_audit(f);
    assert_int_equal(lines(f), 2 * KINDS);
    assert_good(f, 2 * KINDS);
    size_t told = 0;
    struct str rest = buf_str(&f->text);
    struct str line;
    read_file(f);
    while (str_split(&rest, '\n', &line)) {
        told += str_find(line, STR_LIT("\"count\":2")) != SIZE_MAX ? 1 : 0;
    }
    assert_int_equal(told, KINDS);
}

static struct rlimit no_growth(struct fixture *f, rlim_t more)
{
    struct rlimit before;
    struct stat sb;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(stat(f->file, &sb), 0);
    struct rlimit now = before;
    now.rlim_cur = (rlim_t)sb.st_size + more;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    return before;
}

/* The disk is full after `more` bytes: with 50 there is room for half a line. */
static void full_disk(struct fixture *f, bool required, rlim_t more)
{
    struct audit_record r = record_of("allow", "lost");
    struct error err = {.text = ""};
    write_allow(f, "before");
    struct rlimit before = no_growth(f, more);
    enum status first = audit_write(f->a, &r, &err);
    enum status second = audit_write(f->a, &r, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(first, required ? ST_IO : ST_OK);
    assert_int_equal(second, first);
    assert_int_equal(audit_failed(f->a), 2);
    write_allow(f, "after");
    assert_int_equal(audit_failed(f->a), 2);
    assert_int_equal(lines(f), 3);
    assert_true(line_has(f, 1, "could not be written"));
    assert_true(line_has(f, 1, "\"count\":2"));
    assert_true(line_has(f, 2, "after"));
    assert_good(f, 3);
}

static void a_full_disk_is_counted_and_told(void **state)
{
    full_disk(*state, false, 50);
}

static void required_fails_when_it_cannot_be_written(void **state)
{
    struct fixture *f = *state;
    close_audit(f);
    open_audit(f, true);
    full_disk(f, true, 0);
}

static void meddling_while_in_use_is_told(void **state)
{
    struct fixture *f = *state;
    write_allow(f, "one");
    assert_int_equal(unlink(f->file), 0);
    write_allow(f, "two");
    assert_int_equal(lines(f), 2);
    assert_true(line_has(f, 0, "removed while in use"));
    assert_bad(f, "line 1");
    assert_int_equal(truncate(f->file, 0), 0);
    write_allow(f, "three");
    assert_true(line_has(f, 0, "cut while in use"));
    FILE *other = fopen(f->file, "ae");
    assert_non_null(other);
    fputs("forged\n", other);
    fclose(other);
    write_allow(f, "four");
    assert_true(line_has(f, 3, "by another"));
    assert_bad(f, "line 1");
}

static void *write_many(void *arg)
{
    struct audit_record r = record_of("allow", "x");
    for (int i = 0; i < 100; i++) {
        if (audit_write(arg, &r, NULL) != ST_OK) {
            return arg;
        }
    }
    return NULL;
}

static void threads_make_one_chain(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    void *failed = NULL;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, f->a), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_good(f, 400);
}

static bool one_round(struct fixture *f)
{
    struct error err;
    uint64_t n = 0;
    struct audit_record yes = record_of("allow", "x");
    struct audit_record no = record_of("deny", "x");
    yes.args = STR_LIT("{}");
    f->a = NULL;
    bool ok = audit_open(f->file, f->key, true, NULL, &f->a, &err) == ST_OK &&
              audit_write(f->a, &yes, &err) == ST_OK &&
              audit_write(f->a, &no, &err) == ST_OK &&
              audit_write(f->a, &no, &err) == ST_OK &&
              audit_verify(f->file, NULL, &n, &err) == ST_OK && audit_failed(f->a) == 0;
    close_audit(f);
    return ok;
}

static void survives_failing_allocations(void **state)
{
    struct fixture *f = *state;
    close_audit(f);
    unlink(f->key);
    size_t fds = test_open_fds();
    TEST_SWEEP(one_round(f));
    assert_int_equal(test_open_fds(), fds);
    uint64_t n = 0;
    assert_int_equal(audit_verify(f->file, NULL, &n, NULL), ST_OK);
}

#define AUDIT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUDIT_TEST(writes_strict_json_without_arguments),
        AUDIT_TEST(long_fields_are_cut),
        AUDIT_TEST(goes_on_after_opening_again),
        AUDIT_TEST(refuses_what_it_cannot_trust),
        AUDIT_TEST(verify_finds_every_edit),
        AUDIT_TEST(verify_finds_removal_reorder_and_repeats),
        AUDIT_TEST(verify_finds_a_forged_file),
        AUDIT_TEST(a_long_line_is_no_record),
        AUDIT_TEST(a_moved_file_is_told_and_can_be_joined),
        AUDIT_TEST(a_cut_file_is_told),
        AUDIT_TEST(a_file_ahead_of_its_anchor_is_good),
        AUDIT_TEST(a_torn_record_is_taken_off),
        AUDIT_TEST(denials_of_a_kind_are_coalesced),
        AUDIT_TEST(allowed_calls_are_never_coalesced),
        AUDIT_TEST(many_kinds_of_denials_lose_nothing),
        AUDIT_TEST(a_full_disk_is_counted_and_told),
        AUDIT_TEST(required_fails_when_it_cannot_be_written),
        AUDIT_TEST(meddling_while_in_use_is_told),
        AUDIT_TEST(threads_make_one_chain),
        AUDIT_TEST(survives_failing_allocations),
    };
    signal(SIGXFSZ, SIG_IGN); /* a write over the limit fails instead */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
