/* The answer channel, which tool code can write to: any bytes, in reads of any size. The
 * first byte sets the size of the reads; the rest is the stream. Every answer found must
 * lie inside its reader and be valid text, and the log side must stay valid too. */
#include "base/utf8.h"
#include "exec/frame.h"
#include "exec/logtext.h"

#include <stdlib.h>

#define ID UINT64_C(0x0807060504030201)
#define CAP 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct str s)
{
    if (!utf8_valid(s)) {
        abort();
    }
}

static void on_text(void *ctx, struct str text)
{
    size_t *total = ctx;
    *total += text.len;
    check(text);
    if (text.len == 0 || text.len > LOGTEXT_PIECE) {
        abort();
    }
}

static void as_answer(struct str s, size_t step)
{
    struct frame_reader *r = NULL;
    struct frame_answer a;
    struct error err;
    enum status st = ST_BUSY;
    if (frame_reader_new(ID, CAP, &r) != ST_OK) {
        return;
    }
    for (size_t i = 0; i < s.len && st == ST_BUSY; i += step) {
        size_t n = s.len - i < step ? s.len - i : step;
        st = frame_feed(r, str_n(s.ptr + i, n), &a, &err);
    }
    if (st == ST_OK) {
        const struct str all[] = {a.result, a.err_class, a.err_message, a.traceback,
                                  a.cause};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            check(all[i]);
        }
        if (a.detail < 0 || a.detail > 255) {
            abort();
        }
    }
    frame_reader_free(r);
}

static void as_log(struct str s, size_t step)
{
    struct logtext t;
    size_t total = 0;
    logtext_init(&t, on_text, &total);
    for (size_t i = 0; i < s.len; i += step) {
        logtext_feed(&t, str_n(s.ptr + i, s.len - i < step ? s.len - i : step));
    }
    logtext_flush(&t);
    logtext_done(&t);
    if (total > 3 * s.len) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    size_t step = (size_t)data[0] + 1;
    struct str s = str_n((const char *)data + 1, size - 1);
    as_answer(s, step);
    as_log(s, step);
    return 0;
}
