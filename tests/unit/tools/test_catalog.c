/* The tools that an agent could name, with their kinds. */
#include "support/souls.h"

#include "tools/catalog.h"

static const char agent[] = "id: helper\n"
                            "agents: [one, two]\n"
                            "tools:\n"
                            "  - {name: b, inline: 'def b(): pass', description: Bee}\n"
                            "  - {name: a, inline: 'def a(): pass'}\n";

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum tool_kind kind;
    } rows[] = {
        {"read_file", TOOL_SAFE},    {"list_dir", TOOL_SAFE},
        {"find_files", TOOL_SAFE},   {"fetch_url", TOOL_SAFE},
        {"http_request", TOOL_SAFE}, {"env_get", TOOL_SAFE},
        {"sys_info", TOOL_SAFE},     {"shell_exec", TOOL_SYSTEM},
        {"run_script", TOOL_SYSTEM}, {"install_library", TOOL_SYSTEM},
        {"write_file", TOOL_SYSTEM}, {"download_file", TOOL_SYSTEM},
        {"web_search", TOOL_SEARCH}, {"kb_search", TOOL_KB},
    };
    static const char *const none[] = {"", "read_fil", "read_file2", "Read_File", "add"};
    enum tool_kind k = TOOL_PEER;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_false(builtin_kind(str_c(none[i]), &k));
        assert_int_equal(k, TOOL_PEER);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(builtin_kind(str_c(rows[i].name), &k));
        assert_int_equal(k, rows[i].kind);
    }
}

static void test_kind_names(void **state)
{
    (void)state;
    static const char *const names[TOOL_KIND_COUNT_] = {
        "python", "safe", "system", "search", "kb", "mcp", "peer"};
    for (int k = 0; k < TOOL_KIND_COUNT_; k++) {
        assert_string_equal(tool_kind_name((enum tool_kind)k), names[k]);
    }
    assert_string_equal(tool_kind_name(TOOL_KIND_COUNT_), "unknown");
}

static void test_order_and_identity(void **state)
{
    (void)state;
    struct soul *soul = test_soul(agent);
    struct arena *a = arena_new((size_t)64 * 1024);
    struct catalog c;
    assert_int_equal(catalog_build(soul, a, &c, NULL), ST_OK);
    assert_int_equal(c.n, 2 + 14 + 2);
    assert_str_is(c.tools[0].name, "b");
    assert_str_is(c.tools[0].description, "Bee");
    assert_str_is(c.tools[1].name, "a");
    for (size_t i = 0; i < c.n; i++) {
        const struct tool *t = &c.tools[i];
        assert_ptr_equal(catalog_find(&c, t->name), t); /* one of each name */
        assert_int_equal(t->python != NULL, t->kind == TOOL_PYTHON);
        assert_int_equal(t->parameters != NULL, t->kind == TOOL_PYTHON);
    }
    assert_ptr_equal(c.tools[1].python, &soul->tools[1]);
    assert_str_is(c.tools[c.n - 2].name, "agent__one");
    assert_str_is(c.tools[c.n - 1].name, "agent__two");
    assert_int_equal(c.tools[c.n - 1].kind, TOOL_PEER);
    assert_null(catalog_find(&c, STR_LIT("B")));
    assert_null(catalog_find(&c, STR_NONE));
    c.n = 0;
    assert_null(catalog_find(&c, STR_LIT("b")));
    arena_free(a);
    soul_free(soul);
}

static bool builds(const struct soul *soul)
{
    struct arena *a = arena_new((size_t)64 * 1024);
    struct catalog c = {0};
    struct error err = {0};
    enum status st = ST_NOMEM;
    if (a != NULL) {
        st = catalog_build(soul, a, &c, &err);
        assert_true(st == ST_OK ||
                    (st == ST_NOMEM && err.status == ST_NOMEM && c.n == 0));
    }
    arena_free(a);
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct soul *soul = test_soul(agent);
    struct catalog c;
    TEST_SWEEP(builds(soul));
    /* room for the list and for nothing more: the names of peers do not fit */
    struct arena *a = arena_new(18 * sizeof(struct tool) + 16);
    assert_int_equal(catalog_build(soul, a, &c, NULL), ST_NOMEM);
    arena_free(a);
    soul_free(soul);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_kind_names),
        cmocka_unit_test(test_order_and_identity),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("catalog", tests, NULL, NULL);
}
