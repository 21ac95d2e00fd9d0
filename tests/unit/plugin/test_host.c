/* In: calls through struct sy_host as a plugin makes them. Out: who is granted which
 * service, what a log line looks like, and what counts as a breach. */
#include "unit/plugin/fake.h"

#include <pthread.h>

static const int channel_table, http_table, fetch_table, spawn_table, gateway_table;

static const struct plugin_service services[] = {
    {SY_HOST_CHANNEL_ID, &channel_table}, {SY_HOST_HTTP_ID, &http_table},
    {SY_HOST_FETCH_ID, &fetch_table},     {SY_HOST_SPAWN_ID, &spawn_table},
    {SY_HOST_GATEWAY_ID, &gateway_table}, {"soulacy.host.draft/1", &channel_table},
};
#define NSERVICES (sizeof services / sizeof services[0])

/* One row for each kind of plugin, one column for each service. */
static const struct {
    uint32_t kind;
    const char *name;
    bool own;
    bool granted[NSERVICES];
} grants[] = {
    {SY_KIND_CHANNEL, "mail", false, {true, true, true, false, false, false}},
    {SY_KIND_CHANNEL, "whatsapp", true, {true, true, true, false, false, false}},
    {SY_KIND_CHANNEL, "http", true, {true, true, true, false, true, false}},
    {SY_KIND_CHANNEL, "http", false, {true, true, true, false, false, false}},
    {SY_KIND_EXECUTOR, "http", true, {false, false, false, true, false, false}},
    {SY_KIND_EXECUTOR, "process", true, {false, false, false, true, false, false}},
    {SY_KIND_EXECUTOR, "mine", false, {false, false, false, true, false, false}},
};

static void services_are_granted_by_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof grants / sizeof grants[0]; i++) {
        struct fake f;
        fake_init(&f, grants[i].kind, grants[i].name, grants[i].own, services, NSERVICES);
        const struct sy_host *h = &f.p->host;
        for (size_t s = 0; s < NSERVICES; s++) {
            const void *got = h->service(h->ctx, services[s].id);
            assert_ptr_equal(got, grants[i].granted[s] ? services[s].table : NULL);
        }
        assert_null(h->service(h->ctx, "soulacy.host.channel/2"));
        assert_null(h->service(h->ctx, ""));
        assert_int_equal(plugin_breaches(f.p), 0);
        fake_done(&f);
    }
}

static void a_service_the_core_lacks_is_null(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, SY_KIND_CHANNEL, "mail", false, NULL, 0);
    assert_null(f.p->host.service(f.p->host.ctx, SY_HOST_CHANNEL_ID));
    assert_int_equal(plugin_breaches(f.p), 0);
    fake_done(&f);
}

static void *ask_service(void *arg)
{
    const struct sy_host *h = arg;
    return (void *)(uintptr_t)h->service(h->ctx, SY_HOST_CHANNEL_ID);
}

static void core_functions_are_for_the_control_thread(void **state)
{
    (void)state;
    struct fake f;
    pthread_t t;
    void *got = &f;
    fake_init(&f, SY_KIND_CHANNEL, "mail", false, services, NSERVICES);
    assert_int_equal(pthread_create(&t, NULL, ask_service, &f.p->host), 0);
    assert_int_equal(pthread_join(t, &got), 0);
    assert_null(got);
    assert_int_equal(
        fake_logged(&f, "plugin misbehaving: service: called off the control thread"), 1);
    fake_done(&f);
}

static void log_lines_bear_the_name_and_are_harmless(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, SY_KIND_CHANNEL, "mail", false, NULL, 0);
    const struct sy_host *h = &f.p->host;
    h->log(h->ctx, SY_LOG_WARN, (struct sy_str){"one\ntwo \x1b[31m", 12});
    h->log(h->ctx, 77, (struct sy_str){"odd level", 9});
    h->log(h->ctx, SY_LOG_INFO, (struct sy_str){NULL, 0});
    h->log(h->ctx, SY_LOG_INFO, (struct sy_str){NULL, 9});
    assert_int_equal(fake_logged(&f, "plugin mail"), 4);
    assert_int_equal(fake_logged(&f, "odd level"), 1);
    assert_int_equal(fake_logged(&f, "\x1b"), 0);
    assert_int_equal(fake_logged(&f, "two"), 1);
    assert_int_equal(fake_logged(&f, "plugin misbehaving: log: a length but no bytes"),
                     1);
    fake_done(&f);
}

static void long_lines_are_cut_between_characters(void **state)
{
    (void)state;
    struct fake f;
    static char text[4098 + 1];
    fake_init(&f, SY_KIND_CHANNEL, "mail", false, NULL, 0);
    const struct sy_host *h = &f.p->host;
    memset(text, 'a', sizeof text - 1);
    memcpy(text + 4095, "\xc3\xa9", 2); /* bytes 4096 and 4097 are one character */
    h->log(h->ctx, SY_LOG_INFO, (struct sy_str){text, 4098});
    memset(text, 'a', sizeof text - 1);
    text[4095] = 'z';
    assert_int_equal(fake_logged(&f, "\\x"), 0);
    assert_int_equal(fake_logged(&f, text), 0);
    text[4095] = '\0';
    assert_int_equal(fake_logged(&f, text), 1);
    fake_done(&f);
}

static void health_is_kept_and_shown_while_started(void **state)
{
    (void)state;
    struct fake f;
    struct error err;
    char text[256];
    fake_init(&f, SY_KIND_EXECUTOR, "mine", false, NULL, 0);
    const struct sy_host *h = &f.p->host;
    h->health(h->ctx, SY_HEALTH_DEGRADED, (struct sy_str){"engine\nslow", 11});
    assert_int_equal(plugin_health(f.p, text), SY_HEALTH_DOWN);
    assert_string_equal(text, "loaded");
    assert_int_equal(plugin_start(f.p, &err), ST_OK);
    assert_int_equal(plugin_health(f.p, text), SY_HEALTH_DEGRADED);
    assert_null(strchr(text, '\n'));
    assert_non_null(strstr(text, "slow"));
    h->health(h->ctx, 9, (struct sy_str){"x", 1});
    assert_int_equal(plugin_health(f.p, text), SY_HEALTH_DEGRADED);
    h->health(h->ctx, SY_HEALTH_OK, (struct sy_str){NULL, 0});
    assert_int_equal(plugin_health(f.p, text), SY_HEALTH_OK);
    assert_string_equal(text, "");
    assert_int_equal(fake_logged(&f, "plugin misbehaving: health: state 9 is unknown"),
                     1);
    plugin_stop(f.p);
    assert_int_equal(plugin_health(f.p, text), SY_HEALTH_DOWN);
    assert_string_equal(text, "stopped");
    fake_done(&f);
}

static void the_clock_is_that_of_deadlines(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, SY_KIND_EXECUTOR, "mine", false, NULL, 0);
    int64_t a = f.p->host.now_ms(f.p->host.ctx);
    assert_true(a > 0 && f.p->host.now_ms(f.p->host.ctx) >= a);
    fake_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services_are_granted_by_kind),
        cmocka_unit_test(a_service_the_core_lacks_is_null),
        cmocka_unit_test(core_functions_are_for_the_control_thread),
        cmocka_unit_test(log_lines_bear_the_name_and_are_harmless),
        cmocka_unit_test(long_lines_are_cut_between_characters),
        cmocka_unit_test(health_is_kept_and_shown_while_started),
        cmocka_unit_test(the_clock_is_that_of_deadlines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
