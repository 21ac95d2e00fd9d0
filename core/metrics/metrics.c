/* Counters and gauges. In: additions from any thread, without a lock. Out: the Prometheus
 * text form. Never keeps a name, a label or a number that a stranger chose. */
#include "metrics/metrics.h"

#include "base/io.h"
#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

struct metrics {
    atomic_int_fast64_t values[METRIC_COUNT_];
};

struct description {
    const char *name, *help;
    bool gauge;
};

static const struct description descriptions[METRIC_COUNT_] = {
    [METRIC_HTTP_REQUESTS] = {"soulacy_http_requests_total", "HTTP requests.", false},
    [METRIC_HTTP_REJECTED] = {"soulacy_http_rejected_total",
                              "HTTP requests refused for the key, a limit or a cap.",
                              false},
    [METRIC_MESSAGES] = {"soulacy_messages_total", "Messages taken in from channels.",
                         false},
    [METRIC_TURNS] = {"soulacy_turns_total", "Agent turns started.", false},
    [METRIC_TURNS_ACTIVE] = {"soulacy_turns_active", "Agent turns running now.", true},
    [METRIC_TOOL_CALLS] = {"soulacy_tool_calls_total", "Tool calls asked for.", false},
    [METRIC_TOOL_DENIED] = {"soulacy_tool_denied_total", "Tool calls denied by the gate.",
                            false},
    [METRIC_TOOL_FAILED] = {"soulacy_tool_failed_total",
                            "Tool calls that ran and failed.", false},
    [METRIC_RUNS_ACTIVE] = {"soulacy_runs_active", "Tool runs going on now.", true},
    [METRIC_AUDIT_FAILED] = {"soulacy_audit_failed_total",
                             "Audit records that could not be written.", false},
    [METRIC_PLUGIN_MISBEHAVED] = {"soulacy_plugin_misbehaved_total",
                                  "Calls in which a plugin broke its contract.", false},
};

struct metrics *metrics_new(void)
{
    struct metrics *m = mem_zalloc(sizeof(*m));
    for (size_t i = 0; m != NULL && i < METRIC_COUNT_; i++) {
        atomic_init(&m->values[i], 0);
    }
    return m;
}

void metrics_free(struct metrics *m)
{
    mem_free(m);
}

void metric_add(struct metrics *m, enum metric which, int64_t n)
{
    if (m != NULL && (unsigned)which < METRIC_COUNT_) {
        atomic_fetch_add_explicit(&m->values[which], n, memory_order_relaxed);
    }
}

int64_t metric_get(const struct metrics *m, enum metric which)
{
    if (m == NULL || (unsigned)which >= METRIC_COUNT_) {
        return 0;
    }
    return atomic_load_explicit(&m->values[which], memory_order_relaxed);
}

static void print_one(struct buf *out, const struct description *d, int64_t value)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRId64 "\n", d->name, d->help,
             d->name, d->gauge ? "gauge" : "counter", d->name, value);
}

/* Resident bytes of this process; 0 where /proc does not say. */
static int64_t resident_bytes(void)
{
    char text[128];
    int64_t pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? io_read(fd, text, sizeof(text)) : 0;
    io_close(&fd);
    struct str rest = str_n(text, n > 0 ? (size_t)n : 0);
    struct str field = STR_NONE;
    for (int i = 0; i < 2; i++) { /* the second field */
        if (!str_split(&rest, ' ', &field)) {
            return 0;
        }
    }
    if (str_to_i64(field, 0, INT64_MAX / 65536, &pages) != ST_OK) {
        return 0;
    }
    return pages * sysconf(_SC_PAGESIZE);
}

void metrics_print(const struct metrics *m, struct buf *out)
{
    static const struct description resident = {"process_resident_memory_bytes",
                                                "Resident memory.", true};
    for (size_t i = 0; i < METRIC_COUNT_; i++) {
        print_one(out, &descriptions[i], metric_get(m, (enum metric)i));
    }
    print_one(out, &resident, resident_bytes());
}
