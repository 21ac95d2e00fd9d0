/* Every key of config.yaml: path, type, default, range and where it goes. Reading,
 * checking, environment overrides and `config show` all walk these rows, so a key that
 * is not here does not exist. Data only. */
#include "config/keys.h"

#include "config/checks.h"

#include <stddef.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS_HOUR INT64_C(3600000)
#define MS_DAY (24 * MS_HOUR)

#define AT(member) .offset = offsetof(struct config, member)
#define LATER(text) .flags = KEY_LATER, .note = "takes effect once " text

#define POOL "the pool executor is part of the build"
#define SSH "the ssh executor is part of the build"
#define WHATSAPP "the whatsapp channel is part of the build"
#define MODELS "the clients of model providers are part of the build"
#define BUILTINS "the built-in tools are part of the build"
#define APPROVALS "approvals are part of the build"

static const char *const limit_failure_names[] = {"warn", "refuse", NULL};
static const char *const isolation_names[] = {"none", "restricted", "strict", NULL};
static const char *const level_names[] = {"debug", "info", "warn", "error", NULL};
static const char *const format_names[] = {"console", "json", NULL};
static const char *const search_names[] = {"",       "tavily",  "serper",
                                           "ollama", "searxng", NULL};
static const char *const type_names[] = {"",       "anthropic", "openai",
                                         "ollama", "local",     NULL};
static const char *const transport_names[] = {"", "stdio", "http", NULL};

static const struct key root_rows[] = {
    {"server.host", K_STR, AT(server.host), "127.0.0.1", .check = check_host,
     .flags = KEY_RESTART},
    {"server.port", K_INT, AT(server.port), "18789", 0, 65535, .flags = KEY_RESTART},
    {"server.api_key", K_SECRET, AT(server.api_key), .check = check_line},
    {"server.tls_cert", K_PATH, AT(server.tls_cert), .flags = KEY_RESTART},
    {"server.tls_key", K_PATH, AT(server.tls_key), .flags = KEY_RESTART},
    {"server.allowed_origins", K_LIST, AT(server.allowed_origins), .check = check_origin},
    {"server.allowed_hosts", K_LIST, AT(server.allowed_hosts), .check = check_hostport},
    {"server.trusted_proxies", K_LIST, AT(server.trusted_proxies), .check = check_proxy},
    {"server.rate_limit_per_minute", K_INT, AT(server.rate_limit_per_minute), "600", 0,
     1000000},
    {"server.max_body_mb", K_INT, AT(server.max_body_mb), "16", 1, 1024},
    {"server.open_metrics", K_BOOL, AT(server.open_metrics), "false"},

    {"runtime.state_dir", K_PATH, AT(runtime.state_dir), "~/.soulacy/state",
     .flags = KEY_RESTART},
    {"runtime.python_bin", K_STR, AT(runtime.python_bin), "python3", .check = check_line},
    {"runtime.tool_timeout", K_DURATION, AT(runtime.tool_timeout_ms), "120s", 1, MS_DAY},
    {"runtime.max_concurrent_sessions", K_INT, AT(runtime.max_concurrent_sessions), "100",
     1, 100000, .flags = KEY_RESTART},
    {"runtime.default_max_turns", K_INT, AT(runtime.default_max_turns), "10", 1, 1000},
    {"runtime.max_turns_ceiling", K_INT, AT(runtime.max_turns_ceiling), "50", 1, 1000},
    {"runtime.run_timeout", K_DURATION, AT(runtime.run_timeout_ms), "15m", 1, 7 * MS_DAY},
    {"runtime.max_tool_output_kb", K_INT, AT(runtime.max_tool_output_kb), "256", 1,
     65536},
    {"runtime.allow_system_tools", K_BOOL, AT(runtime.allow_system_tools), "false"},
    {"runtime.allowed_tool_dirs", K_PATHS, AT(runtime.allowed_tool_dirs)},
    {"runtime.ssrf_protection", K_BOOL, AT(runtime.ssrf_protection), "true"},
    {"runtime.allow_private_hosts", K_LIST, AT(runtime.allow_private_hosts),
     .check = check_hostport, LATER(BUILTINS)},
    {"runtime.confirm_timeout", K_DURATION, AT(runtime.confirm_timeout_ms), "5m", 1,
     MS_DAY, LATER(APPROVALS)},
    {"runtime.file_roots", K_PATHS, AT(runtime.file_roots), LATER(BUILTINS)},
    {"runtime.egress_hosts", K_LIST, AT(runtime.egress_hosts), .check = check_hostport,
     LATER(BUILTINS)},
    {"runtime.sandbox.enabled", K_BOOL, AT(runtime.sandbox.enabled), "true"},
    {"runtime.sandbox.cpu_seconds", K_INT, AT(runtime.sandbox.cpu_seconds), "30", 0,
     86400},
    {"runtime.sandbox.memory_mb", K_INT, AT(runtime.sandbox.memory_mb), "512", 0,
     1048576},
    {"runtime.sandbox.open_files", K_INT, AT(runtime.sandbox.open_files), "256", 0,
     1048576},
    {"runtime.sandbox.file_size_mb", K_INT, AT(runtime.sandbox.file_size_mb), "64", 0,
     1048576},
    {"runtime.sandbox.processes", K_INT, AT(runtime.sandbox.processes), "0", 0, 1048576},
    {"runtime.sandbox.on_limit_failure", K_ENUM, AT(runtime.sandbox.on_limit_failure),
     "warn", .choices = limit_failure_names},
    {"runtime.sandbox.isolation", K_ENUM, AT(runtime.sandbox.isolation), "none",
     .choices = isolation_names},
    {"runtime.sandbox.user", K_STR, AT(runtime.sandbox.user), "nobody",
     .check = check_user},
    {"runtime.sandbox.network", K_BOOL, AT(runtime.sandbox.network), "false"},
    {"runtime.sandbox.read_paths", K_PATHS, AT(runtime.sandbox.read_paths)},
    {"runtime.sandbox.write_paths", K_PATHS, AT(runtime.sandbox.write_paths)},

    {"executor.backend", K_STR, AT(executor.backend), "process",
     .check = check_plugin_name, .flags = KEY_RESTART},
    {"executor.workers", K_INT, AT(executor.workers), "4", 1, 256, LATER(POOL)},
    {"executor.max_idle", K_INT, AT(executor.max_idle), "16", 0, 1024, LATER(POOL)},
    {"executor.allowed_backends", K_LIST, AT(executor.allowed_backends),
     .check = check_plugin_name},
    {"executor.docker_image", K_STR, 0, "python:3.12-slim", .check = check_line,
     .flags = KEY_NODE},
    {"executor.docker_network", K_STR, 0, "none", .check = check_line, .flags = KEY_NODE},
    {"executor.docker_volumes", K_LIST, 0, .check = check_volume, .flags = KEY_NODE},
    {"executor.docker_socket", K_PATH, 0, "/var/run/docker.sock", .flags = KEY_NODE},
    {"executor.docker_standby", K_INT, 0, "1", 0, 64, .flags = KEY_NODE},
    {"executor.ssh_host", K_STR, 0, .check = check_ssh_host,
     .flags = KEY_NODE | KEY_LATER, .note = "takes effect once " SSH},
    {"executor.ssh_hosts", K_LIST, 0, .check = check_ssh_host,
     .flags = KEY_NODE | KEY_LATER, .note = "takes effect once " SSH},
    {"executor.ssh_user", K_STR, 0, .check = check_user, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " SSH},
    {"executor.ssh_port", K_INT, 0, "22", 1, 65535, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " SSH},
    {"executor.ssh_python_bin", K_STR, 0, "python3", .check = check_line,
     .flags = KEY_NODE | KEY_LATER, .note = "takes effect once " SSH},
    {"executor.ssh_identity", K_PATH, 0, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " SSH},
    {"executor.ssh_known_hosts", K_PATH, 0, "~/.ssh/known_hosts",
     .flags = KEY_NODE | KEY_LATER, .note = "takes effect once " SSH},
    {"executor.ssh_host_key", K_STR, 0, .check = check_host_key,
     .flags = KEY_NODE | KEY_LATER, .note = "takes effect once " SSH},
    {"executor.ssh_standby", K_INT, 0, "1", 0, 64, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " SSH},

    {"plugins", K_GROUP, 0, .flags = KEY_RESTART},
    {"plugin_dir", K_PATH, AT(plugin_dir), .flags = KEY_NULLABLE | KEY_RESTART},
    {"plugins_config", K_GROUP, 0, .flags = KEY_RESTART},
    {"channels", K_GROUP, 0, .flags = KEY_RESTART},
    {"llm.default_provider", K_STR, AT(llm.default_provider), "local",
     .check = check_entry_name},
    {"llm.providers", K_GROUP, .flags = 0},
    {"mcp.servers", K_GROUP, .flags = 0},
    {"search.provider", K_CHOICE, AT(search.provider), .choices = search_names,
     LATER(BUILTINS)},
    {"search.api_key", K_SECRET, AT(search.api_key), .check = check_line,
     LATER(BUILTINS)},
    {"search.base_url", K_STR, AT(search.base_url), .check = check_url, LATER(BUILTINS)},
    {"knowledge.bases", K_GROUP, .flags = 0},
    {"agent_dirs", K_PATHS, AT(agent_dirs), "./agents"},
    {"log.level", K_CHOICE, AT(log.level), "info", .choices = level_names},
    {"log.format", K_CHOICE, AT(log.format), "console", .choices = format_names,
     .flags = KEY_RESTART},
    {"log.file", K_PATH, AT(log.file), .flags = KEY_RESTART},
    {"audit.file", K_PATH, AT(audit.file), .flags = KEY_RESTART},
    {"audit.required", K_BOOL, AT(audit.required), "false"},
};

#define CHANNEL(member) .offset = offsetof(struct config_channel, member)
static const struct key channel_rows[] = {
    {"enabled", K_BOOL, CHANNEL(enabled), .flags = KEY_RESTART},
    {"trigger_phrase", K_STR, CHANNEL(trigger_phrase), .check = check_line},
    {"ignore_groups", K_BOOL, CHANNEL(ignore_groups), "true"},
    {"allow_local", K_BOOL, CHANNEL(allow_local), "false"},
    {"allowed_user_ids", K_LIST, CHANNEL(allowed_user_ids), .check = check_line},
    {"allowed_chat_ids", K_LIST, CHANNEL(allowed_chat_ids), .check = check_line},
};

static const struct key whatsapp_rows[] = {
    {"phone_number_id", K_STR, 0, .check = check_line, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
    {"numbers", K_TREE, 0, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
    {"access_token", K_SECRET, 0, .check = check_line, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
    {"verify_token", K_SECRET, 0, .check = check_line, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
    {"app_secret", K_SECRET, 0, .check = check_line, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
    {"agent_id", K_STR, 0, .check = check_agent_id, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
    {"api_version", K_STR, 0, .check = check_line, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
    {"api_base", K_STR, 0, .check = check_url, .flags = KEY_NODE | KEY_LATER,
     .note = "takes effect once " WHATSAPP},
};

#define PROVIDER(member) .offset = offsetof(struct config_provider, member)
static const struct key provider_rows[] = {
    {"type", K_CHOICE, PROVIDER(type), .choices = type_names},
    {"base_url", K_STR, PROVIDER(base_url), .check = check_url},
    {"api_key", K_SECRET, PROVIDER(api_key), .check = check_line},
    {"model", K_STR, PROVIDER(model), .check = check_line},
    {"api_version", K_STR, PROVIDER(api_version), .check = check_line},
    {"request_timeout", K_DURATION, PROVIDER(request_timeout_ms), "10m", 1, MS_DAY},
    {"first_token_timeout", K_DURATION, PROVIDER(first_token_timeout_ms), "2m", 1,
     MS_DAY},
    {"idle_timeout", K_DURATION, PROVIDER(idle_timeout_ms), "60s", 1, MS_DAY},
    {"prompt_caching", K_BOOL, PROVIDER(prompt_caching), "true"},
    {"extra_headers", K_HEADERS, PROVIDER(extra_headers), .check = check_header},
};

#define MCP(member) .offset = offsetof(struct config_mcp_server, member)
static const struct key mcp_rows[] = {
    {"transport", K_CHOICE, MCP(transport), .choices = transport_names},
    {"command", K_STR, MCP(command), .check = check_line},
    {"args", K_LIST, MCP(args)},
    {"env", K_ENVIRON, MCP(env), .check = check_env_pair},
    {"url", K_STR, MCP(url), .check = check_url},
    {"headers", K_HEADERS, MCP(headers), .check = check_header},
    {"timeout", K_DURATION, MCP(timeout_ms), "60s", 1, MS_DAY},
    {"isolation", K_ENUM, MCP(isolation), "none", .choices = isolation_names},
};

static const struct key kb_rows[] = {
    {"paths", K_PATHS, .offset = offsetof(struct config_kb, paths)},
};

static const struct key plugin_rows[] = {
    {"path", K_STR, offsetof(struct config_plugin, path), .check = check_line,
     .flags = KEY_REQUIRED},
    {"sha256", K_STR, offsetof(struct config_plugin, sha256), .check = check_sha256,
     .flags = KEY_NULLABLE},
    {"critical", K_BOOL, .offset = offsetof(struct config_plugin, critical),
     .fallback = "false"},
};

const struct key_table config_keys = {root_rows, COUNT(root_rows), false};
const struct key_table config_channel_keys = {channel_rows, COUNT(channel_rows), true};
const struct key_table config_whatsapp_keys = {whatsapp_rows, COUNT(whatsapp_rows),
                                               false};
const struct key_table config_provider_keys = {provider_rows, COUNT(provider_rows),
                                               false};
const struct key_table config_mcp_keys = {mcp_rows, COUNT(mcp_rows), false};
const struct key_table config_kb_keys = {kb_rows, COUNT(kb_rows), false};
const struct key_table config_plugin_keys = {plugin_rows, COUNT(plugin_rows), false};

const struct key_group config_groups[] = {
    {"channels", &config_channel_keys, NULL},
    {"llm.providers", &config_provider_keys, "takes effect once " MODELS},
    {"mcp.servers", &config_mcp_keys,
     "takes effect once the MCP client is part of the build"},
    {"knowledge.bases", &config_kb_keys, "takes effect once " BUILTINS},
};
const size_t config_ngroups = COUNT(config_groups);
