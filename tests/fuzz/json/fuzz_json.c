/* Comes in: any bytes. Holds: what json_check accepts, cJSON parses, prints and parses
 * again to the same; each member's raw text is itself accepted; our writer's output is
 * accepted; nothing is read behind the end (sanitizers). A broken promise aborts. */
#include "base/json.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

/* Each member found by key must be the one that cJSON found. */
static void check_members(struct str text, const cJSON *tree)
{
    int left = 50; /* members of one input, else large objects are quadratic */
    for (const cJSON *m = tree->child; m != NULL && left-- > 0; m = m->next) {
        struct str raw = STR_NONE;
        must(json_raw_member(text, m->string, &raw) == ST_OK, "member is found");
        must(json_check(raw, JSON_MAX_DEPTH, NULL) == ST_OK, "raw member is JSON");
        cJSON *again = cJSON_ParseWithLength(raw.ptr, raw.len);
        must(again != NULL && cJSON_Compare(m, again, true), "raw member is that member");
        cJSON_Delete(again);
    }
    struct str none;
    enum status st = json_raw_member(text, "no such key", &none);
    must(st == ST_NOT_FOUND || json_get(tree, "no such key") != NULL, "absent is absent");
}

static void check_accepted(struct str text)
{
    cJSON *tree = NULL;
    must(json_parse(text, &tree, NULL) == ST_OK, "what is accepted parses");
    char *printed = cJSON_PrintUnformatted(tree);
    must(printed != NULL, "what parses prints");
    must(json_check(str_c(printed), JSON_MAX_DEPTH, NULL) == ST_OK, "print is JSON");
    if (cJSON_IsObject(tree)) {
        check_members(text, tree);
    }
    cJSON_free(printed);
    cJSON_Delete(tree);
}

static void check_writer(struct str text)
{
    struct buf b;
    buf_init(&b, 8 * text.len + 100);
    buf_add_char(&b, '{');
    json_add_key_string(&b, "k", text);
    buf_add_char(&b, '}');
    must(buf_status(&b) == ST_OK, "six times the text is enough");
    /* NUL is the one thing that our writer passes on and our reader refuses. */
    enum status st = json_check(buf_str(&b), 1, NULL);
    must(st == ST_OK || str_find_char(text, '\0') != SIZE_MAX, "what we write we accept");
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n((const char *)data, size);
    struct error err = {.status = ST_OK};
    enum status st = json_check(text, JSON_MAX_DEPTH, &err);
    if (st == ST_OK) {
        check_accepted(text);
    } else {
        must(err.status == st && err.text[0] != '\0', "a refusal says why");
        must(utf8_valid(str_c(err.text)), "the error is valid text");
        struct str raw; /* not promised anything, but must not read astray */
        if (json_raw_member(text, "a", &raw) == ST_OK) {
            must(raw.ptr >= text.ptr && raw.len <= text.len, "a member lies inside");
        }
    }
    check_writer(text);
    return 0;
}
