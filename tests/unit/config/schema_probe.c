/* Comes in: lines of schema TAB arguments. Goes out: a line each, C (the schema does not
 * compile), 1 or 0. For schema_diff.py; never looks at anything else. */
#include "config/jsonschema.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES (1U << 20)

static char answer(struct str schema, struct str args)
{
    struct schema *s = NULL;
    struct error err = {.status = ST_OK};
    if (schema_compile(schema, SCHEMA_STRICT, &s, &err) != ST_OK) {
        return 'C';
    }
    char c = schema_check(s, args, &err) == ST_OK ? '1' : '0';
    schema_free(s);
    return c;
}

int main(void)
{
    static char line[LINE_MAX_BYTES];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char *tab = strchr(line, '\t');
        char *end = strchr(line, '\n');
        if (tab == NULL || end == NULL) {
            return 2;
        }
        struct str schema = {line, (size_t)(tab - line)};
        struct str args = {tab + 1, (size_t)(end - tab - 1)};
        (void)putchar(answer(schema, args));
        (void)putchar('\n');
    }
    return 0;
}
