/* YAML text to a tree. In: bytes of one file. Out: nodes in the caller's arena, each with
 * its place, or problems with theirs. Pure. Never guesses a scalar's type (that is the
 * schema's business), never builds more than the documented number of nodes, however
 * often an alias repeats itself. */
#include "config/yaml.h"

#include "base/utf8.h"

#include <string.h>
#include <yaml.h>

/* A finished or still open node that has an anchor. */
struct anchor {
    struct anchor *next;
    struct str name;
    const struct yaml_node *node;
    size_t count, height; /* of its whole subtree; 0 while it is open */
};

struct frame { /* one open container */
    struct yaml_node *node, *last;
    struct anchor *anchor;
    size_t count, height;
    bool has_key;
    struct str key;
    struct yaml_pos key_pos;
};

/* Keys seen, over all maps: (map, key) pairs in an open-addressed table. */
struct seen {
    const struct yaml_node *map;
    struct str key;
    struct yaml_pos pos;
};

struct builder {
    struct arena *arena;
    struct problems *probs;
    struct frame stack[YAML_MAX_DEPTH];
    size_t depth;
    size_t count; /* nodes so far, aliases expanded */
    struct anchor *anchors;
    struct yaml_node *root;
    struct seen *seen;
    size_t seen_cap, seen_n;
    enum status status; /* ST_INVALID: said why; the parse ends */
};

static struct yaml_pos pos_of(yaml_mark_t m)
{
    return (struct yaml_pos){(unsigned)m.line + 1, (unsigned)m.column + 1};
}

static void stop_at(struct builder *b, struct yaml_pos pos, const char *text)
{
    problem_add(b->probs, false, pos, "%s", text);
    b->status = ST_INVALID;
}

static size_t hash_key(const struct yaml_node *map, struct str key)
{
    uint64_t h = UINT64_C(1469598103934665603) ^ (uint64_t)(uintptr_t)map;
    for (size_t i = 0; i < key.len; i++) {
        h = (h ^ (unsigned char)key.ptr[i]) * UINT64_C(1099511628211);
    }
    return (size_t)(h ^ (h >> 29));
}

static struct seen *seen_slot(struct seen *table, size_t cap, const struct yaml_node *map,
                              struct str key)
{
    size_t i = hash_key(map, key) & (cap - 1);
    while (table[i].map != NULL && !(table[i].map == map && str_eq(table[i].key, key))) {
        i = (i + 1) & (cap - 1);
    }
    return &table[i];
}

static bool seen_grow(struct builder *b)
{
    size_t cap = b->seen_cap == 0 ? 64 : b->seen_cap * 2;
    struct seen *table = arena_array(b->arena, cap, sizeof(*table));
    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < b->seen_cap; i++) {
        if (b->seen[i].map != NULL) {
            *seen_slot(table, cap, b->seen[i].map, b->seen[i].key) = b->seen[i];
        }
    }
    b->seen = table;
    b->seen_cap = cap;
    return true;
}

/* Remember the key; a second one is a problem, the parse goes on. */
static void note_key(struct builder *b, struct frame *f)
{
    if (b->seen_n * 2 >= b->seen_cap && !seen_grow(b)) {
        b->status = ST_NOMEM;
        return;
    }
    struct seen *slot = seen_slot(b->seen, b->seen_cap, f->node, f->key);
    if (slot->map != NULL) {
        problem_add(b->probs, false, f->key_pos,
                    "duplicate key %.*s, first written in line %u", STR_ARG(f->key),
                    slot->pos.line);
        return;
    }
    *slot = (struct seen){f->node, f->key, f->key_pos};
    b->seen_n++;
}

/* Count a node and its subtree; over the limit ends the parse. */
static bool count_nodes(struct builder *b, size_t n, struct yaml_pos pos)
{
    b->count += n;
    if (b->count > YAML_MAX_NODES) {
        stop_at(b, pos,
                "more than 10000 nodes (aliases count as often as they are used)");
        return false;
    }
    return true;
}

/* Hang node below the open container, or make it the root. */
static void attach(struct builder *b, struct yaml_node *node, size_t count, size_t height)
{
    if (b->depth == 0) {
        b->root = node;
        return;
    }
    struct frame *f = &b->stack[b->depth - 1];
    if (f->node->kind == YAML_MAP) {
        node->key = f->key;
        node->key_pos = f->key_pos;
        f->has_key = false;
    }
    if (f->last != NULL) {
        f->last->next = node;
    } else {
        f->node->first = node;
    }
    f->last = node;
    f->count += count;
    if (f->height < height + 1) {
        f->height = height + 1;
    }
}

/* True when the next node stands where a map's key belongs. */
static bool wants_key(const struct builder *b)
{
    return b->depth != 0 && b->stack[b->depth - 1].node->kind == YAML_MAP &&
           !b->stack[b->depth - 1].has_key;
}

static struct anchor *new_anchor(struct builder *b, const yaml_char_t *name,
                                 const struct yaml_node *node)
{
    struct anchor *a = arena_alloc(b->arena, sizeof(*a));
    char *copy = a != NULL ? arena_dup(b->arena, str_c((const char *)name)) : NULL;
    if (copy == NULL) {
        b->status = ST_NOMEM;
        return NULL;
    }
    *a = (struct anchor){.next = b->anchors, .name = str_c(copy), .node = node};
    b->anchors = a;
    return a;
}

static struct yaml_node *new_node(struct builder *b, enum yaml_kind kind,
                                  struct yaml_pos pos)
{
    struct yaml_node *node = arena_alloc(b->arena, sizeof(*node));
    if (node == NULL) {
        b->status = ST_NOMEM;
        return NULL;
    }
    node->kind = kind;
    node->pos = pos;
    return node;
}

static bool is_null_text(struct str s)
{
    return s.len == 0 || str_eq_c(s, "~") || str_eq_c(s, "null") || str_eq_c(s, "Null") ||
           str_eq_c(s, "NULL");
}

enum tag { TAG_ABSENT, TAG_STR, TAG_NULL, TAG_OTHER, TAG_REFUSED };

static enum tag tag_of(const yaml_char_t *tag)
{
    if (tag == NULL) {
        return TAG_ABSENT;
    }
    struct str t = str_c((const char *)tag);
    struct str core = STR_LIT("tag:yaml.org,2002:");
    if (!str_starts(t, core)) {
        return TAG_REFUSED;
    }
    struct str name = str_n(t.ptr + core.len, t.len - core.len);
    if (str_eq_c(name, "str")) {
        return TAG_STR;
    }
    if (str_eq_c(name, "null")) {
        return TAG_NULL;
    }
    bool known =
        str_eq_c(name, "int") || str_eq_c(name, "bool") || str_eq_c(name, "float");
    return known ? TAG_OTHER : TAG_REFUSED;
}

static const char tag_text[] =
    "only the tags !!str, !!int, !!bool, !!float and !!null on scalars are understood";

/* The scalar as a key of the open map. */
static void take_key(struct builder *b, struct str text, struct yaml_pos pos, bool plain)
{
    if (plain && str_eq_c(text, "<<")) {
        stop_at(b, pos, "merge keys (<<) are not understood: write the keys out");
        return;
    }
    struct frame *f = &b->stack[b->depth - 1];
    char *copy = arena_dup(b->arena, text);
    if (copy == NULL) {
        b->status = ST_NOMEM;
        return;
    }
    f->key = str_n(copy, text.len);
    f->key_pos = pos;
    f->has_key = true;
    note_key(b, f);
}

static void on_scalar(struct builder *b, const yaml_event_t *ev)
{
    struct yaml_pos pos = pos_of(ev->start_mark);
    struct str text = str_n((const char *)ev->data.scalar.value, ev->data.scalar.length);
    bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    enum tag tag = tag_of(ev->data.scalar.tag);
    if (tag == TAG_REFUSED) {
        stop_at(b, pos, tag_text);
        return;
    }
    if (memchr(text.ptr, 0, text.len) != NULL) {
        stop_at(b, pos, "a NUL byte in a value");
        return;
    }
    if (wants_key(b)) {
        if (ev->data.scalar.anchor != NULL) {
            stop_at(b, pos, "an anchor on a key is not understood");
            return;
        }
        take_key(b, text, pos, plain);
        return;
    }
    bool null = tag == TAG_NULL || (tag == TAG_ABSENT && plain && is_null_text(text));
    struct yaml_node *node = new_node(b, null ? YAML_NULL : YAML_SCALAR, pos);
    char *copy = node != NULL ? arena_dup(b->arena, text) : NULL;
    if (copy == NULL) {
        b->status = ST_NOMEM;
        return;
    }
    node->text = str_n(copy, text.len);
    node->quoted = tag == TAG_STR || (tag == TAG_ABSENT && !plain);
    if (!count_nodes(b, 1, pos)) {
        return;
    }
    if (ev->data.scalar.anchor != NULL) {
        struct anchor *a = new_anchor(b, ev->data.scalar.anchor, node);
        if (a == NULL) {
            return;
        }
        a->count = 1;
    }
    attach(b, node, 1, 0);
}

static void on_open(struct builder *b, enum yaml_kind kind, const yaml_event_t *ev,
                    const yaml_char_t *anchor, const yaml_char_t *tag)
{
    struct yaml_pos pos = pos_of(ev->start_mark);
    if (tag != NULL) {
        stop_at(b, pos, tag_text);
        return;
    }
    if (wants_key(b)) {
        stop_at(b, pos, "a key must be plain text, not a list or a mapping");
        return;
    }
    if (b->depth == YAML_MAX_DEPTH) {
        stop_at(b, pos, "nested deeper than 64 levels");
        return;
    }
    struct yaml_node *node = new_node(b, kind, pos);
    if (node == NULL || !count_nodes(b, 1, pos)) {
        return;
    }
    struct anchor *a = anchor != NULL ? new_anchor(b, anchor, node) : NULL;
    if (b->status != ST_OK) {
        return;
    }
    b->stack[b->depth++] =
        (struct frame){.node = node, .anchor = a, .count = 1, .height = 1};
}

static void on_close(struct builder *b)
{
    struct frame done = b->stack[--b->depth];
    if (done.anchor != NULL) {
        done.anchor->count = done.count;
        done.anchor->height = done.height;
    }
    attach(b, done.node, done.count, done.height);
}

static void on_alias(struct builder *b, const yaml_event_t *ev)
{
    struct yaml_pos pos = pos_of(ev->start_mark);
    struct str name = str_c((const char *)ev->data.alias.anchor);
    if (wants_key(b)) {
        stop_at(b, pos, "an alias as a key is not understood");
        return;
    }
    struct anchor *a = b->anchors;
    while (a != NULL && !str_eq(a->name, name)) {
        a = a->next;
    }
    if (a == NULL) {
        problem_add(b->probs, false, pos, "alias *%.*s has no anchor before it",
                    STR_ARG(name));
        b->status = ST_INVALID;
        return;
    }
    if (a->count == 0) {
        stop_at(b, pos, "an alias inside the node it names");
        return;
    }
    if (b->depth + a->height > YAML_MAX_DEPTH) {
        stop_at(b, pos, "nested deeper than 64 levels");
        return;
    }
    struct yaml_node *node = new_node(b, a->node->kind, pos);
    if (node == NULL || !count_nodes(b, a->count, pos)) {
        return;
    }
    *node = *a->node; /* children are shared, the node itself has its own place */
    node->pos = pos;
    node->next = NULL;
    node->key = STR_NONE;
    attach(b, node, a->count, a->height);
}

/* One event. True when the document has ended. */
static bool on_event(struct builder *b, const yaml_event_t *ev)
{
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        on_scalar(b, ev);
        return false;
    case YAML_ALIAS_EVENT:
        on_alias(b, ev);
        return false;
    case YAML_SEQUENCE_START_EVENT:
        on_open(b, YAML_SEQ, ev, ev->data.sequence_start.anchor,
                ev->data.sequence_start.tag);
        return false;
    case YAML_MAPPING_START_EVENT:
        on_open(b, YAML_MAP, ev, ev->data.mapping_start.anchor,
                ev->data.mapping_start.tag);
        return false;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_close(b);
        return false;
    case YAML_DOCUMENT_START_EVENT:
        if (b->root != NULL) {
            stop_at(b, pos_of(ev->start_mark), "a second document: only one is allowed");
        }
        return false;
    case YAML_STREAM_END_EVENT:
    case YAML_NO_EVENT:
        return true;
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return false;
    }
    return false;
}

static void report_syntax(struct builder *b, const yaml_parser_t *p)
{
    if (p->error == YAML_MEMORY_ERROR) {
        b->status = ST_NOMEM;
        return;
    }
    struct yaml_pos pos = pos_of(p->problem_mark);
    const char *what = p->problem != NULL ? p->problem : "not YAML";
    if (p->context != NULL) {
        problem_add(b->probs, false, pos, "%s (%s)", what, p->context);
    } else {
        problem_add(b->probs, false, pos, "%s", what);
    }
    b->status = ST_INVALID;
}

static void run_parser(struct builder *b, struct str text)
{
    yaml_parser_t parser;
    if (yaml_parser_initialize(&parser) == 0) {
        b->status = ST_NOMEM;
        return;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    bool done = false;
    while (!done && b->status == ST_OK) {
        yaml_event_t ev;
        if (yaml_parser_parse(&parser, &ev) == 0) {
            report_syntax(b, &parser);
            break;
        }
        done = on_event(b, &ev);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&parser);
}

/* The place of byte number at. */
static struct yaml_pos place_of(struct str text, size_t at)
{
    struct yaml_pos pos = {1, 1};
    for (size_t i = 0; i < at; i++) {
        if (text.ptr[i] == '\n') {
            pos.line++;
            pos.column = 1;
        } else if (((unsigned char)text.ptr[i] & 0xC0U) != 0x80U) {
            pos.column++;
        }
    }
    return pos;
}

enum status yaml_parse(struct str text, struct arena *a, struct problems *probs,
                       struct yaml_node **root)
{
    size_t errors = probs->nerrors;
    if (text.len > YAML_MAX_BYTES) {
        problem_add(probs, false, (struct yaml_pos){0, 0}, "larger than 1 MiB");
        return ST_INVALID;
    }
    size_t valid = utf8_valid_prefix(text);
    if (valid != text.len) {
        problem_add(probs, false, place_of(text, valid), "not valid UTF-8");
        return ST_INVALID;
    }
    struct builder *b = arena_alloc(a, sizeof(*b));
    if (b == NULL) {
        return ST_NOMEM;
    }
    b->arena = a;
    b->probs = probs;
    run_parser(b, text.ptr != NULL ? text : STR_LIT(""));
    if (b->status == ST_OK && (b->root == NULL || b->root->kind == YAML_NULL)) {
        b->root = new_node(b, YAML_MAP, (struct yaml_pos){1, 1});
    }
    if (b->status != ST_OK) {
        return b->status;
    }
    if (probs->nerrors != errors) {
        return ST_INVALID;
    }
    *root = b->root;
    return ST_OK;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
    if (map == NULL || map->kind != YAML_MAP) {
        return NULL;
    }
    for (const struct yaml_node *n = map->first; n != NULL; n = n->next) {
        if (str_eq_c(n->key, key)) {
            return n;
        }
    }
    return NULL;
}
