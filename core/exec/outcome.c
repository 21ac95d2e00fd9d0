/* An answer or the end of a process in, cause and text for the model out. The order of
 * the causes is fixed here: timeout, cancelled, memory, cpu, signal, exit, no result.
 * Texts name cause and limit; they never hold a folder of the host. Pure. */
#include "exec/outcome.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1024) * 1024)
#define CPU_SLACK_MS 100      /* accounting is in ticks */
#define NOTE_MAX ((size_t)72) /* two numbers of 19 digits */
#define ERROR_PART ((size_t)16 * 1024)

static const char *const cause_names[] = {
    [EXEC_OK] = "ok",
    [EXEC_TOOL_ERROR] = "tool_error",
    [EXEC_TIMEOUT] = "timeout",
    [EXEC_CANCELLED] = "cancelled",
    [EXEC_CPU] = "cpu",
    [EXEC_MEMORY] = "memory",
    [EXEC_SIGNAL] = "signal",
    [EXEC_EXIT] = "exit",
    [EXEC_NO_RESULT] = "no_result",
    [EXEC_BAD_ANSWER] = "bad_answer",
    [EXEC_TOO_LARGE] = "too_large",
    [EXEC_REFUSED] = "refused",
    [EXEC_UNAVAILABLE] = "unavailable",
    [EXEC_UNKNOWN] = "unknown",
};

const char *exec_cause_name(enum exec_cause c)
{
    size_t i = (size_t)c;
    return i < sizeof cause_names / sizeof cause_names[0] ? cause_names[i] : "unknown";
}

bool outcome_retryable(enum exec_cause cause)
{
    switch (cause) {
    case EXEC_TOOL_ERROR:
    case EXEC_TIMEOUT:
    case EXEC_CPU:
    case EXEC_MEMORY:
    case EXEC_SIGNAL:
    case EXEC_EXIT:
    case EXEC_NO_RESULT:
    case EXEC_UNAVAILABLE:
        return true;
    case EXEC_OK:
    case EXEC_CANCELLED:
    case EXEC_BAD_ANSWER:
    case EXEC_TOO_LARGE:
    case EXEC_REFUSED:
    case EXEC_UNKNOWN:
    default:
        return false;
    }
}

void outcome_limits_of(const struct launch_spec *launch, const struct plan_call *call,
                       struct outcome_limits *out)
{
    (void)snprintf(out->backend, sizeof out->backend, "%s", launch->backend);
    out->cpu_seconds = launch->cpu_seconds;
    out->mem_bytes = launch->mem_bytes;
    out->file_bytes = launch->file_bytes;
    out->timeout_ms = call->timeout_ms;
    out->max_output_bytes = call->max_output_bytes;
}

/* ---- pieces of text ------------------------------------------------------------------ */

static void add_duration(struct buf *b, int64_t ms)
{
    if (ms % 1000 == 0) {
        buf_addf(b, "%" PRId64 " s", ms / 1000);
    } else {
        buf_addf(b, "%" PRId64 " ms", ms);
    }
}

static void add_size(struct buf *b, uint64_t bytes)
{
    if (bytes % MIB == 0) {
        buf_addf(b, "%" PRIu64 " MB", bytes / MIB);
    } else {
        buf_addf(b, "%" PRIu64 " bytes", bytes);
    }
}

static bool ends_path(char c)
{
    return c == '\0' || c == ' ' || c == ':' || c == '\'' || c == '"' || c == ',' ||
           c == ')' || c == ';';
}

/* Absolute paths keep their last part only. */
static void add_without_folders(struct buf *b, const char *text)
{
    char before = ' ';
    while (*text != '\0') {
        if (*text == '/' && (ends_path(before) || before == '(')) {
            const char *last = text;
            const char *end = text;
            for (; !ends_path(*end); end++) {
                if (*end == '/' && !ends_path(end[1])) {
                    last = end + 1;
                }
            }
            buf_add(b, last, (size_t)(end - last));
            before = end[-1];
            text = end;
        } else {
            buf_add_char(b, *text);
            before = *text++;
        }
    }
}

static const struct {
    int number;
    const char *label;
} signals[] = {
    {SIGSEGV, " (SIGSEGV: invalid memory access)"},
    {SIGABRT, " (SIGABRT: it aborted itself)"},
    {SIGSYS, " (SIGSYS: a system call that is not allowed)"},
    {SIGKILL, " (SIGKILL)"},
    {SIGTERM, " (SIGTERM)"},
    {SIGINT, " (SIGINT)"},
    {SIGALRM, " (SIGALRM)"},
    {SIGBUS, " (SIGBUS)"},
    {SIGFPE, " (SIGFPE)"},
    {SIGILL, " (SIGILL)"},
    {SIGHUP, " (SIGHUP)"},
    {SIGPIPE, " (SIGPIPE)"},
};

static const char *signal_label(int sig)
{
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (signals[i].number == sig) {
            return signals[i].label;
        }
    }
    return "";
}

/* Head and tail around a note, at most max bytes, cut between characters. */
static void add_capped(struct buf *b, struct str text, size_t max)
{
    if (max == 0 || text.len <= max) {
        buf_add_str(b, text);
        return;
    }
    size_t room = max > NOTE_MAX ? max - NOTE_MAX : 0;
    size_t head = utf8_cut(text, room - room / 3);
    size_t tail = text.len - room / 3;
    while (tail < text.len && ((unsigned char)text.ptr[tail] & 0xC0) == 0x80) {
        tail++;
    }
    buf_add(b, text.ptr, head);
    buf_addf(b, "\n[... %zu of %zu bytes left out ...]\n", tail - head, text.len);
    buf_add(b, text.ptr + tail, text.len - tail);
}

/* ---- standard texts ------------------------------------------------------------------ */

static void text_of_limit(enum exec_cause cause, const struct outcome_limits *l,
                          struct buf *b)
{
    if (cause == EXEC_TIMEOUT) {
        buf_add_c(b, "stopped: time limit of ");
        add_duration(b, l->timeout_ms);
        buf_add_c(b, " reached");
    } else if (cause == EXEC_CPU) {
        buf_addf(b, "stopped: CPU limit of %" PRIu64 " s reached", l->cpu_seconds);
    } else if (l->mem_bytes == SPAWN_NO_LIMIT) {
        buf_add_c(b, "stopped: out of memory");
    } else {
        buf_add_c(b, "stopped: memory limit of ");
        add_size(b, l->mem_bytes);
        buf_add_c(b, " reached");
    }
}

static void text_of_signal(int sig, const struct outcome_limits *l, struct buf *b)
{
    if (sig == SIGXFSZ && l->file_bytes != SPAWN_NO_LIMIT) {
        buf_add_c(b, "stopped: file size limit of ");
        add_size(b, l->file_bytes);
        buf_add_c(b, " reached");
        return;
    }
    buf_addf(b, "the tool was killed by signal %d%s", sig, signal_label(sig));
}

static void text_of(const struct exec_outcome *o, const struct outcome_limits *l,
                    struct buf *b)
{
    switch (o->cause) {
    case EXEC_TIMEOUT:
    case EXEC_CPU:
    case EXEC_MEMORY:
        text_of_limit(o->cause, l, b);
        break;
    case EXEC_CANCELLED:
        buf_add_c(b, "stopped: the call was cancelled");
        break;
    case EXEC_SIGNAL:
        text_of_signal(o->detail, l, b);
        break;
    case EXEC_EXIT:
        buf_addf(b, "the tool exited with code %d before it gave a result", o->detail);
        break;
    case EXEC_NO_RESULT:
        buf_add_c(b, "the tool ended without a result");
        break;
    case EXEC_BAD_ANSWER:
        buf_add_c(b, "the tool's answer could not be read");
        break;
    case EXEC_TOO_LARGE:
        buf_add_c(b, "the tool's result is too large");
        break;
    case EXEC_REFUSED:
        buf_add_c(b, "the tool was not run");
        break;
    case EXEC_UNAVAILABLE:
        buf_addf(b, "the tool was not run: executor '%s' is not available", l->backend);
        break;
    case EXEC_UNKNOWN:
        buf_addf(
            b,
            "executor '%s' was lost after the call was sent: whether the tool did its "
            "work is not known",
            l->backend);
        break;
    case EXEC_OK:
    case EXEC_TOOL_ERROR:
    default:
        break;
    }
}

void outcome_set(enum exec_cause cause, const struct outcome_limits *l, const char *why,
                 struct exec_outcome *out)
{
    out->cause = cause;
    buf_clear(&out->text);
    text_of(out, l, &out->text);
    if (why != NULL && why[0] != '\0') {
        buf_add_c(&out->text, ": ");
        add_without_folders(&out->text, why);
    }
}

/* ---- answers ------------------------------------------------------------------------- */

/* The harness keeps these short; a forged answer need not. */
static void add_clipped(struct buf *b, struct str s)
{
    buf_add_str(b, str_n(s.ptr, utf8_cut(s, s.len < ERROR_PART ? s.len : ERROR_PART)));
}

static void add_error_text(const struct frame_answer *a, struct buf *b)
{
    if (a->traceback.len > 0) {
        add_clipped(b, a->traceback);
        return;
    }
    add_clipped(b, a->err_class);
    if (a->err_message.len > 0) {
        buf_add_c(b, ": ");
        add_clipped(b, a->err_message);
    }
}

static void set_error(const struct frame_answer *a, const struct outcome_limits *l,
                      struct exec_outcome *out)
{
    struct buf whole;
    buf_init(&whole, (size_t)64 * 1024);
    if (str_eq_c(a->cause, "exit")) {
        out->detail = a->detail;
        outcome_set(EXEC_EXIT, l, NULL, out);
        buf_add_str(&whole, buf_str(&out->text));
        if (a->err_message.len > 0) {
            buf_add_c(&whole, ": ");
            add_clipped(&whole, a->err_message);
        }
    } else if (str_eq_c(a->cause, "memory")) {
        outcome_set(EXEC_MEMORY, l, NULL, out);
        buf_add_str(&whole, buf_str(&out->text));
        if (a->traceback.len > 0) {
            buf_add_char(&whole, '\n');
            add_clipped(&whole, a->traceback);
        }
    } else {
        out->cause = EXEC_TOOL_ERROR;
        add_error_text(a, &whole);
    }
    buf_clear(&out->text);
    add_capped(&out->text, buf_str(&whole), l->max_output_bytes);
    buf_done(&whole);
}

void outcome_from_answer(const struct frame_answer *a, const struct outcome_limits *l,
                         struct exec_outcome *out)
{
    if (a->is_error) {
        set_error(a, l, out);
        return;
    }
    out->cause = EXEC_OK;
    buf_clear(&out->text);
    add_capped(&out->text, a->result, l->max_output_bytes);
}

/* ---- ends without an answer ---------------------------------------------------------- */

static bool hit_cpu_limit(const struct sy_result *r, const struct outcome_limits *l)
{
    if (l->cpu_seconds == SPAWN_NO_LIMIT) {
        return false;
    }
    /* 128 + n is how an init process or a shell passes a signal on. */
    if (r->term_signal == SIGXCPU || r->exit_code == 128 + SIGXCPU) {
        return true;
    }
    bool killed = r->term_signal == SIGKILL || r->exit_code == 128 + SIGKILL;
    return killed && r->cpu_ms >= 0 &&
           (uint64_t)r->cpu_ms + CPU_SLACK_MS >= l->cpu_seconds * 1000;
}

static enum exec_cause cause_of_process(const struct sy_result *r,
                                        const struct outcome_limits *l, int *detail)
{
    if (r->oom_killed != 0) {
        return EXEC_MEMORY;
    }
    if (hit_cpu_limit(r, l)) {
        return EXEC_CPU;
    }
    if (r->term_signal != 0) {
        *detail = r->term_signal;
        return EXEC_SIGNAL;
    }
    if (r->exit_code > 0) {
        *detail = r->exit_code;
        return EXEC_EXIT;
    }
    return EXEC_NO_RESULT;
}

void outcome_from_end(const struct outcome_end *end, const struct outcome_limits *l,
                      struct exec_outcome *out)
{
    out->detail = 0;
    if (end->status == ST_TIMEOUT) {
        outcome_set(EXEC_TIMEOUT, l, NULL, out);
    } else if (end->cancelled || end->status == ST_CANCELLED) {
        outcome_set(EXEC_CANCELLED, l, NULL, out);
    } else if (end->status == ST_OK) {
        outcome_set(cause_of_process(&end->result, l, &out->detail), l, NULL, out);
    } else if (end->status == ST_REFUSED) {
        outcome_set(EXEC_REFUSED, l, end->why, out);
    } else if (end->result.request_sent != 0) {
        outcome_set(EXEC_UNKNOWN, l, NULL, out);
    } else {
        outcome_set(EXEC_UNAVAILABLE, l, end->why, out);
    }
}
