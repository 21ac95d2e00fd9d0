/* Sessions and their messages. In: a key or an id. Out: rows in the caller's arena, or
 * rows on disk. Never reads more rows than were asked for: every query walks an index. */
#include "store/store.h"

#include "base/clock.h"
#include "base/io.h"
#include "store/store_private.h"

#include <string.h>

#define KEY_MAX_BYTES 1024
#define TEXT_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define SESSION_ID_LEN 32

struct append_op {
    struct write_op op;
    struct session_key key;
    struct str user, username;
    const struct message *msgs;
    size_t n;
    int64_t now_unix_ms;
    char id[SESSION_ID_LEN + 1]; /* out; a fresh one on input */
};

static enum status add_session(struct db *db, const struct append_op *a, int64_t *row_id,
                               struct error *err)
{
    struct query q;
    bool row = false;
    query_begin(&q, db, SQL_SESSION_ADD);
    query_str(&q, str_c(a->id));
    query_str(&q, a->key.agent);
    query_str(&q, a->key.channel);
    query_str(&q, a->key.conversation);
    query_i64(&q, a->now_unix_ms);
    query_i64(&q, a->now_unix_ms);
    enum status st = query_step(&q, &row, err);
    if (st == ST_OK && row) {
        *row_id = query_col_i64(&q, 0);
        st = query_run(&q, err);
    }
    query_end(&q);
    return st;
}

static enum status find_or_add_session(struct db *db, struct append_op *a,
                                       int64_t *row_id, struct error *err)
{
    struct query q;
    bool row = false;
    query_begin(&q, db, SQL_SESSION_FIND);
    query_str(&q, a->key.agent);
    query_str(&q, a->key.channel);
    query_str(&q, a->key.conversation);
    enum status st = query_step(&q, &row, err);
    if (st == ST_OK && row) {
        *row_id = query_col_i64(&q, 0);
        struct str id = query_col_str(&q, 1);
        if (id.len == SESSION_ID_LEN) {
            memcpy(a->id, id.ptr, id.len);
        }
    }
    query_end(&q);
    return st == ST_OK && !row ? add_session(db, a, row_id, err) : st;
}

static enum status add_message(struct db *db, const struct append_op *a, int64_t row_id,
                               const struct message *m, struct error *err)
{
    struct query q;
    query_begin(&q, db, SQL_MESSAGE_ADD);
    query_i64(&q, row_id);
    query_i64(&q, m->role);
    query_i64(&q, m->at_unix_ms != 0 ? m->at_unix_ms : a->now_unix_ms);
    query_i64(&q, m->is_error ? 1 : 0);
    query_str(&q, m->run_id);
    query_str(&q, m->text);
    query_str(&q, m->tool_calls);
    query_str(&q, m->call_id);
    query_str(&q, m->tool_name);
    enum status st = query_run(&q, err);
    query_end(&q);
    return st;
}

static enum status run_append(struct db *db, struct write_op *op, struct error *err)
{
    struct append_op *a = (struct append_op *)op;
    int64_t row_id = 0;
    enum status st = find_or_add_session(db, a, &row_id, err);
    for (size_t i = 0; st == ST_OK && i < a->n; i++) {
        st = add_message(db, a, row_id, &a->msgs[i], err);
    }
    if (st != ST_OK) {
        return st;
    }
    struct query q;
    query_begin(&q, db, SQL_SESSION_TOUCH);
    query_i64(&q, row_id);
    query_str(&q, a->user);
    query_str(&q, a->username);
    query_i64(&q, a->now_unix_ms);
    query_i64(&q, (int64_t)a->n);
    st = query_run(&q, err);
    query_end(&q);
    return st;
}

static enum status check_append(const struct append_op *a, struct error *err)
{
    const struct str names[] = {a->key.agent, a->key.channel, a->key.conversation,
                                a->user, a->username};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (names[i].len > KEY_MAX_BYTES) {
            return error_set(err, ST_TOO_LARGE, "session: a name over %d bytes",
                             KEY_MAX_BYTES);
        }
    }
    if (a->key.agent.len == 0 || a->key.channel.len == 0) {
        return error_set(err, ST_INVALID, "session: without agent or channel");
    }
    for (size_t i = 0; i < a->n; i++) {
        const struct message *m = &a->msgs[i];
        if (m->role < ROLE_USER || m->role > ROLE_TOOL) {
            return error_set(err, ST_INVALID, "message with role %d", (int)m->role);
        }
        if (m->text.len > TEXT_MAX_BYTES || m->tool_calls.len > TEXT_MAX_BYTES ||
            m->run_id.len > KEY_MAX_BYTES || m->call_id.len > KEY_MAX_BYTES ||
            m->tool_name.len > KEY_MAX_BYTES) {
            return error_set(err, ST_TOO_LARGE, "message too large to keep");
        }
    }
    return ST_OK;
}

static enum status make_id(char out[SESSION_ID_LEN + 1], struct error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[SESSION_ID_LEN / 2];
    enum status st = io_random(bytes, sizeof(bytes), err);
    for (size_t i = 0; st == ST_OK && i < sizeof(bytes); i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 0x0fU];
    }
    return st;
}

enum status store_append(struct store *s, struct session_key key, struct str user,
                         struct str username, const struct message *msgs, size_t n,
                         char session_id[33], struct error *err)
{
    struct append_op a = {
        .op.run = run_append,
        .key = key,
        .user = user,
        .username = username,
        .msgs = msgs,
        .n = n,
        .now_unix_ms = clock_unix_ms(),
    };
    enum status st = check_append(&a, err);
    if (st == ST_OK) {
        st = make_id(a.id, err);
    }
    if (st == ST_OK) {
        st = writer_run(s->writer, &a.op, err);
    }
    if (st == ST_OK && session_id != NULL) {
        memcpy(session_id, a.id, sizeof(a.id));
    }
    return st;
}

struct delete_op {
    struct write_op op;
    struct str id;
};

static enum status run_delete(struct db *db, struct write_op *op, struct error *err)
{
    const struct delete_op *d = (const struct delete_op *)op;
    struct query q;
    bool row = false;
    query_begin(&q, db, SQL_SESSION_DELETE);
    query_str(&q, d->id);
    enum status st = query_step(&q, &row, err);
    if (st == ST_OK) {
        st = row ? query_run(&q, err) : error_set(err, ST_NOT_FOUND, "no such session");
    }
    query_end(&q);
    return st;
}

enum status store_session_delete(struct store *s, struct str id, struct error *err)
{
    struct delete_op d = {.op.run = run_delete, .id = id};
    return writer_run(s->writer, &d.op, err);
}

/* LIMIT takes a signed number. */
static int64_t limit_of(size_t max)
{
    return max > INT64_MAX ? INT64_MAX : (int64_t)max;
}

static bool copy_column(struct query *q, int column, struct arena *a, struct str *out)
{
    struct str s = query_col_str(q, column);
    char *copy = arena_dup(a, s);
    *out = str_n(copy, copy != NULL ? s.len : 0);
    return copy != NULL;
}

/* Rows as they come, before their number is known. */
struct message_row {
    struct message_row *next;
    struct message m;
};

static struct message_row *copy_message(struct query *q, struct arena *a)
{
    struct message_row *row = arena_alloc(a, sizeof(*row));
    if (row == NULL) {
        return NULL;
    }
    row->m.id = query_col_i64(q, 0);
    row->m.role = (enum message_role)query_col_i64(q, 1);
    row->m.at_unix_ms = query_col_i64(q, 2);
    row->m.is_error = query_col_i64(q, 3) != 0;
    bool ok =
        copy_column(q, 4, a, &row->m.run_id) && copy_column(q, 5, a, &row->m.text) &&
        copy_column(q, 6, a, &row->m.tool_calls) &&
        copy_column(q, 7, a, &row->m.call_id) && copy_column(q, 8, a, &row->m.tool_name);
    return ok ? row : NULL;
}

/* Read rows until the end or until max_bytes are reached; *last is the last one, each
 * points to the one before. */
static enum status read_messages(struct query *q, size_t max_bytes, struct arena *a,
                                 struct message_row **last, size_t *n, struct error *err)
{
    size_t left = max_bytes;
    bool row = false;
    enum status st = query_step(q, &row, err);
    while (st == ST_OK && row) {
        size_t bytes = query_col_str(q, 5).len + query_col_str(q, 6).len;
        if (bytes > left) {
            break;
        }
        left -= bytes;
        struct message_row *next = copy_message(q, a);
        if (next == NULL) {
            return error_set(err, ST_NOMEM, "out of memory for messages");
        }
        next->next = *last;
        *last = next;
        ++*n;
        st = query_step(q, &row, err);
    }
    return st;
}

/* The rows as an array, in the order of the list or from its end. */
static enum status to_array(struct message_row *list, size_t n, bool from_end,
                            struct arena *a, struct message **out, struct error *err)
{
    struct message *all = arena_array(a, n, sizeof(*all));
    if (all == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for messages");
    }
    for (size_t i = 0; i < n; i++, list = list->next) {
        all[from_end ? n - 1 - i : i] = list->m;
    }
    *out = all;
    return ST_OK;
}

enum status store_history(struct store *s, struct session_key key, size_t max_messages,
                          size_t max_bytes, struct arena *a, struct message **out,
                          size_t *n, struct error *err)
{
    struct db *db = NULL;
    struct message_row *list = NULL;
    size_t count = 0;
    struct query q;
    enum status st = readers_take(s->readers, &db, err);
    if (st != ST_OK) {
        return st;
    }
    query_begin(&q, db, SQL_MESSAGES_NEWEST);
    query_str(&q, key.agent);
    query_str(&q, key.channel);
    query_str(&q, key.conversation);
    query_i64(&q, limit_of(max_messages));
    st = read_messages(&q, max_bytes, a, &list, &count, err);
    query_end(&q);
    readers_put(s->readers, db);
    if (st == ST_OK) {
        st = to_array(list, count, false, a, out, err);
    }
    if (st == ST_OK) {
        *n = count;
    }
    return st;
}

static bool copy_session(struct query *q, struct arena *a, struct session_info *out)
{
    struct str id = query_col_str(q, 0);
    memcpy(out->id, id.ptr != NULL ? id.ptr : "",
           id.len < sizeof(out->id) ? id.len : sizeof(out->id) - 1);
    out->created_unix_ms = query_col_i64(q, 6);
    out->updated_unix_ms = query_col_i64(q, 7);
    out->messages = query_col_i64(q, 8);
    return copy_column(q, 1, a, &out->agent) && copy_column(q, 2, a, &out->channel) &&
           copy_column(q, 3, a, &out->conversation) && copy_column(q, 4, a, &out->user) &&
           copy_column(q, 5, a, &out->username);
}

static enum status find_session(struct db *db, struct str id, struct arena *a,
                                struct session_info *out, int64_t *row_id,
                                struct error *err)
{
    struct query q;
    bool row = false;
    struct session_info found = {.id = ""};
    query_begin(&q, db, SQL_SESSION_BY_ID);
    query_str(&q, id);
    enum status st = query_step(&q, &row, err);
    if (st == ST_OK && !row) {
        st = error_set(err, ST_NOT_FOUND, "no such session");
    }
    if (st == ST_OK) {
        *row_id = query_col_i64(&q, 9);
        if (!copy_session(&q, a, &found)) {
            st = error_set(err, ST_NOMEM, "out of memory for a session");
        }
    }
    query_end(&q);
    if (st == ST_OK && out != NULL) {
        *out = found;
    }
    return st;
}

enum status store_session(struct store *s, struct str id, struct arena *a,
                          struct session_info *out, struct error *err)
{
    struct db *db = NULL;
    int64_t row_id = 0;
    enum status st = readers_take(s->readers, &db, err);
    if (st == ST_OK) {
        st = find_session(db, id, a, out, &row_id, err);
        readers_put(s->readers, db);
    }
    return st;
}

enum status store_session_messages(struct store *s, struct str id, int64_t after_id,
                                   size_t max, struct arena *a, struct message **out,
                                   size_t *n, struct error *err)
{
    struct db *db = NULL;
    struct message_row *list = NULL;
    size_t count = 0;
    int64_t row_id = 0;
    enum status st = readers_take(s->readers, &db, err);
    if (st != ST_OK) {
        return st;
    }
    st = find_session(db, id, a, NULL, &row_id, err);
    if (st == ST_OK) {
        struct query q;
        query_begin(&q, db, SQL_MESSAGES_AFTER);
        query_i64(&q, row_id);
        query_i64(&q, after_id);
        query_i64(&q, limit_of(max));
        st = read_messages(&q, SIZE_MAX, a, &list, &count, err);
        query_end(&q);
    }
    readers_put(s->readers, db);
    if (st == ST_OK) {
        st = to_array(list, count, true, a, out, err);
    }
    if (st == ST_OK) {
        *n = count;
    }
    return st;
}

struct session_row {
    struct session_row *next;
    struct session_info info;
};

static enum status read_sessions(struct query *q, struct arena *a,
                                 struct session_row **last, size_t *n, struct error *err)
{
    bool row = false;
    enum status st = query_step(q, &row, err);
    while (st == ST_OK && row) {
        struct session_row *next = arena_alloc(a, sizeof(*next));
        if (next == NULL || !copy_session(q, a, &next->info)) {
            return error_set(err, ST_NOMEM, "out of memory for sessions");
        }
        next->next = *last;
        *last = next;
        ++*n;
        st = query_step(q, &row, err);
    }
    return st;
}

enum status store_sessions(struct store *s, struct str agent, int64_t before_unix_ms,
                           size_t max, struct arena *a, struct session_info **out,
                           size_t *n, struct error *err)
{
    struct db *db = NULL;
    struct session_row *list = NULL;
    size_t count = 0;
    struct query q;
    enum status st = readers_take(s->readers, &db, err);
    if (st != ST_OK) {
        return st;
    }
    query_begin(&q, db, agent.len != 0 ? SQL_SESSIONS_OF_AGENT : SQL_SESSIONS_ALL);
    query_i64(&q, before_unix_ms > 0 ? before_unix_ms : INT64_MAX);
    query_i64(&q, limit_of(max));
    if (agent.len != 0) {
        query_str(&q, agent);
    }
    st = read_sessions(&q, a, &list, &count, err);
    query_end(&q);
    readers_put(s->readers, db);
    if (st != ST_OK) {
        return st;
    }
    struct session_info *all = arena_array(a, count, sizeof(*all));
    if (all == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for sessions");
    }
    for (size_t i = count; i > 0; i--, list = list->next) {
        all[i - 1] = list->info;
    }
    *out = all;
    *n = count;
    return ST_OK;
}
