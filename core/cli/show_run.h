/* A turn's or a tool call's report as text for people. Private to core/cli. */
#ifndef SOULACY_CLI_SHOW_RUN_H
#define SOULACY_CLI_SHOW_RUN_H

#include "cli/command.h"

/* One call as the API reports it: {"tool":..,"verdict":..,...}. verbose: every stage. */
void show_call(const cJSON *call, bool verbose, struct buf *out);
/* Who spoke, and by which row the message was let in: {"channel":..,"sender":..}. */
void show_admission(const cJSON *admission, struct buf *out);

#endif
