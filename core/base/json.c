/* JSON in: cJSON's parser behind a check of our own (json_check.c), and getters. In:
 * bytes from anywhere. Out: a cJSON tree, or views of it. Never lets cJSON see text that
 * json_check refused. */
#include "base/json.h"

#include "base/mem.h"

#include <math.h>

#define EXACT_MAX 9007199254740991.0 /* 2^53 - 1: above it doubles skip whole numbers */

void json_init(void)
{
    cJSON_Hooks hooks = {.malloc_fn = mem_alloc, .free_fn = mem_free};
    cJSON_InitHooks(&hooks);
}

enum status json_parse(struct str text, cJSON **out, struct error *err)
{
    enum status st = json_check(text, JSON_MAX_DEPTH, err);
    if (st != ST_OK) {
        return st;
    }
    /* Whatever passed the check parses, so only memory can be short. */
    cJSON *tree = cJSON_ParseWithLength(text.ptr, text.len);
    if (tree == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for JSON of %zu bytes", text.len);
    }
    *out = tree;
    return ST_OK;
}

const cJSON *json_get(const cJSON *obj, const char *key)
{
    return cJSON_IsObject(obj) ? cJSON_GetObjectItemCaseSensitive(obj, key) : NULL;
}

bool json_get_str(const cJSON *obj, const char *key, struct str *out)
{
    const cJSON *item = json_get(obj, key);
    if (!cJSON_IsString(item)) {
        return false;
    }
    *out = str_c(item->valuestring); /* json_check refused \u0000, so no NUL inside */
    return true;
}

bool json_get_i64(const cJSON *obj, const char *key, int64_t *out)
{
    const cJSON *item = json_get(obj, key);
    if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) <= EXACT_MAX)) {
        return false;
    }
    int64_t v = (int64_t)item->valuedouble;
    if ((double)v < item->valuedouble || (double)v > item->valuedouble) {
        return false; /* a fraction */
    }
    *out = v;
    return true;
}

bool json_get_bool(const cJSON *obj, const char *key, bool *out)
{
    const cJSON *item = json_get(obj, key);
    if (!cJSON_IsBool(item)) {
        return false;
    }
    *out = cJSON_IsTrue(item) != 0;
    return true;
}
