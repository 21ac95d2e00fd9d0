/* Shared inside core/gate: how a table of rows is judged. */
#ifndef SOULACY_GATE_ROWS_H
#define SOULACY_GATE_ROWS_H

#include "gate/gate.h"

/* Which entries an agent of that trigger serves. */
bool gate_trigger_fits(enum trigger trigger, enum gate_entry entry);
/* The agent's `channels` admits the stamp. */
bool gate_channel_served(const struct soul *soul, struct str channel);
/* list names item */
bool gate_listed(const struct str_list *list, struct str item);
/* An admitted that no message stands behind: for gate_explain alone. */
enum status gate_suppose(const struct soul *soul, const struct origin *from,
                         struct admitted **out) SY_MUST_CHECK;

#endif
