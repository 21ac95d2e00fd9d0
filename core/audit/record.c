/* Lines of the audit file. In: a record and its place, or a line. Out: a line, or its
 * place and hash. Never writes arguments, never takes a line whose hash does not fit. */
#include "audit/record.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

#define FIELD_MAX 512
#define DETAIL_MAX 2048

/* The end of each line, of fixed length. */
#define PREV_KEY ",\"prev\":\""
#define HASH_KEY "\",\"hash\":\""
#define LINE_END "\"}"
#define HEX_LEN (SHA256_HEX - 1)

static void add_text(struct buf *b, const char *key, struct str s, size_t max)
{
    if (s.len == 0) {
        return;
    }
    if (s.len > max) {
        s.len = utf8_cut(s, max);
    }
    json_add_key_string(b, key, s);
}

static void add_fields(struct buf *b, const struct audit_record *r,
                       const struct record_place *place)
{
    add_text(b, "event", str_c(r->event), FIELD_MAX);
    add_text(b, "entry", str_c(r->entry), FIELD_MAX);
    add_text(b, "run", r->run_id, FIELD_MAX);
    add_text(b, "agent", r->agent, FIELD_MAX);
    add_text(b, "channel", r->channel, FIELD_MAX);
    add_text(b, "sender", r->sender, FIELD_MAX);
    add_text(b, "session", r->session, FIELD_MAX);
    add_text(b, "tool", r->tool, FIELD_MAX);
    add_text(b, "verdict", str_c(r->verdict), FIELD_MAX);
    add_text(b, "row", str_c(r->row), FIELD_MAX);
    add_text(b, "args", str_c(place->args_hex), FIELD_MAX);
    add_text(b, "cause", str_c(r->cause), FIELD_MAX);
    add_text(b, "detail", r->detail, DETAIL_MAX);
    if (place->count != 0) {
        json_add_key_i64(b, "count", (int64_t)place->count);
    }
    if (r->took_ms >= 0) {
        json_add_key_i64(b, "took_ms", r->took_ms);
    }
}

/* The hash of the bytes of a line before its own hash. */
static enum status chain(const char *prev, struct str bytes, char out[SHA256_HEX],
                         struct error *err)
{
    const struct str parts[2] = {str_n(prev, HEX_LEN), bytes};
    unsigned char digest[SHA256_LEN];
    enum status st = hash_sha256(parts, 2, digest, err);
    if (st == ST_OK) {
        hash_hex(digest, out);
    }
    return st;
}

enum status record_write(struct buf *out, const struct audit_record *r,
                         const struct record_place *place, char hash[SHA256_HEX],
                         struct error *err)
{
    char at[32];
    size_t start = out->len;
    clock_format_utc(place->at_unix_ms, at);
    buf_addf(out, "{\"seq\":%" PRIu64, place->seq);
    json_add_key_string(out, "at", str_c(at));
    add_fields(out, r, place);
    buf_addf(out, PREV_KEY "%s\"", place->prev);
    enum status st = buf_status(out);
    if (st != ST_OK) {
        return error_set(err, st, "audit record: %s", status_name(st));
    }
    st = chain(place->prev, str_n(out->ptr + start, out->len - start), hash, err);
    if (st != ST_OK) {
        return st;
    }
    buf_addf(out, ",\"hash\":\"%s" LINE_END "\n", hash);
    st = buf_status(out);
    return st == ST_OK ? st : error_set(err, st, "audit record: %s", status_name(st));
}

static bool take_hex(struct str s, char out[SHA256_HEX])
{
    for (size_t i = 0; i < HEX_LEN; i++) {
        char c = s.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
        out[i] = c;
    }
    out[HEX_LEN] = '\0';
    return true;
}

static bool take_seq(struct str line, uint64_t *out)
{
    static const struct str start = {"{\"seq\":", 7};
    if (!str_starts(line, start)) {
        return false;
    }
    struct str rest = str_n(line.ptr + start.len, line.len - start.len);
    struct str number;
    int64_t value;
    if (!str_split(&rest, ',', &number) ||
        str_to_i64(number, 1, INT64_MAX, &value) != ST_OK) {
        return false;
    }
    *out = (uint64_t)value;
    return true;
}

/* `key` at offset `at` of the line, and 64 hex digits behind it. */
static bool take_keyed(struct str line, size_t at, const char *key, char out[SHA256_HEX])
{
    size_t n = strlen(key);
    return memcmp(line.ptr + at, key, n) == 0 &&
           take_hex(str_n(line.ptr + at + n, HEX_LEN), out);
}

enum status record_read(struct str line, struct record_line *out, struct error *err)
{
    static const size_t tail = sizeof(PREV_KEY) - 1 + HEX_LEN + sizeof(HASH_KEY) - 1 +
                               HEX_LEN + sizeof(LINE_END) - 1;
    struct record_line r;
    char hash[SHA256_HEX];
    if (line.len < tail || !str_ends(line, STR_LIT(LINE_END)) ||
        !take_seq(line, &r.seq)) {
        return error_set(err, ST_INVALID, "not an audit record");
    }
    size_t prev_at = line.len - tail;
    size_t hash_at = prev_at + sizeof(PREV_KEY) - 1 + HEX_LEN;
    if (!take_keyed(line, prev_at, PREV_KEY, r.prev) ||
        !take_keyed(line, hash_at, HASH_KEY, r.hash)) {
        return error_set(err, ST_INVALID, "not an audit record");
    }
    /* The quote that ends prev is hashed with it. */
    enum status st = chain(r.prev, str_n(line.ptr, hash_at + 1), hash, err);
    if (st != ST_OK) {
        return st;
    }
    if (strcmp(hash, r.hash) != 0) {
        return error_set(err, ST_INVALID, "record %" PRIu64 " was changed", r.seq);
    }
    *out = r;
    return ST_OK;
}
