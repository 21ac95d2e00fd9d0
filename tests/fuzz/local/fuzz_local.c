/* Comes in: any bytes as what a user says to provider local. Holds: an answer always, a
 * call or a text; the same for the same input; a call's arguments that were written as
 * key=value without a NUL are JSON; nothing is read behind the
 * end (sanitizers). A broken promise aborts. */
#include "base/json.h"
#include "base/utf8.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SCHEMA \
    "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}," \
    "\"n\":{\"type\":\"integer\",\"description\":\"a number\"}},\"required\":[\"n\"]}"

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static struct model_reply ask(struct str text, struct arena *a)
{
    static const struct model_tool tools[] = {
        {{"echo", 4}, {"Says it.", 8}, {SCHEMA, sizeof(SCHEMA) - 1}}};
    const struct model_message m = {.role = MODEL_USER, .text = text};
    const struct model_request req = {
        .messages = &m, .nmessages = 1, .tools = tools, .ntools = 1, .agent_name = "a"};
    struct model_reply r = {0};
    struct error err = {0};
    must(model_local(&req, a, &r, &err) == ST_OK, "there is an answer");
    must((r.ncalls == 1) != (r.text.len > 0), "it is a call or a text");
    return r;
}

static void check_arguments(struct str text, const struct model_call *c)
{
    struct error err = {0};
    bool as_text =
        str_find_char(text, '{') == SIZE_MAX && str_find_char(text, '\0') == SIZE_MAX;
    enum status st = json_check(c->args, JSON_MAX_DEPTH, &err);
    must(!utf8_valid(text) || utf8_valid(c->args), "text stays text");
    /* the same key twice and a NUL are passed on for the gate to refuse */
    must(!as_text || st == ST_OK ||
             str_find(str_c(err.text), STR_LIT("duplicate key")) != SIZE_MAX ||
             str_find(str_c(err.text), STR_LIT("NUL in a string")) != SIZE_MAX,
         err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena *a = arena_new((size_t)64 * 1024 * 1024);
    if (a == NULL) {
        return 0;
    }
    struct model_reply one = ask(text, a), two = ask(text, a);
    must(str_eq(one.text, two.text) && one.ncalls == two.ncalls, "it is a function");
    if (one.ncalls == 1) {
        must(str_eq(one.calls[0].name, two.calls[0].name), "the same name");
        must(str_eq(one.calls[0].args, two.calls[0].args), "the same arguments");
        check_arguments(text, &one.calls[0]);
    }
    arena_free(a);
    return 0;
}
