/* A JSON Schema to rules. In: strict JSON text. Out: rules that share nothing with the
 * text's lifetime, or the first fault with its place in the document. Pure. Never keeps a
 * keyword it can't enforce without saying so (strict mode), never recurses along $ref:
 * rules wait in a list until they are filled. */
#include "config/schema.h"

#include "base/json.h"
#include "base/mem.h"

#define TEXT_MAX ((size_t)1024 * 1024)
#define ARENA_MAX ((size_t)64 * 1024 * 1024)
#define CHAIN_MAX 64 /* rules for one value that lead to each other */
#define MATCH_LIMIT 50000
#define DEPTH_LIMIT 1000
#define HEAP_LIMIT_KIB 1024

static void fill_rules(struct compiler *x)
{
    for (struct rule *r = x->s->root; r != NULL && x->status == ST_OK; r = r->next) {
        const struct jvalue *source = r->source;
        for (struct jvalue *v = source->first; v != NULL && x->status == ST_OK;
             v = v->next) {
            schema_keyword(x, r, v);
        }
    }
}

/* ---- rules that lead to themselves --------------------------------------------------- */

/* The rules that r puts to the same value, one after the other. */
static struct rule *same_value(const struct rule *r, size_t i)
{
    const struct rule_list *lists[] = {&r->all, &r->any, &r->one};
    for (size_t l = 0; l < 3; l++) {
        if (i < lists[l]->n) {
            return lists[l]->items[i];
        }
        i -= lists[l]->n;
    }
    if (r->negated != NULL && i-- == 0) {
        return r->negated;
    }
    return r->ref != NULL && i == 0 ? r->ref : NULL;
}

/* Take away rules nothing leads to, again and again; what is left leads to itself. */
static void check_chains(struct compiler *x)
{
    struct schema *s = x->s;
    struct rule **ready = schema_array(x, s->nrules, sizeof(struct rule *));
    struct rule *to;
    if (ready == NULL || s->root == NULL) {
        return;
    }
    for (struct rule *r = s->root; r != NULL; r = r->next) {
        for (size_t i = 0; (to = same_value(r, i)) != NULL; i++) {
            to->waits++;
        }
    }
    size_t n = 0;
    for (struct rule *r = s->root; r != NULL; r = r->next) {
        if (r->waits == 0) {
            ready[n++] = r;
        }
    }
    size_t level_end = n;
    size_t level = 1;
    for (size_t done = 0; done < n; done++) {
        if (done == level_end) {
            level_end = n;
            level++;
        }
        for (size_t i = 0; (to = same_value(ready[done], i)) != NULL; i++) {
            if (--to->waits == 0) {
                ready[n++] = to;
            }
        }
    }
    if (n != s->nrules) {
        schema_fault(x, s->root->source,
                     "a $ref leads back to itself without going into a member");
    } else if (level > CHAIN_MAX) {
        schema_fault(x, s->root->source, "more than 64 schemas in a chain for one value");
    }
}

/* ---- the whole ------------------------------------------------------------------------ */

static void *pcre_alloc(PCRE2_SIZE n, void *unused)
{
    (void)unused;
    return mem_alloc(n);
}

static void pcre_free(void *p, void *unused)
{
    (void)unused;
    mem_free(p);
}

/* Without white space between tokens; copied, so that the rules can point into it. */
static char *minify(struct schema *s, struct str text)
{
    char *out = arena_alloc(s->arena, text.len + 1);
    size_t n = 0;
    bool string = false;
    for (size_t i = 0; out != NULL && i < text.len; i++) {
        char c = text.ptr[i];
        if (!string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            continue;
        }
        out[n++] = c;
        if (string && c == '\\') {
            out[n++] = text.ptr[++i];
        } else if (c == '"') {
            string = !string;
        }
    }
    s->text = str_n(out, n);
    return out;
}

static enum status check_root(struct compiler *x)
{
    const struct jvalue *type = jvalue_get(x->doc, "type");
    if (x->doc->kind != J_OBJECT) {
        return error_set(x->err, ST_INVALID, "must be a JSON Schema of an object");
    }
    bool object = type == NULL || str_eq_c(type->text, "object");
    for (const struct jvalue *c = type != NULL ? type->first : NULL; c != NULL;
         c = c->next) {
        object = object || str_eq_c(c->text, "object");
    }
    return object ? ST_OK
                  : error_set(x->err, ST_INVALID,
                              "type must be object: tools take named "
                              "arguments");
}

static enum status compile(struct compiler *x, struct str text)
{
    struct schema *s = x->s;
    if (text.len > TEXT_MAX) {
        return error_set(x->err, ST_INVALID, "larger than 1 MiB");
    }
    enum status st = json_check(text, JSON_MAX_DEPTH, x->err);
    if (st != ST_OK) {
        return st;
    }
    if (minify(s, text) == NULL) {
        return error_set(x->err, ST_NOMEM, "JSON Schema: out of memory");
    }
    st = jvalue_parse(s->text, s->arena, &x->doc, x->err);
    if (st == ST_OK) {
        st = check_root(x);
    }
    if (st != ST_OK) {
        return st;
    }
    s->root = schema_rule_for(x, x->doc);
    if (s->root != NULL) {
        fill_rules(x);
    }
    if (x->status == ST_OK && s->root != NULL) {
        check_chains(x);
    }
    return x->status;
}

enum status schema_compile(struct str text, enum schema_mode mode, struct schema **out,
                           struct error *err)
{
    struct compiler x = {.lenient = mode == SCHEMA_LENIENT, .err = err, .status = ST_OK};
    pcre2_general_context *general =
        pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    struct schema *s = mem_zalloc(sizeof(*s));
    enum status st = ST_NOMEM;
    if (general == NULL || s == NULL) {
        goto out;
    }
    s->arena = arena_new(ARENA_MAX);
    s->limits = pcre2_match_context_create(general);
    x.pcre = pcre2_compile_context_create(general);
    if (s->arena == NULL || s->limits == NULL || x.pcre == NULL) {
        goto out;
    }
    pcre2_set_match_limit(s->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(s->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(s->limits, HEAP_LIMIT_KIB);
    x.s = s;
    st = compile(&x, text);
out:
    pcre2_compile_context_free(x.pcre);
    pcre2_general_context_free(general);
    if (st == ST_OK) {
        *out = s;
    } else {
        schema_free(s);
        if (st == ST_NOMEM) {
            error_set(err, st, "JSON Schema: out of memory");
        }
    }
    return st;
}

void schema_free(struct schema *s)
{
    if (s == NULL) {
        return;
    }
    for (struct rule *r = s->root; r != NULL; r = r->next) {
        pcre2_code_free(r->pattern);
    }
    pcre2_match_context_free(s->limits);
    arena_free(s->arena);
    mem_free(s);
}

struct str schema_text(const struct schema *s)
{
    return s->text;
}
