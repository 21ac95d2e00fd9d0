/* Text that grows, and as much JSON as is needed to pass it on. */
#ifndef CHANNEL_HTTP_TEXT_H
#define CHANNEL_HTTP_TEXT_H

#include <soulacy/channel.h>

#include <stdbool.h>

struct text {
    char *ptr; /* NULL while empty */
    size_t len, cap;
    bool failed; /* out of memory; nothing is added any more */
};

void text_done(struct text *t);
void text_add(struct text *t, struct sy_str s);
void text_add_c(struct text *t, const char *s);
void text_add_string(struct text *t, struct sy_str s); /* as a JSON string, with quotes */

struct sy_str span_c(const char *s);
bool span_is(struct sy_str s, const char *c);

/* The raw text of a member of the JSON object in line, which is well-formed: it comes
 * from the core. ptr NULL when absent. */
struct sy_str json_member(struct sy_str line, const char *key);
/* A whole number in the range, else `other`. */
int json_small(struct sy_str raw, int min, int max, int other);

#endif
