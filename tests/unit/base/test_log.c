/* The log: form of a line, levels, secrets, cutting, out of memory, many threads. */
#include "support/test.h"

#include "base/io.h"
#include "base/json.h"
#include "base/log.h"

#include <pthread.h>

struct fixture {
    struct test_dir dir;
    char path[PATH_MAX];
    struct log *log;
    struct buf text;
};

static void begin(struct fixture *f, enum log_level level, enum log_format format)
{
    test_dir_make(&f->dir);
    test_path(&f->dir, "log", f->path);
    assert_int_equal(log_open(level, format, f->path, &f->log, NULL), ST_OK);
    buf_init(&f->text, 1 << 24);
}

/* Close and read what was written. */
static const char *written(struct fixture *f)
{
    log_close(f->log);
    assert_int_equal(io_read_file(f->path, 1 << 24, &f->text, NULL), ST_OK);
    return f->text.ptr;
}

static void end(struct fixture *f)
{
    buf_done(&f->text);
    test_dir_remove(&f->dir);
}

static void console_lines(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, LOG_INFO, LOG_CONSOLE);
    log_line(f.log, LOG_DEBUG, "gate", "not seen");
    log_line(f.log, LOG_INFO, "gate", "n=%d", 7);
    log_line(f.log, LOG_ERROR, "plug\nin", "a\nb\x1B[31m\xFF");
    log_line(f.log, (enum log_level)9, "gate", "no such level");
    log_line(NULL, LOG_ERROR, "gate", "nowhere");
    const char *text = written(&f);
    assert_int_equal(text[4], '-');
    assert_int_equal(text[23], 'Z');
    const char *second = strchr(text, '\n') + 1;
    assert_true(strncmp(text + 24, " info  gate: n=7\n", 17) == 0);
    assert_string_equal(second + 24, " error plug\\x0ain: a\\x0ab\\x1b[31m\\xff\n");
    end(&f);
}

static void json_lines(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, LOG_DEBUG, LOG_JSON);
    log_line(f.log, LOG_WARN, "gate", "say \"hi\"\x01");
    const char *text = written(&f);
    size_t len = strlen(text);
    cJSON *line = NULL;
    struct str s;
    assert_int_equal(text[len - 1], '\n');
    assert_int_equal(json_parse(str_n(text, len), &line, NULL), ST_OK);
    assert_true(json_get_str(line, "level", &s));
    assert_str_is(s, "warn");
    assert_true(json_get_str(line, "part", &s));
    assert_str_is(s, "gate");
    assert_true(json_get_str(line, "text", &s));
    assert_str_is(s, "say \"hi\"\\x01");
    assert_true(json_get_str(line, "time", &s));
    assert_int_equal(s.len, 24);
    cJSON_Delete(line);
    end(&f);
}

static void hide(struct log *l, const char *value)
{
    struct secret s = {0};
    assert_int_equal(secret_set(&s, str_c(value)), ST_OK);
    assert_int_equal(log_hide_secret(l, &s), ST_OK);
    secret_done(&s);
}

static void secrets_are_hidden(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, LOG_DEBUG, LOG_CONSOLE);
    hide(f.log, "sy_12345678");
    hide(f.log, "sy_12345678_longer");
    hide(f.log, "seven77"); /* shorter than 8: ignored */
    hide(f.log, "eight888");
    hide(NULL, "whatever");
    log_line(f.log, LOG_INFO, "x",
             "<sy_12345678><sy_12345678_longer>eight888eight888 sy_1");
    log_line(f.log, LOG_INFO, "x", "seven77");
    const char *text = written(&f);
    assert_non_null(strstr(text, "x: <***><***>****** sy_1\n"));
    assert_non_null(strstr(text, "x: seven77\n"));
    end(&f);
}

/* Wherever the cut falls, no beginning of a secret is left at the end. */
static void a_cut_leaves_no_half_secret(void **state)
{
    (void)state;
    struct fixture f;
    size_t raw = 32768;
    char *text = malloc(2 * raw);
    assert_non_null(text);
    begin(&f, LOG_DEBUG, LOG_CONSOLE);
    /* So many secrets that hiding them shrinks the text below the second cut. */
    static char key[1025];
    memset(key, 'K', 1024);
    hide(f.log, key);
    for (size_t shift = 0; shift < 1024; shift += 93) {
        memset(text, 'K', 2 * raw);
        memset(text, '.', shift);
        text[2 * raw - 1] = '\0';
        log_line(f.log, LOG_INFO, "x", "%s", text);
    }
    const char *out = written(&f);
    assert_non_null(strstr(out, "***"));
    assert_non_null(strstr(out, " [cut]\n"));
    size_t run = 0;
    for (const char *p = out; *p != '\0'; p++) {
        run = *p == 'K' ? run + 1 : 0;
        assert_true(run < 1024);
    }
    end(&f);
    free(text);
}

static void lengths(void **state)
{
    (void)state;
    struct fixture f;
    static char text[9000];
    begin(&f, LOG_DEBUG, LOG_CONSOLE);
    static const size_t sizes[] = {8191, 8192, 8193};
    for (size_t i = 0; i < 3; i++) {
        memset(text, '\x01', sizeof(text));
        text[sizes[i]] = '\0';
        log_line(f.log, LOG_INFO, "p", "%s", text);
    }
    memset(text, 'p', 100);
    text[100] = '\0';
    log_line(f.log, LOG_INFO, text, "end");
    const char *line = written(&f);
    for (size_t i = 0; i < 3; i++) {
        const char *next = strchr(line, '\n');
        size_t shown = sizes[i] > 8192 ? 8192 * 4 + 6 : sizes[i] * 4;
        assert_int_equal(next - line, 24 + 7 + 3 + shown);
        line = next + 1;
    }
    assert_int_equal(strlen(line), 24 + 7 + 64 + 2 + 3 + 1);
    end(&f);
}

static void lines_need_no_memory(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, LOG_DEBUG, LOG_JSON);
    uint64_t before = mem_alloc_count();
    for (int i = 0; i < 10; i++) {
        log_line(f.log, LOG_INFO, "p", "%08000d", i);
    }
    assert_true(mem_alloc_count() == before);
    (void)written(&f);
    end(&f);
}

static void bad_paths_and_stderr(void **state)
{
    (void)state;
    struct log *l = NULL;
    struct error err;
    assert_int_equal(log_open(LOG_INFO, LOG_CONSOLE, "/proc/none/x", &l, &err), ST_IO);
    assert_non_null(strstr(err.text, "/proc/none/x"));
    assert_null(l);
    assert_int_equal(log_open(LOG_INFO, LOG_CONSOLE, "", &l, &err), ST_OK);
    log_line(l, LOG_INFO, "test", "a line on stderr");
    log_close(l);
    assert_int_equal(log_open(LOG_INFO, LOG_CONSOLE, NULL, &l, &err), ST_OK);
    log_close(l);
    log_close(NULL);
    assert_int_equal(log_open(LOG_INFO, LOG_CONSOLE, "/dev/full", &l, &err), ST_OK);
    log_line(l, LOG_INFO, "test", "dropped");
    log_close(l);
}

static void *write_lines(void *arg)
{
    for (int i = 0; i < 200; i++) {
        log_line(arg, LOG_INFO, "thread", "%0100d", i);
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t threads[4];
    begin(&f, LOG_DEBUG, LOG_CONSOLE);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, f.log), 0);
    }
    hide(f.log, "while they write");
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    const char *text = written(&f);
    assert_int_equal(strlen(text), 800 * (24 + 7 + 6 + 2 + 100 + 1));
    end(&f);
}

static bool can_log(const char *path)
{
    struct log *l = NULL;
    struct secret s = {0};
    bool ok = log_open(LOG_INFO, LOG_JSON, path, &l, NULL) == ST_OK;
    ok = ok && secret_set(&s, STR_LIT("12345678")) == ST_OK;
    ok = ok && log_hide_secret(l, &s) == ST_OK;
    secret_done(&s);
    log_close(l);
    return ok;
}

static void sweep(void **state)
{
    (void)state;
    struct test_dir d;
    char path[PATH_MAX];
    size_t fds = test_open_fds();
    test_dir_make(&d);
    TEST_SWEEP(can_log(test_path(&d, "log", path)));
    test_dir_remove(&d);
    assert_int_equal(test_open_fds(), fds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(console_lines),
        cmocka_unit_test(json_lines),
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(a_cut_leaves_no_half_secret),
        cmocka_unit_test(lengths),
        cmocka_unit_test(lines_need_no_memory),
        cmocka_unit_test(bad_paths_and_stderr),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
