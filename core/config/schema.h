/* A compiled JSON Schema from the inside. Private to core/config. */
#ifndef SOULACY_CONFIG_SCHEMA_H
#define SOULACY_CONFIG_SCHEMA_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "config/jsonschema.h"
#include "config/jvalue.h"

enum {
    T_NULL = 1,
    T_BOOLEAN = 2,
    T_INTEGER = 4,
    T_NUMBER = 8,
    T_STRING = 16,
    T_ARRAY = 32,
    T_OBJECT = 64
};

struct rule;

struct rule_list {
    struct rule **items;
    size_t n;
};

struct bound { /* of a number */
    bool set;
    struct decimal value;
    struct str text;
};

struct property {
    struct str name;
    struct rule *rule;
};

struct rule {
    const struct jvalue *source;
    struct rule *next; /* all of them, in the order made */
    bool never;        /* the schema `false` */
    unsigned types;    /* 0: any */
    struct bound min, max, above, below, step;
    int64_t min_length, max_length, min_items, max_items, min_props,
        max_props; /* -1: none */
    pcre2_code *pattern;
    struct str pattern_text;
    struct property *props; /* sorted by name */
    size_t nprops;
    struct str *required;
    size_t nrequired;
    struct rule *additional; /* for properties not named; NULL: anything */
    struct rule *items;
    bool unique;
    struct str *values; /* canonical texts of enum */
    struct str *shown;  /* the same as written, for messages */
    size_t nvalues;
    bool constant; /* const */
    struct str value, value_shown;
    struct rule_list all, any, one;
    struct rule *negated, *ref;
    size_t waits; /* rules that lead here without going into a member */
};

struct schema {
    struct arena *arena;
    struct rule *root, *last;
    size_t nrules;
    struct str text;
    pcre2_match_context *limits;
};

/* While it is compiled. */
struct compiler {
    struct schema *s;
    struct jvalue *doc;
    bool lenient;
    struct error *err;
    enum status status;
    pcre2_compile_context *pcre;
};

/* The rule for a schema in the document, made when it is first asked for; NULL when it is
 * none (then it has been said, or left out in lenient mode). */
struct rule *schema_rule_for(struct compiler *x, struct jvalue *v);
/* Take one keyword of the schema of r. */
void schema_keyword(struct compiler *x, struct rule *r, struct jvalue *v);
/* The first fault ends the compilation: "PLACE: WHAT". */
void schema_fault(struct compiler *x, const struct jvalue *v, const char *what);
/* Zeroed, with one more place than n; NULL ends the compilation. */
void *schema_array(struct compiler *x, size_t n, size_t size);

/* Index of name in the sorted properties, or SIZE_MAX. */
size_t schema_property(const struct rule *r, struct str name);

#endif
