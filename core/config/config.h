/* config.yaml as typed values. The struct repeats the key paths of the reference, so
 * cfg->runtime.sandbox.cpu_seconds is `runtime.sandbox.cpu_seconds`. Immutable once
 * loaded and shared between threads; a reload makes a new one. */
#ifndef SOULACY_CONFIG_CONFIG_H
#define SOULACY_CONFIG_CONFIG_H

#include "base/secret.h"
#include "config/yaml.h"

struct str_list {
    char **items; /* NUL-terminated */
    size_t n;
};

enum isolation { ISOLATION_NONE = 0, ISOLATION_RESTRICTED = 1, ISOLATION_STRICT = 2 };
enum limit_failure { LIMIT_WARN = 0, LIMIT_REFUSE = 1 };

struct config_sandbox {
    bool enabled;
    int64_t cpu_seconds, memory_mb, open_files, file_size_mb, processes; /* 0 = none */
    enum limit_failure on_limit_failure;
    enum isolation isolation;
    char *user;
    bool network;
    struct str_list read_paths, write_paths;
};

struct config_channel { /* channels.NAME */
    char *name;
    bool enabled;
    char *trigger_phrase;
    bool ignore_groups;
    bool allow_local; /* provider `local` on an open channel */
    struct str_list allowed_user_ids, allowed_chat_ids;
    const struct yaml_node *node; /* its whole mapping, for the plugin's own keys; NULL */
};

struct config_provider { /* llm.providers.NAME */
    char *name, *type, *base_url, *model, *api_version;
    struct secret api_key;
    int64_t request_timeout_ms, first_token_timeout_ms, idle_timeout_ms;
    bool prompt_caching;
    struct str_list extra_headers; /* "Name: value" */
};

struct config_mcp_server { /* mcp.servers.NAME */
    char *name, *transport, *command, *url;
    struct str_list args, env, headers; /* env, headers: "NAME=value", "Name: value" */
    int64_t timeout_ms;
    enum isolation isolation;
};

struct config_kb { /* knowledge.bases.NAME */
    char *name;
    struct str_list paths;
};

struct config_plugin { /* plugins[] */
    char *path;        /* absolute, or a bare name of this repository */
    char *sha256;      /* 64 hex or NULL */
    bool critical;
};

struct config {
    struct arena *arena; /* owns everything below but secrets */
    char *file;          /* absolute path, or NULL when there is none */
    char *dir;           /* its folder, absolute; the working directory without a file */
    char *home;          /* HOME, or NULL */
    struct yaml_node *root; /* the file after expansion and overrides; holds secrets */
    struct {
        char *host;
        int64_t port;
        struct secret api_key;
        char *tls_cert, *tls_key;
        struct str_list allowed_origins, allowed_hosts, trusted_proxies;
        int64_t rate_limit_per_minute, max_body_mb;
        bool open_metrics;
    } server;
    struct {
        char *state_dir, *python_bin;
        int64_t tool_timeout_ms, max_concurrent_sessions;
        int64_t default_max_turns, max_turns_ceiling, run_timeout_ms;
        int64_t max_tool_output_kb;
        bool allow_system_tools;
        struct str_list allowed_tool_dirs, allow_private_hosts, file_roots, egress_hosts;
        bool ssrf_protection;
        int64_t confirm_timeout_ms;
        struct config_sandbox sandbox;
    } runtime;
    struct {
        char *backend;
        int64_t workers, max_idle;
        struct str_list allowed_backends;
        const struct yaml_node *node; /* whole `executor` mapping, or NULL */
    } executor;
    struct config_plugin *plugins;
    size_t nplugins;
    char *plugin_dir;                       /* NULL: next to the program */
    const struct yaml_node *plugins_config; /* mapping NAME -> mapping, or NULL */
    struct config_channel *channels;        /* always holds http and whatsapp */
    size_t nchannels;
    struct {
        char *default_provider;
        struct config_provider *providers;
        size_t nproviders;
    } llm;
    struct config_mcp_server *mcp_servers;
    size_t nmcp_servers;
    struct {
        char *provider, *base_url;
        struct secret api_key;
    } search;
    struct config_kb *kbs;
    size_t nkbs;
    struct str_list agent_dirs; /* absolute */
    struct {
        char *level, *format, *file;
    } log;
    struct {
        char *file; /* absolute */
        bool required;
    } audit;
};

/* The process environment as the core saw it at start, copied out and wiped of what is
 * secret (see config_env_take). */
struct config_env;

/* Copy environ into a snapshot. Names whose values are secrets of ours (SOULACY_* and
 * *_API_KEY) are overwritten in the initial environment block so that /proc/PID/environ
 * no longer shows them. Call once, before threads. */
enum status config_env_take(char **envp, struct config_env **out,
                            struct error *err) SY_MUST_CHECK;
/* A snapshot of given "NAME=value" strings (tests). */
enum status config_env_new(const char *const *pairs,
                           struct config_env **out) SY_MUST_CHECK;
void config_env_free(struct config_env *e);
/* NULL when unset or empty. Lives as long as e. */
const char *config_env_get(const struct config_env *e, const char *name);

/* Which file: explicit path, else SOULACY_CONFIG_PATH, ./config.yaml,
 * ~/.soulacy/config.yaml. *path is NULL when none exists (an explicit one must exist). */
enum status config_find(const char *explicit_path, const struct config_env *env,
                        char **path, struct error *err) SY_MUST_CHECK;

/* Read, expand ${NAME}, apply SOULACY_* overrides, check everything. path may be NULL:
 * defaults. probs gets every error and warning of the file (its arena is set by the
 * caller and must outlive it). ST_INVALID when there was any error. */
enum status config_load(const char *path, const struct config_env *env,
                        struct problems *probs, struct config **out,
                        struct error *err) SY_MUST_CHECK;
/* The same from text, pure but for getcwd-free path joining: dir stands for the folder. */
enum status config_parse(struct str text, const char *dir, const struct config_env *env,
                         struct problems *probs, struct config **out,
                         struct error *err) SY_MUST_CHECK;
void config_free(struct config *c);

/* `config show`: every key with its value and where it came from (default, file,
 * environment); secrets as "(set)" or "(not set)". YAML, or JSON. */
enum status config_show(const struct config *c, bool json, struct buf *out) SY_MUST_CHECK;

/* The first key whose value differs and that a reload cannot change (server.port, ...):
 * *path is static text, or NULL when there is none. */
enum status config_restart_key(const struct config *was, const struct config *now,
                               const char **path) SY_MUST_CHECK;

/* NULL when there is none of that name. */
const struct config_channel *config_channel(const struct config *c, const char *name);
const struct config_provider *config_provider(const struct config *c, const char *name);

#endif
