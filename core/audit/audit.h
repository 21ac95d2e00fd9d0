/* One record per verdict and per run, as JSON lines in an append-only file. Each record
 * carries the hash of the one before; the head is also kept outside the file. Arguments
 * appear only as a keyed hash. Denials of one kind within a second are coalesced. */
#ifndef SOULACY_AUDIT_AUDIT_H
#define SOULACY_AUDIT_AUDIT_H

#include "base/error.h"
#include "base/str.h"

struct audit;

struct audit_record {  /* empty members are left out; all borrowed */
    const char *event; /* "message", "call", "run", "reload", "start", "stop" */
    const char *entry; /* "chat", "tools.run", "cli", ... */
    struct str run_id, agent, channel, sender, tool, session;
    const char *verdict; /* "allow", "deny", "ask" */
    const char *row;     /* id of the deciding row */
    struct str args;     /* hashed, never written */
    const char *cause;   /* of a run: exec_cause_name */
    struct str detail;   /* one line */
    int64_t took_ms;     /* -1: left out */
};

/* The anchor: called after each written record with the new head (64 hex), and once at
 * open to learn the last known head (empty: none). */
struct audit_anchor {
    void *ctx;
    void (*save)(void *ctx, const char *head_hex, uint64_t count);
    bool (*load)(void *ctx, char head_hex[65], uint64_t *count);
};

/* required: audit_write fails when it cannot be written, and the caller must not go on;
 * otherwise a failure is counted and the next success notes the gap. key: 32 random bytes
 * kept in key_file (0600, made if absent). */
enum status audit_open(const char *file, const char *key_file, bool required,
                       const struct audit_anchor *anchor, struct audit **out,
                       struct error *err) SY_MUST_CHECK;
void audit_close(struct audit *a); /* NULL is fine */
enum status audit_write(struct audit *a, const struct audit_record *r,
                        struct error *err) SY_MUST_CHECK; /* [any] */
/* Records that could not be written since audit_open. [any] */
uint64_t audit_failed(struct audit *a);
/* For tests: the clock that tells when denials are no longer coalesced. */
void audit_set_clock(struct audit *a, int64_t (*now_ms)(void));
/* Check a file from its first record; anchor may be NULL. err names the first bad line. */
enum status audit_verify(const char *file, const struct audit_anchor *anchor,
                         uint64_t *records, struct error *err) SY_MUST_CHECK;

#endif
