/* Comes in: bytes that say what a plugin's entry looks like: its four numbers, which
 * pointers are NULL, its texts, its keys. Holds: nothing is read behind the size that the
 * entry states (its memory is exactly so long), a refusal says why in valid text, and what
 * is accepted has a name and keys that fit the rules. A broken promise aborts. */
#include "base/utf8.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 8
#define TEXTS (3 * KEYS + 2)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static sy_status create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err)
{
    (void)host;
    (void)cfg;
    (void)ncfg;
    (void)out;
    (void)err;
    abort(); /* the check calls nothing */
}

static void destroy(void *self)
{
    (void)self;
    abort();
}

static const void *query(void *self, const char *id)
{
    (void)self;
    (void)id;
    abort();
}

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t byte(struct input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->at++;
}

static uint32_t number(struct input *in)
{
    uint32_t n = 0;
    for (int i = 0; i < 4; i++) {
        n = n << 8 | byte(in);
    }
    return n;
}

/* The next text, up to a NUL; NULL when it is the single byte 0x01. */
static char *text(struct input *in)
{
    size_t n = 0;
    while (n < in->left && in->at[n] != 0) {
        n++;
    }
    char *s = n == 1 && in->at[0] == 1 ? NULL : calloc(1, n + 1);
    if (s != NULL && n > 0) {
        memcpy(s, in->at, n);
    }
    in->at += n < in->left ? n + 1 : n;
    in->left -= n < in->left ? n + 1 : n;
    return s;
}

static void check_accepted(const struct plugin_entry *e, const struct plugin_expect *want)
{
    must(e->p.min_host_minor <= want->host_minor, "needs no more than this core");
    must(e->p.kind == SY_KIND_CHANNEL || e->p.kind == SY_KIND_EXECUTOR, "kind is known");
    must(strlen(e->p.name) <= PLUGIN_NAME_MAX, "name is short");
    must(strspn(e->p.name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(e->p.name),
         "name is plain");
    must(e->p.create == create && e->p.destroy == destroy && e->p.query == query,
         "functions are there");
    for (size_t i = 0; i < e->nkeys; i++) {
        must(e->p.keys[i].name != NULL && e->p.keys[i].help != NULL, "keys are whole");
    }
}

static void run(struct input *in, struct sy_plugin *p, struct sy_cfg_key *keys)
{
    char *texts[TEXTS] = {NULL};
    size_t n = 0;
    uint8_t nulls = byte(in);
    size_t nkeys = byte(in) % (KEYS + 1);
    p->create = (nulls & 1) != 0 ? NULL : create;
    p->destroy = (nulls & 2) != 0 ? NULL : destroy;
    p->query = (nulls & 4) != 0 ? NULL : query;
    p->keys = (nulls & 8) != 0 ? NULL : keys;
    p->name = texts[n++] = text(in);
    p->version = texts[n++] = text(in);
    for (size_t i = 0; i < nkeys; i++) {
        keys[i].type = byte(in);
        keys[i].required = byte(in) % 3;
        keys[i].name = texts[n++] = text(in);
        keys[i].fallback = texts[n++] = text(in);
        keys[i].help = texts[n++] = text(in);
    }
    const struct plugin_expect want = {
        .host_minor = SY_ABI_MINOR, .kind = nulls >> 6, .own_dir = (nulls & 16) != 0};
    size_t told = p->size < sizeof *p + 32 ? p->size : sizeof *p + 32;
    size_t len = told < sizeof p->size ? sizeof p->size : told;
    unsigned char *entry = calloc(1, len);
    struct plugin_entry out;
    struct error err = {.status = ST_OK};
    if (entry != NULL) {
        memcpy(entry, p, len < sizeof *p ? len : sizeof *p);
        enum status st = plugin_entry_check(entry, &want, &out, &err);
        if (st == ST_OK) {
            check_accepted(&out, &want);
        } else {
            must(err.status == st && err.text[0] != '\0', "a refusal says why");
            must(utf8_valid(str_c(err.text)), "the reason is text");
        }
    }
    free(entry);
    for (size_t i = 0; i < n; i++) {
        free(texts[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct sy_plugin p;
    struct sy_cfg_key keys[KEYS + 1];
    memset(&p, 0, sizeof p);
    memset(keys, 0, sizeof keys);
    p.size = number(&in);
    p.abi_minor = number(&in);
    p.min_host_minor = number(&in);
    p.kind = number(&in);
    run(&in, &p, keys);
    return 0;
}
