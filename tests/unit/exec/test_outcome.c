/* Causes in their order, texts with their limits, head and tail, no folder of the host. */
#include "exec/outcome.h"
#include "support/test.h"

#include <signal.h>

static const struct outcome_limits limits = {.backend = "process",
                                             .cpu_seconds = 30,
                                             .mem_bytes = UINT64_C(512) * 1024 * 1024,
                                             .file_bytes = UINT64_C(64) * 1024 * 1024,
                                             .timeout_ms = 120000,
                                             .max_output_bytes = 300};

static void open_outcome(struct exec_outcome *o)
{
    *o = (struct exec_outcome){.cause = EXEC_UNKNOWN};
    buf_init(&o->text, 100000);
}

struct row {
    enum status status;
    bool cancelled;
    struct sy_result r;
    const char *why;
    enum exec_cause cause;
    int detail;
    const char *text;
};

static void ends(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {ST_TIMEOUT,
         true,
         {.term_signal = SIGKILL},
         "",
         EXEC_TIMEOUT,
         0,
         "stopped: time limit of 120 s reached"},
        {ST_CANCELLED,
         false,
         {.term_signal = SIGKILL},
         "",
         EXEC_CANCELLED,
         0,
         "stopped: the call was cancelled"},
        {ST_OK, true, {.term_signal = SIGKILL}, "", EXEC_CANCELLED, 0, NULL},
        {ST_OK,
         false,
         {.term_signal = SIGKILL, .oom_killed = 1, .cpu_ms = 30000},
         "",
         EXEC_MEMORY,
         0,
         "stopped: memory limit of 512 MB reached"},
        {ST_OK,
         false,
         {.term_signal = SIGXCPU, .cpu_ms = -1},
         "",
         EXEC_CPU,
         0,
         "stopped: CPU limit of 30 s reached"},
        {ST_OK, false, {.exit_code = 128 + SIGXCPU}, "", EXEC_CPU, 0, NULL},
        {ST_OK,
         false,
         {.term_signal = SIGKILL, .cpu_ms = 29899},
         "",
         EXEC_SIGNAL,
         9,
         "the tool was killed by signal 9 (SIGKILL)"},
        {ST_OK, false, {.term_signal = SIGKILL, .cpu_ms = 29900}, "", EXEC_CPU, 0, NULL},
        {ST_OK, false, {.term_signal = SIGKILL, .cpu_ms = -1}, "", EXEC_SIGNAL, 9, NULL},
        {ST_OK,
         false,
         {.term_signal = SIGXFSZ},
         "",
         EXEC_SIGNAL,
         SIGXFSZ,
         "stopped: file size limit of 64 MB reached"},
        {ST_OK,
         false,
         {.term_signal = 40},
         "",
         EXEC_SIGNAL,
         40,
         "the tool was killed by signal 40"},
        {ST_OK,
         false,
         {.exit_code = 128 + SIGKILL, .cpu_ms = 30000},
         "",
         EXEC_CPU,
         0,
         NULL},
        {ST_OK,
         false,
         {.exit_code = 1},
         "",
         EXEC_EXIT,
         1,
         "the tool exited with code 1 before it gave a result"},
        {ST_OK,
         false,
         {.exit_code = 0},
         "",
         EXEC_NO_RESULT,
         0,
         "the tool ended without a result"},
        {ST_OK, false, {.exit_code = -1}, "", EXEC_NO_RESULT, 0, NULL},
        {ST_REFUSED,
         false,
         {.exit_code = -1},
         "landlock: no",
         EXEC_REFUSED,
         0,
         "the tool was not run: landlock: no"},
        {ST_REFUSED,
         false,
         {.exit_code = -1},
         "exec /opt/py/bin/python9: No such file",
         EXEC_REFUSED,
         0,
         "the tool was not run: exec python9: No such file"},
        {ST_IO,
         false,
         {.exit_code = -1},
         "no helper",
         EXEC_UNAVAILABLE,
         0,
         "the tool was not run: executor 'process' is not available: no helper"},
        {ST_IO,
         false,
         {.request_sent = 1},
         "reset",
         EXEC_UNKNOWN,
         0,
         "executor 'process' was lost after the call was sent: whether the tool did its "
         "work is not known"},
        {ST_NOMEM, false, {.exit_code = -1}, "", EXEC_UNAVAILABLE, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exec_outcome o;
        const struct outcome_end end = {.status = rows[i].status,
                                        .result = rows[i].r,
                                        .why = rows[i].why,
                                        .cancelled = rows[i].cancelled};
        open_outcome(&o);
        outcome_from_end(&end, &limits, &o);
        assert_int_equal(o.cause, rows[i].cause);
        assert_int_equal(o.detail, rows[i].detail);
        if (rows[i].text != NULL) {
            assert_str_is(buf_str(&o.text), rows[i].text);
        }
        exec_outcome_done(&o);
    }
}

static void without_limits(void **state)
{
    (void)state;
    struct outcome_limits none = limits;
    struct exec_outcome o;
    none.cpu_seconds = none.mem_bytes = none.file_bytes = SPAWN_NO_LIMIT;
    none.timeout_ms = 1500;
    open_outcome(&o);
    outcome_set(EXEC_MEMORY, &none, NULL, &o);
    assert_str_is(buf_str(&o.text), "stopped: out of memory");
    outcome_set(EXEC_TIMEOUT, &none, NULL, &o);
    assert_str_is(buf_str(&o.text), "stopped: time limit of 1500 ms reached");
    const struct outcome_end end = {
        .status = ST_OK, .why = "", .result = {.term_signal = SIGXCPU, .cpu_ms = 1}};
    outcome_from_end(&end, &none, &o);
    assert_int_equal(o.cause, EXEC_SIGNAL);
    const struct outcome_end big = {
        .status = ST_OK, .why = "", .result = {.term_signal = SIGXFSZ}};
    outcome_from_end(&big, &none, &o);
    assert_str_is(buf_str(&o.text), "the tool was killed by signal 25");
    exec_outcome_done(&o);
}

static void answers(void **state)
{
    (void)state;
    struct exec_outcome o;
    open_outcome(&o);
    const struct frame_answer exits = {.is_error = true,
                                       .cause = STR_LIT("exit"),
                                       .detail = 3,
                                       .err_message = STR_LIT("bye")};
    outcome_from_answer(&exits, &limits, &o);
    assert_int_equal(o.cause, EXEC_EXIT);
    assert_int_equal(o.detail, 3);
    assert_str_is(buf_str(&o.text),
                  "the tool exited with code 3 before it gave a result: bye");
    const struct frame_answer memory = {
        .is_error = true, .cause = STR_LIT("memory"), .traceback = STR_LIT("T")};
    outcome_from_answer(&memory, &limits, &o);
    assert_int_equal(o.cause, EXEC_MEMORY);
    assert_str_is(buf_str(&o.text), "stopped: memory limit of 512 MB reached\nT");
    const struct frame_answer plain = {.is_error = true, .err_class = STR_LIT("X")};
    outcome_from_answer(&plain, &limits, &o);
    assert_int_equal(o.cause, EXEC_TOOL_ERROR);
    assert_str_is(buf_str(&o.text), "X");
    const struct frame_answer fine = {.result = STR_LIT("{}")};
    outcome_from_answer(&fine, &limits, &o);
    assert_int_equal(o.cause, EXEC_OK);
    assert_str_is(buf_str(&o.text), "{}");
    exec_outcome_done(&o);
}

/* The output cap, below, at and above, with characters of two bytes at every offset. */
static void output_cap(void **state)
{
    (void)state;
    char text[1200];
    struct outcome_limits l = limits;
    for (size_t shift = 0; shift < 4; shift++) {
        l.max_output_bytes = shift < 2 ? 300 : 303; /* a tail of even and of odd length */
        for (size_t n = 290; n < 400; n++) {
            struct exec_outcome o;
            memset(text, 'x', shift);
            for (size_t i = shift; i + 1 < sizeof text; i += 2) {
                memcpy(text + i, "\xc3\xa9", 2);
            }
            size_t len = n - (n - shift) % 2;
            const struct frame_answer a = {.result = {text, len}};
            open_outcome(&o);
            outcome_from_answer(&a, &l, &o);
            assert_true(o.text.len <= l.max_output_bytes);
            assert_int_equal(str_find(buf_str(&o.text), STR_LIT("left out")) == SIZE_MAX,
                             len <= l.max_output_bytes);
            assert_true(len > l.max_output_bytes || o.text.len == len);
            exec_outcome_done(&o);
        }
    }
}

static void standard_texts(void **state)
{
    (void)state;
    static const struct {
        enum exec_cause cause;
        const char *text;
    } rows[] = {
        {EXEC_BAD_ANSWER, "the tool's answer could not be read"},
        {EXEC_TOO_LARGE, "the tool's result is too large"},
        {EXEC_OK, ""},
        {EXEC_TOOL_ERROR, ""},
        {(enum exec_cause)999, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exec_outcome o;
        open_outcome(&o);
        outcome_set(rows[i].cause, &limits, "", &o);
        assert_str_is(buf_str(&o.text), rows[i].text);
        exec_outcome_done(&o);
    }
}

static void limits_are_copied(void **state)
{
    (void)state;
    const struct launch_spec launch = {
        .backend = "docker", .cpu_seconds = 1, .mem_bytes = 1000, .file_bytes = 3};
    const struct plan_call call = {.timeout_ms = 4, .max_output_bytes = 5};
    struct outcome_limits l;
    struct exec_outcome o;
    outcome_limits_of(&launch, &call, &l);
    assert_string_equal(l.backend, "docker");
    assert_int_equal(l.timeout_ms, 4);
    assert_int_equal(l.max_output_bytes, 5);
    open_outcome(&o);
    outcome_set(EXEC_MEMORY, &l, NULL, &o);
    assert_str_is(buf_str(&o.text), "stopped: memory limit of 1000 bytes reached");
    exec_outcome_done(&o);
}

/* A forged answer may be long and may leave fields out. */
static void forged_errors(void **state)
{
    (void)state;
    char text[40000];
    struct outcome_limits l = limits;
    struct exec_outcome o;
    memset(text, 't', sizeof text);
    l.max_output_bytes = 0; /* no cap */
    open_outcome(&o);
    const struct frame_answer exits = {.is_error = true, .cause = STR_LIT("exit")};
    outcome_from_answer(&exits, &l, &o);
    assert_str_is(buf_str(&o.text),
                  "the tool exited with code 0 before it gave a result");
    const struct frame_answer memory = {.is_error = true, .cause = STR_LIT("memory")};
    outcome_from_answer(&memory, &l, &o);
    assert_str_is(buf_str(&o.text), "stopped: memory limit of 512 MB reached");
    const struct frame_answer both = {
        .is_error = true, .err_class = STR_LIT("X"), .err_message = STR_LIT("m")};
    outcome_from_answer(&both, &l, &o);
    assert_str_is(buf_str(&o.text), "X: m");
    const struct frame_answer longest = {.is_error = true,
                                         .traceback = {text, sizeof text}};
    outcome_from_answer(&longest, &l, &o);
    assert_int_equal(o.text.len, 16384);
    l.max_output_bytes = 50; /* below the note's own room */
    outcome_from_answer(&longest, &l, &o);
    assert_str_is(buf_str(&o.text), "\n[... 16384 of 16384 bytes left out ...]\n");
    exec_outcome_done(&o);
}

static void names_and_retries(void **state)
{
    (void)state;
    assert_string_equal(exec_cause_name(EXEC_OK), "ok");
    assert_string_equal(exec_cause_name(EXEC_UNKNOWN), "unknown");
    assert_string_equal(exec_cause_name((enum exec_cause)999), "unknown");
    assert_false(outcome_retryable(EXEC_OK));
    assert_false(outcome_retryable(EXEC_CANCELLED));
    assert_false(outcome_retryable(EXEC_REFUSED));
    assert_false(outcome_retryable(EXEC_UNKNOWN));
    assert_false(outcome_retryable(EXEC_BAD_ANSWER));
    assert_false(outcome_retryable(EXEC_TOO_LARGE));
    assert_false(outcome_retryable((enum exec_cause)999));
    assert_true(outcome_retryable(EXEC_CPU));
    assert_true(outcome_retryable(EXEC_MEMORY));
    assert_true(outcome_retryable(EXEC_SIGNAL));
    assert_true(outcome_retryable(EXEC_EXIT));
    assert_true(outcome_retryable(EXEC_NO_RESULT));
    assert_true(outcome_retryable(EXEC_UNAVAILABLE));
    assert_true(outcome_retryable(EXEC_TOOL_ERROR));
    assert_true(outcome_retryable(EXEC_TIMEOUT));
}

static void folders_are_left_out(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"open '/a/b/c.txt': denied", ": open 'c.txt': denied"},
        {"(/x/y)", ": (y)"},
        {"a/b and 1/2", ": a/b and 1/2"},
        {"/", ": /"},
        {"\"/a/b\",/c/d;/e/f,'/g/h'", ": \"b\",d;f,'h'"},
        {"(/a/b)/c", ": (b)c"},
        {"x:/a/b:/c/d", ": x:b:d"},
        {"end /usr/bin/", ": end bin/"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct exec_outcome o;
        open_outcome(&o);
        outcome_set(EXEC_REFUSED, &limits, rows[i][0], &o);
        assert_str_is(str_n(o.text.ptr + strlen("the tool was not run"),
                            o.text.len - strlen("the tool was not run")),
                      rows[i][1]);
        exec_outcome_done(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),
        cmocka_unit_test(without_limits),
        cmocka_unit_test(answers),
        cmocka_unit_test(output_cap),
        cmocka_unit_test(standard_texts),
        cmocka_unit_test(limits_are_copied),
        cmocka_unit_test(forged_errors),
        cmocka_unit_test(names_and_retries),
        cmocka_unit_test(folders_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
