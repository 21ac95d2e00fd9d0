/* Bytes that must not be printed. In: a value. Out: comparisons; the bytes only through
 * secret_expose. Never leaves a copy behind when it is freed or replaced. */
#include "base/secret.h"

#include "base/mem.h"

enum status secret_set(struct secret *s, struct str value)
{
    char *copy = mem_dup(value.ptr, value.len);
    if (copy == NULL) {
        return ST_NOMEM;
    }
    secret_done(s);
    s->ptr = copy;
    s->len = value.len;
    return ST_OK;
}

void secret_done(struct secret *s)
{
    if (s == NULL) {
        return;
    }
    mem_wipe(s->ptr, s->len);
    mem_free(s->ptr);
    *s = (struct secret){NULL, 0};
}

bool secret_is_set(const struct secret *s)
{
    return s->len != 0;
}

bool secret_matches(const struct secret *s, struct str candidate)
{
    return str_eq_secret(candidate, secret_expose(s)) && secret_is_set(s);
}

struct str secret_expose(const struct secret *s)
{
    return str_n(s->ptr, s->len);
}
