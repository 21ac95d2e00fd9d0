/* Borrowed views of bytes. A view never ends in NUL by promise. */
#ifndef SOULACY_BASE_STR_H
#define SOULACY_BASE_STR_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR_LIT(s) ((struct str){(s), sizeof(s) - 1})
#define STR_NONE ((struct str){NULL, 0})
/* For printf("%.*s", STR_ARG(s)). */
#define STR_ARG(s) (int)(s).len, (s).ptr != NULL ? (s).ptr : ""

struct str str_c(const char *s); /* NULL gives the empty view */
struct str str_n(const char *p, size_t n);
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
bool str_eq_nocase(struct str a, struct str b); /* ASCII only */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_trim(struct str s); /* ASCII white space on both ends */
/* Index of c, or SIZE_MAX. */
size_t str_find_char(struct str s, char c);
size_t str_find(struct str s, struct str needle);
/* Take the part of *s before sep and move *s behind it; false when *s is used up. */
bool str_split(struct str *s, char sep, struct str *part);
/* Equal in time that depends only on b's length. For keys and signatures: a is the
 * attacker's, b is ours. */
bool str_eq_secret(struct str a, struct str b);
/* Whole view must be a decimal number in range; no sign but '-', no blanks. */
enum status str_to_i64(struct str s, int64_t min, int64_t max,
                       int64_t *out) SY_MUST_CHECK;
/* Edit distance, for "did you mean"; a cap of 64 bytes on both, else SIZE_MAX. */
size_t str_distance(struct str a, struct str b);
/* NUL-terminated heap copy, or NULL when out of memory. */
char *str_dup(struct str s) SY_MUST_CHECK;

#endif
