/* Status codes of the core. Values 0..-10 are the same numbers as sy_status of the
 * plugin ABI (include/soulacy/plugin.h), so that they cross that border unchanged.
 * The core-only ones start at -100 and never cross it. */
#ifndef SOULACY_BASE_STATUS_H
#define SOULACY_BASE_STATUS_H

#define SY_MUST_CHECK __attribute__((warn_unused_result))

enum status {
    ST_OK = 0,
    ST_INVALID = -1,     /* bad input, or a broken contract */
    ST_NOMEM = -2,       /* out of memory, or over a compulsory maximum */
    ST_UNSUPPORTED = -3, /* understood, cannot be done here */
    ST_REFUSED = -4,     /* a rule or a constraint says no: nothing was done */
    ST_TIMEOUT = -5,
    ST_CANCELLED = -6,
    ST_BUSY = -7, /* back-pressure: try later */
    ST_IO = -8,
    ST_AUTH = -9,
    ST_INTERNAL = -10,
    ST_NOT_FOUND = -100,
    ST_CONFLICT = -101,
    ST_TOO_LARGE = -102
};

/* Static text such as "invalid" or "not found"; "unknown status" for any other value. */
const char *status_name(enum status st);

#endif
