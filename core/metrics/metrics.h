/* Counters and gauges in Prometheus text form. Names and help are static text; label
 * values come from small closed sets, never from strangers. */
#ifndef SOULACY_METRICS_METRICS_H
#define SOULACY_METRICS_METRICS_H

#include "base/buf.h"

#include <stdint.h>

struct metrics;

enum metric {
    METRIC_HTTP_REQUESTS, /* soulacy_http_requests_total */
    METRIC_HTTP_REJECTED, /* soulacy_http_rejected_total (auth, limits, caps) */
    METRIC_MESSAGES,      /* soulacy_messages_total */
    METRIC_TURNS,         /* soulacy_turns_total */
    METRIC_TURNS_ACTIVE,  /* soulacy_turns_active, gauge */
    METRIC_TOOL_CALLS,    /* soulacy_tool_calls_total */
    METRIC_TOOL_DENIED,   /* soulacy_tool_denied_total */
    METRIC_TOOL_FAILED,   /* soulacy_tool_failed_total */
    METRIC_RUNS_ACTIVE,   /* soulacy_runs_active, gauge */
    METRIC_AUDIT_FAILED,  /* soulacy_audit_failed_total */
    METRIC_PLUGIN_MISBEHAVED,
    METRIC_COUNT_
};

struct metrics *metrics_new(void) SY_MUST_CHECK;
void metrics_free(struct metrics *m);
void metric_add(struct metrics *m, enum metric which, int64_t n); /* [any], lock-free */
int64_t metric_get(const struct metrics *m, enum metric which);
void metrics_print(const struct metrics *m, struct buf *out);

#endif
