/* In: what a plugin may hand over, within, at and above each limit. Out: checked copies,
 * or a breach with the member's name. */
#include "unit/plugin/fake.h"

#define SPAN(s) ((struct sy_str){(s), sizeof(s) - 1})

struct fixture {
    struct fake f;
    struct arena *a;
};

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof *x);
    assert_non_null(x);
    fake_init(&x->f, SY_KIND_CHANNEL, "mail", false, NULL, 0);
    x->a = arena_new(8 << 20);
    assert_non_null(x->a);
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    arena_free(x->a);
    fake_done(&x->f);
    free(x);
    return 0;
}

static enum status take(struct fixture *x, const struct sy_message *m, size_t n,
                        struct sy_message **out, struct error *err)
{
    memset(err, 0, sizeof *err);
    return plugin_take_messages(x->f.p, m, n, x->a, out, err);
}

static void refused(struct fixture *x, const struct sy_message *m, const char *line)
{
    struct error err;
    struct sy_message *out = NULL;
    uint64_t before = plugin_breaches(x->f.p);
    assert_int_equal(take(x, m, 1, &out, &err), ST_INVALID);
    assert_string_equal(err.text, line);
    assert_null(out);
    assert_int_equal(plugin_breaches(x->f.p), before + 1);
}

static void a_whole_message_comes_through(void **state)
{
    struct fixture *x = *state;
    struct error err;
    struct sy_message *out = NULL;
    const struct sy_str ids[] = {SPAN("one"), SPAN("two")};
    const struct sy_attachment file = {.fd = 0, .mime = SPAN("text/plain")};
    const struct sy_message m = {.size = sizeof m,
                                 .chat = SY_CHAT_GROUP,
                                 .sent_ms = 7,
                                 .id = SPAN("id"),
                                 .text = SPAN("h\xc3\xa9"),
                                 .sender_ids = ids,
                                 .nsender_ids = 2,
                                 .attachments = &file,
                                 .nattachments = 1};
    assert_int_equal(take(x, &m, 1, &out, &err), ST_OK);
    assert_memory_equal(out, &m, sizeof m);
    assert_ptr_not_equal(out, &m);
}

static void elements_of_another_minor_have_their_own_stride(void **state)
{
    struct fixture *x = *state;
    struct error err;
    struct sy_message *out = NULL;
    struct later {
        struct sy_message m;
        uint64_t new_member[3];
    } in[2];
    memset(in, 0xff, sizeof in);
    for (size_t i = 0; i < 2; i++) {
        memset(&in[i].m, 0, sizeof in[i].m);
        in[i].m.size = sizeof in[i];
        in[i].m.text = i == 0 ? SPAN("a") : SPAN("b");
    }
    assert_int_equal(take(x, &in[0].m, 2, &out, &err), ST_OK);
    assert_memory_equal(out[1].text.ptr, "b", 1);
    in[1].m.size = sizeof in[0].m;
    assert_int_equal(take(x, &in[0].m, 2, &out, &err), ST_INVALID);
    assert_string_equal(err.text, "deliver: item 1: size differs from the first item's");
}

static void arrays_have_limits(void **state)
{
    struct fixture *x = *state;
    struct error err;
    struct sy_message *out = NULL;
    struct sy_message *many = calloc(1025, sizeof *many);
    assert_non_null(many);
    for (size_t i = 0; i < 1025; i++) {
        many[i].size = sizeof *many;
    }
    assert_int_equal(take(x, many, 1024, &out, &err), ST_OK);
    assert_int_equal(take(x, many, 1025, &out, &err), ST_INVALID);
    assert_int_equal(take(x, many, 0, &out, &err), ST_INVALID);
    assert_int_equal(take(x, NULL, 1, &out, &err), ST_INVALID);
    assert_int_equal(plugin_breaches(x->f.p), 3);
    many[0].size = sizeof *many - 8;
    assert_int_equal(take(x, many, 1, &out, &err), ST_INVALID);
    many[0].size = 8192;
    assert_int_equal(take(x, many, 1, &out, &err), ST_INVALID);
    many[0].size = sizeof *many + 1; /* would leave pointers unaligned */
    assert_int_equal(take(x, many, 1, &out, &err), ST_INVALID);
    free(many);
}

static void each_text_has_its_limit(void **state)
{
    struct fixture *x = *state;
    struct error err;
    struct sy_message *out = NULL;
    static char big[(1 << 20) + 1];
    memset(big, 'x', sizeof big);
    struct sy_message m = {.size = sizeof m};
    m.text = (struct sy_str){big, 1 << 20};
    m.id = m.sender = m.conversation = (struct sy_str){big, 512};
    assert_int_equal(take(x, &m, 1, &out, &err), ST_OK);
    m.text.len++;
    refused(x, &m, "deliver: item 0: text is too long");
    m = (struct sy_message){.size = sizeof m, .id = {big, 513}};
    refused(x, &m, "deliver: item 0: id is too long");
    m = (struct sy_message){.size = sizeof m, .account = {NULL, 1}};
    refused(x, &m, "deliver: item 0: account has a length but no bytes");
    m = (struct sy_message){.size = sizeof m, .conversation = SPAN("\x80")};
    refused(x, &m, "deliver: item 0: conversation is not UTF-8");
    m = (struct sy_message){.size = sizeof m, .sender_name = SPAN("\xed\xa0\x80")};
    refused(x, &m, "deliver: item 0: sender_name is not UTF-8");
    m = (struct sy_message){.size = sizeof m, .agent = {big, SIZE_MAX}};
    refused(x, &m, "deliver: item 0: agent is too long");
    m = (struct sy_message){.size = sizeof m, .reply_to = {big, 513}};
    refused(x, &m, "deliver: item 0: reply_to is too long");
    m = (struct sy_message){.size = sizeof m, .chat = 2};
    refused(x, &m, "deliver: item 0: chat is unknown");
}

static void lists_inside_have_limits(void **state)
{
    struct fixture *x = *state;
    struct error err;
    struct sy_message *out = NULL;
    struct sy_str ids[17] = {{NULL, 0}};
    struct sy_attachment files[33];
    memset(files, 0, sizeof files);
    struct sy_message m = {.size = sizeof m,
                           .sender_ids = ids,
                           .nsender_ids = 16,
                           .attachments = files,
                           .nattachments = 32};
    assert_int_equal(take(x, &m, 1, &out, &err), ST_OK);
    m.nsender_ids = 17;
    refused(x, &m, "deliver: item 0: sender_ids are too many, or NULL");
    m.nsender_ids = 1;
    m.sender_ids = NULL;
    refused(x, &m, "deliver: item 0: sender_ids are too many, or NULL");
    ids[0] = SPAN("\xff");
    m.sender_ids = ids;
    refused(x, &m, "deliver: item 0: sender_ids is not UTF-8");
    m.nsender_ids = 0;
    m.nattachments = 33;
    refused(x, &m, "deliver: item 0: attachments are too many, or NULL");
    m.nattachments = 1;
    m.attachments = NULL;
    refused(x, &m, "deliver: item 0: attachments are too many, or NULL");
    m.attachments = files;
    files[0].fd = -1;
    refused(x, &m, "deliver: item 0: attachments has no file, or an unknown kind");
    files[0].fd = 0;
    files[0].kind = 4;
    refused(x, &m, "deliver: item 0: attachments has no file, or an unknown kind");
    files[0].kind = 3;
    files[0].name = SPAN("\xff");
    refused(x, &m, "deliver: item 0: attachments is not UTF-8");
}

static void deliveries_are_checked_alike(void **state)
{
    struct fixture *x = *state;
    struct error err;
    struct sy_delivery *out = NULL;
    struct sy_delivery d = {
        .size = sizeof d, .state = SY_DELIVERY_READ, .transport_id = SPAN("t")};
    assert_int_equal(plugin_take_deliveries(x->f.p, &d, 1, x->a, &out, &err), ST_OK);
    assert_int_equal(out[0].state, SY_DELIVERY_READ);
    for (uint32_t bad = 0; bad < 10; bad += 5) {
        d.state = bad;
        assert_int_equal(plugin_take_deliveries(x->f.p, &d, 1, x->a, &out, &err),
                         ST_INVALID);
        assert_string_equal(err.text, "report: item 0: state is unknown");
    }
    d.state = SY_DELIVERY_FAILED;
    d.reason = SPAN("\xff");
    assert_int_equal(plugin_take_deliveries(x->f.p, &d, 1, x->a, &out, &err), ST_INVALID);
    assert_string_equal(err.text, "report: item 0: reason is not UTF-8");
    assert_int_equal(plugin_take_deliveries(x->f.p, NULL, 1, x->a, &out, &err),
                     ST_INVALID);
}

static void structs_and_spans_are_checked(void **state)
{
    struct fixture *x = *state;
    struct sy_route out;
    struct sy_route in = {.size = sizeof in, .auth = 1, .ctx = x};
    assert_true(
        plugin_take_struct(x->f.p, "add_route", &in, sizeof in, &out, sizeof out));
    assert_ptr_equal(out.ctx, x);
    in.size = 16;
    assert_true(plugin_take_struct(x->f.p, "add_route", &in, 16, &out, sizeof out));
    assert_null(out.ctx);
    assert_false(plugin_take_struct(x->f.p, "add_route", &in, 17, &out, sizeof out));
    assert_false(plugin_take_struct(x->f.p, "add_route", NULL, 4, &out, sizeof out));
    assert_int_equal(
        fake_logged(&x->f, "add_route: 16 bytes long, at least 17 are needed"), 1);
    assert_true(plugin_check_text(x->f.p, "write: data", SPAN("abc"), 3));
    assert_false(plugin_check_text(x->f.p, "write: data", SPAN("abcd"), 3));
    assert_int_equal(fake_logged(&x->f, "plugin misbehaving: write: data is too long"),
                     1);
}

static void states_decide_who_may_call(void **state)
{
    struct fixture *x = *state;
    struct plugin_instance *p = x->f.p;
    struct error err;
    assert_null(plugin_upcall_begin(NULL, "deliver", PLUGIN_FROM_START));
    struct plugin_instance foreign;
    memset(&foreign, 0, sizeof foreign);
    assert_null(plugin_upcall_begin(&foreign, "deliver", PLUGIN_FROM_START));
    assert_null(plugin_upcall_begin(p, "deliver", PLUGIN_FROM_START));
    assert_int_equal(
        fake_logged(&x->f, "plugin misbehaving: deliver: called before start()"), 1);
    assert_ptr_equal(plugin_upcall_begin(p, "log", PLUGIN_FROM_CREATE), p);
    plugin_upcall_end(p);
    assert_int_equal(plugin_start(p, &err), ST_OK);
    assert_ptr_equal(plugin_upcall_begin(p, "deliver", PLUGIN_FROM_START), p);
    plugin_upcall_end(p);
}

static void too_many_breaches_end_it_both_ways(void **state)
{
    struct fixture *x = *state;
    struct plugin_instance *p = x->f.p;
    struct error err;
    assert_int_equal(plugin_start(p, &err), ST_OK);
    for (int i = 0; i < PLUGIN_MAX_BREACHES; i++) {
        plugin_misbehaved(p, "rule %d", i);
    }
    assert_false(plugin_condemned(p));
    assert_ptr_equal(plugin_upcall_begin(p, "deliver", PLUGIN_FROM_START), p);
    plugin_upcall_end(p);
    plugin_misbehaved(p, "one more");
    assert_true(plugin_condemned(p));
    assert_null(plugin_upcall_begin(p, "deliver", PLUGIN_FROM_START));
    assert_int_equal(plugin_downcall_begin(p, false, &err), ST_CANCELLED);
    plugin_misbehaved(p, "and more");
    assert_int_equal(fake_logged(&x->f, "plugin misbehaving"), PLUGIN_MAX_BREACHES + 1);
    assert_int_equal(plugin_breaches(p), PLUGIN_MAX_BREACHES + 2);
}

static void errors_cross_as_their_own_kind(void **state)
{
    (void)state;
    static const struct {
        enum status st;
        sy_status as;
    } rows[] = {
        {ST_OK, SY_OK},       {ST_INVALID, SY_E_INVALID},   {ST_INTERNAL, SY_E_INTERNAL},
        {ST_BUSY, SY_E_BUSY}, {ST_NOT_FOUND, SY_E_INVALID}, {ST_TOO_LARGE, SY_E_INVALID},
        {ST_IO, SY_E_IO},     {ST_CONFLICT, SY_E_REFUSED},
    };
    struct error err = {.os_errno = 5};
    memset(err.text, 'e', sizeof err.text - 1);
    memcpy(err.text + 238, "\xc3\xa9", 2); /* would be cut in two */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sy_error out = {.size = sizeof out};
        err.status = rows[i].st;
        assert_int_equal(plugin_give_error(&err, &out), rows[i].as);
        assert_int_equal(strlen(out.text), 238);
        assert_int_equal(out.os_errno, 5);
        assert_int_equal(plugin_give_error(&err, NULL), rows[i].as);
        struct sy_error tiny = {.size = 8};
        assert_int_equal(plugin_give_error(&err, &tiny), rows[i].as);
        assert_int_equal(tiny.text[0], 0);
    }
}

static void error_lines_of_plugins_are_made_harmless(void **state)
{
    struct fixture *x = *state;
    struct error err = {0};
    struct sy_error e = plugin_error_slot();
    memset(e.text, 'a', sizeof e.text); /* no NUL at all */
    assert_int_equal(plugin_take_error(x->f.p, "run()", SY_E_IO, &e, &err), ST_IO);
    assert_int_equal(strlen(err.text), strlen("run() failed: ") + 240);
    (void)snprintf(e.text, sizeof e.text, "bad\nline");
    assert_int_equal(plugin_take_error(x->f.p, "run()", -77, &e, &err), ST_INTERNAL);
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(plugin_breaches(x->f.p), 0);
    assert_int_equal(plugin_take_error(x->f.p, "run()", 3, &e, &err), ST_INTERNAL);
    assert_int_equal(plugin_breaches(x->f.p), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(a_whole_message_comes_through),
        T(elements_of_another_minor_have_their_own_stride),
        T(arrays_have_limits),
        T(each_text_has_its_limit),
        T(lists_inside_have_limits),
        T(deliveries_are_checked_alike),
        T(structs_and_spans_are_checked),
        T(states_decide_who_may_call),
        T(too_many_breaches_end_it_both_ways),
        T(errors_cross_as_their_own_kind),
        T(error_lines_of_plugins_are_made_harmless),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
