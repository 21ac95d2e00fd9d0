/* State in SQLite (WAL, synchronous=FULL). One store thread owns the only writing
 * connection; writes are queued to it and those that wait at the same moment share one
 * transaction (group commit). A write call returns once its transaction is on disk. Reads
 * use read-only connections. A lock file keeps a second gateway out. */
#ifndef SOULACY_STORE_STORE_H
#define SOULACY_STORE_STORE_H

#include "base/arena.h"
#include "base/error.h"

struct store;

/* Makes state_dir (0700) and the database, or migrates an older one forward; refuses a
 * newer schema by name and number. ST_BUSY: another process holds the lock. */
enum status store_open(const char *state_dir, struct store **out,
                       struct error *err) SY_MUST_CHECK;
void store_close(struct store *s); /* finishes queued writes; NULL is fine */
/* Disk usable? Text says what is wrong. Cheap: answered from the last write. [any] */
enum status store_health(struct store *s, struct error *err) SY_MUST_CHECK;

struct store_stats {
    uint64_t transactions; /* each is one wait for the disk */
    uint64_t writes;       /* calls that wrote; those that waited together share one */
    uint64_t failures;     /* of them */
    size_t queued;         /* waiting now */
};
void store_stats(struct store *s, struct store_stats *out); /* [any] */

/* Whose conversation. All borrowed. */
struct session_key {
    struct str agent, channel, conversation;
};

enum message_role { ROLE_USER = 1, ROLE_ASSISTANT = 2, ROLE_TOOL = 3 };

/* One stored message. tool_calls: JSON array text of an assistant's calls, or empty.
 * call_id, tool_name: of a tool result. */
struct message {
    int64_t id; /* row, rising within the store; 0 on input */
    enum message_role role;
    int64_t at_unix_ms;
    bool is_error;
    struct str run_id, text, tool_calls, call_id, tool_name;
};

struct session_info {
    char id[33]; /* random, for URLs */
    struct str agent, channel, conversation, user, username;
    int64_t created_unix_ms, updated_unix_ms, messages;
};

/* Append messages to the session, made if absent (user, username: remembered). Durable
 * on return. ST_IO: disk full, read-only, locked. [any] */
enum status store_append(struct store *s, struct session_key key, struct str user,
                         struct str username, const struct message *msgs, size_t n,
                         char session_id[33], struct error *err) SY_MUST_CHECK;
/* The newest messages, oldest first, at most max_messages and max_bytes of text. */
enum status store_history(struct store *s, struct session_key key, size_t max_messages,
                          size_t max_bytes, struct arena *a, struct message **out,
                          size_t *n, struct error *err) SY_MUST_CHECK;
/* Newest first; before_unix_ms 0 = from the newest; agent empty = all. */
enum status store_sessions(struct store *s, struct str agent, int64_t before_unix_ms,
                           size_t max, struct arena *a, struct session_info **out,
                           size_t *n, struct error *err) SY_MUST_CHECK;
enum status store_session(struct store *s, struct str id, struct arena *a,
                          struct session_info *out, struct error *err) SY_MUST_CHECK;
/* Messages of a session by its id, after row after_id, oldest first. */
enum status store_session_messages(struct store *s, struct str id, int64_t after_id,
                                   size_t max, struct arena *a, struct message **out,
                                   size_t *n, struct error *err) SY_MUST_CHECK;
enum status store_session_delete(struct store *s, struct str id,
                                 struct error *err) SY_MUST_CHECK;

/* Small named values (audit head, schema of things to come). */
enum status store_put(struct store *s, const char *name, struct str value,
                      struct error *err) SY_MUST_CHECK;
/* As store_put, but returns at once: on disk with one of the next transactions, in order
 * with other writes. A failure shows in store_health only. */
enum status store_put_later(struct store *s, const char *name, struct str value,
                            struct error *err) SY_MUST_CHECK;
/* ST_NOT_FOUND when absent. */
enum status store_get(struct store *s, const char *name, struct arena *a, struct str *out,
                      struct error *err) SY_MUST_CHECK;

#endif
