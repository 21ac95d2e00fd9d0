/* The log stream of a tool, made fit to hand on: valid UTF-8, whole lines or pieces of at
 * most LOGTEXT_PIECE bytes, capped. Pure. */
#ifndef SOULACY_EXEC_LOGTEXT_H
#define SOULACY_EXEC_LOGTEXT_H

#include "base/buf.h"

#define LOGTEXT_PIECE 4096
#define LOGTEXT_MAX ((size_t)1024 * 1024) /* bytes of one run; then one note, no more */

struct logtext {
    struct buf pending; /* raw bytes of a line that is not complete */
    size_t seen;        /* bytes taken so far */
    bool cut;           /* over the cap; the note was given */
    void (*emit)(void *ctx, struct str text);
    void *ctx;
};

void logtext_init(struct logtext *t, void (*emit)(void *ctx, struct str text), void *ctx);
void logtext_done(struct logtext *t);
void logtext_feed(struct logtext *t, struct str bytes);
/* Nothing more comes, or an answer does: hand on what is left. */
void logtext_flush(struct logtext *t);

#endif
