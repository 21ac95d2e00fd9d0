/* A YAML document as a tree with positions (libyaml events underneath). Plain scalars
 * keep their text. Limits: 1 MiB, depth 64, 10 000 nodes with aliases expanded; duplicate
 * keys, several documents, non-scalar keys, merge keys and tags other than !!str, !!int,
 * !!bool, !!null, !!float are errors. */
#ifndef SOULACY_CONFIG_YAML_H
#define SOULACY_CONFIG_YAML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

enum yaml_kind { YAML_NULL, YAML_SCALAR, YAML_SEQ, YAML_MAP };

struct yaml_pos {
    unsigned line, column; /* from 1 */
};

/* Where a value came from. */
enum yaml_origin { YAML_FROM_FILE, YAML_FROM_ENV, YAML_FROM_DEFAULT };

struct yaml_node {
    enum yaml_kind kind;
    bool quoted;   /* scalar: written in quotes or as a block, so surely text */
    bool expanded; /* scalar: ${NAME} was replaced in it, so quotes say nothing */
    enum yaml_origin origin;
    struct str text; /* scalar */
    struct yaml_pos pos;
    struct yaml_node *first; /* seq: items; map: values, each with its key */
    struct yaml_node *next;
    struct str key; /* when the parent is a map */
    struct yaml_pos key_pos;
};

/* One problem of a file; all of them are collected, not only the first. */
struct problem {
    struct problem *next;
    bool warning; /* false: an error */
    struct yaml_pos pos;
    const char *text; /* without file and position */
};

/* Problems of one file, in the order found. At most 200 are kept. */
struct problems {
    struct arena *arena; /* where the texts live; set by the caller */
    const char *file;    /* for printing; borrowed */
    struct problem *first, *last;
    size_t nerrors, nwarnings;
};

void problems_init(struct problems *p, struct arena *a, const char *file);
void problem_add(struct problems *p, bool warning, struct yaml_pos pos, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));
/* Appends "FILE:LINE:COL: error: TEXT\n" for each; a problem without a place has no
 * LINE:COL. A last line counts those that were not kept. */
void problems_print(const struct problems *p, struct buf *out);
/* By place; those without one (environment, defaults) last. */
void problems_sort(struct problems *p);

#define YAML_MAX_BYTES ((size_t)1024 * 1024)
#define YAML_MAX_DEPTH 64U
#define YAML_MAX_NODES 10000U

/* Parse; everything lives in the arena. On failure the problems say why. An empty file
 * gives a YAML_MAP without children. */
enum status yaml_parse(struct str text, struct arena *a, struct problems *probs,
                       struct yaml_node **root) SY_MUST_CHECK;

/* The child of a map, or NULL (also when map is NULL or no map). */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

/* The tree as strict JSON (numbers, booleans and null by YAML 1.2 core rules when plain;
 * text otherwise). For tool parameters and SY_CFG_JSON. */
enum status yaml_to_json(const struct yaml_node *n, struct buf *out) SY_MUST_CHECK;

#endif
