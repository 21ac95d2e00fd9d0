/* Bytes of a tool's stderr in, pieces of valid text out. A character that was split over
 * two reads is put together again; a byte that is no UTF-8 becomes U+FFFD. Never keeps
 * more than one piece, never passes on more than the cap. */
#include "exec/logtext.h"

#include "base/utf8.h"

#include <string.h>

void logtext_init(struct logtext *t, void (*emit)(void *ctx, struct str text), void *ctx)
{
    *t = (struct logtext){.emit = emit, .ctx = ctx};
    buf_init(&t->pending, (size_t)2 * LOGTEXT_PIECE);
}

void logtext_done(struct logtext *t)
{
    buf_done(&t->pending);
}

/* Hand on a piece; bad bytes triple in size, so it may become several. */
static void emit_piece(struct logtext *t, struct str raw)
{
    if (raw.len == 0) {
        return;
    }
    if (utf8_valid(raw)) {
        t->emit(t->ctx, raw);
        return;
    }
    struct buf b;
    buf_init(&b, (size_t)3 * LOGTEXT_PIECE);
    utf8_append_lossy(&b, raw);
    struct str left = buf_str(&b);
    while (left.len > 0) {
        size_t n = utf8_cut(left, left.len < LOGTEXT_PIECE ? left.len : LOGTEXT_PIECE);
        t->emit(t->ctx, str_n(left.ptr, n));
        left = str_n(left.ptr + n, left.len - n);
    }
    buf_done(&b);
}

/* Bytes at the end of s (a full piece, so longer than any character) that are the
 * beginning of a character still to be completed. */
static size_t unfinished(struct str s)
{
    for (size_t back = 1; back <= 3; back++) {
        unsigned char c = (unsigned char)s.ptr[s.len - back];
        if ((c & 0xC0) == 0x80) {
            continue;
        }
        size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        return need > back ? back : 0;
    }
    return 0;
}

/* How much of s makes one piece now: up to the last newline within a piece, or a full
 * piece when it has none. 0: wait for more. */
static size_t piece_len(struct str s)
{
    size_t window = s.len < LOGTEXT_PIECE ? s.len : LOGTEXT_PIECE;
    for (size_t n = window; n > 0; n--) {
        if (s.ptr[n - 1] == '\n') {
            return n;
        }
    }
    if (s.len < LOGTEXT_PIECE) {
        return 0;
    }
    return window - unfinished(str_n(s.ptr, window));
}

static void emit_ready(struct logtext *t)
{
    for (;;) {
        struct str s = buf_str(&t->pending);
        size_t n = piece_len(s);
        if (n == 0) {
            return;
        }
        emit_piece(t, str_n(s.ptr, n));
        buf_consume(&t->pending, n);
    }
}

void logtext_feed(struct logtext *t, struct str bytes)
{
    if (t->cut) {
        return;
    }
    size_t room = LOGTEXT_MAX - t->seen;
    size_t left = bytes.len < room ? bytes.len : room;
    const char *p = bytes.ptr;
    t->seen += left;
    while (left > 0) {
        size_t n = left < LOGTEXT_PIECE ? left : LOGTEXT_PIECE;
        buf_add(&t->pending, p, n);
        if (buf_status(&t->pending) != ST_OK) {
            buf_clear(&t->pending); /* out of memory: log text is let go */
        }
        emit_ready(t);
        p += n;
        left -= n;
    }
    if (bytes.len > room) {
        logtext_flush(t);
        t->cut = true;
        t->emit(t->ctx, STR_LIT("\n[log cut: more than 1 MB]\n"));
    }
}

void logtext_flush(struct logtext *t)
{
    if (!t->cut) {
        emit_piece(t, buf_str(&t->pending));
        buf_clear(&t->pending);
    }
}
