/* The log: one line a record, to stderr or a file, console or JSON. Only the stage that
 * decides logs; library code returns errors. Text is made visible (no control bytes).
 * Values registered with log_hide_secret are replaced by "***" should they ever appear. */
#ifndef SOULACY_BASE_LOG_H
#define SOULACY_BASE_LOG_H

#include "base/error.h"
#include "base/secret.h"

enum log_level { LOG_DEBUG = 0, LOG_INFO = 1, LOG_WARN = 2, LOG_ERROR = 3 };
enum log_format { LOG_CONSOLE = 0, LOG_JSON = 1 };

struct log;

/* path "" or NULL: stderr. [any] functions take an internal lock. */
enum status log_open(enum log_level level, enum log_format format, const char *path,
                     struct log **out, struct error *err) SY_MUST_CHECK;
void log_close(struct log *l);
/* Register a value that must never be written (8 bytes or longer; shorter ones are
 * ignored). Copies, erased at log_close. */
enum status log_hide_secret(struct log *l, const struct secret *s) SY_MUST_CHECK;
/* l == NULL writes nothing. part: "gate", "server", "plugin whatsapp" ... */
void log_line(struct log *l, enum log_level level, const char *part, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
