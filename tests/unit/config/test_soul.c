/* SOUL.yaml: every field, what is refused, what is accepted with a warning, and which
 * changes of a file mean more authority. */
#include "help.h"

#include <fcntl.h>

static const char full[] =
    "id: helper-1.x\n"
    "name: Helper\n"
    "description: |\n  two\n  lines\n"
    "version: 0.10\n"
    "tags: [a, b]\n"
    "trigger: webhook\n"
    "channels: [http, whatsapp]\n"
    "llm:\n  provider: local\n  model: m\n  temperature: 0.7\n  max_tokens: 100\n"
    "  base_url: http://h/v1\n  allowed_providers: [local]\n  tool_choice: auto\n"
    "system_prompt: Be kind.\n"
    "tools:\n"
    "  - name: read_csv\n    description: d\n    python_file: ./csv.py\n"
    "    parameters: {type: object, properties: {path: {type: string}}, required: "
    "[path]}\n"
    "    timeout: 5s\n    retries: 5\n    retry_backoff: 250ms\n"
    "  - name: two-words\n    inline: |\n      def go(**k):\n          return f'${k}'\n"
    "    function: go\n"
    "builtins: [read_file, kb_search]\n"
    "knowledge: [docs]\n"
    "mcp_servers: [github]\n"
    "mcp_tools: [mcp__github__search]\n"
    "agents: [other]\n"
    "capabilities: [system]\n"
    "env: [GITHUB_TOKEN]\n"
    "confirm_tools: [read_csv, shell_exec, run_script, install_library, write_file,\n"
    "  download_file, mcp__x__y, agent__other]\n"
    "unattended: true\n"
    "execution: {backend: process}\n"
    "workflow: {steps: []}\n"
    "max_turns: 5\n"
    "run_timeout: 1m\n"
    "stream_reply: true\n"
    "enabled: false\n"
    "security: {passphrase: open sesame}\n";

static void test_full(void **state)
{
    (void)state;
    struct loaded l;
    load_soul(&l, "", full);
    if (l.st != ST_OK) {
        print_error("%s", l.text.ptr);
    }
    assert_int_equal(l.st, ST_OK);
    const struct soul *s = l.soul;
    assert_string_equal(s->id, "helper-1.x");
    assert_string_equal(s->version, "0.10");
    assert_string_equal(s->description, "two\nlines\n");
    assert_string_equal(s->dir, "/etc/s/agents/a");
    assert_int_equal(s->trigger, TRIGGER_WEBHOOK);
    assert_true(s->channels.present);
    assert_int_equal(s->channels.list.n, 2);
    assert_true(s->llm.has_temperature);
    assert_true(s->llm.temperature > 0.69 && s->llm.temperature < 0.71);
    assert_int_equal(s->llm.max_tokens, 100);
    assert_string_equal(s->llm.tool_choice, "auto");
    assert_int_equal(s->ntools, 2);
    assert_string_equal(s->tools[0].python_file, "/etc/s/agents/a/csv.py");
    assert_null(s->tools[0].inline_src);
    assert_string_equal(s->tools[0].function, "read_csv");
    assert_int_equal(s->tools[0].timeout_ms, 5000);
    assert_int_equal(s->tools[0].retries, 5);
    assert_int_equal(s->tools[0].retry_backoff_ms, 250);
    assert_int_equal(s->tools[0].pos.line, 20);
    assert_string_equal(s->tools[1].function, "go");
    assert_null(s->tools[1].python_file);
    assert_str_is(schema_text(s->tools[1].parameters), "{\"type\":\"object\"}");
    assert_ptr_equal(soul_tool_find(s, STR_LIT("two-words")), &s->tools[1]);
    assert_null(soul_tool_find(s, STR_LIT("two")));
    assert_true(s->system);
    assert_true(s->unattended);
    assert_string_equal(s->backend, "process");
    assert_non_null(s->workflow);
    assert_int_equal(s->run_timeout_ms, 60000);
    assert_true(s->stream_reply);
    assert_false(s->enabled);
    assert_str_is(secret_expose(&s->passphrase), "open sesame");
    assert_int_equal(strlen(s->digest), 64);
    assert_int_equal(l.probs.nwarnings, 1); /* workflow */
    load_done(&l);
}

static void test_minimal(void **state)
{
    (void)state;
    struct loaded l;
    load_soul(&l, NULL, "id: a\n");
    assert_int_equal(l.st, ST_OK);
    const struct soul *s = l.soul;
    assert_int_equal(s->trigger, TRIGGER_CHANNEL);
    assert_false(s->channels.present || s->builtins.present || s->mcp_servers.present ||
                 s->confirm_tools.present || s->knowledge.present);
    assert_null(s->llm.provider);
    assert_false(s->llm.has_temperature || s->system || s->unattended || s->stream_reply);
    assert_true(s->enabled);
    assert_int_equal(s->ntools, 0);
    assert_int_equal(s->max_turns, 0);
    assert_string_equal(s->name, "");
    assert_null(s->workflow);
    load_done(&l);
    load_soul(&l, NULL, "id: a\nbuiltins: []\nmcp_tools: [\"*\"]\nsystem_tools: true\n");
    assert_int_equal(l.st, ST_OK);
    assert_true(l.soul->builtins.present && !l.soul->builtins.all);
    assert_true(l.soul->mcp_tools.all);
    assert_true(l.soul->system);
    load_done(&l);
}

/* Each with the message expected of it. */
static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "1:1: error: id: is required"},
        {"[a]", "must be a mapping of fields"},
        {"id: ''", "id: must not be empty"},
        {"id: ../x", "1:5: error: id: must be 1 to 64 letters"},
        {"id: .x", "id: must be"},
        {"id: a\ncolour: red", "2:1: error: colour: unknown key"},
        {"id: a\nbultins: []", "did you mean builtins?"},
        {"id: a\ntrigger: cron", "trigger: must be channel, webhook or internal"},
        {"id: a\nbuiltins:", "builtins: is empty: write [] for none"},
        {"id: a\nbuiltins: [read_fil]",
         "builtins: read_fil is no built-in tool, did you mean "
         "read_file?"},
        {"id: a\nbuiltins: ['*', read_file]", "must be alone"},
        {"id: a\nbuiltins: read_file", "must be a list of texts, not text"},
        {"id: a\ncapabilities: [sytem]", "sytem is no capability, did you mean system?"},
        {"id: a\nconfirm_tools: [shell_exe]", "did you mean shell_exec?"},
        {"id: a\nconfirm_tools: [agent__x]", "agent__x is no tool of this agent"},
        {"id: a\nagents: [a]", "agents: names this agent itself"},
        {"id: a\nenv: [SOULACY_SERVER_API_KEY]", "env: may not name SOULACY_ variables"},
        {"id: a\nenv: ['A B']", "env: must be the name of an environment variable"},
        {"id: a\nsystem_prompt: 'x ${ANTHROPIC_API_KEY}'",
         "${...} is not replaced in SOUL.yaml"},
        {"id: a\nllm: {base_url: '${X:-y}'}", "${...} is not replaced"},
        {"id: a\nllm: {temperature: 2.1}", "must be between 0 and 2"},
        {"id: a\nllm: {temperature: nan}", "must be a number such as 0.7"},
        {"id: a\nllm: {max_tokens: 0}", "must be between 1"},
        {"id: a\nllm: {tool_choice: x}", "must be auto, none, required or any"},
        {"id: a\nmax_turns: 1001", "must be between 1 and 1000"},
        {"id: a\nrun_timeout: 60", "needs a unit"},
        {"id: a\nexecution: {backend: gone}", "is not in executor.allowed_backends"},
        {"id: a\nworkflow: {}", "must be a mapping with `steps`"},
        {"id: a\nworkflow: x", "must be a mapping or a list"},
        {"id: a\ntools: {}", "tools: must be a list of tools"},
        {"id: a\ntools: [x]", "tools[0]: must be a mapping"},
        {"id: a\ntools: [{inline: x}]", "tools[0].name: is required"},
        {"id: a\ntools: [{name: t}]", "tools[0].python_file: or inline is required"},
        {"id: a\ntools: [{name: t, inline: x, python_file: y}]", "exclude each other"},
        {"id: a\ntools: [{name: shell_exec, inline: x}]",
         "is the name of a built-in tool"},
        {"id: a\ntools: [{name: mcp__a, inline: x}]",
         "may not begin with mcp__ or agent__"},
        {"id: a\ntools: [{name: agent__a, inline: x}]",
         "may not begin with mcp__ or agent__"},
        {"id: a\ntools: [{name: t, inline: x}, {name: t, inline: y}]",
         "2:38: error: tools[1].name: is used by another tool"},
        {"id: a\ntools: [{name: 'a b', inline: x}]",
         "must be 1 to 64 letters, digits, _ and -"},
        {"id: a\ntools: [{name: a-b, inline: x}]",
         "tools[0].function: must be the name of a "
         "Python function"},
        {"id: a\ntools: [{name: class, inline: x}]",
         "must be the name of a Python function"},
        {"id: a\ntools: [{name: t, inline: x, function: 'a.b'}]",
         "must be the name of a Python"},
        {"id: a\ntools: [{name: t, inline: x, retries: 6}]", "must be between 0 and 5"},
        {"id: a\ntools: [{name: t, inline: x, timeout: 0s}]",
         "must be between 1ms and 24h"},
        {"id: a\ntools: [{name: t, inline: x, parameters: {type: string}}]",
         "tools[0].parameters: type must be object"},
        {"id: a\ntools: [{name: t, inline: x, parameters: {properties: {a: {if: {}}}}}]",
         "parameters: #/properties/a/if: this keyword cannot be enforced here"},
        {"id: a\ntools: [{name: t, inline: x, paramters: {}}]",
         "did you mean tools[0].parameters?"},
        {"id: a\nid: b", "duplicate key id"},
        {"id: a\nsecurity: {passphrase: [x]}", "security.passphrase: must be text"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct loaded l;
        load_soul(&l, "", bad[i][0]);
        if (l.st != ST_INVALID) {
            print_error("%s\n", bad[i][0]);
        }
        assert_int_equal(l.st, ST_INVALID);
        assert_null(l.soul);
        assert_contains(l.text.ptr, bad[i][1]);
        load_done(&l);
    }
}

static void test_golden(void **state)
{
    (void)state;
    struct loaded l;
    load_soul(
        &l, "",
        "id: a\nlabels: {x: [y]}\nschedule: daily\n"
        "env: [OPENAI_API_KEY]\ncapabilities: [system]\nconfirm_tools: [shell_exec]\n"
        "llm: {provider: anthropc}\nmax_turns: 60\nenabld: true\n"
        "tools: [{name: t, inline: x, timeout: 5}]\n");
    assert_int_equal(l.st, ST_INVALID);
    assert_string_equal(
        l.text.ptr, "SOUL.yaml:2:1: warning: labels: accepted, without effect here\n"
                    "SOUL.yaml:3:1: warning: schedule: accepted, without effect here\n"
                    "SOUL.yaml:4:7: warning: env: OPENAI_API_KEY hands a provider's key "
                    "to the tools of "
                    "this agent\n"
                    "SOUL.yaml:6:16: warning: confirm_tools: names 1 of the five SYSTEM "
                    "tools; the others "
                    "run without a question\n"
                    "SOUL.yaml:7:17: warning: llm.provider: anthropc is no entry of "
                    "llm.providers in the "
                    "configuration\n"
                    "SOUL.yaml:8:12: warning: max_turns: over runtime.max_turns_ceiling, "
                    "which holds\n"
                    "SOUL.yaml:9:1: error: enabld: unknown key, did you mean enabled?\n"
                    "SOUL.yaml:10:39: error: tools[0].timeout: needs a unit: ms, s, m or "
                    "h, as in 120s\n");
    assert_string_equal(l.err.text, "/etc/s/agents/a/SOUL.yaml: 2 errors");
    load_done(&l);
}

static struct soul *parse_for_growth(struct loaded *l, const char *text)
{
    load_soul(l, NULL, text);
    if (l->st != ST_OK) {
        print_error("%s: %s", text, l->text.ptr);
    }
    assert_int_equal(l->st, ST_OK);
    return l->soul;
}

/* field NULL: no more authority than before. */
static void growth(const char *was, const char *now, const char *field)
{
    struct loaded a;
    struct loaded b;
    struct buf x;
    struct buf y;
    struct error why = {.status = ST_OK};
    buf_init(&x, 4096);
    buf_init(&y, 4096);
    buf_addf(&x, "id: a\n%s\n", was);
    buf_addf(&y, "id: a\n%s\n", now);
    bool grew =
        soul_grows(parse_for_growth(&a, x.ptr), parse_for_growth(&b, y.ptr), &why);
    if (grew != (field != NULL)) {
        print_error("%s -> %s: %s\n", was, now, why.text);
    }
    assert_int_equal(grew, field != NULL);
    if (field != NULL) {
        assert_string_equal(why.text, field);
    }
    load_done(&a);
    load_done(&b);
    buf_done(&x);
    buf_done(&y);
}

static void test_growth(void **state)
{
    (void)state;
    growth("", "", NULL);
    growth("name: x", "name: y\nsystem_prompt: z\nmax_turns: 9", NULL);
    growth("", "system_tools: true", "system");
    growth("system_tools: true", "", NULL);
    growth("", "env: [A]", "env");
    growth("env: [A, B]", "env: [B]", NULL);
    growth("confirm_tools: ['*']", "confirm_tools: [shell_exec]", "confirm_tools");
    growth("confirm_tools: ['*']", "", "confirm_tools");
    growth("confirm_tools: [shell_exec, run_script]", "confirm_tools: [run_script]",
           "confirm_tools");
    growth("confirm_tools: [shell_exec]", "confirm_tools: ['*']", NULL);
    growth("", "confirm_tools: [shell_exec]", NULL);
    growth("", "unattended: true", "unattended");
    growth("", "execution: {backend: docker}", "execution.backend");
    growth("execution: {backend: docker}", "", "execution.backend");
    growth("agents: [b]", "agents: [b, c]", "agents");
    growth("agents: [b, c]", "agents: [c]", NULL);
    growth("mcp_servers: []", "", "mcp_servers and mcp_tools");
    growth("mcp_servers: []", "mcp_servers: [x]", "mcp_servers and mcp_tools");
    growth("mcp_servers: [x]\nmcp_tools: [mcp__x__y]", "mcp_servers: [x]",
           "mcp_servers and mcp_tools");
    growth("mcp_servers: [x]\nmcp_tools: [mcp__x__y]", "mcp_servers: [x]\nmcp_tools: []",
           "mcp_servers and mcp_tools");
    growth("mcp_tools: [mcp__x__y]", "mcp_tools: [mcp__x__z]",
           "mcp_servers and mcp_tools");
    growth("", "mcp_servers: [x]", NULL);
    growth("mcp_servers: [x, y]", "mcp_servers: [x]", NULL);
    growth("builtins: []", "", "builtins");
    growth("builtins: []", "builtins: ['*']", "builtins");
    growth("builtins: [read_file]", "builtins: [list_dir]", "builtins");
    growth("", "builtins: [read_file]", NULL);
    growth("knowledge: []", "knowledge: [k]", "knowledge");
    growth("", "knowledge: [k]", "knowledge");
    growth("knowledge: [k]", "knowledge: ['*']", "knowledge");
    growth("knowledge: [k]", "", NULL);
    growth("channels: [http]", "channels: [http, whatsapp]", "channels");
    growth("", "trigger: webhook", "trigger");
    growth("", "llm: {base_url: 'http://x'}", "llm.base_url");
    growth("llm: {base_url: 'http://x'}", "", NULL);
    growth("security: {passphrase: x}", "", "security.passphrase");
    growth("security: {passphrase: x}", "security: {passphrase: y}",
           "security.passphrase");
    growth("", "security: {passphrase: y}", NULL);
    growth("", "tools: [{name: t, inline: x}]", "tools");
    growth("tools: [{name: t, inline: x}]", "tools: [{name: t, inline: y}]", "tools");
    growth("tools: [{name: t, inline: x}]", "tools: [{name: t, python_file: x}]",
           "tools");
    growth("tools: [{name: t, inline: x}]", "tools: [{name: t, inline: x, function: f}]",
           "tools");
    growth("tools: [{name: t, inline: x}]", "tools: [{name: t, inline: x, timeout: 1s}]",
           NULL);
    growth("tools: [{name: t, inline: x}]", "", NULL);
    growth("", "workflow: {steps: []}", "workflow");
    growth("workflow: {steps: [{a: b}]}", "workflow: {steps: [{a: c}]}", "workflow");
    growth("workflow: {steps: [{a: b}]}", "workflow: {steps: [{a: b}]}", NULL);
    growth("workflow: {steps: [{a: b}]}", "", NULL);
    growth("enabled: false", "enabled: true", "enabled");
    growth("enabled: true", "enabled: false", NULL);
}

static void test_load(void **state)
{
    (void)state;
    struct test_dir dir;
    char path[PATH_MAX];
    struct loaded l;
    test_dir_make(&dir);
    test_path(&dir, "SOUL.yaml", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "id: z\n", 6), 6);
    assert_true(load_begin(&l, "f", NULL));
    assert_int_equal(soul_load(path, NULL, &l.probs, &l.soul, &l.err), ST_OK);
    assert_string_equal(l.soul->id, "z");
    assert_string_equal(l.soul->dir, dir.path);
    load_done(&l);
    assert_int_equal(ftruncate(fd, YAML_MAX_BYTES + 1), 0);
    close(fd);
    assert_true(load_begin(&l, "f", NULL));
    assert_int_equal(soul_load(path, NULL, &l.probs, &l.soul, &l.err), ST_INVALID);
    load_print(&l);
    assert_string_equal(l.text.ptr, "f: error: larger than 1 MiB\n");
    assert_int_not_equal(soul_load("/nowhere/SOUL.yaml", NULL, &l.probs, &l.soul, &l.err),
                         ST_OK);
    assert_int_not_equal(soul_load(dir.path, NULL, &l.probs, &l.soul, &l.err), ST_OK);
    load_done(&l);
    test_dir_remove(&dir);
}

static bool sweep_once(void)
{
    struct loaded l;
    load_soul(&l, NULL, full);
    bool ok = l.st == ST_OK;
    assert_true(ok || l.st == ST_NOMEM);
    load_done(&l);
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
        cmocka_unit_test(test_full),    cmocka_unit_test(test_minimal),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_golden),
        cmocka_unit_test(test_growth),  cmocka_unit_test(test_load),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
