/*
 * Comes in: bytes as config.yaml, with a few variables set. Goes out: nothing; the target
 * asks that a configuration that was read can be shown, that its secrets are not in what
 * is shown, and that a plugin's values can be taken from it.
 */
#include "config/plugin_values.h"

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

/* May the secret of the environment be in what is printed? Only when the input itself
 * says it, or puts a variable where no secret stands. */
static bool may_show(struct str text)
{
    return str_find(text, STR_LIT("hidden-value")) != SIZE_MAX ||
           str_find(text, STR_LIT("${")) != SIZE_MAX;
}

static void use(const struct config *c, struct str text, struct arena *a,
                struct problems *probs)
{
    static const struct sy_cfg_key keys[] = {{"text", SY_CFG_STR, 0, "x", ""},
                                             {"names", SY_CFG_LIST, 0, "a,b", ""},
                                             {"tree", SY_CFG_JSON, 0, NULL, ""},
                                             {NULL, 0, 0, NULL, NULL}};
    struct sy_cfg_value *values = NULL;
    size_t n = 0;
    for (int json = 0; json < 2; json++) {
        struct buf out;
        buf_init(&out, 16U << 20);
        enum status st = config_show(c, json != 0, &out);
        require(st == ST_OK || st == ST_TOO_LARGE);
        require(may_show(text) || strstr(out.ptr, "hidden-value") == NULL);
        buf_done(&out);
    }
    require(c->nchannels >= 2 && c->runtime.state_dir[0] == '/');
    for (size_t i = 0; i < c->nchannels; i++) {
        (void)!config_plugin_values(c, c->channels[i].name, SY_KIND_CHANNEL, keys, a,
                                    probs, &values, &n);
    }
    (void)!config_plugin_values(c, "docker", SY_KIND_EXECUTOR, keys, a, probs, &values,
                                &n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pairs[] = {"HOME=/h",
                                        "A=b: [c",
                                        "SOULACY_SERVER_API_KEY=hidden-value",
                                        "SOULACY_CHANNELS_Z_K=hidden-value",
                                        "OPENAI_API_KEY=hidden-value",
                                        NULL};
    struct config_env *env = NULL;
    struct config *c = NULL;
    struct error err = {.status = ST_OK};
    struct arena *a = arena_new(64U << 20);
    require(a != NULL && config_env_new(pairs, &env) == ST_OK);
    struct problems probs;
    problems_init(&probs, a, "f");
    struct str text = {(const char *)data, size};
    enum status st = config_parse(text, "/etc/s", env, &probs, &c, &err);
    require(st == ST_OK || st == ST_INVALID || st == ST_NOMEM);
    require((st == ST_INVALID) == (probs.nerrors != 0));
    if (st == ST_OK) {
        use(c, text, a, &probs);
    }
    struct buf out;
    buf_init(&out, 16U << 20);
    problems_print(&probs, &out);
    require(may_show(text) || strstr(out.ptr, "hidden-value") == NULL);
    buf_done(&out);
    config_free(c);
    config_env_free(env);
    arena_free(a);
    return 0;
}
