/* Strict JSON in and out. cJSON does the parsing of structure; what it lets through
 * and security-rules.md 1 forbids is refused here first: duplicate keys, NUL, trailing
 * bytes, invalid UTF-8, lone surrogates, numbers such as 01 or 1e999, control bytes in
 * strings, depth and size over the caps. Pure. */
#ifndef SOULACY_BASE_JSON_H
#define SOULACY_BASE_JSON_H

#include "base/buf.h"
#include "base/error.h"

#include <cjson/cJSON.h>

#define JSON_MAX_DEPTH 64

/* Check that text is one strict JSON value and nothing else but white space. The error
 * says what and at which byte. No allocation in proportion to depth; iterative.
 * max_depth above 512 counts as 512. Numbers are of 63 bytes at most, and finite. */
enum status json_check(struct str text, size_t max_depth,
                       struct error *err) SY_MUST_CHECK;

/* Make cJSON allocate through mem.h, so that limits and fault tests see it. Process-wide:
 * main calls it once before the first thread, tests may. */
void json_init(void);

/* json_check, then parse. *out is freed with cJSON_Delete. */
enum status json_parse(struct str text, cJSON **out, struct error *err) SY_MUST_CHECK;

/* Getters on an object; case-sensitive; false when absent or of another type. */
bool json_get_str(const cJSON *obj, const char *key, struct str *out);
bool json_get_i64(const cJSON *obj, const char *key, int64_t *out); /* whole, < 2^53 */
bool json_get_bool(const cJSON *obj, const char *key, bool *out);
const cJSON *json_get(const cJSON *obj, const char *key); /* NULL when absent */

/* The raw text of member `key` of the object in text (which must have passed
 * json_check), so that numbers above 2^53 travel unchanged. ST_NOT_FOUND if absent. */
enum status json_raw_member(struct str text, const char *key,
                            struct str *out) SY_MUST_CHECK;

/* Writers. json_add_string escapes " \ and control bytes; invalid UTF-8 becomes U+FFFD. */
void json_add_string(struct buf *b, struct str s); /* with the quotes */
void json_add_key(struct buf *b, const char *key); /* "key": and a comma before if the
                                                           last byte is not '{' or '[' */
void json_add_key_string(struct buf *b, const char *key, struct str s);
void json_add_key_i64(struct buf *b, const char *key, int64_t v);
void json_add_key_bool(struct buf *b, const char *key, bool v);
void json_add_key_raw(struct buf *b, const char *key, struct str json);
/* Comma if the last byte is not '{', '[' or ':'; for array elements. */
void json_add_sep(struct buf *b);

#endif
