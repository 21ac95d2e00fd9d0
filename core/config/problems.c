/* Problems of one file, collected. In: a place and a sentence. Out: the list, printed as
 * FILE:LINE:COL. Never stops at the first one and never fails: what does not fit is
 * counted, so that an error can't get lost for want of memory. */
#include "config/yaml.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

#define KEPT_MAX 200
#define TEXT_MAX 1024

void problems_init(struct problems *p, struct arena *a, const char *file)
{
    *p = (struct problems){.arena = a, .file = file};
}

/* The text with control bytes made visible, in the arena; NULL when out of memory. */
static const char *keep_text(struct arena *a, const char *text)
{
    struct buf visible;
    buf_init(&visible, (size_t)TEXT_MAX * 8);
    utf8_append_visible(&visible, str_c(text), false);
    const char *kept =
        buf_status(&visible) == ST_OK ? arena_dup(a, buf_str(&visible)) : NULL;
    buf_done(&visible);
    return kept;
}

void problem_add(struct problems *p, bool warning, struct yaml_pos pos, const char *fmt,
                 ...)
{
    size_t seen = p->nerrors + p->nwarnings;
    if (warning) {
        p->nwarnings++;
    } else {
        p->nerrors++;
    }
    if (seen >= KEPT_MAX) {
        return;
    }
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0) {
        return;
    }
    size_t len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    if ((size_t)n >= sizeof(text)) {
        text[utf8_valid_prefix(str_n(text, len))] = '\0';
    }
    struct problem *item = arena_alloc(p->arena, sizeof(*item));
    const char *kept = item != NULL ? keep_text(p->arena, text) : NULL;
    if (kept == NULL) {
        return;
    }
    *item = (struct problem){.warning = warning, .pos = pos, .text = kept};
    if (p->last != NULL) {
        p->last->next = item;
    } else {
        p->first = item;
    }
    p->last = item;
}

void problems_print(const struct problems *p, struct buf *out)
{
    const char *file = p->file != NULL ? p->file : "configuration";
    size_t printed = 0;
    for (const struct problem *i = p->first; i != NULL; i = i->next) {
        buf_add_c(out, file);
        if (i->pos.line != 0) {
            buf_addf(out, ":%u:%u", i->pos.line, i->pos.column);
        }
        buf_addf(out, ": %s: %s\n", i->warning ? "warning" : "error", i->text);
        printed++;
    }
    size_t all = p->nerrors + p->nwarnings;
    if (all > printed) {
        buf_addf(out, "%s: error: %zu more problems are not shown\n", file,
                 all - printed);
    }
}

/* Does a belong behind b? */
static bool is_behind(const struct problem *a, const struct problem *b)
{
    if ((a->pos.line == 0) != (b->pos.line == 0)) {
        return a->pos.line == 0;
    }
    if (a->pos.line != b->pos.line) {
        return a->pos.line > b->pos.line;
    }
    return a->pos.column > b->pos.column;
}

void problems_sort(struct problems *p)
{
    struct problem *sorted = NULL;
    struct problem *rest = p->first;
    while (rest != NULL) {
        struct problem *item = rest;
        rest = rest->next;
        struct problem **at = &sorted;
        while (*at != NULL && !is_behind(*at, item)) {
            at = &(*at)->next;
        }
        item->next = *at;
        *at = item;
    }
    p->first = sorted;
    p->last = sorted;
    while (p->last != NULL && p->last->next != NULL) {
        p->last = p->last->next;
    }
}
