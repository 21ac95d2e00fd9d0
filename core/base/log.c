/* The log. In: a level, the part that speaks, text. Out: one line to stderr or a file,
 * written whole. Never allocates for a line (so it also works when memory is out), never
 * writes a control byte or a registered secret, never returns an error to its caller: a
 * line that cannot be written is dropped. `lock` guards every field of struct log below
 * it. */
#include "base/log.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RAW_MAX 32768 /* of a record before secrets are hidden */
#define TEXT_MAX 8192 /* of it after that */
#define PART_MAX 64
#define SECRET_MIN 8
#define WRITE_MS 1000 /* a stalled reader of stderr may hold a thread this long */

/* One byte becomes at most 4 when made visible (\xNN), and the backslash 2 in JSON. */
#define SHOWN_MAX ((size_t)4 * (TEXT_MAX + PART_MAX))
#define WHOLE_MAX (2 * SHOWN_MAX + 256)

struct log {
    enum log_level level;
    enum log_format format;
    int fd;
    bool own_fd;
    pthread_mutex_t lock;
    struct secret *secrets;
    size_t secret_count, longest;
    char *raw;
    struct buf hidden, shown, line;
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

/* A buf that never has to grow. Not by buf_room, which would touch all its pages though
 * a line is short as a rule. */
static bool reserve(struct buf *b, size_t n)
{
    buf_init(b, n);
    char *p = mem_alloc(n + 1);
    if (p == NULL) {
        return false;
    }
    p[0] = '\0';
    b->ptr = p;
    b->cap = n + 1;
    return true;
}

enum status log_open(enum log_level level, enum log_format format, const char *path,
                     struct log **out, struct error *err)
{
    struct log *l = mem_zalloc(sizeof(*l));
    if (l == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the log");
    }
    l->level = level;
    l->format = format;
    l->fd = STDERR_FILENO;
    enum status st = ST_NOMEM;
    l->raw = mem_alloc(RAW_MAX);
    if (l->raw == NULL || !reserve(&l->hidden, RAW_MAX) ||
        !reserve(&l->shown, SHOWN_MAX) || !reserve(&l->line, WHOLE_MAX)) {
        error_set(err, st, "out of memory for the log");
        goto fail;
    }
    if (path != NULL && path[0] != '\0') {
        l->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
        l->own_fd = l->fd >= 0;
        if (l->fd < 0) {
            st = error_set_errno(err, ST_IO, errno, "log file %s", path);
            goto fail;
        }
    }
    if (pthread_mutex_init(&l->lock, NULL) != 0) {
        st = error_set(err, ST_NOMEM, "no mutex for the log");
        goto fail;
    }
    *out = l;
    return ST_OK;

fail:
    if (l->own_fd) {
        io_close(&l->fd);
    }
    buf_done(&l->line);
    buf_done(&l->shown);
    buf_done(&l->hidden);
    mem_free(l->raw);
    mem_free(l);
    return st;
}

void log_close(struct log *l)
{
    if (l == NULL) {
        return;
    }
    for (size_t i = 0; i < l->secret_count; i++) {
        secret_done(&l->secrets[i]);
    }
    mem_free(l->secrets);
    if (l->own_fd) {
        io_close(&l->fd);
    }
    /* These have held text from before secrets were hidden. */
    buf_wipe(&l->line);
    buf_wipe(&l->shown);
    buf_wipe(&l->hidden);
    mem_wipe(l->raw, RAW_MAX);
    mem_free(l->raw);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

static enum status add_secret(struct log *l, const struct secret *s)
{
    size_t bytes;
    if (!size_mul(l->secret_count + 1, sizeof(*l->secrets), &bytes)) {
        return ST_NOMEM;
    }
    /* Moves pointers, not the bytes of the secrets. */
    struct secret *more = mem_realloc(l->secrets, bytes);
    if (more == NULL) {
        return ST_NOMEM;
    }
    l->secrets = more;
    l->secrets[l->secret_count] = (struct secret){NULL, 0};
    enum status st = secret_set(&l->secrets[l->secret_count], secret_expose(s));
    if (st == ST_OK) {
        l->secret_count++;
        l->longest = s->len > l->longest ? s->len : l->longest;
    }
    return st;
}

enum status log_hide_secret(struct log *l, const struct secret *s)
{
    if (l == NULL || s->len < SECRET_MIN) {
        return ST_OK;
    }
    pthread_mutex_lock(&l->lock);
    enum status st = add_secret(l, s);
    pthread_mutex_unlock(&l->lock);
    return st;
}

/* Length of the longest secret that s starts with, or 0. */
static size_t secret_at(const struct log *l, struct str s)
{
    size_t longest = 0;
    for (size_t i = 0; i < l->secret_count; i++) {
        struct str secret = secret_expose(&l->secrets[i]);
        if (secret.len > longest && str_starts(s, secret)) {
            longest = secret.len;
        }
    }
    return longest;
}

static void add_without_secrets(const struct log *l, struct buf *out, struct str s)
{
    size_t i = 0;
    size_t plain = 0; /* where text that is not yet copied begins */
    while (i < s.len) {
        size_t n = secret_at(l, str_n(s.ptr + i, s.len - i));
        if (n == 0) {
            i++;
            continue;
        }
        buf_add(out, s.ptr + plain, i - plain);
        buf_add_c(out, "***");
        i += n;
        plain = i;
    }
    buf_add(out, s.ptr + plain, s.len - plain);
}

/* Format into l->hidden: no secrets, TEXT_MAX bytes at most. */
__attribute__((format(printf, 2, 0))) static void make_text(struct log *l,
                                                            const char *fmt, va_list ap)
{
    int n = vsnprintf(l->raw, RAW_MAX, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n;
    bool cut = false;
    if (len >= RAW_MAX) {
        /* The tail may be the first half of a secret. */
        len = RAW_MAX - 1 - (l->longest < RAW_MAX ? l->longest : RAW_MAX - 1);
        cut = true;
    }
    buf_clear(&l->hidden);
    add_without_secrets(l, &l->hidden, str_n(l->raw, len));
    if (l->hidden.len > TEXT_MAX) {
        l->hidden.len = utf8_cut(buf_str(&l->hidden), TEXT_MAX);
        cut = true;
    }
    buf_clear(&l->shown);
    utf8_append_visible(&l->shown, buf_str(&l->hidden), false);
    if (cut) {
        buf_add_c(&l->shown, " [cut]");
    }
}

static void make_line(struct log *l, enum log_level level, const char *part)
{
    char when[32];
    clock_format_utc(clock_unix_ms(), when);
    struct str who = str_c(part);
    who.len = who.len > PART_MAX ? PART_MAX : who.len;
    buf_clear(&l->line);
    if (l->format == LOG_JSON) {
        buf_add_char(&l->line, '{');
        json_add_key_string(&l->line, "time", str_c(when));
        json_add_key_string(&l->line, "level", str_c(level_names[level]));
        json_add_key_string(&l->line, "part", who);
        json_add_key_string(&l->line, "text", buf_str(&l->shown));
        buf_add_char(&l->line, '}');
    } else {
        buf_addf(&l->line, "%s %-5s ", when, level_names[level]);
        utf8_append_visible(&l->line, who, false);
        buf_add_c(&l->line, ": ");
        buf_add_str(&l->line, buf_str(&l->shown));
    }
    buf_add_char(&l->line, '\n');
}

void log_line(struct log *l, enum log_level level, const char *part, const char *fmt, ...)
{
    if (l == NULL || level < l->level || level > LOG_ERROR) {
        return;
    }
    va_list ap;
    pthread_mutex_lock(&l->lock);
    va_start(ap, fmt);
    make_text(l, fmt, ap);
    va_end(ap);
    make_line(l, level, part);
    int64_t until = clock_mono_ms() + WRITE_MS;
    /* Nobody is left to be told that the log cannot be written. */
    (void)(io_write_all(l->fd, buf_str(&l->line), -1, until, NULL) == ST_OK);
    pthread_mutex_unlock(&l->lock);
}
