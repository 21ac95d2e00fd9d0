/* A configuration or agent from text, with its problems as printed. */
#ifndef SOULACY_TESTS_CONFIG_HELP_H
#define SOULACY_TESTS_CONFIG_HELP_H

#include "support/test.h"

#include "config/soul.h"

#include <stdarg.h>

struct loaded {
    struct arena *arena;
    struct problems probs;
    struct config *cfg;
    struct soul *soul;
    struct config_env *env;
    struct error err;
    enum status st;
    struct buf text; /* problems */
};

static inline void load_done(struct loaded *l)
{
    soul_free(l->soul);
    config_free(l->cfg);
    config_env_free(l->env);
    arena_free(l->arena);
    buf_done(&l->text);
    memset(l, 0, sizeof(*l));
}

static inline bool load_begin(struct loaded *l, const char *file, const char *const *env)
{
    static const char *const plain[] = {"HOME=/home/u", NULL};
    memset(l, 0, sizeof(*l));
    buf_init(&l->text, 1U << 22);
    l->st = ST_NOMEM;
    l->arena = arena_new(1U << 26);
    if (l->arena == NULL || config_env_new(env != NULL ? env : plain, &l->env) != ST_OK) {
        return false;
    }
    problems_init(&l->probs, l->arena, file);
    return true;
}

static inline void load_print(struct loaded *l)
{
    problems_print(&l->probs, &l->text);
}

/* file "c.yaml" in /etc/s; env NULL: only HOME=/home/u. */
static inline void load_config(struct loaded *l, const char *text, const char *const *env)
{
    if (load_begin(l, "c.yaml", env)) {
        l->st = config_parse(str_c(text), "/etc/s", l->env, &l->probs, &l->cfg, &l->err);
        load_print(l);
    }
}

/* The configuration of cfg_text (NULL: none), then an agent /etc/s/agents/a/SOUL.yaml. */
static inline void load_soul(struct loaded *l, const char *cfg_text, const char *text)
{
    if (!load_begin(l, "SOUL.yaml", NULL)) {
        return;
    }
    if (cfg_text != NULL) {
        l->st =
            config_parse(str_c(cfg_text), "/etc/s", l->env, &l->probs, &l->cfg, &l->err);
        if (l->st != ST_OK) {
            load_print(l);
            return;
        }
        problems_init(&l->probs, l->arena, "SOUL.yaml");
    }
    l->st = soul_parse(str_c(text), "/etc/s/agents/a/SOUL.yaml", l->cfg, &l->probs,
                       &l->soul, &l->err);
    load_print(l);
}

#define assert_contains(text, part) test_contains((text), (part), __FILE__, __LINE__)
static inline void test_contains(const char *text, const char *part, const char *file,
                                 int line)
{
    if (strstr(text, part) == NULL) {
        print_error("\"%s\" is not in:\n%s\n", part, text);
        _fail(file, line);
    }
}

#endif
