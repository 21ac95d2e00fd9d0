/* config.yaml as a whole: what is said about a bad one, ${NAME}, SOULACY_ variables,
 * paths, our own files, secrets, finding and loading files. */
#include "help.h"

#include <fcntl.h>

static void refuse(const char *text, const char *const *env, const char *said)
{
    struct loaded l;
    load_config(&l, text, env);
    assert_int_equal(l.st, ST_INVALID);
    assert_null(l.cfg);
    assert_contains(l.text.ptr, said);
    load_done(&l);
}

/* All at once, with places, in the order of the file. */
static void test_golden(void **state)
{
    (void)state;
    static const char text[] = "server:\n"                       /* 1 */
                               "  prot: 1\n"                     /* 2 */
                               "  port: \"18\"\n"                /* 3 */
                               "  api_key: ${NOPE}\n"            /* 4 */
                               "runtime:\n"                      /* 5 */
                               "  tool_timeout: 120\n"           /* 6 */
                               "  sandbox: {isolaton: strict}\n" /* 7 */
                               "isolation: x\n"                  /* 8 */
                               "zzz: 1\n"                        /* 9 */
                               "server.port: 1\n"                /* 10 */
                               "channels:\n"                     /* 11 */
                               "  whatsapp: {acces_token: x}\n"  /* 12 */
                               "  http: off\n"                   /* 13 */
                               "executor:\n"                     /* 14 */
                               "  foo_bar: 1\n"                  /* 15 */
                               "plugins: [{sha256: x}, 3 4]\n"   /* 16 */
                               "log: [a]\n";                     /* 17 */
    static const char *const env[] = {"HOME=/home/u", "SOULACY_SERVER_PROT=1",
                                      "SOULACY_AUDIT_REQUIRED=perhaps", NULL};
    static const char said[] =
        "c.yaml:2:3: error: server.prot: unknown key, did you mean server.port?\n"
        "c.yaml:3:9: error: server.port: must be a whole number: write it without "
        "quotes\n"
        "c.yaml:4:12: error: server.api_key: unset or empty environment variable NOPE\n"
        "c.yaml:6:17: error: runtime.tool_timeout: needs a unit: ms, s, m or h, as in "
        "120s\n"
        "c.yaml:7:13: error: runtime.sandbox.isolaton: unknown key, did you mean "
        "runtime.sandbox.isolation?\n"
        "c.yaml:8:1: error: isolation: unknown key, did you mean "
        "runtime.sandbox.isolation?\n"
        "c.yaml:9:1: error: zzz: unknown key; known here: server, runtime, executor, "
        "plugins, "
        "plugin_dir, plugins_config, channels, llm, mcp, search, knowledge, agent_dirs, "
        "log, "
        "audit\n"
        "c.yaml:10:1: error: server.port: unknown key, did you mean server?\n"
        "c.yaml:12:14: error: channels.whatsapp.acces_token: unknown key, did you mean "
        "channels.whatsapp.access_token?\n"
        "c.yaml:13:9: error: channels.http: must be a mapping\n"
        "c.yaml:15:3: error: executor.foo_bar: unknown key; known here: backend, "
        "workers, "
        "max_idle, allowed_backends, docker_image, docker_network, docker_volumes, "
        "docker_socket, docker_standby, ssh_host, ssh_hosts, ssh_user, ssh_port, "
        "ssh_python_bin, ssh_identity, ssh_known_hosts, ssh_host_key, ssh_standby\n"
        "c.yaml:16:11: error: plugins[0].path: is required\n"
        "c.yaml:16:20: error: plugins[0].sha256: must be 64 hexadecimal digits\n"
        "c.yaml:16:24: error: plugins[1].path: must be a path with a / or the name of a "
        "plugin of this program\n"
        "c.yaml:17:6: error: log: must be a mapping\n"
        "c.yaml: error: SOULACY_SERVER_PROT (environment): no such setting, did you mean "
        "SOULACY_SERVER_PORT?\n"
        "c.yaml: error: SOULACY_AUDIT_REQUIRED: must be true or false\n";
    struct loaded l;
    load_config(&l, text, env);
    assert_int_equal(l.st, ST_INVALID);
    assert_string_equal(l.text.ptr, said);
    assert_string_equal(l.err.text, "configuration: 17 errors");
    load_done(&l);
}

static void test_syntax(void **state)
{
    (void)state;
    refuse("[a]\n", NULL, "c.yaml:1:1: error: must be a mapping of keys");
    refuse("server: {port: 1\n", NULL, "c.yaml:2:1: error: ");
    refuse("server: {port: 1}\nserver: {}\n", NULL,
           "c.yaml:2:1: error: duplicate key server");
    refuse("server: 5\n", NULL, "server: must be a mapping");
    refuse("channels: [http]\n", NULL, "channels: must be a mapping of names");
    refuse("channels: {\"a b\": {}}\n", NULL,
           "the name of an entry must be 1 to 64 letters");
    refuse("plugins: {a: b}\n", NULL, "must be a list of {path, sha256, critical}");
    refuse("plugins: [[]]\n", NULL, "plugins[0].path: is required");
    refuse("plugins_config: {A: {}}\n", NULL, "must be a plugin's name");
    refuse("plugins_config: {a: 5}\n", NULL, "plugins_config.a: must be a mapping");
    refuse("llm: {providers: {p: {}}}\n", NULL, "llm.providers.p.type: is required");
    refuse("mcp: {servers: {m: {}}}\n", NULL, "transport stdio needs `command`");
    refuse("mcp: {servers: {m: {transport: http, command: x}}}\n", NULL,
           "transport http needs `url`");
    refuse("search: {provider: serper}\n", NULL, "search.api_key: is required");
    refuse("search: {provider: searxng}\n", NULL, "search.base_url: is required");
    refuse("server: {tls_cert: x}\n", NULL,
           "server.tls_cert: and server.tls_key go together");
}

static void test_empty_values(void **state)
{
    (void)state;
    struct loaded l;
    load_config(&l,
                "server:\n  port:\n  api_key: ~\nruntime:\nchannels:\n  whatsapp:\n"
                "plugins:\nllm: {providers: }\nexecutor:\n",
                NULL);
    assert_int_equal(l.st, ST_OK);
    assert_int_equal(l.cfg->server.port, 18789);
    assert_false(secret_is_set(&l.cfg->server.api_key));
    assert_int_equal(l.cfg->nchannels, 2);
    assert_true(config_channel(l.cfg, "http")->enabled);
    assert_false(config_channel(l.cfg, "whatsapp")->enabled);
    assert_null(config_channel(l.cfg, "other"));
    load_done(&l);
}

static void test_expand(void **state)
{
    (void)state;
    static const char *const env[] = {"HOME=/home/u", "PORT=81", "KEY=s3cr${PORT}",
                                      "EMPTY=",       "LIST=[x", NULL};
    struct loaded l;
    load_config(
        &l,
        "server:\n  port: ${PORT}\n  api_key: \"${KEY}\"\n  open_metrics: '${ON:-true}'\n"
        "log: {file: \"/l/$$x/${EMPTY:-d e}/$y$\"}\n"
        "channels: {http: {trigger_phrase: \"a${LIST}\"}}\n"
        "agent_dirs: [&d \"/a/$$${PORT}\", *d]\n",
        env);
    if (l.st != ST_OK) {
        print_error("%s", l.text.ptr);
    }
    assert_int_equal(l.st, ST_OK);
    assert_int_equal(l.cfg->server.port, 81);
    assert_str_is(secret_expose(&l.cfg->server.api_key), "s3cr${PORT}"); /* not twice */
    assert_true(l.cfg->server.open_metrics);
    assert_string_equal(l.cfg->log.file, "/l/$x/d e/$y$");
    assert_string_equal(config_channel(l.cfg, "http")->trigger_phrase, "a[x");
    assert_string_equal(l.cfg->agent_dirs.items[1], "/a/$81");
    load_done(&l);
    refuse("log: {file: \"${EMPTY}\"}", env,
           "c.yaml:1:13: error: log.file: unset or empty environment variable EMPTY");
    refuse("agent_dirs: [a, \"${}\"]", env, "agent_dirs[1]: ${...} must be ${NAME}");
    refuse("log: {file: \"${A-b}\"}", env, "${...} must be ${NAME}");
    refuse("log: {file: \"${1A}\"}", env, "${...} must be ${NAME}");
    refuse("log: {file: \"a${A\"}", env, "${ without }");
    load_config(&l, "${KEY}: 1\n", env);
    assert_contains(l.text.ptr, "${KEY}: unknown key"); /* keys are left alone */
    load_done(&l);
}

static void test_overrides(void **state)
{
    (void)state;
    static const char *const env[] = {"HOME=/home/u",
                                      "SOULACY_SERVER_API_KEY=k",
                                      "SOULACY_SERVER_PORT=1",
                                      "SOULACY_LOG_LEVEL=",
                                      "SOULACY_CONFIG_PATH=/x",
                                      "SOULACY_CHANNELS_MY_CHAT_ROOM_KEY=r",
                                      "SOULACY_CHANNELS_OTHER_ENABLED=true",
                                      "SOULACY_CHANNELS_WHATSAPP_ACCESS_TOKEN=t",
                                      "SOULACY_LLM_PROVIDERS_MY_LLM_BASE_URL=http://h",
                                      "SOULACY_LLM_PROVIDERS_NEW_TYPE=openai",
                                      "SOULACY_PLUGINS=./a.so,echo",
                                      "SOULACY_EXECUTOR_BACKEND=far-away",
                                      "SOULACY_EXECUTOR_FAR_AWAY_HOST=h",
                                      "SOULACY_PLUGINS_CONFIG_FAR_AWAY_X=1",
                                      "SOULACY_AGENT_DIRS=/a, /b",
                                      NULL};
    struct loaded l;
    load_config(
        &l,
        "server: &s {port: 5}\nlog: {level: warn}\n"
        "channels: {my-chat: {room: q}}\nllm: {providers: {my-llm: {type: openai}}}\n"
        "plugins_config: {far-away: {y: 2}}\n",
        env);
    if (l.st != ST_OK) {
        print_error("%s", l.text.ptr);
    }
    assert_int_equal(l.st, ST_OK);
    const struct config *c = l.cfg;
    assert_int_equal(c->server.port, 1);
    assert_str_is(secret_expose(&c->server.api_key), "k");
    assert_string_equal(c->log.level, "warn");
    assert_str_is(yaml_get(config_channel(c, "my-chat")->node, "room_key")->text, "r");
    assert_true(config_channel(c, "other")->enabled);
    assert_string_equal(config_provider(c, "my-llm")->base_url, "http://h");
    assert_string_equal(config_provider(c, "new")->type, "openai");
    assert_int_equal(c->nplugins, 2);
    assert_string_equal(c->plugins[0].path, "/etc/s/a.so");
    assert_string_equal(c->plugins[1].path, "echo");
    assert_string_equal(c->executor.allowed_backends.items[0], "far-away");
    assert_str_is(yaml_get(c->executor.node, "far_away_host")->text, "h");
    assert_str_is(yaml_get(yaml_get(c->plugins_config, "far-away"), "x")->text, "1");
    assert_int_equal(c->agent_dirs.n, 2);
    load_done(&l);
}

static void test_bad_overrides(void **state)
{
    (void)state;
    static const char *const envs[][2] = {
        {"SOULACY_SERVER_PORTT=1", "did you mean SOULACY_SERVER_PORT?"},
        {"SOULACY_XYZZY=1", "see docs/configuration.md"},
        {"SOULACY_CHANNELS_HTTP_XYZ=1",
         "SOULACY_CHANNELS_HTTP_XYZ (environment): no such"},
        {"SOULACY_CHANNELS=1", "no such setting"},
        {"SOULACY_PLUGINS_CONFIG_NOPE_X=1", "no such setting"},
        {"SOULACY_EXECUTOR_NOPE_X=1", "no such setting"},
        {"SOULACY_CONFIG_PATHS=1", "did you mean SOULACY_CONFIG_PATH?"},
        {"SOULACY_LOG_FILE=\xff", "SOULACY_LOG_FILE (environment): not valid UTF-8"},
        {"SOULACY_SERVER_PORT=99999", "SOULACY_SERVER_PORT: must be between 0 and 65535"},
    };
    for (size_t i = 0; i < sizeof(envs) / sizeof(envs[0]); i++) {
        const char *env[] = {"HOME=/home/u", envs[i][0], NULL};
        refuse("", env, envs[i][1]);
    }
}

static void test_paths(void **state)
{
    (void)state;
    struct loaded l;
    load_config(&l,
                "runtime: {state_dir: ./a//b/./c/, file_roots: [\"~\", ../x, /]}\n"
                "audit: {file: ~/a.jsonl}\n",
                NULL);
    assert_int_equal(l.st, ST_OK);
    assert_string_equal(l.cfg->runtime.state_dir, "/etc/s/a/b/c");
    assert_string_equal(l.cfg->runtime.file_roots.items[0], "/home/u");
    assert_string_equal(l.cfg->runtime.file_roots.items[1], "/etc/s/../x");
    assert_string_equal(l.cfg->runtime.file_roots.items[2], "/");
    assert_string_equal(l.cfg->audit.file, "/home/u/a.jsonl");
    load_done(&l);
    static const char *const homeless[] = {"A=b", NULL};
    refuse("", homeless, "runtime.state_dir: begins with ~/ but HOME is not set");
    load_config(&l, "runtime: {state_dir: /s}", homeless);
    assert_int_equal(l.st, ST_OK);
    load_done(&l);
}

static void test_own_files(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"[/]", "overlaps runtime.state_dir"},
        {"[/var/state/x]", "overlaps runtime.state_dir (/var/state)"},
        {"[/var]", "overlaps runtime.state_dir"},
        {"[/etc/s/agents/a/data]", "overlaps agent_dirs"},
        {"[/opt/tools]", "overlaps runtime.allowed_tool_dirs"},
        {"[/opt/tools/../x]", "must be a path without .."},
        {"[/keys]", "overlaps server.tls_key"},
        {"[/usr/lib/p.so]", "overlaps a plugin"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf b;
        buf_init(&b, 4096);
        buf_addf(
            &b,
            "runtime: {state_dir: /var/state, allowed_tool_dirs: [/opt/tools], sandbox: "
            "{write_paths: %s}}\nserver: {tls_key: /keys/k, tls_cert: /c}\n"
            "plugins: [/usr/lib/p.so]\n",
            bad[i][0]);
        refuse(b.ptr, NULL, bad[i][1]);
        buf_done(&b);
    }
    struct loaded l;
    load_config(&l, "runtime: {sandbox: {write_paths: [/etc/s/out, /home/u/.soulacy2]}}",
                NULL);
    assert_int_equal(l.st, ST_OK);
    load_done(&l);
    static const char tools[] =
        "runtime: {allowed_tool_dirs: [/home/u], sandbox: {isolation: %s}}";
    struct buf b;
    buf_init(&b, 4096);
    buf_addf(&b, tools, "strict");
    refuse(b.ptr, NULL, "runtime.allowed_tool_dirs: /home/u overlaps runtime.state_dir");
    buf_clear(&b);
    buf_addf(&b, tools, "none");
    load_config(&l, b.ptr, NULL);
    assert_int_equal(l.st, ST_OK);
    load_done(&l);
    buf_done(&b);
}

static void test_volumes(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"a:/b", "must be host:container"},
        {"/a:b", "must be host:container"},
        {"/a", "must be host:container"},
        {"/a:/b:rw", "must be host:container"},
        {"/a:/b:ro:ro", "must be host:container"},
        {"/a/../..:/b", "without .."},
        {"/a:/", "over / of the container"},
        {"/a:/proc/x", "over /proc, /sys or /dev of the container"},
        {"/a:/dev", "over /proc, /sys or /dev of the container"},
        {"/:/x:ro", "may not mount / of the host"},
        {"/./:/x", "may not mount / of the host"},
        {"/proc:/x", "/proc, /sys or /dev of the host"},
        {"/sys/fs:/x", "/proc, /sys or /dev of the host"},
        {"/dev/null:/x", "/proc, /sys or /dev of the host"},
        {"/var/run/docker.sock:/x", "a container engine's socket"},
        {"/var/run:/x", "a container engine's socket"},
        {"/run:/x:ro", "a container engine's socket"},
        {"/srv:/x", "executor.docker_socket"},
        {"~/.soulacy:/x:ro", "runtime.state_dir"},
        {"./agents/a:/x:ro", "agent_dirs"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf b;
        buf_init(&b, 4096);
        buf_addf(&b, "executor: {docker_socket: /srv/d.sock, docker_volumes: [\"%s\"]}",
                 bad[i][0]);
        refuse(b.ptr, NULL, bad[i][1]);
        buf_done(&b);
    }
    refuse("executor: {backend: docker, docker_network: bridge}\n"
           "runtime: {sandbox: {isolation: restricted}}",
           NULL, "executor.docker_network: must be none");
    refuse("executor: {backend: ssh}", NULL, "executor.ssh_host: is required");
    struct loaded l;
    load_config(&l,
                "executor: {backend: docker, docker_network: bridge, ssh_hosts: [h], "
                "docker_volumes: [\"~/d:/d\", \"./e:/e:ro\"]}\n",
                NULL);
    assert_int_equal(l.st, ST_OK);
    const struct yaml_node *v = yaml_get(l.cfg->executor.node, "docker_volumes")->first;
    assert_str_is(v->text, "/home/u/d:/d");
    assert_str_is(v->next->text, "/etc/s/e:/e:ro");
    load_done(&l);
}

static void test_providers(void **state)
{
    (void)state;
    static const char *const env[] = {"HOME=/home/u", "ANTHROPIC_API_KEY=a1",
                                      "MY_LLM_API_KEY=m1", NULL};
    struct loaded l;
    load_config(&l,
                "llm:\n  default_provider: my-llm\n  providers:\n    anthropic: {}\n"
                "    my-llm: {type: openai, api_key: own}\n    ollama: {model: m}\n"
                "    groq: {}\n",
                env);
    assert_int_equal(l.st, ST_OK);
    const struct config_provider *p = config_provider(l.cfg, "anthropic");
    assert_string_equal(p->type, "anthropic");
    assert_string_equal(p->base_url, "https://api.anthropic.com");
    assert_str_is(secret_expose(&p->api_key), "a1");
    p = config_provider(l.cfg, "my-llm");
    assert_str_is(secret_expose(&p->api_key), "own");
    assert_string_equal(p->base_url, "https://api.openai.com/v1");
    p = config_provider(l.cfg, "ollama");
    assert_false(secret_is_set(&p->api_key));
    assert_string_equal(config_provider(l.cfg, "groq")->type, "openai");
    assert_null(config_provider(l.cfg, "nope"));
    load_done(&l);
}

/* A value that must not be seen, in every place a secret can stand. */
static void test_secrets_hidden(void **state)
{
    (void)state;
    static const char *const env[] = {"HOME=/home/u", "S=hunter2hunter2",
                                      "OPENAI_API_KEY=hunter2hunter2", NULL};
    struct loaded l;
    load_config(
        &l,
        "server: {api_key: hunter2hunter2}\nsearch: {api_key: \"${S}\"}\n"
        "channels: {whatsapp: {app_secret: hunter2hunter2}, x: {k: hunter2hunter2}}\n"
        "llm: {providers: {openai: {extra_headers: {A: hunter2hunter2}}}}\n"
        "mcp: {servers: {m: {command: c, env: {A: hunter2hunter2}}}}\n"
        "plugins_config: {p: {k: hunter2hunter2}}\n"
        "executor: {backend: far, far_k: hunter2hunter2}\n",
        env);
    if (l.st != ST_OK) {
        print_error("%s", l.text.ptr);
    }
    assert_int_equal(l.st, ST_OK);
    for (int json = 0; json < 2; json++) {
        struct buf out;
        buf_init(&out, 1U << 20);
        assert_int_equal(config_show(l.cfg, json != 0, &out), ST_OK);
        assert_null(strstr(out.ptr, "hunter2"));
        assert_contains(out.ptr, "(set)");
        assert_contains(out.ptr, "plugins_config.p.k");
        assert_contains(out.ptr, "executor.far_k");
        assert_contains(out.ptr, "channels.x.k");
        buf_done(&out);
    }
    assert_null(strstr(l.text.ptr, "hunter2"));
    load_done(&l);
    load_config(&l,
                "server: {port: hunter2hunter2, api_key: [hunter2hunter2]}\n"
                "runtime: {tool_timeout: hunter2hunter2, sandbox: {user: \"hunter2 \"}}",
                env);
    assert_int_equal(l.st, ST_INVALID);
    assert_null(strstr(l.text.ptr, "hunter2"));
    load_done(&l);
}

static void test_env_take(void **state)
{
    (void)state;
    char a[] = "SOULACY_SERVER_API_KEY=k1";
    char b[] = "X_API_KEY=k2";
    char c[] = "PLAIN=v";
    char d[] = "noequals";
    char e[] = "=odd";
    char f[] = "MYSECRET=k3";
    char *envp[] = {a, d, b, e, c, f, NULL};
    struct config_env *env = NULL;
    struct error err;
    assert_int_equal(config_env_take(envp, &env, &err), ST_OK);
    assert_string_equal(a, "SOULACY_SERVER_API_KEY=");
    assert_string_equal(a + 24, ""); /* the byte after the first too */
    assert_string_equal(b, "X_API_KEY=");
    assert_string_equal(c, "PLAIN=v");
    assert_string_equal(f, "MYSECRET=k3");
    assert_string_equal(config_env_get(env, "SOULACY_SERVER_API_KEY"), "k1");
    assert_string_equal(config_env_get(env, "X_API_KEY"), "k2");
    assert_string_equal(config_env_get(env, "PLAIN"), "v");
    assert_null(config_env_get(env, "noequals"));
    struct arena *arena = arena_new(1U << 22);
    struct problems probs;
    struct config *cfg = NULL;
    problems_init(&probs, arena, "f");
    assert_int_equal(config_parse(STR_LIT("runtime: {state_dir: /s}\nsearch: {api_key: "
                                          "\"${MYSECRET}${PLAIN}\"}"),
                                  "/", env, &probs, &cfg, &err),
                     ST_OK);
    assert_string_equal(f, "MYSECRET="); /* read into the configuration: erased too */
    assert_string_equal(config_env_get(env, "MYSECRET"), "k3");
    config_free(cfg);
    arena_free(arena);
    config_env_free(env);
    config_env_free(NULL);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void test_find_and_load(void **state)
{
    (void)state;
    struct test_dir dir;
    char path[PATH_MAX];
    char home[PATH_MAX + 8];
    char named[PATH_MAX + 32];
    test_dir_make(&dir);
    assert_int_equal(chdir(dir.path), 0);
    (void)snprintf(home, sizeof(home), "HOME=%s", dir.path);
    (void)snprintf(named, sizeof(named), "SOULACY_CONFIG_PATH=%s/none", dir.path);
    const char *env1[] = {home, NULL};
    const char *env2[] = {home, named, NULL};
    struct loaded l;
    char *found = NULL;
    assert_true(load_begin(&l, NULL, env2));
    assert_int_equal(config_find(NULL, l.env, &found, &l.err), ST_NOT_FOUND);
    assert_contains(l.err.text, "SOULACY_CONFIG_PATH");
    assert_int_equal(config_find("/nowhere/c.yaml", l.env, &found, &l.err), ST_NOT_FOUND);
    assert_contains(l.err.text, "--config");
    load_done(&l);
    assert_true(load_begin(&l, NULL, env1));
    assert_int_equal(config_find(NULL, l.env, &found, &l.err), ST_OK);
    assert_null(found);
    assert_int_equal(config_load(NULL, l.env, &l.probs, &l.cfg, &l.err), ST_OK);
    assert_null(l.cfg->file);
    assert_true(l.cfg->dir[0] == '/');
    load_done(&l);
    assert_int_equal(mkdir(test_path(&dir, ".soulacy", path), 0700), 0);
    write_file(test_path(&dir, ".soulacy/config.yaml", path), "server: {port: 7}\n");
    assert_true(load_begin(&l, NULL, env1));
    assert_int_equal(config_find(NULL, l.env, &found, &l.err), ST_OK);
    assert_string_equal(found, path);
    assert_int_equal(config_load(found, l.env, &l.probs, &l.cfg, &l.err), ST_OK);
    assert_int_equal(l.cfg->server.port, 7);
    assert_string_equal(l.cfg->file, path);
    mem_free(found);
    load_done(&l);
    assert_true(load_begin(&l, NULL, env1));
    assert_int_equal(config_load(dir.path, l.env, &l.probs, &l.cfg, &l.err), ST_INVALID);
    load_done(&l);
    write_file("config.yaml", "log: {level: debug}");
    assert_true(load_begin(&l, NULL, env1));
    assert_int_equal(config_find(NULL, l.env, &found, &l.err), ST_OK);
    assert_string_equal(found, "config.yaml");
    assert_int_equal(config_load(found, l.env, &l.probs, &l.cfg, &l.err), ST_OK);
    assert_string_equal(l.cfg->dir, dir.path);
    mem_free(found);
    load_done(&l);
    assert_int_equal(chdir("/"), 0);
    test_dir_remove(&dir);
}

/* A link is seen through when a file was loaded. */
static void test_links(void **state)
{
    (void)state;
    struct test_dir dir;
    char path[PATH_MAX];
    char other[PATH_MAX];
    struct buf text;
    struct loaded l;
    test_dir_make(&dir);
    assert_int_equal(mkdir(test_path(&dir, "state", path), 0700), 0);
    assert_int_equal(symlink(path, test_path(&dir, "link", other)), 0);
    buf_init(&text, 4096);
    buf_addf(&text,
             "runtime: {state_dir: ./state, sandbox: {write_paths: [./link/new]}}\n"
             "executor: {docker_volumes: [\"./link:/x:ro\"]}\n");
    write_file(test_path(&dir, "config.yaml", path), text.ptr);
    assert_true(load_begin(&l, "c", NULL));
    assert_int_equal(config_load(path, l.env, &l.probs, &l.cfg, &l.err), ST_INVALID);
    load_print(&l);
    assert_contains(l.text.ptr, "write_paths");
    assert_contains(l.text.ptr, "docker_volumes");
    load_done(&l);
    buf_done(&text);
    test_dir_remove(&dir);
}

static void restart(const char *was, const char *now, const char *path)
{
    struct loaded a;
    struct loaded b;
    const char *found = NULL;
    load_config(&a, was, NULL);
    load_config(&b, now, NULL);
    assert_int_equal(config_restart_key(a.cfg, b.cfg, &found), ST_OK);
    if (path == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, path);
    }
    load_done(&a);
    load_done(&b);
}

static void test_restart(void **state)
{
    (void)state;
    restart("", "", NULL);
    restart("server: {api_key: a}", "server: {api_key: b, max_body_mb: 3}", NULL);
    restart("", "server: {port: 1}", "server.port");
    restart("server: {port: 18789}", "", NULL);
    restart("channels: {x: {k: v}}", "channels: {x: {k: w}}", "channels");
    restart("plugins: [a]", "plugins: [a, b]", "plugins");
    restart("", "plugin_dir: /x", "plugin_dir");
}

static const char sweep_text[] =
    "server: {api_key: \"${KEY}\", allowed_hosts: [a, b]}\n"
    "channels: {x: {k: v}, whatsapp: {numbers: [{id: 1}]}}\n"
    "llm: {providers: {anthropic: {extra_headers: {A: b}}}}\n"
    "mcp: {servers: {m: {command: c, env: {A: b}}}}\n"
    "executor: {docker_volumes: [\"/a:/b\"]}\nplugins: [a, {path: ./b}]\n"
    "knowledge: {bases: {k: {paths: [/x]}}}\n";

static bool sweep_good(void)
{
    static const char *const env[] = {"HOME=/h", "KEY=k", "SOULACY_LOG_LEVEL=debug",
                                      "SOULACY_MCP_SERVERS_N_COMMAND=c", NULL};
    struct loaded l;
    load_config(&l, sweep_text, env);
    bool ok = l.st == ST_OK && l.text.len != 0;
    if (ok) {
        struct buf out;
        buf_init(&out, 1U << 20);
        ok = config_show(l.cfg, true, &out) == ST_OK;
        buf_done(&out);
    }
    assert_true(l.st == ST_OK || l.st == ST_NOMEM);
    load_done(&l);
    return ok;
}

static bool sweep_bad(void)
{
    struct loaded l;
    load_config(&l, "sever: 1\nserver: {port: x, tls_key: k}\nagent_dirs: ${NO}\n", NULL);
    bool ok = l.st == ST_INVALID && strstr(l.text.ptr, "did you mean server?") != NULL &&
              strstr(l.text.ptr, "tls_cert") != NULL;
    assert_int_not_equal(l.st, ST_OK);
    load_done(&l);
    return ok;
}

static void test_sweep(void **state)
{
    (void)state;
    TEST_SWEEP(sweep_good());
    TEST_SWEEP(sweep_bad());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),         cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_empty_values),   cmocka_unit_test(test_expand),
        cmocka_unit_test(test_overrides),      cmocka_unit_test(test_bad_overrides),
        cmocka_unit_test(test_paths),          cmocka_unit_test(test_own_files),
        cmocka_unit_test(test_volumes),        cmocka_unit_test(test_providers),
        cmocka_unit_test(test_secrets_hidden), cmocka_unit_test(test_env_take),
        cmocka_unit_test(test_find_and_load),  cmocka_unit_test(test_links),
        cmocka_unit_test(test_restart),        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
