/* The environment as it was at start. In: envp. Out: a private copy to look names up in.
 * The values that are secrets of ours are erased in the block the kernel shows as
 * /proc/PID/environ. Never changes which names exist there. */
#include "config/env.h"

#include "base/mem.h"

#include <string.h>

struct config_env {
    struct env_entry *entries;
    size_t n;
};

void config_env_free(struct config_env *e)
{
    if (e == NULL) {
        return;
    }
    for (size_t i = 0; e->entries != NULL && i < e->n; i++) {
        const struct env_entry *entry = &e->entries[i];
        mem_wipe(entry->pair, entry->name.len + 1 + entry->value.len);
        mem_free(entry->pair);
    }
    mem_free(e->entries);
    mem_free(e);
}

static enum status add_pair(struct config_env *e, const char *pair)
{
    struct str text = str_c(pair);
    size_t eq = str_find_char(text, '=');
    if (eq == SIZE_MAX || eq == 0) {
        return ST_OK; /* what the kernel passes on but nobody can look up */
    }
    char *copy = mem_dup(text.ptr, text.len);
    if (copy == NULL) {
        return ST_NOMEM;
    }
    e->entries[e->n++] =
        (struct env_entry){.pair = copy,
                           .name = str_n(copy, eq),
                           .value = str_n(copy + eq + 1, text.len - eq - 1)};
    return ST_OK;
}

enum status config_env_new(const char *const *pairs, struct config_env **out)
{
    size_t n = 0;
    while (pairs != NULL && pairs[n] != NULL) {
        n++;
    }
    struct config_env *e = mem_zalloc(sizeof(*e));
    if (e == NULL) {
        return ST_NOMEM;
    }
    e->entries = mem_array(n + 1, sizeof(*e->entries));
    enum status st = e->entries != NULL ? ST_OK : ST_NOMEM;
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        st = add_pair(e, pairs[i]);
    }
    if (st != ST_OK) {
        config_env_free(e);
        return st;
    }
    *out = e;
    return ST_OK;
}

static bool is_our_secret(struct str name)
{
    return str_starts(name, STR_LIT("SOULACY_")) || str_ends(name, STR_LIT("_API_KEY"));
}

enum status config_env_take(char **envp, struct config_env **out, struct error *err)
{
    struct config_env *e = NULL;
    size_t n = 0;
    while (envp != NULL && envp[n] != NULL) {
        n++;
    }
    const char **pairs = mem_array(n + 1, sizeof(*pairs));
    if (pairs == NULL) {
        return error_set(err, ST_NOMEM, "environment: out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        pairs[i] = envp[i];
    }
    enum status st = config_env_new(pairs, &e);
    mem_free(pairs);
    if (st != ST_OK) {
        return error_set(err, st, "environment: out of memory");
    }
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        char *eq = strchr(envp[i], '=');
        if (eq == NULL || eq == envp[i]) {
            continue;
        }
        struct env_entry *entry = &e->entries[at++];
        entry->initial = eq + 1;
        if (is_our_secret(entry->name)) {
            mem_wipe(eq + 1, entry->value.len);
        }
    }
    *out = e;
    return ST_OK;
}

const char *config_env_get(const struct config_env *e, const char *name)
{
    for (size_t i = 0; e != NULL && i < e->n; i++) {
        if (str_eq_c(e->entries[i].name, name)) {
            return e->entries[i].value.len != 0 ? e->entries[i].value.ptr : NULL;
        }
    }
    return NULL;
}

size_t config_env_count(const struct config_env *e)
{
    return e != NULL ? e->n : 0;
}

const struct env_entry *config_env_at(const struct config_env *e, size_t i)
{
    return &e->entries[i];
}

void config_env_hide(const struct config_env *e, const char *name)
{
    for (size_t i = 0; e != NULL && i < e->n; i++) {
        const struct env_entry *entry = &e->entries[i];
        if (entry->initial != NULL && str_eq_c(entry->name, name)) {
            mem_wipe(entry->initial, entry->value.len);
        }
    }
}
