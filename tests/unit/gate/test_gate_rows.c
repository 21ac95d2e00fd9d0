/* Both tables as functions of facts: every row both ways, first match, every entry. */
#include "support/test.h"

#include "gate/gate.h"
#include "gate/rows.h"

/* ---- messages ---------------------------------------------------------------- */

static const struct message_facts welcome = {.entry = ENTRY_CHAT,
                                             .agent_known = true,
                                             .agent_enabled = true,
                                             .trigger = TRIGGER_CHANNEL,
                                             .channel_served = true,
                                             .sender_listed = true,
                                             .chat_listed = true,
                                             .phrase_found = true,
                                             .passphrase_ok = true};

static void unknown_agent(struct message_facts *f)
{
    f->agent_known = false;
}

static void disabled_agent(struct message_facts *f)
{
    f->agent_enabled = false;
}

static void other_trigger(struct message_facts *f)
{
    f->trigger = f->entry == ENTRY_WEBHOOK ? TRIGGER_CHANNEL : TRIGGER_INTERNAL;
}

static void other_channel(struct message_facts *f)
{
    f->channel_served = false;
}

static void ignored_group(struct message_facts *f)
{
    f->group = f->ignore_groups = true;
}

static void other_sender(struct message_facts *f)
{
    f->sender_listed = false;
}

static void other_chat(struct message_facts *f)
{
    f->chat_listed = false;
}

static void no_phrase(struct message_facts *f)
{
    f->phrase_found = false;
}

static void no_passphrase(struct message_facts *f)
{
    f->passphrase_ok = false;
}

/* In the table's order. */
static const struct {
    const char *id;
    void (*make)(struct message_facts *f);
} message_cases[] = {
    {"agent-unknown", unknown_agent}, {"agent-disabled", disabled_agent},
    {"trigger-kind", other_trigger},  {"channel-not-served", other_channel},
    {"group-ignored", ignored_group}, {"sender-not-allowed", other_sender},
    {"chat-not-allowed", other_chat}, {"no-trigger-phrase", no_phrase},
    {"passphrase", no_passphrase},
};
#define NMESSAGE (sizeof(message_cases) / sizeof(message_cases[0]))

static void assert_message(const struct message_facts *f, enum gate_answer a,
                           const char *id)
{
    struct verdict v = gate_message(f);
    assert_string_equal(v.row->id, id);
    assert_int_equal(v.answer, a);
    assert_true(v.row->text[0] != '\0');
}

static struct message_facts facts_of(enum gate_entry e)
{
    struct message_facts f = welcome;
    f.entry = e;
    f.trigger = e == ENTRY_WEBHOOK ? TRIGGER_WEBHOOK : TRIGGER_CHANNEL;
    return f;
}

static void test_message_rows_from_every_entry(void **state)
{
    (void)state;
    for (int e = 0; e < ENTRY_COUNT_; e++) {
        struct message_facts good = facts_of((enum gate_entry)e);
        assert_message(&good, GATE_ALLOW, "message-allow");
        for (size_t i = 0; i < NMESSAGE; i++) {
            struct message_facts f = good;
            message_cases[i].make(&f);
            if (message_cases[i].make == other_trigger &&
                gate_trigger_fits(f.trigger, f.entry)) {
                /* This entry takes agents of every trigger: the row cannot apply. */
                assert_message(&f, GATE_ALLOW, "message-allow");
                continue;
            }
            assert_message(&f, GATE_DENY, message_cases[i].id);
        }
    }
}

static void test_message_first_match_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMESSAGE; i++) {
        struct message_facts f = welcome;
        for (size_t j = NMESSAGE; j > i; j--) {
            message_cases[j - 1].make(&f);
        }
        assert_message(&f, GATE_DENY, message_cases[i].id);
    }
}

static void test_message_half_facts_allow(void **state)
{
    (void)state;
    struct message_facts f = welcome;
    f.group = true;
    assert_message(&f, GATE_ALLOW, "message-allow");
    f.group = false;
    f.ignore_groups = true;
    assert_message(&f, GATE_ALLOW, "message-allow");
}

static void test_no_fact_is_a_denial(void **state)
{
    (void)state;
    struct message_facts none = {0};
    struct call_facts no_call = {0};
    assert_message(&none, GATE_DENY, "agent-unknown");
    assert_int_equal(gate_call_decide(&no_call).answer, GATE_DENY);
}

static void test_message_row_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMESSAGE; i++) {
        assert_string_equal(gate_message_row(i)->id, message_cases[i].id);
    }
    assert_string_equal(gate_message_row(NMESSAGE)->id, "message-allow");
    assert_null(gate_message_row(NMESSAGE + 1));
    assert_null(gate_message_row(SIZE_MAX));
}

static void test_triggers(void **state)
{
    (void)state;
    /* columns: TRIGGER_CHANNEL, TRIGGER_WEBHOOK, TRIGGER_INTERNAL */
    static const bool fits[ENTRY_COUNT_][3] = {
        [ENTRY_CHANNEL] = {true, false, false},
        [ENTRY_CHAT] = {true, false, false},
        [ENTRY_STREAM] = {true, false, false},
        [ENTRY_TOOLS_RUN] = {true, true, true},
        [ENTRY_COMPLETIONS] = {true, false, false},
        [ENTRY_WEBHOOK] = {false, true, false},
        [ENTRY_WORKFLOW] = {true, true, true},
        [ENTRY_PEER] = {true, true, true},
        [ENTRY_MCP] = {true, true, true},
        [ENTRY_CLI] = {true, true, true},
    };
    for (int e = 0; e < ENTRY_COUNT_; e++) {
        for (int t = 0; t < 3; t++) {
            assert_int_equal(gate_trigger_fits((enum trigger)t, (enum gate_entry)e),
                             fits[e][t]);
        }
    }
    assert_false(gate_trigger_fits(TRIGGER_CHANNEL, ENTRY_COUNT_));
    assert_false(gate_trigger_fits(TRIGGER_CHANNEL, (enum gate_entry)99));
}

static void test_names(void **state)
{
    (void)state;
    static const char *const entries[ENTRY_COUNT_] = {
        "channel", "chat",     "stream", "tools.run", "completions",
        "webhook", "workflow", "peer",   "mcp",       "cli"};
    for (int e = 0; e < ENTRY_COUNT_; e++) {
        assert_string_equal(gate_entry_name((enum gate_entry)e), entries[e]);
    }
    assert_string_equal(gate_entry_name(ENTRY_COUNT_), "unknown");
    assert_string_equal(gate_answer_name(GATE_DENY), "deny");
    assert_string_equal(gate_answer_name(GATE_ASK), "ask");
    assert_string_equal(gate_answer_name(GATE_ALLOW), "allow");
    assert_string_equal(gate_answer_name((enum gate_answer)7), "deny");
}

static void assert_phrase(const char *text, const char *phrase, const char *rest)
{
    struct str out = STR_LIT("untouched");
    bool found = gate_phrase(str_c(text), str_c(phrase), &out);
    assert_int_equal(found, rest != NULL);
    assert_str_is(out, rest != NULL ? rest : "untouched");
}

static void test_phrase(void **state)
{
    (void)state;
    assert_phrase("hello", "", "hello");
    assert_phrase("  hello ", "", "  hello ");
    assert_phrase("@bot hello", "@bot", "hello");
    assert_phrase(" \n@BOT  hello ", "@bot", "hello");
    assert_phrase("@bot", "@bot", "");
    assert_phrase("@bot, hello", "@bot", ", hello");
    assert_phrase("@bot:hello", "@bot", ":hello");
    assert_phrase("@bot\thello", "@bot", "hello");
    assert_phrase("@bot-2 hello", "@bot", "-2 hello");
    /* a longer word is another word */
    assert_phrase("@bots hello", "@bot", NULL);
    assert_phrase("@botS", "@bot", NULL);
    assert_phrase("@bot2", "@bot", NULL);
    assert_phrase("@bot_x", "@bot", NULL);
    assert_phrase("@bot\xC3\xA9", "@bot", NULL);
    /* a phrase that ends in no letter has its border in itself */
    assert_phrase("!hello", "!", "hello");
    assert_phrase("bot:hello", "bot:", "hello");
    /* not at the head, cut short, or not there */
    assert_phrase("say @bot", "@bot", NULL);
    assert_phrase("@bo", "@bot", NULL);
    assert_phrase("", "@bot", NULL);
    assert_phrase("   ", "@bot", NULL);
    assert_phrase("hello", "@bot", NULL);
    assert_phrase("\xC3\x89t\xC3\xA9 hello", "\xC3\x89t\xC3\xA9", "hello");
}

/* ---- calls -------------------------------------------------------------------- */

static const struct call_facts fine = {.entry = ENTRY_CHAT,
                                       .agent_enabled = true,
                                       .channel_served = true,
                                       .trigger_fits = true,
                                       .passphrase_ok = true,
                                       .tool_known = true,
                                       .kind = TOOL_PYTHON,
                                       .offered = true,
                                       .arguments_valid = true,
                                       .builtin_admitted = true,
                                       .local = true,
                                       .system_permit = true,
                                       .system_capability = true,
                                       .mcp_admitted = true,
                                       .peer_admitted = true,
                                       .kb_admitted = true,
                                       .available = true};

static void call_disabled(struct call_facts *f)
{
    f->agent_enabled = false;
}

static void call_channel(struct call_facts *f)
{
    f->channel_served = false;
}

static void call_trigger(struct call_facts *f)
{
    f->trigger_fits = false;
}

static void call_passphrase(struct call_facts *f)
{
    f->passphrase_ok = false;
}

static void call_unknown(struct call_facts *f)
{
    f->tool_known = false;
}

static void call_not_offered(struct call_facts *f)
{
    f->offered = false;
}

static void call_arguments(struct call_facts *f)
{
    f->arguments_valid = false;
}

static void call_builtins(struct call_facts *f)
{
    f->kind = TOOL_SAFE;
    f->builtin_admitted = false;
}

static void call_not_local(struct call_facts *f)
{
    f->kind = TOOL_SYSTEM;
    f->local = false;
}

static void call_keyless(struct call_facts *f)
{
    f->kind = TOOL_SYSTEM;
    f->keyless_open = true;
}

static void call_permit(struct call_facts *f)
{
    f->kind = TOOL_SYSTEM;
    f->system_permit = false;
}

static void call_capability(struct call_facts *f)
{
    f->kind = TOOL_SYSTEM;
    f->system_capability = false;
}

static void call_mcp(struct call_facts *f)
{
    f->kind = TOOL_MCP;
    f->mcp_admitted = false;
}

static void call_peer(struct call_facts *f)
{
    f->kind = TOOL_PEER;
    f->peer_admitted = false;
}

static void call_kb(struct call_facts *f)
{
    f->kind = TOOL_KB;
    f->kb_admitted = false;
}

static void call_not_available(struct call_facts *f)
{
    f->available = false;
}

static void call_confirmed(struct call_facts *f)
{
    f->confirm = f->approved = true;
}

static void call_unattended(struct call_facts *f)
{
    f->confirm = f->confirm_by_name = f->unattended = f->internal = true;
    f->approver = false;
}

static void call_nobody(struct call_facts *f)
{
    f->confirm = true;
    f->approver = false;
}

static void call_confirm(struct call_facts *f)
{
    f->confirm = f->approver = true;
}

static void call_allowed(struct call_facts *f)
{
    (void)f;
}

/* In the table's order. */
static const struct {
    const char *id;
    int number;
    enum gate_answer answer;
    void (*make)(struct call_facts *f);
} call_cases[] = {
    {"agent-disabled", 1, GATE_DENY, call_disabled},
    {"channel-not-served", 0, GATE_DENY, call_channel},
    {"trigger-kind", 0, GATE_DENY, call_trigger},
    {"passphrase", 0, GATE_DENY, call_passphrase},
    {"tool-unknown", 1, GATE_DENY, call_unknown},
    {"not-offered", 1, GATE_DENY, call_not_offered},
    {"arguments", 1, GATE_DENY, call_arguments},
    {"builtins", 2, GATE_DENY, call_builtins},
    {"not-local", 3, GATE_DENY, call_not_local},
    {"keyless-open", 3, GATE_DENY, call_keyless},
    {"system-permit", 4, GATE_DENY, call_permit},
    {"system-capability", 4, GATE_DENY, call_capability},
    {"mcp", 5, GATE_DENY, call_mcp},
    {"peer", 5, GATE_DENY, call_peer},
    {"knowledge", 5, GATE_DENY, call_kb},
    {"not-available", 1, GATE_DENY, call_not_available},
    {"confirmed", 6, GATE_ALLOW, call_confirmed},
    {"unattended", 6, GATE_ALLOW, call_unattended},
    {"nobody-to-ask", 6, GATE_DENY, call_nobody},
    {"confirm", 6, GATE_ASK, call_confirm},
    {"allow", 7, GATE_ALLOW, call_allowed},
};
#define NCALL (sizeof(call_cases) / sizeof(call_cases[0]))

static void assert_call(const struct call_facts *f, enum gate_answer a, const char *id)
{
    struct verdict v = gate_call_decide(f);
    assert_string_equal(v.row->id, id);
    assert_int_equal(v.answer, a);
}

/* The entry is not a fact of its own here: what it decides is in trigger_fits, local,
 * approver and internal. So each row decides from each entry. */
static void test_call_rows_from_every_entry(void **state)
{
    (void)state;
    for (int e = 0; e < ENTRY_COUNT_; e++) {
        for (size_t i = 0; i < NCALL; i++) {
            struct call_facts f = fine;
            f.entry = (enum gate_entry)e;
            assert_call(&f, GATE_ALLOW, "allow");
            call_cases[i].make(&f);
            assert_call(&f, call_cases[i].answer, call_cases[i].id);
        }
    }
}

static void test_call_first_match_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < NCALL; i++) {
        for (size_t j = i + 1; j < NCALL; j++) {
            struct call_facts f = fine;
            call_cases[j].make(&f);
            call_cases[i].make(&f);
            assert_call(&f, call_cases[i].answer, call_cases[i].id);
        }
    }
}

static void test_call_row_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < NCALL; i++) {
        assert_string_equal(gate_call_row(i)->id, call_cases[i].id);
        assert_int_equal(gate_call_row(i)->number, call_cases[i].number);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(call_cases[i].id, call_cases[j].id);
        }
    }
    assert_null(gate_call_row(NCALL));
    assert_null(gate_call_row(SIZE_MAX));
}

/* Rows about one kind of tool leave the other kinds alone. */
static void test_call_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        void (*make)(struct call_facts *f);
        unsigned kinds; /* bits of enum tool_kind */
    } rows[] = {
        {"builtins", call_builtins,
         1U << TOOL_SAFE | 1U << TOOL_SYSTEM | 1U << TOOL_SEARCH | 1U << TOOL_KB},
        {"not-local", call_not_local, 1U << TOOL_SAFE | 1U << TOOL_SYSTEM},
        {"keyless-open", call_keyless, 1U << TOOL_SYSTEM},
        {"system-permit", call_permit, 1U << TOOL_SYSTEM},
        {"system-capability", call_capability, 1U << TOOL_SYSTEM},
        {"mcp", call_mcp, 1U << TOOL_MCP},
        {"peer", call_peer, 1U << TOOL_PEER},
        {"knowledge", call_kb, 1U << TOOL_KB},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned k = 0; k < TOOL_KIND_COUNT_; k++) {
            struct call_facts f = fine;
            bool hit = (rows[i].kinds >> k & 1U) != 0;
            rows[i].make(&f);
            f.kind = (enum tool_kind)k;
            assert_call(&f, hit ? GATE_DENY : GATE_ALLOW, hit ? rows[i].id : "allow");
        }
    }
}

/* security-rules 8: unattended never skips asking where somebody can be asked, and helps
 * internal runs and tools named in confirm_tools only. */
static void test_unattended(void **state)
{
    (void)state;
    struct call_facts f = fine;
    call_unattended(&f);
    f.approver = true;
    assert_call(&f, GATE_ASK, "confirm");
    call_unattended(&f);
    f.internal = false;
    assert_call(&f, GATE_DENY, "nobody-to-ask");
    call_unattended(&f);
    f.confirm_by_name = false; /* by "*" */
    assert_call(&f, GATE_DENY, "nobody-to-ask");
    call_unattended(&f);
    f.unattended = false;
    assert_call(&f, GATE_DENY, "nobody-to-ask");
    call_unattended(&f);
    f.confirm = false; /* nothing to ask about */
    assert_call(&f, GATE_ALLOW, "allow");
    f = fine;
    f.approved = true; /* an approval that nobody needed changes no row */
    assert_call(&f, GATE_ALLOW, "allow");
}

static uint32_t next_random(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s;
}

/* Whatever the facts: an allow has all that the table asks for. */
static void test_allow_has_reasons(void **state)
{
    (void)state;
    uint32_t seed = 20;
    size_t allowed = 0;
    for (int n = 0; n < 200000; n++) {
        /* each bad fact in one case of eight, so that allows are not rare */
        uint32_t r = next_random(&seed) & next_random(&seed) & next_random(&seed);
        uint32_t any = next_random(&seed);
        struct call_facts f = {.entry = (enum gate_entry)(any % ENTRY_COUNT_),
                               .kind = (enum tool_kind)((any >> 8) % TOOL_KIND_COUNT_),
                               .agent_enabled = (r & 1) == 0,
                               .channel_served = (r & 2) == 0,
                               .trigger_fits = (r & 4) == 0,
                               .passphrase_ok = (r & 8) == 0,
                               .tool_known = (r & 16) == 0,
                               .offered = (r & 32) == 0,
                               .arguments_valid = (r & 64) == 0,
                               .builtin_admitted = (r & 128) == 0,
                               .local = (r & 256) == 0,
                               .keyless_open = (r & 512) != 0,
                               .system_permit = (r & 1024) == 0,
                               .system_capability = (r & 2048) == 0,
                               .mcp_admitted = (r & 4096) == 0,
                               .peer_admitted = (r & 8192) == 0,
                               .kb_admitted = (r & 16384) == 0,
                               .available = (r & 32768) == 0,
                               .confirm = (any >> 16 & 1) != 0,
                               .confirm_by_name = (any >> 17 & 1) != 0,
                               .approved = (any >> 18 & 1) != 0,
                               .approver = (any >> 19 & 1) != 0,
                               .internal = (any >> 20 & 1) != 0,
                               .unattended = (any >> 21 & 1) != 0};
        struct verdict v = gate_call_decide(&f);
        bool builtin = f.kind >= TOOL_SAFE && f.kind <= TOOL_KB;
        assert_non_null(v.row);
        if (v.answer == GATE_DENY) {
            continue;
        }
        allowed++;
        assert_true(f.agent_enabled && f.channel_served && f.trigger_fits);
        assert_true(f.passphrase_ok && f.tool_known && f.offered && f.arguments_valid);
        assert_true(f.available && (!builtin || f.builtin_admitted));
        assert_true((f.kind != TOOL_SAFE && f.kind != TOOL_SYSTEM) || f.local);
        assert_true(f.kind != TOOL_SYSTEM ||
                    (!f.keyless_open && f.system_permit && f.system_capability));
        assert_true(f.kind != TOOL_MCP || f.mcp_admitted);
        assert_true(f.kind != TOOL_PEER || f.peer_admitted);
        assert_true(f.kind != TOOL_KB || f.kb_admitted);
        if (v.answer == GATE_ASK) {
            assert_true(f.confirm && f.approver && !f.approved);
        } else if (f.confirm) {
            assert_true(f.approved ||
                        (!f.approver && f.unattended && f.internal && f.confirm_by_name));
        }
    }
    assert_in_range(allowed, 20000, 199999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_rows_from_every_entry),
        cmocka_unit_test(test_message_first_match_decides),
        cmocka_unit_test(test_message_half_facts_allow),
        cmocka_unit_test(test_no_fact_is_a_denial),
        cmocka_unit_test(test_message_row_list),
        cmocka_unit_test(test_triggers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_phrase),
        cmocka_unit_test(test_call_rows_from_every_entry),
        cmocka_unit_test(test_call_first_match_decides),
        cmocka_unit_test(test_call_row_list),
        cmocka_unit_test(test_call_kinds),
        cmocka_unit_test(test_unattended),
        cmocka_unit_test(test_allow_has_reasons),
    };
    return cmocka_run_group_tests_name("gate_rows", tests, NULL, NULL);
}
