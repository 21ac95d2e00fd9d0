/* Plans in, outcomes out, by a function of the test. Never starts anything. */
#include "support/fake_exec.h"

#include "base/clock.h"

#include <poll.h>

#define OUT_MAX ((size_t)128 * 1024 * 1024)

void exec_run(struct exec *e, const struct plan *plan, const struct event *cancel,
              const struct exec_events *events, struct exec_outcome *out)
{
    *out = (struct exec_outcome){.attempts = 1, .cpu_ms = -1, .max_rss_bytes = -1};
    buf_init(&out->text, OUT_MAX);
    atomic_fetch_add(&e->runs, 1);
    if (e->run != NULL) {
        e->run(e->ctx, plan, cancel, events, out);
    } else {
        buf_add_str(&out->text, plan_call(plan)->args);
    }
}

void fake_exec_hang(const struct plan *plan, const struct event *cancel,
                    struct exec_outcome *out)
{
    int64_t until = clock_mono_ms() + plan_call(plan)->timeout_ms;
    enum status st = io_wait(cancel->fd, POLLIN, -1, until);
    out->cause = st == ST_OK ? EXEC_CANCELLED : EXEC_TIMEOUT;
    buf_add_c(&out->text, st == ST_OK ? "cancelled" : "timed out");
}

void exec_outcome_done(struct exec_outcome *o)
{
    buf_done(&o->text);
}

const char *exec_cause_name(enum exec_cause c)
{
    return c == EXEC_OK          ? "ok"
           : c == EXEC_CANCELLED ? "cancelled"
           : c == EXEC_TIMEOUT   ? "timeout"
                                 : "tool_error";
}

const char *exec_bootstrap(void)
{
    return "boot";
}
