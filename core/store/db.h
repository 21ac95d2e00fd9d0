/* One SQLite connection with its statements, prepared once. Private to the store. A
 * connection is used by one thread at a time: the store thread, or whoever holds the
 * reader's lock. */
#ifndef SOULACY_STORE_DB_H
#define SOULACY_STORE_DB_H

#include "base/error.h"
#include "base/str.h"
#include "store/schema.h"

#include <sqlite3.h>
#include <sys/types.h>

enum db_mode { DB_WRITE, DB_READ };

/* Which file: its name, and what has to be found under it. */
struct db_file {
    char path[4096];
    dev_t device;
    ino_t inode;
};

struct db {
    sqlite3 *handle; /* NULL: closed */
    sqlite3_stmt *stmts[SQL_COUNT_];
    bool broken; /* the connection cannot be trusted any more: close it */
};

/* The file must be there. Another one under its name is not touched: SQLite would take
 * away the write-ahead log of the right one. */
enum status db_open(const struct db_file *file, enum db_mode mode, struct db *db,
                    struct error *err) SY_MUST_CHECK;
void db_close(struct db *db);
/* Close a connection that broke, or whose file is not the one under its name any more:
 * what it wrote would be lost with it. */
void db_close_if_stale(struct db *db);
/* Run statements without parameters or rows. */
enum status db_exec(struct db *db, const char *sql, struct error *err) SY_MUST_CHECK;
/* First column of the first row of sql; 0 without a row. */
enum status db_number(struct db *db, const char *sql, int64_t *out,
                      struct error *err) SY_MUST_CHECK;
/* Is a transaction open? SQLite ends one itself after some errors. */
bool db_in_transaction(const struct db *db);

/* One use of a prepared statement. Parameters are bound in order and borrowed until
 * query_end; failures are kept and told by query_step. */
struct query {
    struct db *db;
    sqlite3_stmt *stmt;
    int bound; /* parameters so far */
    int rc;
};

void query_begin(struct query *q, struct db *db, enum sql_id which);
void query_str(struct query *q, struct str s);
void query_i64(struct query *q, int64_t v);
/* *row: true when a row is there. */
enum status query_step(struct query *q, bool *row, struct error *err) SY_MUST_CHECK;
/* Step to the end of a statement that gives no rows. */
enum status query_run(struct query *q, struct error *err) SY_MUST_CHECK;
int64_t query_col_i64(struct query *q, int column);
struct str query_col_str(struct query *q, int column); /* until the next step */
void query_end(struct query *q);

#endif
