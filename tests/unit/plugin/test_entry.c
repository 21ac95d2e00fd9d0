/* In: entries, right and wrong in one way each. Out: the line for each, and that what is
 * right is copied whole. */
#include "unit/plugin/fake.h"

static const struct plugin_expect any = {.host_minor = 3};

static enum status check(const struct sy_plugin *p, const struct plugin_expect *want,
                         struct plugin_entry *out, struct error *err)
{
    memset(err, 0, sizeof *err);
    return plugin_entry_check(p, want, out, err);
}

static void refused(const struct sy_plugin *p, const struct plugin_expect *want,
                    const char *line)
{
    struct plugin_entry out;
    struct error err;
    memset(&out, 0x5a, sizeof out);
    assert_true(check(p, want, &out, &err) != ST_OK);
    assert_string_equal(err.text, line);
    assert_int_equal(out.p.size, 0x5a5a5a5a); /* outputs are written on success only */
}

static void accepted(const struct sy_plugin *p, const struct plugin_expect *want)
{
    struct plugin_entry out;
    struct error err;
    if (check(p, want, &out, &err) != ST_OK) {
        print_error("%s\n", err.text);
        fail();
    }
}

static void sizes(void **state)
{
    (void)state;
    struct plugin_entry out;
    struct error err;
    struct {
        struct sy_plugin p;
        char more[64];
    } big = {.p = fake_entry(SY_KIND_CHANNEL, "echo")};
    memset(big.more, 0xff, sizeof big.more);
    const uint32_t least = offsetof(struct sy_plugin, query) + sizeof(void *);
    big.p.size = least - 1;
    refused(&big.p, &any, "its entry is 63 bytes long, at least 64 are needed");
    big.p.size = 0;
    refused(&big.p, &any, "its entry is 0 bytes long, at least 64 are needed");
    big.p.size = least;
    accepted(&big.p, &any);
    big.p.size = UINT32_MAX;
    assert_int_equal(check(&big.p, &any, &out, &err), ST_OK);
    assert_ptr_equal(out.p.query, fake_query);
    assert_int_equal(out.nkeys, 0);
}

static void minors_and_functions(void **state)
{
    (void)state;
    struct sy_plugin p = fake_entry(SY_KIND_EXECUTOR, "echo");
    p.min_host_minor = p.abi_minor = 3;
    accepted(&p, &any);
    p.min_host_minor = p.abi_minor = 4;
    refused(&p, &any, "needs a core with ABI 1.4, this one has 1.3");
    p.min_host_minor = 3;
    p.abi_minor = 2;
    refused(&p, &any, "min_host_minor 3 is above the minor it was built against, 2");
    p = fake_entry(SY_KIND_EXECUTOR, "echo");
    p.abi_minor = 9; /* built against a later core, but can run under this one */
    accepted(&p, &any);
    p.create = NULL;
    refused(&p, &any, "its entry has no create()");
    p = fake_entry(SY_KIND_EXECUTOR, "echo");
    p.destroy = NULL;
    refused(&p, &any, "its entry has no destroy()");
    p = fake_entry(SY_KIND_EXECUTOR, "echo");
    p.query = NULL;
    refused(&p, &any, "its entry has no query()");
}

static void kinds(void **state)
{
    (void)state;
    const struct plugin_expect channel = {.kind = SY_KIND_CHANNEL};
    const struct plugin_expect executor = {.kind = SY_KIND_EXECUTOR};
    struct sy_plugin p = fake_entry(SY_KIND_CHANNEL, "echo");
    accepted(&p, &channel);
    refused(&p, &executor, "is a channel, the configuration uses it as an executor");
    p.kind = SY_KIND_EXECUTOR;
    accepted(&p, &executor);
    refused(&p, &channel, "is an executor, the configuration uses it as a channel");
    p.kind = 0;
    refused(&p, &any, "kind 0 is unknown to this core");
    p.kind = 3;
    refused(&p, &any, "kind 3 is unknown to this core");
}

static void names(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a1", "a-b-",
                                       "abcdefghijklmnopqrstuvwxyz012345"};
    static const char *const bad[][2] = {
        {"", ""},
        {"1a", "1a"},
        {"-a", "-a"},
        {"A", "A"},
        {"a_b", "a_b"},
        {"a/../b", "a/../b"},
        {"{", "{"},
        {"a{", "a{"},
        {"a\x7f", "a?"},
        {"a\x1b\xff", "a??"},
        {"abcdefghijklmnopqrstuvwxyz0123456", "abcdefghijklmnopqrstuvwxyz012345"}};
    struct sy_plugin p = fake_entry(SY_KIND_CHANNEL, NULL);
    refused(&p, &any, "its entry has no name");
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        p.name = good[i];
        accepted(&p, &any);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char line[128];
        p.name = bad[i][0];
        (void)snprintf(line, sizeof line, "name '%s' is not [a-z][a-z0-9-]{0,31}",
                       bad[i][1]);
        refused(&p, &any, line);
    }
}

static void names_that_are_spoken_for(void **state)
{
    (void)state;
    static const char *const taken[] = {"one", "echo"};
    const struct plugin_expect other = {.name = "other"};
    const struct plugin_expect same = {.name = "echo"};
    const struct plugin_expect two = {.taken = taken, .ntaken = 2};
    const struct plugin_expect one = {.taken = taken, .ntaken = 1};
    const struct plugin_expect own = {.own_dir = true};
    struct sy_plugin p = fake_entry(SY_KIND_CHANNEL, "echo");
    refused(&p, &other, "is named 'echo', the configuration names it 'other'");
    accepted(&p, &same);
    refused(&p, &two, "name 'echo' is taken by a plugin loaded before");
    accepted(&p, &one);
    p.name = "http";
    refused(&p, &any, "name 'http' is reserved for soulacy's own plugin");
    accepted(&p, &own);
    p.name = "ssh"; /* an executor's name, even in our own folder */
    refused(&p, &own, "name 'ssh' is reserved for soulacy's own plugin");
    p.kind = SY_KIND_EXECUTOR;
    accepted(&p, &own);
}

static void versions(void **state)
{
    (void)state;
    char long_one[66];
    struct sy_plugin p = fake_entry(SY_KIND_CHANNEL, "echo");
    const char *line = "version is missing or no text of at most 64 bytes";
    p.version = NULL;
    refused(&p, &any, line);
    p.version = "\xc3";
    refused(&p, &any, line);
    memset(long_one, 'v', sizeof long_one);
    long_one[64] = '\0';
    p.version = long_one;
    accepted(&p, &any);
    long_one[64] = 'v';
    long_one[65] = '\0';
    refused(&p, &any, line);
}

static void one_key(struct sy_cfg_key key, const char *line)
{
    const struct sy_cfg_key keys[] = {
        {"first", SY_CFG_STR, 1, NULL, "Help."}, key, {NULL, 0, 0, NULL, NULL}};
    struct sy_plugin p = fake_entry(SY_KIND_CHANNEL, "echo");
    struct plugin_entry out;
    struct error err;
    p.keys = keys;
    if (line != NULL) {
        refused(&p, &any, line);
    } else {
        assert_int_equal(check(&p, &any, &out, &err), ST_OK);
        assert_int_equal(out.nkeys, 2);
    }
}

static void keys(void **state)
{
    (void)state;
    char name[66], help[1026];
    memset(name, 'k', sizeof name);
    memset(help, 'h', sizeof help);
    name[64] = '\0';
    help[1024] = '\0';
    one_key((struct sy_cfg_key){"k_2", SY_CFG_JSON, 0, "{}", "Help."}, NULL);
    one_key((struct sy_cfg_key){name, SY_CFG_STR, 0, NULL, help}, NULL);
    name[64] = 'k';
    name[65] = '\0';
    one_key((struct sy_cfg_key){name, SY_CFG_STR, 0, NULL, "Help."},
            "key 1: name is not [a-z][a-z0-9_]{0,63}");
    one_key((struct sy_cfg_key){"k-2", SY_CFG_STR, 0, NULL, "Help."},
            "key 1: name is not [a-z][a-z0-9_]{0,63}");
    one_key((struct sy_cfg_key){"enabled", SY_CFG_BOOL, 0, NULL, "Help."},
            "key 'enabled': the core's own key of every channel");
    one_key((struct sy_cfg_key){"first", SY_CFG_STR, 0, NULL, "Help."},
            "key 'first' is there twice");
    one_key((struct sy_cfg_key){"k", 0, 0, NULL, "Help."},
            "key 'k': type 0 is unknown to this core");
    one_key((struct sy_cfg_key){"k", 8, 0, NULL, "Help."},
            "key 'k': type 8 is unknown to this core");
    one_key((struct sy_cfg_key){"k", SY_CFG_STR, 2, NULL, "Help."},
            "key 'k': required is 0 or 1, and then without a fallback");
    one_key((struct sy_cfg_key){"k", SY_CFG_STR, 1, "x", "Help."},
            "key 'k': required is 0 or 1, and then without a fallback");
    one_key((struct sy_cfg_key){"k", SY_CFG_SECRET, 0, "x", "Help."},
            "key 'k': no fallback can be used for it");
    one_key((struct sy_cfg_key){"k", SY_CFG_STR, 0, "\xff", "Help."},
            "key 'k': no fallback can be used for it");
    one_key((struct sy_cfg_key){"k", SY_CFG_STR, 0, NULL, NULL},
            "key 'k': help is missing or no text");
    one_key((struct sy_cfg_key){"k", SY_CFG_STR, 0, NULL, ""},
            "key 'k': help is missing or no text");
    help[1024] = 'h';
    help[1025] = '\0';
    one_key((struct sy_cfg_key){"k", SY_CFG_STR, 0, NULL, help},
            "key 'k': help is missing or no text");
}

static void a_channels_word_is_free_for_an_executor(void **state)
{
    (void)state;
    const struct sy_cfg_key table[] = {{"enabled", SY_CFG_BOOL, 0, "true", "Help."},
                                       {NULL, 0, 0, NULL, NULL}};
    struct sy_plugin p = fake_entry(SY_KIND_EXECUTOR, "echo");
    p.keys = table;
    accepted(&p, &any);
}

static void a_table_without_end_is_read_to_a_limit(void **state)
{
    (void)state;
    static char names_of[PLUGIN_MAX_KEYS + 2][8];
    static struct sy_cfg_key table[PLUGIN_MAX_KEYS + 2];
    struct sy_plugin p = fake_entry(SY_KIND_EXECUTOR, "echo");
    struct plugin_entry out;
    struct error err;
    for (size_t i = 0; i < PLUGIN_MAX_KEYS + 1; i++) {
        (void)snprintf(names_of[i], sizeof names_of[i], "k%zu", i);
        table[i] = (struct sy_cfg_key){names_of[i], SY_CFG_INT, 0, NULL, "Help."};
    }
    p.keys = table;
    refused(&p, &any, "more than 128 keys, or no end of their table");
    table[PLUGIN_MAX_KEYS].name = NULL;
    assert_int_equal(check(&p, &any, &out, &err), ST_OK);
    assert_int_equal(out.nkeys, PLUGIN_MAX_KEYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(minors_and_functions),
        cmocka_unit_test(kinds),
        cmocka_unit_test(names),
        cmocka_unit_test(names_that_are_spoken_for),
        cmocka_unit_test(versions),
        cmocka_unit_test(keys),
        cmocka_unit_test(a_channels_word_is_free_for_an_executor),
        cmocka_unit_test(a_table_without_end_is_read_to_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
