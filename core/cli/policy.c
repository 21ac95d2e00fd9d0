/* policy explain: agent, channel and tool in; verdict and deciding row out. Asks the same
 * pure function as the gateway does. */
#include "agent/dispatch.h"
#include "cli/command.h"
#include "cli/local.h"

#include <string.h>

/* As far as the file tells: the listener's own address is known only to the gateway. */
static bool looks_open(const struct config *cfg)
{
    const char *host = cfg->server.host;
    bool loopback = strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
                    strncmp(host, "127.", 4) == 0;

    return !secret_is_set(&cfg->server.api_key) &&
           (!loopback || cfg->server.allowed_hosts.n > 0 ||
            cfg->server.trusted_proxies.n > 0);
}

static enum cli_exit print(struct cli *c, const struct verdict *v, const char *agent,
                           const struct origin *from, const char *tool)
{
    struct buf out;
    enum cli_exit result;

    buf_init(&out, (size_t)16 * 1024);
    if (c->json) {
        buf_add_char(&out, '{');
        json_add_key_string(&out, "agent", str_c(agent));
        json_add_key_string(&out, "channel", from->channel);
        json_add_key_bool(&out, "local", from->local);
        json_add_key_string(&out, "tool", str_c(tool));
        verdict_json(v, &out);
        buf_add_c(&out, "}\n");
    } else {
        cli_text(&out, str_c(agent));
        buf_add_c(&out, " on ");
        cli_text(&out, from->channel);
        buf_add_c(&out, from->local ? " (local), tool " : ", tool ");
        cli_text(&out, str_c(tool));
        buf_addf(&out, ": %s%s%s\nrow %d, %s: %s\n",
                 cli_colour(v->answer == GATE_ALLOW ? "green" : "red"),
                 gate_answer_name(v->answer), cli_colour("off"), v->row->number,
                 v->row->id, v->row->text);
    }
    result = cli_print(c, &out);
    buf_done(&out);
    return result;
}

static enum cli_exit explain(struct cli *c, const struct soul *soul, const char *channel,
                             const char *tool)
{
    const struct gate_policy policy = {c->cfg->runtime.allow_system_tools};
    bool http = strcmp(channel, "http") == 0;
    struct origin from = {.entry = http ? ENTRY_CHAT : ENTRY_CHANNEL,
                          .channel = str_c(channel),
                          .local = http,
                          .keyless_open = looks_open(c->cfg)};
    struct catalog tools = {0};
    struct error err = {0};
    struct verdict v = {0};
    enum status st;

    if (strcmp(channel, "webhook") == 0) {
        from.entry = ENTRY_WEBHOOK;
    } else if (!http && config_channel(c->cfg, channel) == NULL) {
        return cli_fail(c,
                        "no channel %s in the configuration; http, webhook and whatsapp "
                        "are there always",
                        channel);
    }
    st = catalog_build(soul, c->arena, &tools, &err);
    if (st == ST_OK) {
        st = gate_explain(soul, &policy, &from, &tools, str_c(tool),
                          str_c(args_value(&c->args, "args")), &v, &err);
    }
    if (st != ST_OK) {
        return cli_fail(c, "%s", err.text);
    }
    return print(c, &v, soul->id, &from, tool);
}

enum cli_exit cmd_policy_explain(struct cli *c)
{
    const char *agent = args_value(&c->args, "agent");
    const char *channel = args_value(&c->args, "channel");
    const char *tool = args_value(&c->args, "tool");
    struct agent_registry *registry = NULL;
    struct agent_snapshot *agents;
    struct problems probs;
    struct error err = {0};
    const char *id = NULL;
    enum cli_exit result;

    if (agent == NULL || channel == NULL || tool == NULL) {
        return cli_misuse(c, "--agent, --channel and --tool are needed");
    }
    result = cli_config(c, false);
    if (result != CLI_DONE) {
        return result;
    }
    problems_init(&probs, c->arena, "agents");
    if (agent_registry_new(c->cfg, NULL, &probs, &registry, &err) != ST_OK) {
        return cli_fail(c, "%s", err.text);
    }
    agents = agents_take(registry);
    if (local_agent(agents, agent, c->arena, &id, &err) != ST_OK) {
        result = cli_fail(c, "%s", err.text);
    } else {
        result = explain(c, agents_find(agents, str_c(id)), channel, tool);
    }
    agents_put(agents);
    agent_registry_free(registry);
    return result;
}
