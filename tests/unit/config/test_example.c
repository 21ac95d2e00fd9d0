/* config/config.yaml: as it lies there it is the defaults, and with its commented keys
 * taken in it holds every key there is. */
#include "help.h"

#include "config/keys.h"

#include "base/io.h"

static void read_example(struct buf *out)
{
    struct error err = {.status = ST_OK};
    buf_init(out, YAML_MAX_BYTES);
    if (io_read_file(SOULACY_EXAMPLE, YAML_MAX_BYTES, out, &err) != ST_OK) {
        fail_msg("%s", err.text);
    }
}

/* "  #key: x" becomes "  key: x"; "# text" and "#  text" stay. */
static void take_in(const struct buf *text, struct buf *out)
{
    buf_init(out, YAML_MAX_BYTES);
    for (size_t i = 0; i < text->len; i++) {
        char next = i + 1 < text->len ? text->ptr[i + 1] : '\0';
        bool start = i == 0 || text->ptr[i - 1] == '\n' || text->ptr[i - 1] == ' ';
        if (!(text->ptr[i] == '#' && start && next >= 'a' && next <= 'z')) {
            buf_add_char(out, text->ptr[i]);
        }
    }
}

static void strip_origins(struct buf *b)
{
    for (char *at = b->ptr; (at = strstr(at, "\"from\":\"file\"")) != NULL;) {
        memcpy(at, "\"from\":\"same\"", 13);
    }
    for (char *at = b->ptr; (at = strstr(at, "\"from\":\"default\"")) != NULL;) {
        memcpy(at, "\"from\":\"same\"   ", 16);
    }
}

static void assert_no_errors(const struct loaded *l)
{
    if (l->st != ST_OK) {
        print_error("%s", l->text.ptr);
    }
    assert_int_equal(l->st, ST_OK);
}

/* Compare what is shown, key by key, without regard to blanks behind it. */
static void test_is_default(void **state)
{
    (void)state;
    struct buf text;
    struct buf shown[2];
    struct loaded l[2];
    read_example(&text);
    load_config(&l[0], text.ptr, NULL);
    load_config(&l[1], "", NULL);
    for (int i = 0; i < 2; i++) {
        assert_no_errors(&l[i]);
        buf_init(&shown[i], 1U << 20);
        assert_int_equal(config_show(l[i].cfg, true, &shown[i]), ST_OK);
        strip_origins(&shown[i]);
        size_t n = 0;
        for (size_t j = 0; j < shown[i].len; j++) {
            if (shown[i].ptr[j] != ' ') {
                shown[i].ptr[n++] = shown[i].ptr[j];
            }
        }
        shown[i].ptr[n] = '\0';
    }
    /* Lists that are written out show as [] there and as null where nothing is. */
    for (char *at = shown[0].ptr; (at = strstr(at, "\"value\":[],")) != NULL; at++) {
        const char *other = shown[1].ptr + (at - shown[0].ptr);
        if (strncmp(other, "\"value\":null,", 13) == 0) {
            memmove(at + 13, at + 11, strlen(at + 11) + 1);
            memcpy(at, "\"value\":null,", 13);
        }
    }
    assert_string_equal(shown[0].ptr, shown[1].ptr);
    for (int i = 0; i < 2; i++) {
        buf_done(&shown[i]);
        load_done(&l[i]);
    }
    buf_done(&text);
}

static void test_has_every_key(void **state)
{
    (void)state;
    struct buf text;
    struct buf all;
    struct loaded l;
    read_example(&text);
    take_in(&text, &all);
    load_config(&l, all.ptr, NULL);
    assert_no_errors(&l);
    for (size_t i = 0; i < config_keys.n; i++) {
        const struct yaml_node *n = key_node(l.cfg->root, config_keys.keys[i].path);
        if (n == NULL || n->origin != YAML_FROM_FILE) {
            fail_msg("config/config.yaml lacks %s", config_keys.keys[i].path);
        }
    }
    const struct yaml_node *channels = yaml_get(l.cfg->root, "channels");
    for (size_t i = 0; i < config_channel_keys.n; i++) {
        assert_non_null(
            yaml_get(yaml_get(channels, "http"), config_channel_keys.keys[i].path));
    }
    for (size_t i = 0; i < config_whatsapp_keys.n; i++) {
        assert_non_null(
            yaml_get(yaml_get(channels, "whatsapp"), config_whatsapp_keys.keys[i].path));
    }
    load_done(&l);
    buf_done(&all);
    buf_done(&text);
}

/* docs/configuration.md names every key that has a fixed path. */
static void test_is_documented(void **state)
{
    (void)state;
    struct buf page;
    struct error err = {.status = ST_OK};
    buf_init(&page, YAML_MAX_BYTES);
    assert_int_equal(io_read_file(SOULACY_REFERENCE, YAML_MAX_BYTES, &page, &err), ST_OK);
    for (size_t i = 0; i < config_keys.n; i++) {
        char name[128];
        (void)snprintf(name, sizeof(name), "`%s", config_keys.keys[i].path);
        assert_contains(page.ptr, name);
    }
    for (size_t i = 0; i < config_whatsapp_keys.n; i++) {
        char name[128];
        (void)snprintf(name, sizeof(name), "`%s`", config_whatsapp_keys.keys[i].path);
        assert_contains(page.ptr, name);
    }
    buf_done(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_default),
        cmocka_unit_test(test_has_every_key),
        cmocka_unit_test(test_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
