/* The tables, their versions, and every statement of the store. Private to the store. */
#ifndef SOULACY_STORE_SCHEMA_H
#define SOULACY_STORE_SCHEMA_H

#include "base/error.h"

#include <stdbool.h>

struct db;

enum sql_id {
    SQL_SESSION_FIND,
    SQL_SESSION_ADD,
    SQL_SESSION_TOUCH,
    SQL_SESSION_DELETE,
    SQL_SESSION_BY_ID,
    SQL_SESSIONS_ALL,
    SQL_SESSIONS_OF_AGENT,
    SQL_MESSAGE_ADD,
    SQL_MESSAGES_NEWEST,
    SQL_MESSAGES_AFTER,
    SQL_VALUE_PUT,
    SQL_VALUE_GET,
    SQL_COUNT_
};

const char *schema_sql(enum sql_id which);
/* Bring an older database forward, one transaction for each version. A newer one, or a
 * database of something else, is refused. */
enum status schema_migrate(struct db *db, struct error *err) SY_MUST_CHECK;

#endif
