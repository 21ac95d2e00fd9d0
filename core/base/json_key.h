/* Between json_check.c and json_raw.c only: reading escaped text code point by code
 * point, without a copy. Pure. */
#ifndef SOULACY_BASE_JSON_KEY_H
#define SOULACY_BASE_JSON_KEY_H

#include "base/str.h"

/* A \uXXXX escape of which s is what follows the u: its length there (4, or 10 for a
 * surrogate pair) and the code point; 0 when it is malformed or a lone surrogate. */
size_t json_unicode_escape(struct str s, uint32_t *code);

/* Order of a and b as their readers will see them. a is escaped text from between the
 * quotes; b too if b_escaped, else it is plain text. Both should be valid; if they are
 * not the answer means nothing, but nothing is read behind an end. */
int json_key_compare(struct str a, struct str b, bool b_escaped);

#endif
