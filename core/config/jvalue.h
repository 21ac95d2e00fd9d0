/* JSON as a tree that keeps numbers as they were written. Private to core/config. */
#ifndef SOULACY_CONFIG_JVALUE_H
#define SOULACY_CONFIG_JVALUE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum jkind { J_NULL, J_BOOL, J_NUMBER, J_STRING, J_ARRAY, J_OBJECT };

struct jvalue {
    enum jkind kind;
    bool truth;      /* J_BOOL */
    struct str text; /* J_NUMBER: as written; J_STRING: decoded */
    struct str raw;  /* the bytes it was read from */
    struct str key;  /* decoded, when the parent is an object */
    size_t index;    /* place below the parent */
    const struct jvalue *up;
    struct jvalue *first, *next;
    size_t n;   /* children */
    void *mark; /* for whoever walks the tree */
};

/* Strict JSON (json_check, depth 64) to a tree; text must live as long as the tree. */
enum status jvalue_parse(struct str text, struct arena *a, struct jvalue **out,
                         struct error *err) SY_MUST_CHECK;
const struct jvalue *jvalue_get(const struct jvalue *object, const char *key);
/* One text for all equal values: object keys sorted, numbers by value, 1.0 as 1. */
enum status jvalue_canon(const struct jvalue *v, struct arena *a,
                         struct buf *out) SY_MUST_CHECK;

/* A number by its digits: 0.d1 d2 .. * 10^exp, d1 and the last digit not 0. */
struct decimal {
    bool negative, zero;
    struct str digits; /* from the first to the last that counts; may hold one '.' */
    size_t n;          /* digits in it */
    int64_t exp;
};

void decimal_parse(struct str number, struct decimal *out); /* of a JSON number */
int decimal_compare(const struct decimal *a, const struct decimal *b);
bool decimal_is_integer(const struct decimal *d);
/* step: positive, at most 18 digits. */
bool decimal_is_multiple(const struct decimal *d, const struct decimal *step);
void decimal_canon(const struct decimal *d, struct buf *out);

#endif
