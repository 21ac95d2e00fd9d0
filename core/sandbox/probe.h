/* The probe: a child that tries what must fail and what must work at a level, so that
 * status, /readyz and doctor report what is in force rather than what is configured. */
#ifndef SOULACY_SANDBOX_PROBE_H
#define SOULACY_SANDBOX_PROBE_H

#include "base/buf.h"
#include "sandbox/spawn.h"

/* Answers of one attempt inside the child. */
enum probe_answer { PROBE_BLOCKED, PROBE_ALLOWED, PROBE_NOT_TRIED };

struct probe_item {
    const char
        *name; /* "read_canary", "connect_tcp", "connect_mptcp", "udp", "unix_path",
                          "unix_abstract", "ptrace", "mount", "kill_parent", "raise_limit",
                          "proc_gateway", "own_work_folder", ... */
    enum probe_answer want, got;
};

#define PROBE_MAX_ITEMS 32

struct probe_report {
    bool ok; /* every item got what it should at this level */
    enum isolation level;
    size_t nitems;
    struct probe_item items[PROBE_MAX_ITEMS];
    char layers[512];  /* JSON, as told by the supervisor */
    char problem[240]; /* why not ok, or "" */
    int64_t took_ms;
};

/* Run the probe child under plan's isolation, uid, limits and paths (argv is replaced by
 * the helper's own probe personality). Blocks up to deadline_ms. */
enum status probe_run(struct spawn *s, const struct spawn_plan *plan, int64_t deadline_ms,
                      struct probe_report *out, struct error *err) SY_MUST_CHECK;
void probe_report_json(const struct probe_report *r, struct buf *out);

#endif
