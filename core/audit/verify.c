/* Checking an audit file. In: the file, the head known from outside. Out: the number of
 * records, or the first line that is wrong and how. Never writes, never keeps more than
 * one line in memory. */
#include "audit/audit.h"

#include "audit/record.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct check {
    const char *file;
    uint64_t line; /* from 1 */
    uint64_t seq;
    char head[SHA256_HEX];
    bool has_anchor;
    char anchor_head[SHA256_HEX];
    uint64_t anchor_count;
};

static enum status check_line(struct check *c, struct str line, struct error *err)
{
    struct record_line r;
    c->line++;
    enum status st = record_read(line, &r, err);
    if (st == ST_OK && r.seq != c->seq + 1) {
        st = error_set(err, ST_INVALID,
                       "record %" PRIu64 " where record %" PRIu64 " belongs", r.seq,
                       c->seq + 1);
    }
    if (st == ST_OK && strcmp(r.prev, c->head) != 0) {
        st = error_set(err, ST_INVALID,
                       "record %" PRIu64 " does not follow the one before", r.seq);
    }
    if (st == ST_OK && c->has_anchor && r.seq == c->anchor_count &&
        strcmp(r.hash, c->anchor_head) != 0) {
        st = error_set(err, ST_INVALID,
                       "record %" PRIu64 " is not the one whose hash is kept outside",
                       r.seq);
    }
    if (st != ST_OK) {
        error_context(err, "%s: line %" PRIu64, c->file, c->line);
        return st;
    }
    c->seq = r.seq;
    memcpy(c->head, r.hash, sizeof(c->head));
    return ST_OK;
}

/* The whole lines of what has been read; what is left is the start of the next one. */
static enum status check_lines(struct check *c, struct buf *b, struct error *err)
{
    size_t from = 0;
    enum status st = ST_OK;
    for (;;) {
        const char *start = b->ptr + from;
        const char *end = b->len > from ? memchr(start, '\n', b->len - from) : NULL;
        if (end == NULL) {
            break;
        }
        st = check_line(c, str_n(start, (size_t)(end - start)), err);
        if (st != ST_OK) {
            return st;
        }
        from = (size_t)(end - b->ptr) + 1;
    }
    buf_consume(b, from);
    if (b->len > RECORD_MAX_BYTES) {
        return error_set(err, ST_INVALID, "%s: line %" PRIu64 ": not an audit record",
                         c->file, c->line + 1);
    }
    return ST_OK;
}

static enum status check_file(struct check *c, int fd, struct buf *b, struct error *err)
{
    for (;;) {
        char *room = buf_room(b, RECORD_MAX_BYTES);
        if (room == NULL) {
            return error_set(err, ST_NOMEM, "out of memory for the audit log");
        }
        ssize_t n = io_read(fd, room, RECORD_MAX_BYTES);
        if (n < 0) {
            return error_set_errno(err, ST_IO, errno, "%s", c->file);
        }
        if (n == 0) {
            break;
        }
        b->len += (size_t)n;
        enum status st = check_lines(c, b, err);
        if (st != ST_OK) {
            return st;
        }
    }
    if (b->len != 0) {
        return error_set(err, ST_INVALID, "%s: line %" PRIu64 ": unfinished", c->file,
                         c->line + 1);
    }
    if (c->has_anchor && c->seq < c->anchor_count) {
        return error_set(err, ST_INVALID,
                         "%s: line %" PRIu64 ": records %" PRIu64 " to %" PRIu64
                         " are missing at the end",
                         c->file, c->line + 1, c->seq + 1, c->anchor_count);
    }
    return ST_OK;
}

enum status audit_verify(const char *file, const struct audit_anchor *anchor,
                         uint64_t *records, struct error *err)
{
    struct check c = {.file = file, .head = RECORD_FIRST_PREV};
    struct buf b;
    /* Before the file: a gateway that runs may write one more in between. */
    if (anchor != NULL && anchor->load(anchor->ctx, c.anchor_head, &c.anchor_count)) {
        c.has_anchor = strlen(c.anchor_head) == SHA256_HEX - 1;
    }
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return error_set_errno(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, errno, "%s",
                               file);
    }
    buf_init(&b, RECORD_MAX_BYTES * 2 + 1);
    enum status st = check_file(&c, fd, &b, err);
    buf_done(&b);
    io_close(&fd);
    if (st == ST_OK) {
        *records = c.seq;
    }
    return st;
}
