/*
 * Comes in: a JSON Schema, a NUL, arguments. Goes out: nothing; the target asks that the
 * text a schema keeps compiles to the same answers, and that every answer comes.
 */
#include "config/jsonschema.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size != 0 ? memchr(data, 0, size) : NULL;
    size_t at = cut != NULL ? (size_t)(cut - data) : size;
    struct str schema = {(const char *)data, at};
    struct str args =
        cut != NULL ? str_n((const char *)cut + 1, size - at - 1) : STR_LIT("{}");
    for (int mode = 0; mode < 2; mode++) {
        struct schema *s = NULL;
        struct schema *twin = NULL;
        struct error err = {.status = ST_OK};
        enum schema_mode m = mode == 0 ? SCHEMA_STRICT : SCHEMA_LENIENT;
        enum status st = schema_compile(schema, m, &s, &err);
        require(st == ST_OK || (st == ST_INVALID && err.text[0] != '\0'));
        if (st == ST_OK) {
            enum status first = schema_check(s, args, &err);
            require(first == ST_OK || (first == ST_INVALID && err.text[0] != '\0'));
            require(schema_compile(schema_text(s), m, &twin, &err) == ST_OK);
            require(schema_check(twin, args, &err) == first);
        }
        schema_free(s);
        schema_free(twin);
    }
    return 0;
}
