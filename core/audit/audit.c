/* The audit log. In: records from any thread. Out: one JSON line each, chained to the one
 * before, and the new head to the anchor. Never writes arguments, never leaves half a
 * line, never hides that records are missing. `lock` guards every field below it. */
#include "audit/audit.h"

#include "audit/denials.h"
#include "audit/record.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_BYTES 32

struct audit {
    char *file;
    bool required;
    bool has_anchor;
    struct audit_anchor anchor;
    struct secret key;

    pthread_mutex_t lock;
    int64_t (*now_ms)(void);
    int fd;
    off_t size;   /* up to the end of our last record */
    bool torn;    /* half a line of ours may follow it */
    uint64_t seq; /* of the last record */
    char head[SHA256_HEX];
    uint64_t failed; /* records that could not be written */
    uint64_t missed; /* of them, not told of in the file yet */
    struct denials denials;
};

static enum status load_key(const char *path, struct secret *key, struct error *err)
{
    struct buf bytes;
    struct stat sb;
    buf_init(&bytes, KEY_BYTES + 1);
    enum status st = io_read_file(path, KEY_BYTES, &bytes, err);
    if (st == ST_NOT_FOUND) {
        char *fresh = buf_room(&bytes, KEY_BYTES);
        st = fresh != NULL ? io_random(fresh, KEY_BYTES, err)
                           : error_set(err, ST_NOMEM, "out of memory for a key");
        if (st == ST_OK) {
            bytes.len = KEY_BYTES;
            st = io_write_file(path, buf_str(&bytes), 0600, err);
        }
    }
    if (st == ST_OK && bytes.len != KEY_BYTES) {
        st = error_set(err, ST_INVALID, "%s: not a key of %d bytes", path, KEY_BYTES);
    }
    if (st == ST_OK && (stat(path, &sb) != 0 || (sb.st_mode & 077) != 0)) {
        st = error_set(err, ST_REFUSED, "%s: others may read it (chmod 600)", path);
    }
    if (st == ST_OK) {
        st = secret_set(key, buf_str(&bytes));
        if (st != ST_OK) {
            error_set(err, st, "out of memory for a key");
        }
    }
    buf_wipe(&bytes);
    return st;
}

/* Open the file for us alone. */
static enum status open_file(struct audit *a, struct error *err)
{
    struct stat sb;
    int fd = open(a->file,
                  O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0) {
        return error_set_errno(err, ST_IO, errno, "%s", a->file);
    }
    enum status st = ST_OK;
    if (fstat(fd, &sb) != 0) {
        st = error_set_errno(err, ST_IO, errno, "%s", a->file);
    } else if (!S_ISREG(sb.st_mode)) {
        st = error_set(err, ST_INVALID, "%s: not a regular file", a->file);
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        st = error_set(err, ST_BUSY, "%s: another process writes to it", a->file);
    }
    if (st != ST_OK) {
        io_close(&fd);
        return st;
    }
    io_close(&a->fd);
    a->fd = fd;
    a->size = sb.st_size;
    return ST_OK;
}

static enum status read_tail(const struct audit *a, struct buf *out, struct error *err)
{
    size_t want =
        a->size < (off_t)RECORD_MAX_BYTES * 2 ? (size_t)a->size : RECORD_MAX_BYTES * 2;
    char *at = buf_room(out, want);
    if (at == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the audit log");
    }
    off_t from = a->size - (off_t)want;
    while (out->len < want) {
        ssize_t n =
            pread(a->fd, out->ptr + out->len, want - out->len, from + (off_t)out->len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return error_set_errno(err, ST_IO, n < 0 ? errno : 0, "%s", a->file);
        }
        out->len += (size_t)n;
    }
    return ST_OK;
}

/* A crash in the middle of a write leaves a line without its end. Nobody was told that
 * it was written, so it is taken off; *torn gets its bytes. */
static enum status cut_torn_line(struct audit *a, struct buf *tail, size_t *torn,
                                 struct error *err)
{
    size_t keep = tail->len;
    while (keep != 0 && tail->ptr[keep - 1] != '\n') {
        keep--;
    }
    *torn = tail->len - keep;
    if (*torn == 0) {
        return ST_OK;
    }
    if (keep == 0 && (off_t)tail->len < a->size) {
        return error_set(err, ST_CONFLICT, "%s: its end is no audit record: move it away",
                         a->file);
    }
    off_t size = a->size - (off_t)*torn;
    if (ftruncate(a->fd, size) != 0) {
        return error_set_errno(err, ST_IO, errno, "%s", a->file);
    }
    a->size = size;
    tail->len = keep;
    return ST_OK;
}

/* Learn the last record from the file. */
static enum status find_last(struct audit *a, size_t *torn, struct error *err)
{
    struct buf tail;
    struct record_line last;
    buf_init(&tail, RECORD_MAX_BYTES * 2 + 1);
    enum status st = read_tail(a, &tail, err);
    if (st == ST_OK) {
        st = cut_torn_line(a, &tail, torn, err);
    }
    if (st == ST_OK && tail.len != 0) {
        size_t from = tail.len - 1;
        while (from != 0 && tail.ptr[from - 1] != '\n') {
            from--;
        }
        st = record_read(str_n(tail.ptr + from, tail.len - 1 - from), &last, err);
        if (st == ST_INVALID) {
            st = error_set(err, ST_CONFLICT,
                           "%s: its last line is not a whole audit record: move it away",
                           a->file);
        }
        if (st == ST_OK) {
            a->seq = last.seq;
            memcpy(a->head, last.hash, sizeof(a->head));
        }
    }
    buf_done(&tail);
    return st;
}

/* The line is written as a whole or not at all. */
static enum status append(struct audit *a, struct str line, struct error *err)
{
    if (a->torn && ftruncate(a->fd, a->size) != 0) {
        return error_set_errno(err, ST_IO, errno, "%s", a->file);
    }
    a->torn = false;
    enum status st = io_write_all(a->fd, line, -1, CLOCK_NEVER, err);
    if (st == ST_OK && a->required && fdatasync(a->fd) != 0) {
        st = error_set_errno(err, ST_IO, errno, "fdatasync");
    }
    if (st != ST_OK) {
        a->torn = ftruncate(a->fd, a->size) != 0;
        error_context(err, "%s", a->file);
    }
    return st;
}

static enum status hash_args(const struct audit *a, struct str args, char hex[SHA256_HEX],
                             struct error *err)
{
    unsigned char digest[SHA256_LEN];
    enum status st = hash_hmac_sha256(secret_expose(&a->key), args, digest, err);
    if (st == ST_OK) {
        hash_hex(digest, hex);
    }
    return st;
}

static enum status put(struct audit *a, const struct audit_record *r, uint64_t count,
                       struct error *err)
{
    struct buf line;
    char args_hex[SHA256_HEX];
    char hash[SHA256_HEX];
    struct record_place place = {
        .seq = a->seq + 1,
        .at_unix_ms = clock_unix_ms(),
        .prev = a->head,
        .count = count,
    };
    enum status st = ST_OK;
    if (r->args.len != 0) {
        st = hash_args(a, r->args, args_hex, err);
        place.args_hex = args_hex;
    }
    buf_init(&line, RECORD_MAX_BYTES);
    if (st == ST_OK) {
        st = record_write(&line, r, &place, hash, err);
    }
    if (st == ST_OK) {
        st = append(a, buf_str(&line), err);
    }
    if (st == ST_OK) {
        a->size += (off_t)line.len;
        a->seq++;
        memcpy(a->head, hash, sizeof(a->head));
        if (a->has_anchor) {
            a->anchor.save(a->anchor.ctx, a->head, a->seq);
        }
    }
    buf_done(&line);
    return st;
}

static enum status put_note(struct audit *a, const char *text, uint64_t count,
                            struct error *err)
{
    const struct audit_record note = {
        .event = "audit", .detail = str_c(text), .took_ms = -1};
    return put(a, &note, count, err);
}

/* What others have done to the file while it was open is told in it. */
static enum status note_meddling(struct audit *a, struct error *err)
{
    struct stat sb;
    const char *what = NULL;
    if (fstat(a->fd, &sb) != 0) {
        return error_set_errno(err, ST_IO, errno, "%s", a->file);
    }
    if (sb.st_nlink == 0) {
        enum status st = open_file(a, err);
        if (st != ST_OK) {
            return st;
        }
        what = "the file was removed while in use";
    } else if (sb.st_size < a->size) {
        what = "the file was cut while in use";
        a->size = sb.st_size;
    } else if (sb.st_size > a->size && !a->torn) {
        what = "the file was written to by another while in use";
        a->size = sb.st_size;
    }
    if (what == NULL) {
        return ST_OK;
    }
    a->torn = false;
    return put_note(a, what, 0, err);
}

/* Write, with what has to be told before it. */
static enum status put_after_gap(struct audit *a, const struct audit_record *r,
                                 uint64_t count, struct error *err)
{
    enum status st = note_meddling(a, err);
    if (st == ST_OK && a->missed != 0) {
        st = put_note(a, "records could not be written before this one", a->missed, err);
        a->missed = st == ST_OK ? 0 : a->missed;
    }
    if (st == ST_OK) {
        st = put(a, r, count, err);
    }
    if (st != ST_OK) {
        uint64_t lost = count != 0 ? count : 1;
        a->failed += lost;
        a->missed += lost;
    }
    return st;
}

/* Tell of the denials counted in a window. Their count is not lost if that fails. */
static void tell_denials(struct audit *a, struct denial *one)
{
    if (one->more != 0) {
        struct audit_record r;
        denial_record(one, &r);
        (void)!put_after_gap(a, &r, one->more, NULL);
    }
    denial_clear(one);
}

static void flush_denials(struct audit *a, int64_t now_ms)
{
    struct denial *one = denials_due(&a->denials, now_ms);
    while (one != NULL) {
        tell_denials(a, one);
        one = denials_due(&a->denials, now_ms);
    }
}

/* From now on the next ones like it are counted. */
static void open_window(struct audit *a, const struct audit_record *r, int64_t now_ms)
{
    struct denial *oldest = denials_full(&a->denials);
    if (oldest != NULL) {
        tell_denials(a, oldest);
    }
    denials_open(&a->denials, r, now_ms);
}

/* The file against the head that was kept outside it. */
static enum status compare_with_anchor(struct audit *a, struct error *err)
{
    char head[SHA256_HEX] = "";
    char text[160];
    uint64_t count = 0;
    if (!a->has_anchor || !a->anchor.load(a->anchor.ctx, head, &count) ||
        strlen(head) != SHA256_HEX - 1) {
        return ST_OK;
    }
    /* More records than the anchor knows: a crash came between the two. */
    bool behind = a->seq < count;
    bool other = a->seq == count && strcmp(head, a->head) != 0;
    if (!behind && !other) {
        return ST_OK;
    }
    snprintf(text, sizeof(text),
             "the file ends at record %" PRIu64 ", which is not the known head, record "
             "%" PRIu64 ": it was cut, changed or moved away",
             a->seq, count);
    a->seq = count;
    memcpy(a->head, head, sizeof(a->head));
    return put_note(a, text, 0, err);
}

static enum status open_all(struct audit *a, const char *key_file, struct error *err)
{
    size_t torn = 0;
    enum status st = load_key(key_file, &a->key, err);
    if (st == ST_OK) {
        st = open_file(a, err);
    }
    if (st == ST_OK) {
        st = find_last(a, &torn, err);
    }
    if (st == ST_OK) {
        st = compare_with_anchor(a, err);
    }
    if (st == ST_OK && torn != 0) {
        st = put_note(a, "a record that a crash had left unfinished was taken off", 0,
                      err);
    }
    return st;
}

enum status audit_open(const char *file, const char *key_file, bool required,
                       const struct audit_anchor *anchor, struct audit **out,
                       struct error *err)
{
    struct audit *a = mem_zalloc(sizeof(*a));
    if (a == NULL || pthread_mutex_init(&a->lock, NULL) != 0) {
        mem_free(a);
        return error_set(err, ST_NOMEM, "out of memory for the audit log");
    }
    a->fd = -1;
    a->required = required;
    a->now_ms = clock_mono_ms;
    memcpy(a->head, RECORD_FIRST_PREV, sizeof(a->head));
    denials_init(&a->denials);
    if (anchor != NULL) {
        a->has_anchor = true;
        a->anchor = *anchor;
    }
    a->file = mem_strdup(file);
    enum status st = a->file != NULL
                         ? open_all(a, key_file, err)
                         : error_set(err, ST_NOMEM, "out of memory for the audit log");
    if (st != ST_OK) {
        audit_close(a);
        return st;
    }
    *out = a;
    return ST_OK;
}

void audit_close(struct audit *a)
{
    if (a == NULL) {
        return;
    }
    if (a->fd >= 0) {
        flush_denials(a, INT64_MAX);
    }
    denials_done(&a->denials);
    io_close(&a->fd);
    secret_done(&a->key);
    mem_free(a->file);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

enum status audit_write(struct audit *a, const struct audit_record *r, struct error *err)
{
    enum status st = ST_OK;
    bool denial = r->verdict != NULL && strcmp(r->verdict, "deny") == 0;
    pthread_mutex_lock(&a->lock);
    int64_t now = a->now_ms();
    flush_denials(a, now);
    if (!denial || !denials_count(&a->denials, r, now)) {
        st = put_after_gap(a, r, 0, err);
        if (st == ST_OK && denial) {
            open_window(a, r, now);
        }
    }
    pthread_mutex_unlock(&a->lock);
    return a->required ? st : ST_OK;
}

uint64_t audit_failed(struct audit *a)
{
    pthread_mutex_lock(&a->lock);
    uint64_t n = a->failed;
    pthread_mutex_unlock(&a->lock);
    return n;
}

void audit_set_clock(struct audit *a, int64_t (*now_ms)(void))
{
    pthread_mutex_lock(&a->lock);
    a->now_ms = now_ms;
    pthread_mutex_unlock(&a->lock);
}
