/* Tables and statements. In: an open connection. Out: a database of the current version,
 * or a refusal that names the version found. Never goes backwards, never touches a file
 * that is not ours; a migration that fails leaves the older version whole. */
#include "store/schema.h"

#include "store/db.h"

#include <inttypes.h>
#include <stdio.h>

/* "soul": marks the file as ours (PRAGMA application_id). */
#define APPLICATION_ID "1936684396"
#define APPLICATION_ID_VALUE 1936684396

/* migrations[i] turns version i into i + 1. Lines are added here and never changed. */
static const char *const migrations[] = {
    "CREATE TABLE session ("
    " id INTEGER PRIMARY KEY,"
    " public_id TEXT NOT NULL UNIQUE,"
    " agent TEXT NOT NULL,"
    " channel TEXT NOT NULL,"
    " conversation TEXT NOT NULL,"
    " user TEXT NOT NULL,"
    " username TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL,"
    " messages INTEGER NOT NULL,"
    " UNIQUE (agent, channel, conversation)"
    ") STRICT;"
    "CREATE INDEX session_by_time ON session (updated_ms);"
    "CREATE INDEX session_by_agent ON session (agent, updated_ms);"
    /* AUTOINCREMENT: a number is not used again when the newest rows are deleted. */
    "CREATE TABLE message ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,"
    " role INTEGER NOT NULL CHECK (role BETWEEN 1 AND 3),"
    " at_ms INTEGER NOT NULL,"
    " is_error INTEGER NOT NULL,"
    " run_id TEXT NOT NULL,"
    " body TEXT NOT NULL,"
    " tool_calls TEXT NOT NULL,"
    " call_id TEXT NOT NULL,"
    " tool_name TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX message_by_session ON message (session, id);"
    "CREATE TABLE value ("
    " name TEXT PRIMARY KEY,"
    " value TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "PRAGMA application_id = " APPLICATION_ID ";",
};

#define VERSION ((int)(sizeof(migrations) / sizeof(migrations[0])))

#define SESSION_COLUMNS \
    "public_id, agent, channel, conversation, user, username, created_ms, updated_ms," \
    " messages"
#define MESSAGE_COLUMNS \
    "id, role, at_ms, is_error, run_id, body, tool_calls, call_id, tool_name"

static const char *const statements[SQL_COUNT_] = {
    [SQL_SESSION_FIND] = "SELECT id, public_id FROM session"
                         " WHERE agent = ?1 AND channel = ?2 AND conversation = ?3",
    [SQL_SESSION_ADD] = "INSERT INTO session (public_id, agent, channel, conversation,"
                        " user, username, created_ms, updated_ms, messages)"
                        " VALUES (?1, ?2, ?3, ?4, '', '', ?5, ?6, 0) RETURNING id",
    /* An empty name does not wipe the one that is known. The time rises from row to row
     * over the whole table, also when the clock goes back: so pages have no ties. */
    [SQL_SESSION_TOUCH] =
        "UPDATE session SET"
        " user = CASE ?2 WHEN '' THEN user ELSE ?2 END,"
        " username = CASE ?3 WHEN '' THEN username ELSE ?3 END,"
        " updated_ms = max(?4, 1 + (SELECT max(updated_ms) FROM session)),"
        " messages = messages + ?5 WHERE id = ?1",
    [SQL_SESSION_DELETE] = "DELETE FROM session WHERE public_id = ?1 RETURNING id",
    [SQL_SESSION_BY_ID] =
        "SELECT " SESSION_COLUMNS ", id FROM session WHERE public_id = ?1",
    [SQL_SESSIONS_ALL] = "SELECT " SESSION_COLUMNS " FROM session"
                         " WHERE updated_ms < ?1 ORDER BY updated_ms DESC LIMIT ?2",
    [SQL_SESSIONS_OF_AGENT] = "SELECT " SESSION_COLUMNS " FROM session"
                              " WHERE updated_ms < ?1 AND agent = ?3"
                              " ORDER BY updated_ms DESC LIMIT ?2",
    [SQL_MESSAGE_ADD] = "INSERT INTO message (session, role, at_ms, is_error, run_id,"
                        " body, tool_calls, call_id, tool_name)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [SQL_MESSAGES_NEWEST] = "SELECT " MESSAGE_COLUMNS " FROM message WHERE session ="
                            " (SELECT id FROM session WHERE agent = ?1 AND channel = ?2"
                            " AND conversation = ?3) ORDER BY id DESC LIMIT ?4",
    [SQL_MESSAGES_AFTER] = "SELECT " MESSAGE_COLUMNS " FROM message"
                           " WHERE session = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
    [SQL_VALUE_PUT] = "INSERT INTO value (name, value) VALUES (?1, ?2)"
                      " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [SQL_VALUE_GET] = "SELECT value FROM value WHERE name = ?1",
};

const char *schema_sql(enum sql_id which)
{
    return statements[which];
}

static enum status migrate_one(struct db *db, int64_t from, struct error *err)
{
    char set_version[64];
    snprintf(set_version, sizeof(set_version), "PRAGMA user_version = %" PRId64,
             from + 1);
    enum status st = db_exec(db, "BEGIN IMMEDIATE", err);
    if (st != ST_OK) {
        return st;
    }
    st = db_exec(db, migrations[from], err);
    if (st == ST_OK) {
        st = db_exec(db, set_version, err);
    }
    if (st == ST_OK) {
        st = db_exec(db, "COMMIT", err);
    }
    if (st != ST_OK) {
        if (db_in_transaction(db)) {
            (void)!db_exec(db, "ROLLBACK", NULL);
        }
        error_context(err, "bringing the database to version %" PRId64, from + 1);
    }
    return st;
}

/* A file of version 0 must be empty, every other one must carry our mark. */
static enum status check_ours(struct db *db, int64_t version, struct error *err)
{
    int64_t tables = 0;
    int64_t mark = 0;
    enum status st = db_number(db, "PRAGMA application_id", &mark, err);
    if (st == ST_OK) {
        st = db_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    }
    if (st != ST_OK) {
        return st;
    }
    bool ours = version == 0 ? tables == 0 : mark == APPLICATION_ID_VALUE;
    return ours ? ST_OK
                : error_set(err, ST_REFUSED, "this is a database of another program");
}

enum status schema_migrate(struct db *db, struct error *err)
{
    int64_t version = 0;
    enum status st = db_number(db, "PRAGMA user_version", &version, err);
    if (st != ST_OK) {
        return st;
    }
    if (version > VERSION || version < 0) {
        return error_set(err, ST_UNSUPPORTED,
                         "schema version %" PRId64 " is newer than %d, the newest that "
                         "this program knows: use a newer soulacy",
                         version, VERSION);
    }
    st = check_ours(db, version, err);
    for (; st == ST_OK && version < VERSION; version++) {
        st = migrate_one(db, version, err);
    }
    return st;
}
