/*
 * Comes in: bytes as SOUL.yaml. Goes out: nothing; the target asks that an agent that was
 * accepted keeps the rules the gate builds on, and has not grown against itself.
 */
#include "config/soul.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fine)
{
    if (!fine) {
        abort();
    }
}

static void check_tool(const struct soul *s, size_t i)
{
    const struct soul_tool *t = &s->tools[i];
    require(soul_tool_find(s, str_c(t->name)) == t);
    require((t->python_file == NULL) != (t->inline_src == NULL) ||
            t->inline_src == NULL || t->python_file == NULL || t->inline_src[0] == '\0' ||
            t->python_file[0] == '\0');
    require(strncmp(t->name, "mcp__", 5) != 0 && strncmp(t->name, "agent__", 7) != 0);
    require(t->function[0] != '\0' && t->parameters != NULL);
    struct error err;
    (void)!schema_check(t->parameters, STR_LIT("{\"a\":[1,\"x\",{\"b\":null}]}"), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct soul *s = NULL;
    struct error err = {.status = ST_OK};
    struct arena *a = arena_new(64U << 20);
    require(a != NULL);
    struct problems probs;
    problems_init(&probs, a, "f");
    struct str text = {(const char *)data, size};
    enum status st = soul_parse(text, "/a/SOUL.yaml", NULL, &probs, &s, &err);
    require(st == ST_OK || st == ST_INVALID || st == ST_NOMEM);
    require((st == ST_INVALID) == (probs.nerrors != 0));
    if (st == ST_OK) {
        require(s->id[0] != '\0' && strchr(s->id, '/') == NULL);
        for (size_t i = 0; i < s->ntools; i++) {
            check_tool(s, i);
        }
        for (size_t i = 0; i < s->env.n; i++) {
            require(strncmp(s->env.items[i], "SOULACY_", 8) != 0);
        }
        require(!soul_grows(s, s, &err));
    }
    soul_free(s);
    arena_free(a);
    return 0;
}
