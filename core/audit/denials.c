/* Coalescing of denials. In: denials, the time. Out: whether one is covered by a record
 * already, and windows that are over. Pure. Never drops a count silently: a window is
 * cleared by the caller once its record is written. */
#include "audit/denials.h"

#include <string.h>

#define PART_MAX 512
#define KIND_MAX ((size_t)6 * (PART_MAX + 1))

void denials_init(struct denials *d)
{
    for (size_t i = 0; i < DENIAL_KINDS; i++) {
        d->slots[i] = (struct denial){.more = 0};
        buf_init(&d->slots[i].kind, KIND_MAX);
    }
}

void denials_done(struct denials *d)
{
    for (size_t i = 0; i < DENIAL_KINDS; i++) {
        buf_done(&d->slots[i].kind);
    }
}

static void kind_parts(const struct audit_record *r, struct str parts[6])
{
    parts[0] = str_c(r->event);
    parts[1] = str_c(r->entry);
    parts[2] = r->agent;
    parts[3] = r->channel;
    parts[4] = r->tool;
    parts[5] = str_c(r->row);
    for (size_t i = 0; i < 6; i++) {
        parts[i].len = parts[i].len < PART_MAX ? parts[i].len : PART_MAX;
    }
}

static bool is_kind(const struct denial *one, const struct str parts[6])
{
    struct str rest = buf_str(&one->kind);
    for (size_t i = 0; i < 6; i++) {
        struct str part;
        if (!str_split(&rest, '\0', &part) || !str_eq(part, parts[i])) {
            return false;
        }
    }
    return true;
}

bool denials_count(struct denials *d, const struct audit_record *r, int64_t now_ms)
{
    struct str parts[6];
    kind_parts(r, parts);
    for (size_t i = 0; i < DENIAL_KINDS; i++) {
        struct denial *one = &d->slots[i];
        if (one->kind.len != 0 && now_ms - one->since_ms < DENIAL_WINDOW_MS &&
            is_kind(one, parts)) {
            one->more++;
            return true;
        }
    }
    return false;
}

void denials_open(struct denials *d, const struct audit_record *r, int64_t now_ms)
{
    struct str parts[6];
    kind_parts(r, parts);
    for (size_t i = 0; i < DENIAL_KINDS; i++) {
        struct denial *one = &d->slots[i];
        if (one->kind.len != 0) {
            continue;
        }
        for (size_t k = 0; k < 6; k++) {
            buf_add_str(&one->kind, parts[k]);
            buf_add_char(&one->kind, '\0');
        }
        one->since_ms = now_ms;
        if (buf_status(&one->kind) != ST_OK) {
            denial_clear(one);
        }
        return;
    }
}

static struct denial *find_oldest(struct denials *d, size_t *taken)
{
    struct denial *oldest = NULL;
    *taken = 0;
    for (size_t i = 0; i < DENIAL_KINDS; i++) {
        struct denial *one = &d->slots[i];
        if (one->kind.len == 0) {
            continue;
        }
        ++*taken;
        if (oldest == NULL || one->since_ms < oldest->since_ms) {
            oldest = one;
        }
    }
    return oldest;
}

struct denial *denials_due(struct denials *d, int64_t now_ms)
{
    size_t taken;
    struct denial *oldest = find_oldest(d, &taken);
    bool due = oldest != NULL &&
               (now_ms == INT64_MAX || now_ms - oldest->since_ms >= DENIAL_WINDOW_MS);
    return due ? oldest : NULL;
}

struct denial *denials_full(struct denials *d)
{
    size_t taken;
    struct denial *oldest = find_oldest(d, &taken);
    return taken == DENIAL_KINDS ? oldest : NULL;
}

void denial_record(const struct denial *one, struct audit_record *out)
{
    struct str rest = buf_str(&one->kind);
    struct str p[6] = {{NULL, 0}};
    for (size_t i = 0; i < 6; i++) {
        (void)!str_split(&rest, '\0', &p[i]);
    }
    /* Each part has its NUL, so those that are C strings in a record can be so here. */
    *out = (struct audit_record){
        .event = p[0].ptr,
        .entry = p[1].ptr,
        .agent = p[2],
        .channel = p[3],
        .tool = p[4],
        .verdict = "deny",
        .row = p[5].ptr,
        .detail = STR_LIT("more denials like the last one, within a second of it"),
        .took_ms = -1,
    };
}

void denial_clear(struct denial *one)
{
    buf_clear(&one->kind);
    one->more = 0;
}
