/* An agent: one SOUL.yaml, parsed and checked whole. Immutable. Section 2 of the
 * reference gives the fields; struct members carry their names. */
#ifndef SOULACY_CONFIG_SOUL_H
#define SOULACY_CONFIG_SOUL_H

#include "config/config.h"
#include "config/jsonschema.h"

enum trigger { TRIGGER_CHANNEL = 0, TRIGGER_WEBHOOK = 1, TRIGGER_INTERNAL = 2 };

/* A list that may be absent, which means something else than empty. */
struct opt_list {
    bool present;
    bool all; /* ["*"] */
    struct str_list list;
};

struct soul_tool {
    char *name, *description;
    char *python_file; /* absolute (relative ones are joined to the SOUL.yaml's folder) */
    char *inline_src;  /* exactly one of the two is set */
    char *function;    /* never NULL: defaults to name */
    struct schema *parameters; /* never NULL: {"type":"object"} when absent */
    int64_t timeout_ms;        /* 0: runtime.tool_timeout */
    int64_t retries;           /* 0..5 */
    int64_t retry_backoff_ms;
    struct yaml_pos pos;
};

struct soul {
    struct arena *arena;
    char *file; /* absolute path of the SOUL.yaml */
    char *dir;  /* its folder */
    char *id, *name, *description, *version;
    struct str_list tags;
    enum trigger trigger;
    struct opt_list channels; /* absent: every channel */
    struct {
        char *provider, *model, *base_url, *tool_choice; /* NULL when absent */
        bool has_temperature;
        double temperature;
        int64_t max_tokens; /* 0: absent */
        struct str_list allowed_providers;
    } llm;
    char *system_prompt;
    struct soul_tool *tools;
    size_t ntools;
    struct opt_list builtins;
    struct opt_list knowledge; /* absent: none */
    struct opt_list mcp_servers, mcp_tools;
    struct str_list agents; /* peers */
    bool system;            /* capabilities: [system], or system_tools: true */
    struct str_list env;
    struct opt_list confirm_tools;
    bool unattended;
    char *backend;                    /* execution.backend, NULL: the configured one */
    const struct yaml_node *workflow; /* NULL when absent */
    int64_t max_turns;                /* 0: default */
    int64_t run_timeout_ms;           /* 0: default */
    bool stream_reply, enabled;
    struct secret passphrase;
    char digest[65]; /* SHA-256 of the file's bytes */
};

/* Parse and check the text of one SOUL.yaml. Pure: python_file paths are joined, not
 * opened. cfg may be NULL (offline check without a configuration). */
enum status soul_parse(struct str text, const char *file, const struct config *cfg,
                       struct problems *probs, struct soul **out,
                       struct error *err) SY_MUST_CHECK;
/* Read the file (1 MiB at most) and soul_parse it. */
enum status soul_load(const char *file, const struct config *cfg, struct problems *probs,
                      struct soul **out, struct error *err) SY_MUST_CHECK;
void soul_free(struct soul *s);
const struct soul_tool *soul_tool_find(const struct soul *s, struct str name);

/* True when `now` has more authority than `was` or other tool code (security-rules.md 4:
 * system, env, confirm_tools, unattended, backend, peers, MCP, builtins, base_url, tools).
 * why gets the first field that grew. */
bool soul_grows(const struct soul *was, const struct soul *now, struct error *why);

#endif
