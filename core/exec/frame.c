/* Frames between core and harness. Comes in: a call, or bytes from a stream that tool
 * code can write to as well. Goes out: a request frame, or the answer of one call id.
 * Pure: no descriptor, no clock. It never trusts a length before it is under the cap, and
 * never lets a frame with another id hide the one that is looked for. */
#include "exec/frame.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

#define FRAME_HEAD 17 /* magic, kind, call id, length */
#define FIELD_HEAD 5
#define FRAME_REQUEST_MAX (UINT32_C(1) << 30)

enum { TAG_SOURCE = 1, TAG_FILENAME, TAG_FUNCTION, TAG_ARGS, TAG_ENV, TAG_LIMITS };
enum {
    TAG_RESULT = 1,
    TAG_FORM,
    TAG_CLASS,
    TAG_MESSAGE,
    TAG_TRACEBACK,
    TAG_CAUSE,
    TAG_DETAIL
};

static const char frame_magic[4] = {'S', 'Y', 'F', '1'};

struct frame_reader {
    uint64_t call_id;
    size_t max_payload;
    unsigned char head[FRAME_HEAD];
    size_t nhead;    /* bytes of head collected */
    bool in_payload; /* head is the one of our answer */
    bool done;
    struct buf payload;
    size_t want; /* length of the payload */
};

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static uint64_t get_u64(const unsigned char *p)
{
    return (uint64_t)get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

static void add_u32(struct buf *b, uint32_t v)
{
    unsigned char p[4] = {(unsigned char)(v & 0xff), (unsigned char)(v >> 8 & 0xff),
                          (unsigned char)(v >> 16 & 0xff), (unsigned char)(v >> 24)};
    buf_add(b, p, sizeof p);
}

static void put_u32(char *p, uint32_t v)
{
    p[0] = (char)(unsigned char)(v & 0xff);
    p[1] = (char)(unsigned char)(v >> 8 & 0xff);
    p[2] = (char)(unsigned char)(v >> 16 & 0xff);
    p[3] = (char)(unsigned char)(v >> 24);
}

/* ---- request ------------------------------------------------------------------------ */

static void add_field(struct buf *b, char tag, struct str value)
{
    buf_add_char(b, tag);
    add_u32(b, (uint32_t)value.len);
    buf_add_str(b, value);
}

static void add_limit(struct buf *b, const char *name, uint64_t value)
{
    if (value != SPAWN_NO_LIMIT) {
        buf_addf(b, "%s%s=%" PRIu64, b->len > 0 ? " " : "", name, value);
    }
}

static enum status add_limits(struct buf *out, const struct launch_spec *launch)
{
    struct buf text;
    buf_init(&text, 256);
    add_limit(&text, "cpu", launch->cpu_seconds);
    add_limit(&text, "as", launch->mem_bytes);
    add_limit(&text, "nofile", launch->open_files);
    add_limit(&text, "fsize", launch->file_bytes);
    add_limit(&text, "nproc", launch->processes);
    enum status st = buf_status(&text);
    if (st == ST_OK && text.len > 0) {
        add_field(out, TAG_LIMITS, buf_str(&text));
    }
    buf_done(&text);
    return st;
}

enum status frame_request(const struct plan_call *call, const struct launch_spec *launch,
                          uint64_t call_id, struct buf *out)
{
    size_t start = out->len;
    if (out->max > FRAME_REQUEST_MAX) {
        return ST_INVALID; /* the length might not fit its field */
    }
    buf_add(out, frame_magic, sizeof frame_magic);
    buf_add_char(out, 'Q');
    add_u32(out, (uint32_t)(call_id & UINT32_MAX));
    add_u32(out, (uint32_t)(call_id >> 32));
    add_u32(out, 0);
    add_field(out, TAG_SOURCE, call->source);
    add_field(out, TAG_FILENAME, str_c(call->filename));
    add_field(out, TAG_FUNCTION, str_c(call->function));
    add_field(out, TAG_ARGS, call->args);
    for (size_t i = 0; i < call->nenv; i++) {
        add_field(out, TAG_ENV, str_c(call->env[i]));
    }
    enum status st = add_limits(out, launch);
    if (st == ST_OK) {
        st = buf_status(out);
    }
    if (st != ST_OK) {
        return st;
    }
    size_t length = out->len - start - FRAME_HEAD;
    put_u32(out->ptr + start + FRAME_HEAD - 4, (uint32_t)length);
    return ST_OK;
}

/* ---- answer -------------------------------------------------------------------------- */

enum status frame_reader_new(uint64_t call_id, size_t max_payload,
                             struct frame_reader **out)
{
    struct frame_reader *r = mem_zalloc(sizeof *r);
    if (r == NULL) {
        return ST_NOMEM;
    }
    r->call_id = call_id;
    r->max_payload = max_payload;
    buf_init(&r->payload, max_payload);
    *out = r;
    return ST_OK;
}

void frame_reader_free(struct frame_reader *r)
{
    if (r != NULL) {
        buf_wipe(&r->payload);
        mem_free(r);
    }
}

/* Could the collected bytes still become the head of our answer? */
static bool head_possible(const struct frame_reader *r)
{
    size_t magic = r->nhead < sizeof frame_magic ? r->nhead : sizeof frame_magic;
    if (memcmp(r->head, frame_magic, magic) != 0) {
        return false;
    }
    if (r->nhead > 4 && r->head[4] != 'R' && r->head[4] != 'E') {
        return false;
    }
    return r->nhead < 13 || get_u64(r->head + 5) == r->call_id;
}

/* One byte of what is not payload. What cannot be our head loses its first byte and is
 * looked at again, so that nothing standing before the answer can swallow it. */
static void feed_head(struct frame_reader *r, unsigned char c)
{
    r->head[r->nhead++] = c;
    while (r->nhead > 0 && !head_possible(r)) {
        r->nhead--;
        memmove(r->head, r->head + 1, r->nhead);
    }
}

static void set_text(struct frame_answer *out, unsigned char tag, struct str value)
{
    switch (tag) {
    case TAG_RESULT:
        out->result = value;
        break;
    case TAG_FORM:
        out->result_is_text = str_eq_c(value, "s");
        break;
    case TAG_CLASS:
        out->err_class = value;
        break;
    case TAG_MESSAGE:
        out->err_message = value;
        break;
    case TAG_TRACEBACK:
        out->traceback = value;
        break;
    case TAG_CAUSE:
        out->cause = value;
        break;
    default:
        break;
    }
}

static enum status parse_answer(const struct frame_reader *r, struct frame_answer *out,
                                struct error *err)
{
    struct frame_answer a = {.is_error = r->head[4] == 'E'};
    const char *p = r->payload.ptr;
    size_t left = r->payload.len;
    bool has_result = false;
    while (left > 0) {
        if (left < FIELD_HEAD) {
            return error_set(err, ST_INVALID, "the answer ends inside a field");
        }
        unsigned char tag = (unsigned char)p[0];
        size_t n = get_u32((const unsigned char *)p + 1);
        p += FIELD_HEAD;
        left -= FIELD_HEAD;
        if (n > left) {
            return error_set(err, ST_INVALID, "a field of the answer is longer than it");
        }
        struct str value = str_n(p, n);
        if (tag < TAG_RESULT || tag > TAG_DETAIL || !utf8_valid(value)) {
            return error_set(err, ST_INVALID, "a field of the answer is not valid");
        }
        int64_t detail = 0;
        if (tag == TAG_DETAIL) {
            if (str_to_i64(value, 0, 255, &detail) != ST_OK) {
                return error_set(err, ST_INVALID, "the answer's detail is no number");
            }
            a.detail = (int)detail;
        }
        has_result = has_result || tag == TAG_RESULT;
        set_text(&a, tag, value);
        p += n;
        left -= n;
    }
    if (!a.is_error && !has_result) {
        return error_set(err, ST_INVALID, "the answer has no result");
    }
    *out = a;
    return ST_OK;
}

static enum status begin_payload(struct frame_reader *r, struct error *err)
{
    r->want = get_u32(r->head + 13);
    if (r->want > r->max_payload) {
        return error_set(err, ST_TOO_LARGE,
                         "an answer of %zu bytes, at most %zu are taken", r->want,
                         r->max_payload);
    }
    r->in_payload = true;
    return ST_OK;
}

enum status frame_feed(struct frame_reader *r, struct str bytes, struct frame_answer *out,
                       struct error *err)
{
    size_t i = 0;
    if (r->done) {
        return error_set(err, ST_INVALID, "the answer was there already");
    }
    while (!r->in_payload && i < bytes.len) {
        feed_head(r, (unsigned char)bytes.ptr[i++]);
        if (r->nhead == FRAME_HEAD) {
            enum status st = begin_payload(r, err);
            if (st != ST_OK) {
                r->done = true;
                return st;
            }
        }
    }
    if (!r->in_payload) {
        return ST_BUSY;
    }
    size_t missing = r->want - r->payload.len;
    size_t take = bytes.len - i < missing ? bytes.len - i : missing;
    buf_add(&r->payload, bytes.ptr + i, take);
    if (buf_status(&r->payload) != ST_OK) {
        r->done = true;
        return error_set(err, ST_NOMEM, "no memory for an answer of %zu bytes", r->want);
    }
    if (r->payload.len < r->want) {
        return ST_BUSY;
    }
    r->done = true;
    return parse_answer(r, out, err);
}
