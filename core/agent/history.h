/* A session's stored messages as a model may see them, and back. */
#ifndef SOULACY_AGENT_HISTORY_H
#define SOULACY_AGENT_HISTORY_H

#include "model/model.h"
#include "store/store.h"

/* The newest messages of the session, oldest first, repaired; none for a new session.
 * Everything lives in the arena. */
enum status history_load(struct store *s, struct session_key key, struct arena *a,
                         struct model_message **out, size_t *n,
                         struct error *err) SY_MUST_CHECK;

/* What a crash, a cancelled run or the cut at the old end left half: messages before the
 * first of a user and results that answer no call are left out, a call without a result
 * gets one that says so. Providers refuse anything else, and would on each later turn.
 * Pure. */
enum status history_repair(const struct model_message *in, size_t n, struct arena *a,
                           struct model_message **out, size_t *nout) SY_MUST_CHECK;

/* The row of one message. It borrows m's texts; the calls' JSON lives in the arena. */
enum status history_row(const struct model_message *m, struct arena *a,
                        struct message *out) SY_MUST_CHECK;

#endif
