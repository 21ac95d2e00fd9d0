/* YAML trees: places, limits below, at and above, what is refused, and JSON from them. */
#include "help.h"

struct parsed {
    struct arena *arena;
    struct problems probs;
    struct yaml_node *root;
    enum status st;
    struct buf text;
};

static void parse_str(struct parsed *p, struct str text)
{
    memset(p, 0, sizeof(*p));
    buf_init(&p->text, 1U << 20);
    p->arena = arena_new(1U << 26);
    p->st = ST_NOMEM;
    if (p->arena != NULL) {
        problems_init(&p->probs, p->arena, "f");
        p->st = yaml_parse(text, p->arena, &p->probs, &p->root);
        problems_print(&p->probs, &p->text);
    }
}

static void parse(struct parsed *p, const char *text)
{
    parse_str(p, str_c(text));
}

static void done(struct parsed *p)
{
    arena_free(p->arena);
    buf_done(&p->text);
}

static void refuse(const char *text, const char *said)
{
    struct parsed p;
    parse(&p, text);
    assert_int_equal(p.st, ST_INVALID);
    assert_contains(p.text.ptr, said);
    done(&p);
}

static void accept(struct str text)
{
    struct parsed p;
    parse_str(&p, text);
    if (p.st != ST_OK) {
        print_error("%s", p.text.ptr);
    }
    assert_int_equal(p.st, ST_OK);
    done(&p);
}

static void refuse_buf(const struct buf *text, const char *said)
{
    assert_int_equal(buf_status(text), ST_OK);
    refuse(text->ptr, said);
}

static void test_places(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p,
          "# c\nserver:\n  port: 0606\n  names: [a, 'b',\n    \"\\u00e9\"]\nnull: ~\n");
    assert_int_equal(p.st, ST_OK);
    const struct yaml_node *server = yaml_get(p.root, "server");
    const struct yaml_node *port = yaml_get(server, "port");
    assert_str_is(port->text, "0606");
    assert_false(port->quoted);
    assert_int_equal(port->pos.line, 3);
    assert_int_equal(port->pos.column, 9);
    assert_int_equal(port->key_pos.column, 3);
    const struct yaml_node *a = yaml_get(server, "names")->first;
    assert_false(a->quoted);
    assert_true(a->next->quoted);
    assert_int_equal(a->next->next->pos.line, 5);
    assert_int_equal(yaml_get(p.root, "null")->kind, YAML_NULL);
    assert_null(yaml_get(p.root, "nil"));
    assert_null(yaml_get(port, "x"));
    assert_null(yaml_get(NULL, "x"));
    done(&p);
}

static void test_empty(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "# only a comment\n", "---\n", "--- ~\n",
                                        "\n\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct parsed p;
        parse(&p, texts[i]);
        assert_int_equal(p.st, ST_OK);
        assert_int_equal(p.root->kind, YAML_MAP);
        assert_null(p.root->first);
        done(&p);
    }
}

static void test_refused(void **state)
{
    (void)state;
    refuse("a: 1\nb: 2\na: 3\nb: 4\n",
           "f:3:1: error: duplicate key a, first written in line 1");
    refuse("a: 1\nb: 2\na: 3\nb: 4\n", "f:4:1: error: duplicate key b");
    refuse("a: 1\n---\nb: 2\n", "f:2:1: error: a second document");
    refuse("? [a]\n: b\n", "a key must be plain text");
    refuse("? {a: b}\n: b\n", "a key must be plain text");
    refuse("x: &x {a: 1}\ny:\n  <<: *x\n", "f:3:3: error: merge keys");
    refuse("a: !!binary aGk=\n", "only the tags");
    refuse("a: !mine x\n", "only the tags");
    refuse("a: !!seq [x]\n", "only the tags");
    refuse("a: !!map {x: y}\n", "only the tags");
    refuse("a: *nope\n", "alias *nope has no anchor");
    refuse("a: &a [*a]\n", "an alias inside the node it names");
    refuse("x: &x b\n*x : c\n", "alias as a key");
    refuse("&x b: c\n", "anchor on a key");
    refuse("a: [1, 2\nb: 3\n", "f:2:");
    refuse("a: \"\\0\"\n", "a NUL byte");
    refuse("\ta: b\n", "f:1:");
    refuse("a: b\nc: \xff\n", "f:2:4: error: not valid UTF-8");
    refuse("a: \xc3", "not valid UTF-8");
    refuse("\xff\xfe"
           "a",
           "not valid UTF-8");
}

static void test_tags(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, "{a: !!str 1, b: !!int 1, c: !!null x, d: !!bool true, e: !!float 1.5}");
    assert_int_equal(p.st, ST_OK);
    assert_true(yaml_get(p.root, "a")->quoted);
    assert_false(yaml_get(p.root, "b")->quoted);
    assert_int_equal(yaml_get(p.root, "c")->kind, YAML_NULL);
    done(&p);
}

static void test_size(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, YAML_MAX_BYTES + 16);
    buf_add_c(&b, "a: '");
    while (b.len < YAML_MAX_BYTES - 3) {
        buf_add_char(&b, 'x');
    }
    buf_add_c(&b, "'\n");
    accept(buf_str(&b)); /* one below */
    buf_add_char(&b, '\n');
    assert_int_equal(b.len, YAML_MAX_BYTES);
    accept(buf_str(&b));
    buf_add_char(&b, '\n');
    refuse_buf(&b, "f: error: larger than 1 MiB");
    buf_done(&b);
}

static void nest(struct buf *b, size_t depth)
{
    buf_init(b, 4096);
    for (size_t i = 0; i < depth; i++) {
        buf_add_char(b, '[');
    }
    for (size_t i = 0; i < depth; i++) {
        buf_add_char(b, ']');
    }
}

static void test_depth(void **state)
{
    (void)state;
    struct buf b;
    for (size_t d = YAML_MAX_DEPTH - 1; d <= YAML_MAX_DEPTH + 1; d++) {
        nest(&b, d);
        if (d <= YAML_MAX_DEPTH) {
            accept(buf_str(&b));
        } else {
            refuse_buf(&b, "f:1:65: error: nested deeper than 64 levels");
        }
        buf_done(&b);
    }
    /* The same through an alias: 40 levels twice. */
    struct buf inner;
    nest(&inner, 40);
    buf_init(&b, 4096);
    buf_addf(&b, "a: &a %s\nb: ", inner.ptr);
    for (int i = 0; i < 30; i++) {
        buf_add_char(&b, '[');
    }
    buf_add_c(&b, "*a");
    for (int i = 0; i < 30; i++) {
        buf_add_char(&b, ']');
    }
    refuse_buf(&b, "nested deeper than 64 levels");
    buf_done(&b);
    buf_done(&inner);
}

static void test_nodes(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, YAML_MAX_BYTES);
    buf_add_char(&b, '[');
    for (size_t i = 0; i + 2 < YAML_MAX_NODES; i++) {
        buf_add_c(&b, "x,");
    }
    buf_add_char(&b, ']');
    accept(buf_str(&b)); /* 9999 with the list itself */
    b.len--;
    buf_add_c(&b, "x,]");
    accept(buf_str(&b));
    b.len--;
    buf_add_c(&b, "x,]");
    refuse_buf(&b, "more than 10000 nodes");
    buf_done(&b);
}

static void test_alias_bomb(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, YAML_MAX_BYTES);
    buf_add_c(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 20; i++) {
        buf_addf(&b, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++) {
            buf_addf(&b, "*a%d,", i - 1);
        }
        buf_add_c(&b, "]\n");
    }
    refuse_buf(&b, "more than 10000 nodes (aliases count as often as they are used)");
    buf_done(&b);
    struct parsed p;
    parse(&p, "a: &a {x: 1}\nb: *a\nc: [*a, *a]\n");
    assert_int_equal(p.st, ST_OK);
    assert_str_is(yaml_get(yaml_get(p.root, "b"), "x")->text, "1");
    assert_int_equal(yaml_get(p.root, "b")->pos.line, 2);
    done(&p);
}

static void test_many_keys(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, YAML_MAX_BYTES);
    for (int i = 0; i < 9000; i++) {
        buf_addf(&b, "key%d: 1\n", i);
    }
    buf_add_c(&b, "key4711: 2\n");
    refuse_buf(&b, "f:9001:1: error: duplicate key key4711, first written in line 4712");
    buf_done(&b);
}

static void test_json(void **state)
{
    (void)state;
    struct parsed p;
    struct buf b;
    buf_init(&b, 65536);
    parse(&p,
          "{a: 1, b: -0.5e3, c: 0606, d: '1', e: true, f: 'true', g: ~, h: [], i: {},\n"
          " j: 0x1f, k: .5, l: 1., m: .inf, n: +1, o: 9007199254740993, p: yes,\n"
          " q: \"a\\\"b\\n\", r: FALSE, s: 1e, t: '', u: -}");
    assert_int_equal(p.st, ST_OK);
    assert_int_equal(yaml_to_json(p.root, &b), ST_OK);
    assert_string_equal(
        b.ptr,
        "{\"a\":1,\"b\":-0.5e3,\"c\":\"0606\",\"d\":\"1\",\"e\":true,\"f\":\"true\","
        "\"g\":null,\"h\":[],\"i\":{},\"j\":\"0x1f\",\"k\":\".5\",\"l\":\"1.\","
        "\"m\":\".inf\",\"n\":\"+1\",\"o\":9007199254740993,\"p\":\"yes\","
        "\"q\":\"a\\\"b\\n\",\"r\":false,\"s\":\"1e\",\"t\":\"\",\"u\":\"-\"}");
    struct buf small;
    buf_init(&small, 8);
    assert_int_equal(yaml_to_json(p.root, &small), ST_TOO_LARGE);
    buf_done(&small);
    buf_done(&b);
    done(&p);
}

static void test_problem_list(void **state)
{
    (void)state;
    struct arena *a = arena_new(1U << 22);
    struct problems p;
    struct buf b;
    buf_init(&b, 1U << 20);
    problems_init(&p, a, NULL);
    problem_add(&p, false, (struct yaml_pos){0, 0}, "no place \x1b[31m");
    problem_add(&p, true, (struct yaml_pos){9, 2}, "nine");
    problem_add(&p, false, (struct yaml_pos){3, 7}, "three-b");
    problem_add(&p, false, (struct yaml_pos){3, 1}, "three-a");
    problems_sort(&p);
    problems_print(&p, &b);
    assert_string_equal(b.ptr, "configuration:3:1: error: three-a\n"
                               "configuration:3:7: error: three-b\n"
                               "configuration:9:2: warning: nine\n"
                               "configuration: error: no place \\x1b[31m\n");
    for (unsigned i = 0; i < 300; i++) {
        problem_add(&p, false, (struct yaml_pos){i + 10, 1}, "%u", i);
    }
    buf_clear(&b);
    problems_print(&p, &b);
    assert_contains(b.ptr, "configuration: error: 104 more problems are not shown\n");
    assert_int_equal(p.nerrors, 303);
    buf_done(&b);
    arena_free(a);
}

static bool sweep_once(void)
{
    struct parsed p;
    parse(&p, "a: &a [1, {b: c}]\nd: *a\ne: {f: g, h: i}\nj: 'k'\n");
    bool ok = p.st == ST_OK;
    if (!ok) {
        assert_int_equal(p.st, ST_NOMEM);
    }
    done(&p);
    return ok;
}

static void test_sweep(void **state)
{
    (void)state;
    TEST_SWEEP(sweep_once());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),       cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_tags),
        cmocka_unit_test(test_size),         cmocka_unit_test(test_depth),
        cmocka_unit_test(test_nodes),        cmocka_unit_test(test_alias_bomb),
        cmocka_unit_test(test_many_keys),    cmocka_unit_test(test_json),
        cmocka_unit_test(test_problem_list), cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
