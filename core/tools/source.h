/* The bytes of a Python tool, from the opened and checked file. */
#ifndef SOULACY_TOOLS_SOURCE_H
#define SOULACY_TOOLS_SOURCE_H

#include "base/buf.h"
#include "config/soul.h"

#define TOOL_SOURCE_MAX ((size_t)4 * 1024 * 1024)

struct source {
    struct buf text;
    char *filename;  /* bare name for tracebacks */
    char *folder;    /* real path of the folder of a python_file; NULL for inline */
    char digest[65]; /* SHA-256 of text */
};

/* Open, check against allowed (runtime.allowed_tool_dirs; empty: any place) on the opened
 * file without following a link out, read. ST_REFUSED, ST_NOT_FOUND, ST_TOO_LARGE; the
 * error names the tool and its file's bare name. */
enum status source_read(const struct soul_tool *tool, const struct str_list *allowed,
                        struct source *out, struct error *err) SY_MUST_CHECK;
void source_done(struct source *s);

#endif
