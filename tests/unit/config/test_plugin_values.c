/* What a plugin gets of config.yaml: its own keys, typed, and nobody else's. */
#include "help.h"

#include "config/plugin_values.h"

static const struct sy_cfg_key keys[] = {
    {"text", SY_CFG_STR, 0, "hello", "A text."},
    {"count", SY_CFG_INT, 0, "3", "A number."},
    {"on", SY_CFG_BOOL, 0, "true", "A switch."},
    {"key", SY_CFG_SECRET, 0, NULL, "A secret."},
    {"wait", SY_CFG_DURATION, 0, "1m30s", "A time."},
    {"names", SY_CFG_LIST, 0, "a, b", "Names."},
    {"tree", SY_CFG_JSON, 0, "{\"x\": [1]}", "Anything."},
    {NULL, 0, 0, NULL, NULL},
};

struct got {
    struct loaded l;
    struct sy_cfg_value *values;
    size_t n;
};

static void get(struct got *g, const char *cfg, const char *const *env, const char *name,
                uint32_t kind, const struct sy_cfg_key *table)
{
    memset(g, 0, sizeof(*g));
    load_config(&g->l, cfg, env);
    if (g->l.st != ST_OK) {
        print_error("%s", g->l.text.ptr);
    }
    assert_int_equal(g->l.st, ST_OK);
    g->l.st = config_plugin_values(g->l.cfg, name, kind, table, g->l.arena, &g->l.probs,
                                   &g->values, &g->n);
    buf_clear(&g->l.text);
    load_print(&g->l);
}

static const struct sy_cfg_value *value(const struct got *g, const char *key)
{
    for (size_t i = 0; i < g->n; i++) {
        if (strcmp(g->values[i].key.ptr, key) == 0) {
            return &g->values[i];
        }
    }
    return NULL;
}

static void expect_all(const struct got *g, const char *text, int64_t count, int64_t wait,
                       const char *second, const char *tree)
{
    assert_int_equal(g->l.st, ST_OK);
    assert_string_equal(value(g, "text")->s.ptr, text);
    assert_int_equal(value(g, "count")->i, count);
    assert_int_equal(value(g, "count")->type, SY_CFG_INT);
    assert_int_equal(value(g, "on")->i, 1);
    assert_int_equal(value(g, "wait")->i, wait);
    assert_int_equal(value(g, "names")->nlist, 2);
    assert_string_equal(value(g, "names")->list[1].ptr, second);
    assert_string_equal(value(g, "tree")->s.ptr, tree);
}

static void test_fallbacks(void **state)
{
    (void)state;
    struct got g;
    get(&g, "", NULL, "mine", SY_KIND_CHANNEL, keys);
    expect_all(&g, "hello", 3, 90000, "b", "{\"x\":[1]}");
    assert_null(value(&g, "key"));
    assert_int_equal(g.n, 6);
    load_done(&g.l);
    get(&g, "", NULL, "mine", SY_KIND_CHANNEL, NULL);
    assert_int_equal(g.l.st, ST_OK);
    assert_int_equal(g.n, 0);
    load_done(&g.l);
}

static void test_channel(void **state)
{
    (void)state;
    static const char *const env[] = {"HOME=/h", "SOULACY_CHANNELS_MINE_KEY=k",
                                      "SOULACY_CHANNELS_MINE_TREE=[2]", NULL};
    struct got g;
    get(&g,
        "channels: {mine: {enabled: true, allowed_user_ids: [x], text: 007, count: -9,\n"
        "wait: 5ms, names: [x, 'y z'], on: yes}}\n",
        env, "mine", SY_KIND_CHANNEL, keys);
    expect_all(&g, "007", -9, 5, "y z", "[2]");
    assert_string_equal(value(&g, "key")->s.ptr, "k");
    assert_null(value(&g, "enabled"));
    load_done(&g.l);
}

static void test_executor(void **state)
{
    (void)state;
    static const struct sy_cfg_key table[] = {
        {"image", SY_CFG_STR, 1, NULL, ""},   {"volumes", SY_CFG_LIST, 0, NULL, ""},
        {"socket", SY_CFG_STR, 0, NULL, ""},  {"standby", SY_CFG_INT, 0, NULL, ""},
        {"network", SY_CFG_STR, 0, NULL, ""}, {NULL, 0, 0, NULL, NULL},
    };
    static const struct sy_cfg_key pool[] = {
        {"workers", SY_CFG_INT, 0, "1", ""},
        {"max_idle", SY_CFG_INT, 0, "1", ""},
        {"own", SY_CFG_INT, 0, "7", ""},
        {NULL, 0, 0, NULL, NULL},
    };
    struct got g;
    get(&g, "executor: {docker_volumes: ['./d:/d'], docker_socket: ~/s, ssh_user: x}",
        NULL, "docker", SY_KIND_EXECUTOR, table);
    assert_int_equal(g.l.st, ST_OK);
    assert_string_equal(value(&g, "image")->s.ptr, "python:3.12-slim");
    assert_string_equal(value(&g, "volumes")->list[0].ptr, "/etc/s/d:/d");
    assert_string_equal(value(&g, "socket")->s.ptr, "/home/u/s");
    assert_int_equal(value(&g, "standby")->i, 1);
    assert_int_equal(g.n, 5);
    load_done(&g.l);
    get(&g, "executor: {workers: 9}", NULL, "pool", SY_KIND_EXECUTOR, pool);
    assert_int_equal(value(&g, "workers")->i, 9);
    assert_int_equal(value(&g, "max_idle")->i, 16);
    assert_int_equal(value(&g, "own")->i, 7);
    load_done(&g.l);
    get(&g,
        "executor: {backend: far-away, far_away_count: 4}\nplugins_config: {far-away: "
        "{text: t}}",
        NULL, "far-away", SY_KIND_EXECUTOR, keys);
    assert_int_equal(g.l.st, ST_OK);
    assert_int_equal(value(&g, "count")->i, 4);
    assert_string_equal(value(&g, "text")->s.ptr, "t");
    load_done(&g.l);
}

static void refuse(const char *cfg, const struct sy_cfg_key *table, const char *said)
{
    struct got g;
    get(&g, cfg, NULL, "mine", SY_KIND_CHANNEL, table);
    assert_int_equal(g.l.st, ST_INVALID);
    assert_null(g.values);
    assert_contains(g.l.text.ptr, said);
    load_done(&g.l);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct sy_cfg_key needs[] = {{"token", SY_CFG_SECRET, 1, NULL, ""},
                                              {NULL, 0, 0, NULL, NULL}};
    static const struct sy_cfg_key broken[] = {{"n", SY_CFG_INT, 0, "many", ""},
                                               {NULL, 0, 0, NULL, NULL}};
    refuse("channels:\n  mine:\n    txt: 1\n", keys,
           "c.yaml:3:5: error: channels.mine.txt: no key of plugin mine, did you mean "
           "channels.mine.text?");
    refuse("channels: {mine: {zzzzzz: 1}}", NULL,
           "channels.mine.zzzzzz: no key of plugin mine");
    refuse("channels: {mine: {count: x}}", keys,
           "channels.mine.count: must be a whole number in decimal digits");
    refuse("channels: {mine: {wait: 5}}", keys, "channels.mine.wait: needs a unit");
    refuse("channels: {mine: {on: 5}}", keys, "channels.mine.on: must be true or false");
    refuse("channels: {mine: {names: x}}", keys,
           "channels.mine.names: must be a list of texts");
    refuse("channels: {mine: {tree: x}}", keys,
           "channels.mine.tree: must be a mapping or a list");
    refuse("channels: {mine: {key: [x]}}", keys, "channels.mine.key: must be text");
    refuse("channels: {mine: {text: x}}\nplugins_config: {mine: {text: y}}", keys,
           "plugins_config.mine.text: is set in two places");
    refuse("", needs, "channels.mine.token: is required");
    refuse("channels: {mine: {token: ~, x: 1}}", needs,
           "channels.mine.token: is required");
    refuse("", broken, "channels.mine.n: must be a whole number");
}

static bool sweep_once(struct loaded *l)
{
    struct sy_cfg_value *v = NULL;
    size_t n = 0;
    struct arena *a = arena_new(1U << 20);
    if (a == NULL) {
        return false;
    }
    struct problems probs;
    problems_init(&probs, a, "f");
    enum status st =
        config_plugin_values(l->cfg, "mine", SY_KIND_CHANNEL, keys, a, &probs, &v, &n);
    assert_true(st == ST_OK || st == ST_NOMEM);
    arena_free(a);
    return st == ST_OK;
}

static void test_sweep(void **state)
{
    (void)state;
    struct loaded l;
    load_config(&l, "channels: {mine: {text: x, tree: {a: [b]}}}", NULL);
    assert_int_equal(l.st, ST_OK);
    TEST_SWEEP(sweep_once(&l));
    load_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fallbacks), cmocka_unit_test(test_channel),
        cmocka_unit_test(test_executor),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
