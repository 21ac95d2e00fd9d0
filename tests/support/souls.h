/* Agents for tests, from SOUL.yaml text through the real parser. Inline: a test that uses
 * it links config. */
#ifndef SOULACY_TESTS_SOULS_H
#define SOULACY_TESTS_SOULS_H

#include "support/test.h"

#include "config/soul.h"

/* The agent of that text, or a failed test that shows the parser's complaints. */
static inline struct soul *test_soul(const char *yaml)
{
    struct arena *a = arena_new((size_t)1024 * 1024);
    struct problems probs;
    struct soul *soul = NULL;
    struct error err = {0};
    assert_non_null(a);
    problems_init(&probs, a, "/agents/a/SOUL.yaml");
    if (soul_parse(str_c(yaml), "/agents/a/SOUL.yaml", NULL, &probs, &soul, &err) !=
        ST_OK) {
        for (const struct problem *p = probs.first; p != NULL; p = p->next) {
            print_error("%u:%u: %s\n", p->pos.line, p->pos.column, p->text);
        }
        fail_msg("no agent: %s", err.text);
    }
    arena_free(a);
    return soul;
}

#endif
