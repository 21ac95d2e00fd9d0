/* Every key of config.yaml: its default, a good value from the file and from the
 * environment, a bad one and what is said about it. A key without a row here fails. */
#include "help.h"

#include "config/keys.h"

struct row {
    const char *path;
    const char *base;    /* keys that must be there too, or NULL */
    const char *initial; /* as `config show --json` prints it */
    const char *good;    /* YAML */
    const char *shown;   /* good, as printed; NULL: the same as good */
    const char *env;     /* as a variable; NULL: the same as good */
    const char *bad;     /* YAML */
    const char *said;
};

static const struct row rows[] = {
    {"server.host", NULL, "\"127.0.0.1\"", "0.0.0.0", "\"0.0.0.0\"", NULL, "a b",
     "must be a host name or an address"},
    {"server.port", NULL, "18789", "0", NULL, NULL, "65536",
     "must be between 0 and 65535"},
    {"server.api_key", NULL, "\"(not set)\"", "sy_1", "\"(set)\"", NULL, "[x]",
     "must be text, not a list"},
    {"server.tls_cert", "server: {tls_key: k}", "\"\"", "c.pem", "\"/etc/s/c.pem\"", NULL,
     "{}", "must be text, not a mapping"},
    {"server.tls_key", "server: {tls_cert: k}", "\"\"", "~/k.pem", "\"/home/u/k.pem\"",
     NULL, "~bob/k", "only ~/ is understood"},
    {"server.allowed_origins", NULL, "[]", "[\"https://a.example:8443\"]", NULL,
     "https://a.example:8443", "[\"*\"]", "must be an origin"},
    {"server.allowed_hosts", NULL, "[]", "[\"a.example:1\"]", NULL, "a.example:1",
     "[\"http://a\"]", "must be a host"},
    {"server.trusted_proxies", NULL, "[]", "[\"10.0.0.0/8\", \"::1\"]", NULL,
     "10.0.0.0/8, ::1", "[proxy]", "must be an address or a range"},
    {"server.rate_limit_per_minute", NULL, "600", "0", NULL, NULL, "-1",
     "must be between 0"},
    {"server.max_body_mb", NULL, "16", "1024", NULL, NULL, "0",
     "must be between 1 and 1024"},
    {"server.open_metrics", NULL, "false", "true", NULL, NULL, "maybe",
     "must be true or false"},
    {"runtime.state_dir", NULL, "\"/home/u/.soulacy/state\"", "/var/lib/s",
     "\"/var/lib/s\"", NULL, "\"\"", "must not be empty"},
    {"runtime.python_bin", NULL, "\"python3\"", "./py", "\"/etc/s/py\"", NULL, "[]",
     "must be text"},
    {"runtime.tool_timeout", NULL, "\"120s\"", "250ms", "\"250ms\"", NULL, "120",
     "needs a unit"},
    {"runtime.max_concurrent_sessions", NULL, "100", "7", NULL, NULL, "0",
     "must be between"},
    {"runtime.default_max_turns", NULL, "10", "50", NULL, NULL, "51",
     "must not be over runtime.max_turns_ceiling"},
    {"runtime.max_turns_ceiling", NULL, "50", "1000", NULL, NULL, "1001",
     "must be between"},
    {"runtime.run_timeout", NULL, "\"900s\"", "1h30m", "\"5400s\"", NULL, "1d",
     "must be a duration"},
    {"runtime.max_tool_output_kb", NULL, "256", "1", NULL, NULL, "65537",
     "must be between"},
    {"runtime.allow_system_tools", NULL, "false", "true", NULL, NULL, "\"true\"",
     "write it without quotes"},
    {"runtime.allowed_tool_dirs", NULL, "[]", "[\"/opt/t\"]", NULL, "/opt/t", "/opt/t",
     "must be a list of texts, not text"},
    {"runtime.ssrf_protection", NULL, "true", "false", NULL, NULL, "1",
     "must be true or false"},
    {"runtime.allow_private_hosts", NULL, "[]", "[\"db:5432\"]", NULL, "db:5432",
     "[\"a/b\"]", "must be a host, host:port or address range"},
    {"runtime.confirm_timeout", NULL, "\"300s\"", "24h", "\"86400s\"", NULL, "25h",
     "must be between 1ms and 24h"},
    {"runtime.file_roots", NULL, "[]", "[\"/data\"]", NULL, "/data", "[{}]",
     "must be a list of texts"},
    {"runtime.egress_hosts", NULL, "[]", "[\"api.example.com\"]", NULL, "api.example.com",
     "[\"\"]", "an empty text in the list"},
    {"runtime.sandbox.enabled", NULL, "true", "false", NULL, NULL, "[]",
     "must be true or false, not a list"},
    {"runtime.sandbox.cpu_seconds", NULL, "30", "0", NULL, NULL, "1.5",
     "must be a whole number"},
    {"runtime.sandbox.memory_mb", NULL, "512", "1024", NULL, NULL, "0512",
     "must be a whole number in decimal digits"},
    {"runtime.sandbox.open_files", NULL, "256", "64", NULL, NULL, "x",
     "must be a whole number"},
    {"runtime.sandbox.file_size_mb", NULL, "64", "0", NULL, NULL, "\"64\"",
     "write it without quotes"},
    {"runtime.sandbox.processes", NULL, "0", "32", NULL, NULL, "-5", "must be between"},
    {"runtime.sandbox.on_limit_failure", NULL, "\"warn\"", "refuse", "\"refuse\"", NULL,
     "refus", "must be warn or refuse (did you mean refuse?)"},
    {"runtime.sandbox.isolation", NULL, "\"none\"", "strict", "\"strict\"", NULL, "high",
     "must be none, restricted or strict"},
    {"runtime.sandbox.user", NULL, "\"nobody\"", "tools", "\"tools\"", NULL, "\"a b\"",
     "must be a user name"},
    {"runtime.sandbox.network", NULL, "false", "true", NULL, NULL, "{}",
     "must be true or false, not a mapping"},
    {"runtime.sandbox.read_paths", NULL, "[]", "[\"/data\"]", NULL, "/data", "{}",
     "must be a list of texts"},
    {"runtime.sandbox.write_paths", NULL, "[]", "[\"/data\"]", NULL, "/data",
     "[\"/home/u/.soulacy\"]", "overlaps runtime.state_dir"},
    {"executor.backend", NULL, "\"process\"", "pool", "\"pool\"", NULL, "Docker",
     "must be a plugin's name"},
    {"executor.workers", NULL, "4", "8", NULL, NULL, "0", "must be between 1 and 256"},
    {"executor.max_idle", NULL, "16", "0", NULL, NULL, "1025", "must be between"},
    {"executor.allowed_backends", NULL, "[\"process\"]", "[\"process\", \"pool\"]", NULL,
     "process,pool", "[\"a b\"]", "must be a plugin's name"},
    {"executor.docker_image", NULL, "\"python:3.12-slim\"", "i:1", "\"i:1\"", NULL, "[]",
     "must be text"},
    {"executor.docker_network", NULL, "\"none\"", "bridge", "\"bridge\"", NULL, "{}",
     "must be text"},
    {"executor.docker_volumes", NULL, "null", "[\"./d:/d:ro\"]", "[\"/etc/s/d:/d:ro\"]",
     "./d:/d:ro", "[\"/:/x\"]", "may not mount / of the host"},
    {"executor.docker_socket", NULL, "\"/var/run/docker.sock\"", "/run/podman.sock",
     "\"/run/podman.sock\"", NULL, "[]", "must be text"},
    {"executor.docker_standby", NULL, "1", "64", NULL, NULL, "65", "must be between"},
    {"executor.ssh_host", NULL, "null", "u@h.example:2222", "\"u@h.example:2222\"", NULL,
     "\"a b\"", "must be a host, or user@host:port"},
    {"executor.ssh_hosts", NULL, "null", "[\"h1\",\"u@[::1]:22\"]", NULL, NULL,
     "[\"a@b@c\"]", "must be a host"},
    {"executor.ssh_user", NULL, "null", "bob", "\"bob\"", NULL, "\"-x\"",
     "must be a user name"},
    {"executor.ssh_port", NULL, "22", "65535", NULL, NULL, "0", "must be between"},
    {"executor.ssh_python_bin", NULL, "\"python3\"", "/opt/py", "\"/opt/py\"", NULL, "[]",
     "must be text"},
    {"executor.ssh_identity", NULL, "null", "~/.ssh/id", "\"/home/u/.ssh/id\"", NULL,
     "[]", "must be text"},
    {"executor.ssh_known_hosts", NULL, "\"/home/u/.ssh/known_hosts\"", "kh",
     "\"/etc/s/kh\"", NULL, "[]", "must be text"},
    {"executor.ssh_host_key", NULL, "null", "ssh-ed25519 AAAA", "\"ssh-ed25519 AAAA\"",
     NULL, "md5", "must be \"TYPE BASE64\""},
    {"executor.ssh_standby", NULL, "1", "0", NULL, NULL, "65", "must be between"},
    {"plugin_dir", NULL, "null", "/opt/p", "\"/opt/p\"", NULL, "[]", "must be text"},
    {"llm.default_provider", NULL, "\"local\"", "local", "\"local\"", NULL, "locl",
     "names no entry of llm.providers, did you mean local?"},
    {"search.provider", "search: {api_key: k}", "\"\"", "tavily", "\"tavily\"", NULL,
     "bing", "must be"},
    {"search.api_key", NULL, "\"(not set)\"", "k", "\"(set)\"", NULL, "[]",
     "must be text"},
    {"search.base_url", NULL, "\"\"", "http://h:1/", "\"http://h:1/\"", NULL,
     "http://u:p@h/", "without user name and password"},
    {"agent_dirs", NULL, "[\"/etc/s/agents\"]", "[\"~/a\"]", "[\"/home/u/a\"]", "~/a",
     "[[]]", "must be a list of texts"},
    {"log.level", NULL, "\"info\"", "debug", "\"debug\"", NULL, "inf",
     "must be debug, info, warn or error (did you mean info?)"},
    {"log.format", NULL, "\"console\"", "json", "\"json\"", NULL, "xml",
     "must be console or json"},
    {"log.file", NULL, "\"\"", "l.log", "\"/etc/s/l.log\"", NULL, "[]", "must be text"},
    {"audit.file", NULL, "\"/home/u/.soulacy/state/audit.jsonl\"", "/a.jsonl",
     "\"/a.jsonl\"", NULL, "[]", "must be text"},
    {"audit.required", NULL, "false", "yes", "true", NULL, "si", "must be true or false"},

    {"channels.http.enabled", NULL, "true", "false", NULL, NULL, "2",
     "must be true or false"},
    {"channels.whatsapp.enabled", NULL, "false", "true", NULL, NULL, "x",
     "must be true or false"},
    {"channels.http.trigger_phrase", NULL, "\"\"", "hey", "\"hey\"", NULL, "\"a\\nb\"",
     "must be one line"},
    {"channels.whatsapp.ignore_groups", NULL, "true", "false", NULL, NULL, "x",
     "must be true or false"},
    {"channels.whatsapp.allow_local", NULL, "false", "true", NULL, NULL, "x",
     "must be true or false"},
    {"channels.whatsapp.allowed_user_ids", NULL, "[]", "[\"0606\"]", NULL, "0606", "0606",
     "must be a list"},
    {"channels.whatsapp.allowed_chat_ids", NULL, "[]", "[\"a\"]", NULL, "a", "[null]",
     "must be a list of texts"},
    {"channels.whatsapp.phone_number_id", NULL, "null", "0123", "\"0123\"", NULL, "[]",
     "must be text"},
    {"channels.whatsapp.numbers", NULL, "null", "[{\"id\":\"1\",\"agent_id\":\"a\"}]",
     NULL, NULL, "x", "must be a mapping or a list, not text"},
    {"channels.whatsapp.access_token", NULL, "\"(not set)\"", "t", "\"(set)\"", NULL,
     "[]", "must be text"},
    {"channels.whatsapp.verify_token", NULL, "\"(not set)\"", "t", "\"(set)\"", NULL,
     "[]", "must be text"},
    {"channels.whatsapp.app_secret", NULL, "\"(not set)\"", "t", "\"(set)\"", NULL, "[]",
     "must be text"},
    {"channels.whatsapp.agent_id", NULL, "null", "a", "\"a\"", NULL, "\"../a\"",
     "must be 1 to 64 letters"},
    {"channels.whatsapp.api_version", NULL, "null", "v21.0", "\"v21.0\"", NULL, "[]",
     "must be text"},
    {"channels.whatsapp.api_base", NULL, "null", "https://g.example",
     "\"https://g.example\"", NULL, "ftp://x", "must be an http:// or https:// URL"},

    {"llm.providers.p.type", NULL, NULL, "openai", "\"openai\"", NULL, "opnai",
     "did you mean openai?"},
    {"llm.providers.openai.base_url", NULL, NULL, "http://h/v1", "\"http://h/v1\"", NULL,
     "h", "must be an http:// or https:// URL"},
    {"llm.providers.openai.api_key", NULL, NULL, "k", "\"(set)\"", NULL, "{}",
     "must be text"},
    {"llm.providers.openai.model", NULL, NULL, "m", "\"m\"", NULL, "[]", "must be text"},
    {"llm.providers.openai.api_version", NULL, NULL, "1", "\"1\"", NULL, "[]",
     "must be text"},
    {"llm.providers.openai.request_timeout", NULL, NULL, "1h", "\"3600s\"", NULL, "5",
     "needs a unit"},
    {"llm.providers.openai.first_token_timeout", NULL, NULL, "9s", "\"9s\"", NULL, "0s",
     "must be between"},
    {"llm.providers.openai.idle_timeout", NULL, NULL, "9s", "\"9s\"", NULL, "s",
     "must be a duration"},
    {"llm.providers.openai.prompt_caching", NULL, NULL, "false", NULL, NULL, "x",
     "must be true or false"},
    {"llm.providers.openai.extra_headers", NULL, NULL, "{X-A: b}", "[\"X-A: (set)\"]",
     "X-A: b", "{\"X A\": b}", "must be a header"},
    {"mcp.servers.m.transport", "mcp: {servers: {m: {command: c}}}", NULL, "stdio",
     "\"stdio\"", NULL, "sse", "must be"},
    {"mcp.servers.m.command", NULL, NULL, "npx", "\"npx\"", NULL, "[]", "must be text"},
    {"mcp.servers.m.args", "mcp: {servers: {m: {command: c}}}", NULL, "[\"-y\"]", NULL,
     "-y", "x", "must be a list"},
    {"mcp.servers.m.env", "mcp: {servers: {m: {command: c}}}", NULL, "{A: b}",
     "[\"A: (set)\"]", "A=b", "{SOULACY_X: b}", "may not name SOULACY_"},
    {"mcp.servers.m.url", NULL, NULL, "http://h/mcp", "\"http://h/mcp\"", NULL, "x",
     "must be an http"},
    {"mcp.servers.m.headers", "mcp: {servers: {m: {url: \"http://h\"}}}", NULL, "{A: b}",
     "[\"A: (set)\"]", "A: b", "[x]", "must be a header"},
    {"mcp.servers.m.timeout", "mcp: {servers: {m: {command: c}}}", NULL, "5s", "\"5s\"",
     NULL, "5", "needs a unit"},
    {"mcp.servers.m.isolation", "mcp: {servers: {m: {command: c}}}", NULL, "strict",
     "\"strict\"", NULL, "x", "must be none, restricted or strict"},
    {"knowledge.bases.k.paths", NULL, NULL, "[\"./kb\"]", "[\"/etc/s/kb\"]", "./kb", "x",
     "must be a list"},
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

/* {a: {b: VALUE}}, with the row's other keys in front. */
static void write_yaml(const struct row *r, const char *value, struct buf *out)
{
    /* The base is spelled as overrides, so that the two mappings need no merging. */
    struct str path = str_c(r->path);
    struct str part;
    size_t open = 0;
    while (str_split(&path, '.', &part)) {
        buf_addf(out, "{%.*s: ", STR_ARG(part));
        open++;
    }
    buf_add_c(out, value);
    while (open-- != 0) {
        buf_add_char(out, '}');
    }
    buf_add_char(out, '\n');
}

/* base "a: {b: v}" or "a: {b: {c: {d: v}}}" as a variable. */
static void write_base_env(const struct row *r, struct buf *out)
{
    if (r->base == NULL) {
        buf_add_c(out, "UNUSED=1");
        return;
    }
    buf_add_c(out, "SOULACY_");
    const char *value = strrchr(r->base, ':');
    bool url = strstr(r->base, "http://") != NULL;
    for (const char *c = r->base; *c != '\0'; c++) {
        if (url ? strncmp(c, ": \"", 3) == 0 : c == value) {
            break;
        }
        if (*c >= 'a' && *c <= 'z') {
            buf_add_char(out, (char)(*c - 'a' + 'A'));
        } else if (*c == '{' || *c == '_') {
            buf_add_char(out, '_');
        }
    }
    const char *v = url ? "http://h" : value + 2;
    buf_add_char(out, '=');
    for (; *v != '\0' && *v != '}'; v++) {
        buf_add_char(out, *v);
    }
}

static void env_of(const struct row *r, const char *value, struct buf *out)
{
    struct arena *a = arena_new(65536);
    assert_non_null(a);
    char *name = key_env_name(a, r->path);
    assert_non_null(name);
    buf_addf(out, "%s=%s", name, value);
    arena_free(a);
}

static void expect_shown(const struct row *r, const struct config *cfg, const char *shown,
                         const char *from)
{
    struct buf out;
    struct buf want;
    buf_init(&out, 1U << 20);
    buf_init(&want, 4096);
    assert_int_equal(config_show(cfg, true, &out), ST_OK);
    buf_addf(&want, "\"%s\":{\"value\":%s,\"from\":\"%s\"}", r->path, shown, from);
    assert_contains(out.ptr, want.ptr);
    buf_done(&out);
    buf_done(&want);
}

static void check_one(const struct row *r, const char *value, const char *setting,
                      const char *shown, const char *said, const char *from)
{
    struct loaded l;
    struct buf base;
    struct buf yaml;
    buf_init(&base, 4096);
    buf_init(&yaml, 4096);
    write_base_env(r, &base);
    if (value != NULL) {
        write_yaml(r, value, &yaml);
    }
    const char *env[] = {"HOME=/home/u", base.ptr, setting != NULL ? setting : "B=1",
                         NULL};
    load_config(&l, yaml.ptr, env);
    if (said != NULL) {
        assert_int_equal(l.st, ST_INVALID);
        assert_contains(l.text.ptr, said);
        assert_contains(l.text.ptr, r->path);
        assert_contains(l.text.ptr, "c.yaml:1:");
    } else {
        if (l.st != ST_OK) {
            print_error("%s: %s%s", r->path, yaml.ptr, l.text.ptr);
        }
        assert_int_equal(l.st, ST_OK);
        expect_shown(r, l.cfg, shown, from);
    }
    load_done(&l);
    buf_done(&base);
    buf_done(&yaml);
}

static void test_defaults(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i++) {
        struct row r = rows[i];
        r.base = NULL;
        if (r.initial != NULL) {
            check_one(&r, NULL, NULL, r.initial, NULL, "default");
        }
    }
}

static void test_from_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i++) {
        const char *shown = rows[i].shown != NULL ? rows[i].shown : rows[i].good;
        check_one(&rows[i], rows[i].good, NULL, shown, NULL, "file");
    }
}

static void test_from_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i++) {
        const struct row *r = &rows[i];
        struct buf env;
        const char *shown = r->shown != NULL ? r->shown : r->good;
        const char *value = r->env != NULL ? r->env : r->good;
        if (strcmp(r->path, "executor.ssh_hosts") == 0) {
            shown = "\"h1,u@[::1]:22\"";
            value = "h1,u@[::1]:22";
        }
        buf_init(&env, 4096);
        env_of(r, value, &env);
        check_one(r, NULL, env.ptr, shown, NULL, "environment");
        buf_done(&env);
    }
}

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i++) {
        check_one(&rows[i], rows[i].bad, NULL, NULL, rows[i].said, NULL);
    }
}

/* The last part of a row's path, or the whole of it. */
static bool has_row(const char *group, const char *path)
{
    size_t glen = strlen(group);
    for (size_t i = 0; i < NROWS; i++) {
        const char *p = rows[i].path;
        if (glen == 0 ? strcmp(p, path) == 0
                      : strncmp(p, group, glen) == 0 && str_ends(str_c(p), str_c(path))) {
            return true;
        }
    }
    return false;
}

static void test_none_missing(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_keys.n; i++) {
        const struct key *k = &config_keys.keys[i];
        if (k->type != K_GROUP && !has_row("", k->path)) {
            fail_msg("no row for %s", k->path);
        }
    }
    for (size_t g = 0; g < config_ngroups; g++) {
        for (size_t i = 0; i < config_groups[g].keys->n; i++) {
            if (!has_row(config_groups[g].path, config_groups[g].keys->keys[i].path)) {
                fail_msg("no row for %s.*.%s", config_groups[g].path,
                         config_groups[g].keys->keys[i].path);
            }
        }
    }
    for (size_t i = 0; i < config_whatsapp_keys.n; i++) {
        assert_true(has_row("channels.whatsapp", config_whatsapp_keys.keys[i].path));
    }
}

/* Two keys whose variables are spelled alike could not both be set. */
static void test_variables_unique(void **state)
{
    (void)state;
    struct arena *a = arena_new(1U << 20);
    assert_non_null(a);
    for (size_t i = 0; i < config_keys.n; i++) {
        char *one = key_env_name(a, config_keys.keys[i].path);
        assert_non_null(one);
        for (size_t j = i + 1; j < config_keys.n; j++) {
            char *two = key_env_name(a, config_keys.keys[j].path);
            assert_non_null(two);
            assert_string_not_equal(one, two);
        }
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),         cmocka_unit_test(test_from_file),
        cmocka_unit_test(test_from_environment), cmocka_unit_test(test_bad),
        cmocka_unit_test(test_none_missing),     cmocka_unit_test(test_variables_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
