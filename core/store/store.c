/* Opening and closing the state, and its small named values. In: the state folder. Out: a
 * store that is ours alone, with the current schema. Never opens a database whose folder
 * another process holds, never makes a file that others may read. */
#include "store/store.h"

#include "base/io.h"
#include "base/mem.h"
#include "store/lockfile.h"
#include "store/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_BYTES 200
#define VALUE_MAX_BYTES ((size_t)1024 * 1024)
/* Of the process, for all connections together; SQLite then reuses its pages. */
#define SOFT_HEAP_BYTES INT64_C(4194304)

/* SQLite would make it readable for everybody; its other files take over this mode. */
static enum status make_file(struct db_file *file, struct error *err)
{
    struct stat sb;
    int fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd < 0 || fstat(fd, &sb) != 0) {
        enum status st = error_set_errno(err, ST_IO, errno, "%s", file->path);
        io_close(&fd);
        return st;
    }
    io_close(&fd);
    file->device = sb.st_dev;
    file->inode = sb.st_ino;
    return ST_OK;
}

/* The names of new files are on disk too. */
static enum status sync_folder(const char *dir, struct error *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status st = ST_OK;
    if (fd < 0 || fsync(fd) != 0) {
        st = error_set_errno(err, ST_IO, errno, "%s", dir);
    }
    io_close(&fd);
    return st;
}

static enum status open_database(struct store *s, struct error *err)
{
    struct db db = {.handle = NULL};
    enum status st = make_file(&s->file, err);
    if (st == ST_OK) {
        st = db_open(&s->file, DB_WRITE, &db, err);
        if (st == ST_OK) {
            st = schema_migrate(&db, err);
        }
        if (st != ST_OK) {
            error_context(err, "%s", s->file.path);
        }
    }
    if (st == ST_OK) {
        s->readers = readers_new(&s->file);
        st = s->readers != NULL ? ST_OK
                                : error_set(err, ST_NOMEM, "out of memory for the store");
    }
    if (st == ST_OK) {
        st = writer_start(&s->file, &db, &s->writer, err);
    }
    db_close(&db);
    return st;
}

/* DIR/NAME in the store's own buffer, which its last use keeps. */
static enum status name_file(struct store *s, const char *dir, const char *name,
                             struct error *err)
{
    int n = snprintf(s->file.path, sizeof(s->file.path), "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof(s->file.path)
               ? ST_OK
               : error_set(err, ST_TOO_LARGE, "state folder: name too long");
}

static enum status open_in(struct store *s, const char *dir, struct error *err)
{
    enum status st = io_mkdirs(dir, 0700, err);
    if (st == ST_OK) {
        st = name_file(s, dir, "lock", err);
    }
    if (st == ST_OK) {
        st = lockfile_take(s->file.path, &s->lock_fd, err);
    }
    if (st == ST_OK) {
        st = name_file(s, dir, "soulacy.db", err);
    }
    if (st == ST_OK) {
        st = open_database(s, err);
    }
    return st == ST_OK ? sync_folder(dir, err) : st;
}

enum status store_open(const char *state_dir, struct store **out, struct error *err)
{
    struct store *s = mem_zalloc(sizeof(*s));
    if (s == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the store");
    }
    s->lock_fd = -1;
    sqlite3_soft_heap_limit64(SOFT_HEAP_BYTES);
    enum status st = open_in(s, state_dir, err);
    if (st != ST_OK) {
        store_close(s);
        return st;
    }
    *out = s;
    return ST_OK;
}

void store_close(struct store *s)
{
    if (s == NULL) {
        return;
    }
    /* Readers first: the last connection to close tidies the log into the database. */
    readers_free(s->readers);
    writer_stop(s->writer);
    lockfile_release(&s->lock_fd);
    mem_free(s);
}

enum status store_health(struct store *s, struct error *err)
{
    return writer_health(s->writer, err);
}

void store_stats(struct store *s, struct store_stats *out)
{
    struct writer_stats w;
    writer_stats(s->writer, &w);
    *out = (struct store_stats){
        .transactions = w.transactions,
        .writes = w.writes,
        .failures = w.failures,
        .queued = w.queued,
    };
}

struct put_op {
    struct write_op op;
    struct str name, value;
};

static enum status run_put(struct db *db, struct write_op *op, struct error *err)
{
    const struct put_op *put = (const struct put_op *)op;
    struct query q;
    query_begin(&q, db, SQL_VALUE_PUT);
    query_str(&q, put->name);
    query_str(&q, put->value);
    enum status st = query_run(&q, err);
    query_end(&q);
    return st;
}

static enum status check_value(const char *name, struct str value, struct error *err)
{
    if (strlen(name) > NAME_MAX_BYTES || value.len > VALUE_MAX_BYTES) {
        return error_set(err, ST_TOO_LARGE, "value \"%.40s\" is too large", name);
    }
    return ST_OK;
}

enum status store_put(struct store *s, const char *name, struct str value,
                      struct error *err)
{
    enum status st = check_value(name, value, err);
    if (st != ST_OK) {
        return st;
    }
    struct put_op put = {.op.run = run_put, .name = str_c(name), .value = value};
    return writer_run(s->writer, &put.op, err);
}

static void drop_put(struct write_op *op)
{
    mem_free(op);
}

enum status store_put_later(struct store *s, const char *name, struct str value,
                            struct error *err)
{
    enum status st = check_value(name, value, err);
    if (st != ST_OK) {
        return st;
    }
    size_t name_len = strlen(name);
    /* No overflow: both are small, see check_value. */
    struct put_op *put = mem_zalloc(sizeof(*put) + name_len + value.len);
    if (put == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for a value");
    }
    char *bytes = (char *)(put + 1);
    memcpy(bytes, name, name_len);
    if (value.len != 0) {
        memcpy(bytes + name_len, value.ptr, value.len);
    }
    put->op.run = run_put;
    put->op.drop = drop_put;
    put->name = str_n(bytes, name_len);
    put->value = str_n(bytes + name_len, value.len);
    return writer_post(s->writer, &put->op, err);
}

static enum status copy_value(struct query *q, struct arena *a, struct str *out,
                              struct error *err)
{
    bool row = false;
    enum status st = query_step(q, &row, err);
    if (st != ST_OK) {
        return st;
    }
    if (!row) {
        return error_set(err, ST_NOT_FOUND, "no such value");
    }
    struct str found = query_col_str(q, 0);
    char *copy = arena_dup(a, found);
    if (copy == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for a value");
    }
    *out = str_n(copy, found.len);
    return ST_OK;
}

enum status store_get(struct store *s, const char *name, struct arena *a, struct str *out,
                      struct error *err)
{
    struct db *db = NULL;
    enum status st = readers_take(s->readers, &db, err);
    if (st != ST_OK) {
        return st;
    }
    struct query q;
    query_begin(&q, db, SQL_VALUE_GET);
    query_str(&q, str_c(name));
    st = copy_value(&q, a, out, err);
    query_end(&q);
    readers_put(s->readers, db);
    return st;
}
