/* A connection to SQLite. In: a path, statements by number, values. Out: rows, or one
 * clear line. Never maps the file, never keeps a large cache, never runs text that came
 * from outside as SQL. */
#include "store/db.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* KiB of page cache; SQLite would take 2000. */
#define CACHE_PRAGMA "PRAGMA cache_size = -512"
/* A writing tool from outside (sqlite3, a backup) is waited for this long. */
#define BUSY_MS 2000
/* Slots of SQLite's small-block store for each connection (its default is 120 KiB). */
#define LOOKASIDE_SIZE 512
#define LOOKASIDE_COUNT 40

/* The connection is closed and opened again after these. */
static bool breaks_connection(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_MISUSE:
    case SQLITE_INTERNAL:
        return true;
    default:
        return false;
    }
}

static const char *plain_words(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return "the disk is full";
    case SQLITE_READONLY:
        return rc == SQLITE_READONLY_DBMOVED ? "the file was moved or removed"
                                             : "it is read-only";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "locked by another process";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "the file is damaged: restore it from a backup";
    case SQLITE_CANTOPEN:
        return "cannot be opened";
    case SQLITE_IOERR:
        return "reading or writing failed";
    default:
        return NULL;
    }
}

static enum status fail(struct db *db, int rc, struct error *err)
{
    if (breaks_connection(rc)) {
        db->broken = true;
    }
    if ((rc & 0xff) == SQLITE_NOMEM) {
        return error_set(err, ST_NOMEM, "database: out of memory");
    }
    if ((rc & 0xff) == SQLITE_TOOBIG) {
        return error_set(err, ST_TOO_LARGE, "database: value too large");
    }
    const char *words = plain_words(rc);
    if (words == NULL) {
        words = db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc);
        return error_set(err, ST_IO, "database: %s", words);
    }
    int os = db->handle != NULL ? sqlite3_system_errno(db->handle) : 0;
    bool tell_os = os != 0 && (rc & 0xff) != SQLITE_FULL && (rc & 0xff) != SQLITE_BUSY;
    return tell_os ? error_set_errno(err, ST_IO, os, "database: %s", words)
                   : error_set(err, ST_IO, "database: %s", words);
}

enum status db_exec(struct db *db, const char *sql, struct error *err)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ST_OK : fail(db, rc, err);
}

enum status db_number(struct db *db, const char *sql, int64_t *out, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            *out = sqlite3_column_int64(stmt, 0);
        } else if (rc == SQLITE_DONE) {
            *out = 0;
        }
    }
    enum status st = rc == SQLITE_ROW || rc == SQLITE_DONE ? ST_OK : fail(db, rc, err);
    sqlite3_finalize(stmt);
    return st;
}

bool db_in_transaction(const struct db *db)
{
    return db->handle != NULL && sqlite3_get_autocommit(db->handle) == 0;
}

static enum status configure(struct db *db, enum db_mode mode, struct error *err)
{
    static const char *const always[] = {
        CACHE_PRAGMA,
        "PRAGMA mmap_size = 0",
        "PRAGMA temp_store = MEMORY",
        "PRAGMA foreign_keys = ON",
    };
    static const char *const writing[] = {
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA secure_delete = FAST",
        "PRAGMA journal_size_limit = 4194304",
    };
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_timeout(db->handle, BUSY_MS);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_LOOKASIDE, NULL, LOOKASIDE_SIZE,
                      LOOKASIDE_COUNT);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < sizeof(always) / sizeof(*always); i++) {
        st = db_exec(db, always[i], err);
    }
    for (size_t i = 0;
         st == ST_OK && mode != DB_READ && i < sizeof(writing) / sizeof(*writing); i++) {
        st = db_exec(db, writing[i], err);
    }
    return st;
}

static enum status check_file(const struct db_file *file, struct error *err)
{
    struct stat sb;
    if (stat(file->path, &sb) != 0) {
        return error_set_errno(err, ST_IO, errno, "database: %s", file->path);
    }
    if (sb.st_dev != file->device || sb.st_ino != file->inode) {
        return error_set(err, ST_IO,
                         "database: %s was replaced while in use: restart to use the new "
                         "one",
                         file->path);
    }
    return ST_OK;
}

enum status db_open(const struct db_file *file, enum db_mode mode, struct db *db,
                    struct error *err)
{
    static const int flags[] = {
        [DB_WRITE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
        [DB_READ] = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
    };
    *db = (struct db){.handle = NULL};
    enum status st = check_file(file, err);
    if (st != ST_OK) {
        return st;
    }
    int rc = sqlite3_open_v2(file->path, &db->handle, flags[mode], NULL);
    st = rc == SQLITE_OK ? configure(db, mode, err) : fail(db, rc, err);
    if (st == ST_OK && mode != DB_READ && sqlite3_db_readonly(db->handle, "main") == 1) {
        st = error_set(err, ST_IO, "database: it is read-only");
    }
    if (st != ST_OK) {
        db_close(db);
    }
    return st;
}

void db_close(struct db *db)
{
    if (db == NULL) {
        return;
    }
    for (size_t i = 0; i < SQL_COUNT_; i++) {
        sqlite3_finalize(db->stmts[i]);
    }
    sqlite3_close(db->handle);
    *db = (struct db){.handle = NULL};
}

void db_close_if_stale(struct db *db)
{
    int moved = 0;
    if (db->handle != NULL && !db->broken) {
        sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    }
    if (db->broken || moved != 0) {
        db_close(db);
    }
}

void query_begin(struct query *q, struct db *db, enum sql_id which)
{
    *q = (struct query){.db = db, .rc = SQLITE_OK};
    if (db->stmts[which] == NULL) {
        q->rc = sqlite3_prepare_v3(db->handle, schema_sql(which), -1,
                                   SQLITE_PREPARE_PERSISTENT, &db->stmts[which], NULL);
    }
    q->stmt = db->stmts[which];
}

void query_str(struct query *q, struct str s)
{
    q->bound++;
    if (q->rc == SQLITE_OK) {
        /* A null pointer would be bound as NULL instead of "". */
        const char *p = s.ptr != NULL ? s.ptr : "";
        q->rc =
            sqlite3_bind_text64(q->stmt, q->bound, p, s.len, SQLITE_STATIC, SQLITE_UTF8);
    }
}

void query_i64(struct query *q, int64_t v)
{
    q->bound++;
    if (q->rc == SQLITE_OK) {
        q->rc = sqlite3_bind_int64(q->stmt, q->bound, v);
    }
}

enum status query_step(struct query *q, bool *row, struct error *err)
{
    if (q->rc == SQLITE_OK || q->rc == SQLITE_ROW) {
        q->rc = sqlite3_step(q->stmt);
    }
    if (q->rc != SQLITE_ROW && q->rc != SQLITE_DONE) {
        return fail(q->db, q->rc, err);
    }
    *row = q->rc == SQLITE_ROW;
    return ST_OK;
}

enum status query_run(struct query *q, struct error *err)
{
    bool row = false;
    enum status st;
    do {
        st = query_step(q, &row, err);
    } while (st == ST_OK && row);
    return st;
}

int64_t query_col_i64(struct query *q, int column)
{
    return sqlite3_column_int64(q->stmt, column);
}

struct str query_col_str(struct query *q, int column)
{
    const void *p = sqlite3_column_blob(q->stmt, column);
    int n = sqlite3_column_bytes(q->stmt, column);
    /* Out of memory while decoding shows as NULL with a length. */
    return str_n(p, p != NULL && n > 0 ? (size_t)n : 0);
}

void query_end(struct query *q)
{
    if (q->stmt != NULL) {
        sqlite3_reset(q->stmt);
        sqlite3_clear_bindings(q->stmt);
        q->stmt = NULL;
    }
}
