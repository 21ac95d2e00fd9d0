/* Denials of one kind within a second share a record. Private to the audit; the caller
 * holds its lock. */
#ifndef SOULACY_AUDIT_DENIALS_H
#define SOULACY_AUDIT_DENIALS_H

#include "audit/audit.h"
#include "base/buf.h"

#define DENIAL_KINDS 16
#define DENIAL_WINDOW_MS 1000

/* What makes a kind: event, entry, agent, channel, tool, row. Not the sender: a stranger
 * picks that, and a flood would pick a new one each time. */
struct denial {
    struct buf kind; /* the six, each with a NUL behind; empty: a free slot */
    int64_t since_ms;
    uint64_t more; /* denials after the one that was written */
};

struct denials {
    struct denial slots[DENIAL_KINDS];
};

void denials_init(struct denials *d);
void denials_done(struct denials *d);
/* True when a record of this kind was written within the window: the denial is counted
 * and need not be written. */
bool denials_count(struct denials *d, const struct audit_record *r, int64_t now_ms);
/* Open a window for the kind of a record that has just been written. Needs a free slot;
 * without one, or without memory, nothing is coalesced. */
void denials_open(struct denials *d, const struct audit_record *r, int64_t now_ms);
/* The oldest window when it is over at now_ms (INT64_MAX: in any case), else NULL. */
struct denial *denials_due(struct denials *d, int64_t now_ms);
/* The oldest window when there is no free slot, else NULL. */
struct denial *denials_full(struct denials *d);
/* The record that tells of the denials counted in it; borrows from it. */
void denial_record(const struct denial *one, struct audit_record *out);
void denial_clear(struct denial *one);

#endif
