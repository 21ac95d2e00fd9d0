/* Messages and calls of real agents through gate_admit, gate_offer and gate_call: every
 * entry against every row, strict arguments, what is offered is what is dispatched. */
#include "support/souls.h"

#include "gate/gate.h"
#include "gate/rows.h"

static const char soul_text[] = "id: helper\n"
                                "capabilities: [system]\n"
                                "knowledge: [handbook]\n"
                                "agents: [other]\n"
                                "tools:\n"
                                "  - name: add\n"
                                "    inline: 'def add(n): return n'\n"
                                "    parameters: {type: object, properties: {n: {}},\n"
                                "      required: [n], additionalProperties: false}\n"
                                "  - name: free\n"
                                "    inline: 'def free(**k): return k'\n";

struct world {
    struct soul *soul;
    struct arena *arena;
    struct catalog tools; /* with two MCP tools, and parameters for every tool */
    struct gate_policy policy;
    struct origin from;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct catalog c;
    assert_non_null(w);
    w->soul = test_soul(soul_text);
    w->arena = arena_new((size_t)1024 * 1024);
    assert_non_null(w->arena);
    assert_int_equal(catalog_build(w->soul, w->arena, &c, NULL), ST_OK);
    w->tools.tools = arena_array(w->arena, c.n + 2, sizeof(struct tool));
    memcpy(w->tools.tools, c.tools, c.n * sizeof(struct tool));
    w->tools.n = c.n + 2;
    w->tools.tools[c.n] = (struct tool){
        .kind = TOOL_MCP, .name = STR_LIT("mcp__fs__read"), .server = STR_LIT("fs")};
    w->tools.tools[c.n + 1] = (struct tool){
        .kind = TOOL_MCP, .name = STR_LIT("mcp__fs__write"), .server = STR_LIT("fs")};
    for (size_t i = 0; i < w->tools.n; i++) {
        /* as if this build carried them all out */
        if (w->tools.tools[i].parameters == NULL) {
            w->tools.tools[i].parameters = w->soul->tools[1].parameters;
        }
    }
    w->policy.allow_system_tools = true;
    w->from = (struct origin){.entry = ENTRY_CHAT,
                              .channel = STR_LIT("http"),
                              .local = true,
                              .sender = STR_LIT("anna"),
                              .sender_name = STR_LIT("Anna"),
                              .conversation = STR_LIT("c1"),
                              .peer = STR_LIT("127.0.0.1")};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    arena_free(w->arena);
    soul_free(w->soul);
    free(w);
    return 0;
}

static struct admitted *admit(struct world *w)
{
    struct admitted *a = NULL;
    struct verdict v;
    struct error err = {0};
    assert_int_equal(
        gate_admit(w->soul, NULL, &w->from, STR_LIT("hi"), true, &v, &a, &err), ST_OK);
    assert_int_equal(v.answer, GATE_ALLOW);
    return a;
}

/* The verdict of one call with these arguments. */
static struct verdict call(struct world *w, const struct admitted *a, const char *name,
                           struct str args, bool offered)
{
    struct call_request req = {str_c(name), args, offered, false};
    struct approved *approved = NULL;
    struct verdict v = {0};
    struct error err = {0};
    enum status st = gate_call(a, &w->policy, &w->tools, &req, &v, &approved, &err);
    assert_non_null(v.row);
    assert_int_equal(st, v.answer == GATE_ALLOW ? ST_OK : ST_REFUSED);
    assert_int_equal(approved != NULL, v.answer == GATE_ALLOW);
    if (approved != NULL) {
        struct str want = args.len > 0 ? args : STR_LIT("{}");
        assert_ptr_equal(approved_by(approved), a);
        assert_str_is(approved_tool(approved)->name, name);
        assert_true(str_eq(approved_args(approved), want)); /* byte for byte */
    } else {
        assert_non_null(strstr(err.text, name)); /* the line for the model */
    }
    approved_free(approved);
    return v;
}

static void assert_row(struct world *w, const struct admitted *a, const char *tool,
                       const char *row)
{
    struct verdict v = call(
        w, a, tool, strcmp(tool, "add") == 0 ? STR_LIT("{\"n\":1}") : STR_NONE, true);
    assert_string_equal(v.row->id, row);
}

/* ---- every entry against every row of calls ------------------------------------- */

/* A list in the world's memory; ends with NULL. */
static struct str_list words(struct world *w, const char *first, ...)
{
    struct str_list l = {arena_array(w->arena, 8, sizeof(char *)), 0};
    va_list ap;
    assert_non_null(l.items);
    va_start(ap, first);
    for (const char *s = first; s != NULL; s = va_arg(ap, const char *)) {
        assert_in_range(l.n, 0, 7);
        l.items[l.n] = arena_dup(w->arena, str_c(s));
        assert_non_null(l.items[l.n++]);
    }
    va_end(ap);
    return l;
}

static struct opt_list these(struct str_list l)
{
    return (struct opt_list){.present = true, .list = l};
}

static const struct opt_list none = {.present = true},
                             all = {.present = true, .all = true};

/* After admission the world changes, or the call is what it is; then tool is called. */
static const char *row_case(struct world *w, int row, const char **tool)
{
    struct soul *s = w->soul;
    *tool = "add";
    switch (row) {
    case 0:
        s->enabled = false;
        return "agent-disabled";
    case 1:
        s->channels.present = true;
        return "channel-not-served";
    case 2:
        s->trigger = w->from.entry == ENTRY_WEBHOOK ? TRIGGER_CHANNEL : TRIGGER_INTERNAL;
        return gate_trigger_fits(s->trigger, w->from.entry) ? "allow" : "trigger-kind";
    case 3:
        *tool = "nonesuch";
        return "tool-unknown";
    case 4:
        s->builtins.present = true;
        *tool = "web_search";
        return "builtins";
    case 5:
        w->from.local = false;
        *tool = "read_file";
        return "not-local";
    case 6:
        w->from.keyless_open = true;
        *tool = "shell_exec";
        return "keyless-open";
    case 7:
        w->policy.allow_system_tools = false;
        *tool = "shell_exec";
        return "system-permit";
    case 8:
        s->system = false;
        *tool = "shell_exec";
        return "system-capability";
    case 9:
        s->mcp_tools.present = true;
        *tool = "mcp__fs__read";
        return "mcp";
    case 10:
        s->agents.n = 0;
        *tool = "agent__other";
        return "peer";
    case 11:
        s->knowledge.list.n = 0;
        *tool = "kb_search";
        return "knowledge";
    case 12:
        w->tools.tools[1].parameters = NULL;
        *tool = "free";
        return "not-available";
    case 13:
        s->confirm_tools.all = true;
        return "nobody-to-ask";
    case 14:
        s->confirm_tools.all = w->from.approver = true;
        return "confirm";
    case 15:
        s->confirm_tools = these(words(w, "add", NULL));
        s->unattended = w->from.internal = true;
        return "unattended";
    default:
        return "allow";
    }
}

static void test_every_entry_every_row(void **state)
{
    (void)state;
    for (int e = 0; e < ENTRY_COUNT_; e++) {
        for (int row = 0; row <= 16; row++) {
            void *own = NULL;
            const char *tool = NULL;
            setup(&own);
            struct world *w = own;
            w->from.entry = (enum gate_entry)e;
            w->soul->trigger = e == ENTRY_WEBHOOK ? TRIGGER_WEBHOOK : TRIGGER_CHANNEL;
            struct admitted *before = admit(w);
            const char *id = row_case(w, row, &tool);
            if (row >= 5 && row != 7 && row != 8) {
                /* what the origin says is fixed at admission */
                admitted_free(before);
                before = admit(w);
            }
            assert_row(w, before, tool, id);
            admitted_free(before);
            teardown(&own);
        }
    }
}

/* The rest of the rows, which gate_call reaches by the call itself. */
static void test_not_offered_and_arguments(void **state)
{
    struct world *w = *state;
    struct admitted *a = admit(w);
    struct str one = STR_LIT("{\"n\":1}");
    assert_string_equal(call(w, a, "add", one, false).row->id, "not-offered");
    assert_string_equal(call(w, a, "add", STR_LIT("{"), false).row->id, "not-offered");
    assert_string_equal(call(w, a, "add", STR_NONE, true).row->id, "arguments");
    assert_string_equal(call(w, a, "nonesuch", STR_LIT("{"), true).row->id,
                        "tool-unknown");
    w->soul->enabled = false;
    assert_string_equal(call(w, a, "add", STR_LIT("{"), true).row->id, "agent-disabled");
    admitted_free(a);
}

/* The line for the model is about the row that decided, not about another fault. */
static void test_line_is_of_the_row(void **state)
{
    struct world *w = *state;
    struct admitted *a = admit(w);
    struct call_request req = {STR_LIT("add"), STR_LIT("{\"n\":"), true, false};
    struct approved *approved = NULL;
    struct verdict v;
    struct error err = {0};
    assert_int_equal(gate_call(a, &w->policy, &w->tools, &req, &v, &approved, &err),
                     ST_REFUSED);
    assert_non_null(strstr(err.text, "tool add: arguments: "));
    w->soul->enabled = false;
    assert_int_equal(gate_call(a, &w->policy, &w->tools, &req, &v, &approved, &err),
                     ST_REFUSED);
    assert_string_equal(err.text, "tool add was denied: the agent is switched off "
                                  "(enabled: false)");
    w->soul->enabled = true;
    w->soul->confirm_tools.all = true;
    w->from.approver = true;
    admitted_free(a);
    a = admit(w);
    req.args = STR_LIT("{\"n\":1}");
    assert_int_equal(gate_call(a, &w->policy, &w->tools, &req, &v, &approved, &err),
                     ST_REFUSED);
    assert_string_equal(err.text, "tool add needs an operator's approval");
    req.approved = true;
    assert_int_equal(gate_call(a, &w->policy, &w->tools, &req, &v, &approved, &err),
                     ST_OK);
    assert_string_equal(v.row->id, "confirmed");
    approved_free(approved);
    admitted_free(a);
}

static void test_names_are_exact(void **state)
{
    struct world *w = *state;
    static const char *const wrong[] = {
        "Add",     "ADD",       "add ",          " add",
        "ad",      "addd",      "READ_FILE",     "read-file",
        "mcp__fs", "mcp__fs__", "agent__nobody", "a\xC4\x91"};
    struct admitted *a = admit(w);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_row(w, a, wrong[i], "tool-unknown");
    }
    struct call_request req = {{"add\0", 4}, STR_LIT("{\"n\":1}"), true, false};
    struct approved *approved = NULL;
    struct verdict v;
    assert_int_equal(gate_call(a, &w->policy, &w->tools, &req, &v, &approved, NULL),
                     ST_REFUSED);
    assert_string_equal(v.row->id, "tool-unknown");
    req.name = STR_NONE;
    assert_int_equal(gate_call(a, &w->policy, &w->tools, &req, &v, &approved, NULL),
                     ST_REFUSED);
    assert_string_equal(v.row->id, "tool-unknown");
    admitted_free(a);
}

static void test_strict_arguments(void **state)
{
    struct world *w = *state;
    static const struct str bad[] = {
        {"{\"n\":1,\"n\":2}", 13},          /* duplicate key */
        {"{\"n\":1,\"\\u006e\":2}", 18},    /* the same, escaped */
        {"{\"n\":{\"a\":1,\"a\":1}}", 19},  /* below */
        {"{\"n\":\"a\\u0000b\"}", 16},      /* NUL, escaped */
        {"{\"n\":\"a\0b\"}", 11},           /* NUL, raw */
        {"{\"n\":1}\0", 8},                 /* trailing NUL */
        {"{\"n\":1} x", 9},                 /* trailing bytes */
        {"{\"n\":1}{\"n\":1}", 14},         /* two values */
        {"{\"n\":\"\\ud800\"}", 14},        /* lone surrogate */
        {"{\"n\":\"\\udc00\\ud800\"}", 20}, /* in the wrong order */
        {"{\"n\":\"\xC3\x28\"}", 10},       /* invalid UTF-8 */
        {"{\"n\":\"\xED\xA0\x80\"}", 11},   /* surrogate in UTF-8 */
        {"{\"n\":\"\xC0\xAF\"}", 10},       /* overlong */
        {"\xEF\xBB\xBF{\"n\":1}", 10},      /* byte order mark */
        {"{\"n\":01}", 8},                  /* no JSON number */
        {"{\"n\":NaN}", 9},                 /* nor this */
        {"{n:1}", 5},                       /* bare key */
        {"{\"n\":1,}", 8},                  /* trailing comma */
        {"[1]", 3},                         /* no object */
        {"null", 4},                        /* nor this */
        {"\"{\\\"n\\\":1}\"", 11},          /* encoded twice */
        {" ", 1},                           /* nothing at all */
        {"{}", 2},                          /* n is required */
        {"{\"n\":1,\"m\":2}", 13},          /* and nothing else allowed */
    };
    struct admitted *a = admit(w);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (strcmp(call(w, a, "add", bad[i], true).row->id, "arguments") != 0) {
            fail_msg("arguments number %zu went through", i);
        }
    }
    assert_string_equal(call(w, a, "free", STR_LIT("[1]"), true).row->id, "arguments");
    admitted_free(a);
}

static void test_arguments_travel_unchanged(void **state)
{
    struct world *w = *state;
    static const char *const good[] = {
        "{\"n\":9007199254740993}", /* 2^53 + 1 */
        "{\"n\":-9223372036854775809}",
        "{\"n\":1.10}",
        "{\"n\":1E2}",
        " {\t\"n\" :\n1 }\r\n",
        "{\"n\":\"\\u00e9\\ud83d\\ude00\\/\"}",
        "{\"n\":\"\xF0\x9F\x98\x80\"}",
        "{\"\\u006e\":[1,{\"n\":2}]}",
        "{\"n\":0.1000000000000000055511151231257827}",
    };
    struct admitted *a = admit(w);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_string_equal(call(w, a, "add", str_c(good[i]), true).row->id, "allow");
    }
    assert_string_equal(call(w, a, "free", STR_NONE, true).row->id, "allow");
    admitted_free(a);
}

/* approved holds bytes of its own: what the caller does to its buffer later is nothing. */
static void test_approved_is_a_copy(void **state)
{
    struct world *w = *state;
    struct admitted *a = admit(w);
    char args[] = "{\"n\":1}";
    struct call_request req = {STR_LIT("add"), str_c(args), true, false};
    struct approved *approved = NULL;
    struct verdict v;
    assert_int_equal(gate_call(a, &w->policy, &w->tools, &req, &v, &approved, NULL),
                     ST_OK);
    args[5] = '2';
    assert_str_is(approved_args(approved), "{\"n\":1}");
    approved_free(approved);
    approved_free(NULL);
    admitted_free(a);
}

/* ---- lists ---------------------------------------------------------------------- */

static bool mcp_allowed(struct world *w, const char *tool)
{
    struct admitted *a = admit(w);
    struct verdict v = call(w, a, tool, STR_NONE, true);
    assert_string_equal(v.row->id, v.answer == GATE_ALLOW ? "allow" : "mcp");
    admitted_free(a);
    return v.answer == GATE_ALLOW;
}

static void assert_mcp(struct world *w, bool read, bool write)
{
    assert_int_equal(mcp_allowed(w, "mcp__fs__read"), read);
    assert_int_equal(mcp_allowed(w, "mcp__fs__write"), write);
}

/* security-rules 11 */
static void test_mcp_lists(void **state)
{
    struct world *w = *state;
    struct opt_list fs = these(words(w, "fs", NULL)), web = these(words(w, "web", NULL));
    struct opt_list read = these(words(w, "mcp__fs__read", NULL));
    struct opt_list *servers = &w->soul->mcp_servers, *tools = &w->soul->mcp_tools;
    assert_mcp(w, true, true); /* both absent, on http */
    w->from.channel = STR_LIT("whatsapp");
    assert_mcp(w, false, false);
    *servers = fs;
    assert_mcp(w, true, true); /* named: on any channel */
    w->from.channel = STR_LIT("http");
    *servers = web;
    assert_mcp(w, false, false);
    *servers = all;
    assert_mcp(w, true, true);
    *servers = none;
    assert_mcp(w, false, false);
    *tools = read;
    assert_mcp(w, true, false); /* server not named: by full name alone */
    *servers = fs;
    assert_mcp(w, true, false); /* narrowed */
    *tools = these(words(w, "mcp__web__get", NULL));
    assert_mcp(w, true, true); /* another server is narrowed */
    *tools = these(words(w, "mcp__fs2__read", "mcp__f", "mcp__fs", "mcp__fs_read",
                         "fs__read", "mcp__fs_", NULL));
    assert_mcp(w, true, true); /* names that are not of this server */
    *tools = these(words(w, "mcp__fs__", NULL));
    assert_mcp(w, false, false); /* of this server, and no tool */
    *tools = all;
    assert_mcp(w, true, true);
    *tools = none;
    assert_mcp(w, true, true); /* [] narrows nothing that mcp_servers names */
    *servers = (struct opt_list){0};
    assert_mcp(w, false, false); /* mcp_tools: [] alone: none */
    *tools = read;
    assert_mcp(w, true, false);
    *tools = all;
    assert_mcp(w, true, true);
}

static void test_builtin_lists(void **state)
{
    struct world *w = *state;
    struct admitted *a = admit(w);
    assert_row(w, a, "web_search", "allow"); /* absent: all */
    assert_row(w, a, "sys_info", "allow");
    w->soul->builtins = these(words(w, "web_search", "add", NULL));
    assert_row(w, a, "web_search", "allow");
    assert_row(w, a, "sys_info", "builtins");
    assert_row(w, a, "add", "allow"); /* not a built-in */
    w->soul->builtins = none;
    assert_row(w, a, "web_search", "builtins");
    assert_row(w, a, "add", "allow");
    w->soul->builtins = all;
    assert_row(w, a, "sys_info", "allow");
    admitted_free(a);
}

static void test_peers_and_knowledge(void **state)
{
    struct world *w = *state;
    struct admitted *a = admit(w);
    assert_row(w, a, "agent__other", "allow");
    w->soul->agents = words(w, "somebody", NULL);
    assert_row(w, a, "agent__other", "peer");
    w->tools.tools[0].kind = TOOL_PEER; /* a peer without the prefix is nobody */
    w->soul->agents = words(w, "add", NULL);
    assert_row(w, a, "add", "peer");
    assert_row(w, a, "kb_search", "allow");
    w->soul->knowledge = all;
    assert_row(w, a, "kb_search", "allow");
    w->soul->knowledge = none;
    assert_row(w, a, "kb_search", "knowledge");
    admitted_free(a);
}

/* confirm_tools takes names of any kind of tool, or "*"; "*" is no name for unattended. */
static void test_confirm_lists(void **state)
{
    struct world *w = *state;
    struct admitted *a = admit(w);
    w->soul->confirm_tools.list = words(w, "add", NULL);
    assert_row(w, a, "add", "nobody-to-ask");
    assert_row(w, a, "free", "allow");
    w->soul->confirm_tools = (struct opt_list){.present = true, .all = true};
    assert_row(w, a, "free", "nobody-to-ask");
    assert_row(w, a, "agent__other", "nobody-to-ask");
    w->soul->unattended = true;
    assert_row(w, a, "add", "nobody-to-ask"); /* a person's message */
    admitted_free(a);
    w->from.internal = true;
    a = admit(w);
    assert_row(w, a, "add", "nobody-to-ask"); /* "*" names nothing */
    w->soul->confirm_tools.list = words(w, "add", NULL);
    assert_row(w, a, "add", "unattended");
    admitted_free(a);
}

/* ---- messages -------------------------------------------------------------------- */

static const char *message_row(struct world *w, const struct config_channel *ch,
                               const char *text, const char *left)
{
    struct admitted *a = NULL;
    struct verdict v = {0};
    struct error err = {0};
    enum status st = gate_admit(w->soul, ch, &w->from, str_c(text), true, &v, &a, &err);
    assert_int_equal(st, v.answer == GATE_ALLOW ? ST_OK : ST_REFUSED);
    assert_int_equal(a != NULL, st == ST_OK);
    if (st == ST_OK) {
        assert_str_is(admitted_text(a), left);
    } else {
        assert_string_equal(err.text, v.row->text);
    }
    admitted_free(a);
    return v.row->id;
}

static void test_activation(void **state)
{
    struct world *w = *state;
    struct str further[] = {STR_LIT("x"), STR_LIT("anna-2")};
    struct config_channel ch = {
        .ignore_groups = true,
    };
    char phrase[] = "@bot", no_phrase[] = "";
    ch.trigger_phrase = no_phrase;
    w->from.channel = STR_LIT("whatsapp");
    w->from.entry = ENTRY_CHANNEL;
    assert_string_equal(message_row(w, &ch, "hi", "hi"), "message-allow");
    w->from.group = true;
    assert_string_equal(message_row(w, &ch, "hi", NULL), "group-ignored");
    ch.ignore_groups = false;
    assert_string_equal(message_row(w, &ch, "hi", "hi"), "message-allow");
    ch.trigger_phrase = phrase;
    assert_string_equal(message_row(w, &ch, "hi", NULL), "no-trigger-phrase");
    assert_string_equal(message_row(w, &ch, "@Bot hi", "hi"), "message-allow");
    w->from.group = false;
    assert_string_equal(message_row(w, &ch, "hi", "hi"), "message-allow");
    assert_string_equal(message_row(w, &ch, "@bot hi", "hi"), "message-allow");
    ch.allowed_user_ids = words(w, "berta", "anna-2", NULL);
    assert_string_equal(message_row(w, &ch, "hi", NULL), "sender-not-allowed");
    w->from.sender_ids = further;
    w->from.nsender_ids = 1;
    assert_string_equal(message_row(w, &ch, "hi", NULL), "sender-not-allowed");
    w->from.nsender_ids = 2;
    assert_string_equal(message_row(w, &ch, "hi", "hi"), "message-allow");
    w->from.sender = STR_LIT("berta");
    w->from.nsender_ids = 0;
    assert_string_equal(message_row(w, &ch, "hi", "hi"), "message-allow");
    w->from.sender = STR_LIT("Berta");
    assert_string_equal(message_row(w, &ch, "hi", NULL), "sender-not-allowed");
    ch.allowed_user_ids.n = 0;
    ch.allowed_chat_ids = words(w, "c9", NULL);
    assert_string_equal(message_row(w, &ch, "hi", NULL), "chat-not-allowed");
    ch.allowed_chat_ids = words(w, "c1", NULL);
    assert_string_equal(message_row(w, &ch, "hi", "hi"), "message-allow");
}

static void test_channels_of_the_agent(void **state)
{
    struct world *w = *state;
    w->soul->channels = these(words(w, "http", NULL));
    assert_string_equal(message_row(w, NULL, "hi", "hi"), "message-allow");
    w->from.channel = STR_LIT("HTTP");
    assert_string_equal(message_row(w, NULL, "hi", NULL), "channel-not-served");
    w->soul->channels = all;
    assert_string_equal(message_row(w, NULL, "hi", "hi"), "message-allow");
    w->soul->channels = none;
    assert_string_equal(message_row(w, NULL, "hi", NULL), "channel-not-served");
}

static void test_admission(void **state)
{
    struct world *w = *state;
    struct admitted *a = NULL;
    struct verdict v;
    struct error err = {0};
    char text[] = "hello", channel[] = "http";
    assert_int_equal(gate_admit(NULL, NULL, &w->from, STR_NONE, true, &v, &a, &err),
                     ST_REFUSED);
    assert_string_equal(v.row->id, "agent-unknown");
    assert_int_equal(gate_admit(w->soul, NULL, &w->from, STR_NONE, false, &v, &a, &err),
                     ST_REFUSED);
    assert_string_equal(v.row->id, "passphrase");
    assert_null(a);
    w->from.channel = str_c(channel);
    assert_int_equal(gate_admit(w->soul, NULL, &w->from, str_c(text), true, &v, &a, &err),
                     ST_OK);
    memset(text, 'x', 5); /* copies */
    memset(channel, 'x', 4);
    assert_str_is(admitted_text(a), "hello");
    assert_str_is(admitted_origin(a)->channel, "http");
    assert_str_is(admitted_origin(a)->sender, "anna");
    assert_str_is(admitted_origin(a)->sender_name, "Anna");
    assert_str_is(admitted_origin(a)->conversation, "c1");
    assert_str_is(admitted_origin(a)->peer, "127.0.0.1");
    assert_ptr_equal(admitted_soul(a), w->soul);
    assert_true(admitted_passphrase_ok(a));
    admitted_free(a);
    admitted_free(NULL);
}

static void test_long_message(void **state)
{
    struct world *w = *state;
    size_t len = (size_t)1024 * 1024;
    char *text = malloc(len);
    struct admitted *a = NULL;
    struct verdict v;
    assert_non_null(text);
    memset(text, 'm', len);
    assert_int_equal(
        gate_admit(w->soul, NULL, &w->from, str_n(text, len), true, &v, &a, NULL), ST_OK);
    assert_int_equal(admitted_text(a).len, len);
    admitted_free(a);
    /* an origin that no channel may send is not cut, it is refused */
    w->from.sender = str_n(text, len);
    assert_int_equal(gate_admit(w->soul, NULL, &w->from, STR_NONE, true, &v, &a, NULL),
                     ST_NOMEM);
    free(text);
}

/* ---- offered == dispatched ------------------------------------------------------- */

static uint32_t next_random(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s;
}

struct lists {
    struct str_list names, servers, peers, channels;
};

static struct str_list head(struct str_list l, size_t n)
{
    l.n = n;
    return l;
}

static void shuffle(struct world *w, const struct lists *l, uint32_t *seed)
{
    uint32_t r = next_random(seed), from = next_random(seed) % 7;
    struct soul *s = w->soul;
    struct str_list some = {l->names.items + from, next_random(seed) % (8 - from)};
    s->enabled = (r & 7) != 0;
    s->channels = (struct opt_list){(r & 8) != 0, false, head(l->channels, r >> 4 & 1)};
    s->trigger = (r & 32) != 0 ? TRIGGER_CHANNEL : (enum trigger)(r % 3);
    s->builtins = (struct opt_list){(r & 64) != 0, (r & 128) != 0, some};
    s->knowledge.list.n = r >> 8 & 1;
    s->mcp_servers =
        (struct opt_list){(r & 512) != 0, false, head(l->servers, r >> 10 & 1)};
    s->mcp_tools = (struct opt_list){(r & 2048) != 0, (r & 4096) != 0, some};
    s->agents = head(l->peers, r >> 13 & 1);
    s->system = (r & 16384) != 0;
    s->confirm_tools = (struct opt_list){true, (r & 3U << 15) == 0, some};
    s->unattended = (r & 1U << 17) != 0;
    w->policy.allow_system_tools = (r & 1U << 18) != 0;
    w->from.local = (r & 1U << 19) != 0;
    w->from.keyless_open = (r & 3U << 20) == 0;
    w->from.internal = (r & 1U << 22) != 0;
    w->from.approver = (r & 1U << 23) != 0;
    w->from.entry = (enum gate_entry)((r >> 24) % ENTRY_COUNT_);
    w->from.channel = (r & 1U << 31) != 0 ? STR_LIT("http") : STR_LIT("whatsapp");
}

/* Promise 1: what is shown to the model and what is dispatched is one set. */
static void test_offered_is_dispatched(void **state)
{
    struct world *w = *state;
    struct lists lists = {words(w, "add", "web_search", "shell_exec", "read_file",
                                "kb_search", "mcp__fs__read", "agent__other", NULL),
                          words(w, "fs", NULL), words(w, "other", NULL),
                          words(w, "http", NULL)};
    uint32_t seed = 7;
    size_t allowed = 0, asked = 0, denied = 0;
    for (int n = 0; n < 20000; n++) {
        struct admitted *a = NULL;
        const struct tool *t = &w->tools.tools[next_random(&seed) % w->tools.n];
        struct str args = STR_LIT("{\"n\":1}");
        shuffle(w, &lists, &seed);
        assert_int_equal(gate_suppose(w->soul, &w->from, &a), ST_OK);
        struct verdict shown = gate_offer(a, &w->policy, t);
        struct verdict run = call(w, a, t->name.ptr, args, true);
        struct verdict hidden = call(w, a, t->name.ptr, args, false);
        struct verdict broken = call(w, a, t->name.ptr, STR_LIT("{"), true);
        struct verdict said, said_args;
        assert_int_equal(shown.answer, run.answer);
        assert_ptr_equal(shown.row, run.row);
        assert_int_equal(hidden.answer, GATE_DENY); /* not offered never runs */
        assert_int_equal(broken.answer, GATE_DENY);
        assert_int_equal(gate_explain(w->soul, &w->policy, &w->from, &w->tools, t->name,
                                      STR_NONE, &said, NULL),
                         ST_OK);
        assert_int_equal(gate_explain(w->soul, &w->policy, &w->from, &w->tools, t->name,
                                      args, &said_args, NULL),
                         ST_OK);
        assert_ptr_equal(said.row, shown.row);
        assert_ptr_equal(said_args.row, shown.row);
        allowed += run.answer == GATE_ALLOW;
        asked += run.answer == GATE_ASK;
        denied += run.answer == GATE_DENY;
        admitted_free(a);
    }
    assert_true(allowed > 1000 && asked > 200 && denied > 5000);
}

static void test_explain(void **state)
{
    struct world *w = *state;
    struct verdict v;
    struct error err;
    assert_int_equal(gate_explain(w->soul, &w->policy, &w->from, &w->tools,
                                  STR_LIT("nonesuch"), STR_NONE, &v, &err),
                     ST_OK);
    assert_string_equal(v.row->id, "tool-unknown");
    assert_int_equal(gate_explain(w->soul, &w->policy, &w->from, &w->tools,
                                  STR_LIT("add"), STR_NONE, &v, &err),
                     ST_OK);
    assert_string_equal(v.row->id, "allow"); /* as if the arguments fitted */
    assert_int_equal(gate_explain(w->soul, &w->policy, &w->from, &w->tools,
                                  STR_LIT("add"), STR_LIT("{}"), &v, &err),
                     ST_OK);
    assert_string_equal(v.row->id, "arguments");
}

/* ---- out of memory ------------------------------------------------------------------ */

static bool admits(struct world *w, const struct config_channel *ch)
{
    struct admitted *a = NULL;
    struct verdict v;
    struct error err = {0};
    enum status st = gate_admit(w->soul, ch, &w->from, STR_LIT("hi"), true, &v, &a, &err);
    assert_true(st == ST_OK || (st == ST_NOMEM && err.status == ST_NOMEM && a == NULL));
    admitted_free(a);
    return st == ST_OK;
}

static bool calls(struct world *w, const struct admitted *a)
{
    struct call_request req = {STR_LIT("add"), STR_LIT("{\"n\":[1,2]}"), true, false};
    struct approved *approved = NULL;
    struct verdict v = {0};
    struct error err = {0};
    enum status st = gate_call(a, &w->policy, &w->tools, &req, &v, &approved, &err);
    assert_non_null(v.row);
    assert_true(st == ST_OK || (st == ST_NOMEM && err.status == ST_NOMEM));
    assert_int_equal(approved != NULL, st == ST_OK);
    approved_free(approved);
    return st == ST_OK;
}

/* An answer to what was asked, or none: never another row for want of memory. */
static bool explains(struct world *w)
{
    struct verdict v = {0};
    struct error err = {0};
    enum status st = gate_explain(w->soul, &w->policy, &w->from, &w->tools,
                                  STR_LIT("add"), STR_LIT("{\"n\":1}"), &v, &err);
    assert_true(st == ST_OK || (st == ST_NOMEM && err.status == ST_NOMEM));
    assert_true(st != ST_OK || strcmp(v.row->id, "allow") == 0);
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    struct world *w = *state;
    struct admitted *a = admit(w);
    TEST_SWEEP(admits(w, NULL));
    TEST_SWEEP(calls(w, a));
    TEST_SWEEP(explains(w));
    admitted_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_entry_every_row),
        cmocka_unit_test_setup_teardown(test_not_offered_and_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_line_is_of_the_row, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strict_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arguments_travel_unchanged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_approved_is_a_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mcp_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_builtin_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peers_and_knowledge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_confirm_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_activation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_channels_of_the_agent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_admission, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_message, setup, teardown),
        cmocka_unit_test_setup_teardown(test_offered_is_dispatched, setup, teardown),
        cmocka_unit_test_setup_teardown(test_explain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("gate_call", tests, NULL, NULL);
}
