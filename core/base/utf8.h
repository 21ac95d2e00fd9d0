/* UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. Pure. */
#ifndef SOULACY_BASE_UTF8_H
#define SOULACY_BASE_UTF8_H

#include "base/buf.h"
#include "base/str.h"

bool utf8_valid(struct str s);
/* Bytes of the longest valid prefix. */
size_t utf8_valid_prefix(struct str s);
/* Largest n' <= n that does not cut a code point of the valid text s. */
size_t utf8_cut(struct str s, size_t n);
/* Code points in valid text. */
size_t utf8_count(struct str s);
/* Append s to out, each invalid byte as U+FFFD. */
void utf8_append_lossy(struct buf *out, struct str s);
/* Append s for a terminal or a log line: control bytes, ESC, bidi marks and invalid
 * bytes become \xNN or \u{N}; newline and tab are kept only when keep_lines. */
void utf8_append_visible(struct buf *out, struct str s, bool keep_lines);

#endif
