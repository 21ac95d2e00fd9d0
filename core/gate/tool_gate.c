/* A call's facts in, a verdict out; and the only place where `approved` is made. One table
 * for offering and for dispatch; the first matching row decides, deny is where it starts.
 * Pure: no file, clock or socket. */
#include "base/json.h"
#include "base/mem.h"
#include "gate/gate.h"
#include "gate/rows.h"

struct approved {
    const struct admitted *by;
    const struct tool *tool;
    struct str args; /* owned */
};

struct call_row {
    struct gate_row row;
    enum gate_answer answer;
    bool (*matches)(const struct call_facts *f);
};

static bool agent_disabled(const struct call_facts *f)
{
    return !f->agent_enabled;
}

static bool channel_not_served(const struct call_facts *f)
{
    return !f->channel_served;
}

static bool trigger_differs(const struct call_facts *f)
{
    return !f->trigger_fits;
}

static bool passphrase_missing(const struct call_facts *f)
{
    return !f->passphrase_ok;
}

static bool tool_unknown(const struct call_facts *f)
{
    return !f->tool_known;
}

static bool not_offered(const struct call_facts *f)
{
    return !f->offered;
}

static bool arguments_invalid(const struct call_facts *f)
{
    return !f->arguments_valid;
}

static bool is_builtin(const struct call_facts *f)
{
    return f->kind == TOOL_SAFE || f->kind == TOOL_SYSTEM || f->kind == TOOL_SEARCH ||
           f->kind == TOOL_KB;
}

static bool builtin_not_admitted(const struct call_facts *f)
{
    return is_builtin(f) && !f->builtin_admitted;
}

static bool not_local(const struct call_facts *f)
{
    return (f->kind == TOOL_SAFE || f->kind == TOOL_SYSTEM) && !f->local;
}

static bool system_keyless(const struct call_facts *f)
{
    return f->kind == TOOL_SYSTEM && f->keyless_open;
}

static bool system_no_permit(const struct call_facts *f)
{
    return f->kind == TOOL_SYSTEM && !f->system_permit;
}

static bool system_no_capability(const struct call_facts *f)
{
    return f->kind == TOOL_SYSTEM && !f->system_capability;
}

static bool mcp_not_admitted(const struct call_facts *f)
{
    return f->kind == TOOL_MCP && !f->mcp_admitted;
}

static bool peer_not_admitted(const struct call_facts *f)
{
    return f->kind == TOOL_PEER && !f->peer_admitted;
}

static bool kb_not_admitted(const struct call_facts *f)
{
    return f->kind == TOOL_KB && !f->kb_admitted;
}

static bool not_available(const struct call_facts *f)
{
    return !f->available;
}

static bool confirmed(const struct call_facts *f)
{
    return f->confirm && f->approved;
}

static bool unattended(const struct call_facts *f)
{
    return f->confirm && !f->approver && f->unattended && f->internal &&
           f->confirm_by_name;
}

static bool nobody_to_ask(const struct call_facts *f)
{
    return f->confirm && !f->approver;
}

static bool must_ask(const struct call_facts *f)
{
    return f->confirm;
}

static bool always(const struct call_facts *f)
{
    (void)f;
    return true;
}

static const struct call_row call_rows[] = {
    {{1, "agent-disabled", "the agent is switched off (enabled: false)"},
     GATE_DENY,
     agent_disabled},
    {{0, "channel-not-served", "the agent does not serve this channel (channels)"},
     GATE_DENY,
     channel_not_served},
    {{0, "trigger-kind", "the agent's trigger does not take this kind of message"},
     GATE_DENY,
     trigger_differs},
    {{0, "passphrase", "the agent's passphrase was not given"},
     GATE_DENY,
     passphrase_missing},
    {{1, "tool-unknown", "the agent has no tool of that name"}, GATE_DENY, tool_unknown},
    {{1, "not-offered", "the tool was not offered in this turn"}, GATE_DENY, not_offered},
    {{1, "arguments", "the arguments do not fit the tool's parameters"},
     GATE_DENY,
     arguments_invalid},
    {{2, "builtins", "the agent's `builtins` does not admit it"},
     GATE_DENY,
     builtin_not_admitted},
    {{3, "not-local", "only messages of the local http channel may use it"},
     GATE_DENY,
     not_local},
    {{3, "keyless-open",
      "system tools need server.api_key on a gateway open to the network"},
     GATE_DENY,
     system_keyless},
    {{4, "system-permit", "runtime.allow_system_tools is false"},
     GATE_DENY,
     system_no_permit},
    {{4, "system-capability", "the agent lacks `capabilities: [system]`"},
     GATE_DENY,
     system_no_capability},
    {{5, "mcp", "`mcp_servers` and `mcp_tools` do not admit it"},
     GATE_DENY,
     mcp_not_admitted},
    {{5, "peer", "the agent's `agents` does not name that peer"},
     GATE_DENY,
     peer_not_admitted},
    {{5, "knowledge", "the agent's `knowledge` admits no knowledge base"},
     GATE_DENY,
     kb_not_admitted},
    {{1, "not-available", "this build does not carry that tool"},
     GATE_DENY,
     not_available},
    {{6, "confirmed", "an operator approved exactly this call"}, GATE_ALLOW, confirmed},
    {{6, "unattended", "an unattended internal run, and confirm_tools names the tool"},
     GATE_ALLOW,
     unattended},
    {{6, "nobody-to-ask", "confirm_tools covers it and nobody can be asked"},
     GATE_DENY,
     nobody_to_ask},
    {{6, "confirm", "confirm_tools covers it: an operator must approve"},
     GATE_ASK,
     must_ask},
    {{7, "allow", "no rule is against it"}, GATE_ALLOW, always},
};
#define NCALL (sizeof(call_rows) / sizeof(call_rows[0]))

struct verdict gate_call_decide(const struct call_facts *f)
{
    size_t i = 0;

    while (!call_rows[i].matches(f)) { /* the last row always matches */
        i++;
    }
    return (struct verdict){call_rows[i].answer, &call_rows[i].row};
}

const struct gate_row *gate_call_row(size_t i)
{
    return i < NCALL ? &call_rows[i].row : NULL;
}

static bool opt_admits(const struct opt_list *l, struct str name)
{
    return !l->present || l->all || gate_listed(&l->list, name);
}

/* item is "mcp__SERVER__" and more */
static bool is_of_server(struct str item, struct str server)
{
    struct str prefix = STR_LIT("mcp__"), rest;

    if (!str_starts(item, prefix)) {
        return false;
    }
    rest = str_n(item.ptr + prefix.len, item.len - prefix.len);
    return str_starts(rest, server) &&
           str_starts(str_n(rest.ptr + server.len, rest.len - server.len), STR_LIT("__"));
}

/* Both lists absent: every server on http, none elsewhere. A tool of a server that is
 * named is admitted unless mcp_tools narrows that server; any other by full name alone. */
static bool mcp_admits(const struct soul *soul, const struct tool *t, bool http)
{
    const struct str_list *tools = &soul->mcp_tools.list;

    if (!soul->mcp_servers.present && !soul->mcp_tools.present) {
        return http;
    }
    if (soul->mcp_tools.all || gate_listed(tools, t->name)) {
        return true;
    }
    if (!soul->mcp_servers.all && !gate_listed(&soul->mcp_servers.list, t->server)) {
        return false;
    }
    for (size_t i = 0; i < tools->n; i++) {
        if (is_of_server(str_c(tools->items[i]), t->server)) {
            return false;
        }
    }
    return true;
}

static bool peer_admits(const struct soul *soul, struct str name)
{
    static const struct str prefix = {"agent__", 7};

    return str_starts(name, prefix) &&
           gate_listed(&soul->agents, str_n(name.ptr + 7, name.len - 7));
}

static void gate_call_facts(const struct admitted *a, const struct gate_policy *p,
                            const struct tool *tool, struct call_facts *out)
{
    const struct soul *soul = admitted_soul(a);
    const struct origin *from = admitted_origin(a);
    bool by_name = gate_listed(&soul->confirm_tools.list, tool->name);

    *out = (struct call_facts){
        .entry = from->entry,
        .agent_enabled = soul->enabled,
        .channel_served = gate_channel_served(soul, from->channel),
        .trigger_fits = gate_trigger_fits(soul->trigger, from->entry),
        .passphrase_ok = admitted_passphrase_ok(a),
        .tool_known = true,
        .kind = tool->kind,
        .offered = true,
        .arguments_valid = true,
        .builtin_admitted = opt_admits(&soul->builtins, tool->name),
        .local = from->local,
        .keyless_open = from->keyless_open,
        .system_permit = p->allow_system_tools,
        .system_capability = soul->system,
        .mcp_admitted = mcp_admits(soul, tool, str_eq_c(from->channel, "http")),
        .peer_admitted = peer_admits(soul, tool->name),
        .kb_admitted = soul->knowledge.all || soul->knowledge.list.n > 0,
        .available = tool->parameters != NULL,
        .confirm = soul->confirm_tools.all || by_name,
        .confirm_by_name = by_name,
        .approver = from->approver,
        .internal = from->internal,
        .unattended = soul->unattended,
    };
}

struct verdict gate_offer(const struct admitted *a, const struct gate_policy *p,
                          const struct tool *tool)
{
    struct call_facts f;

    gate_call_facts(a, p, tool, &f);
    return gate_call_decide(&f);
}

/* What a denied or asking verdict tells the model. why: of bad arguments. */
static enum status refuse(const struct verdict *v, struct str name,
                          const struct error *why, struct error *err)
{
    const char *says = " was denied: ", *reason = v->row->text;
    enum status st = ST_REFUSED;

    if (v->answer == GATE_ASK) {
        says = " needs an operator's approval";
        reason = "";
    } else if (str_eq_c(STR_LIT("arguments"), v->row->id)) {
        says = ": ";
        reason = why->text;
        st = why->status == ST_NOMEM ? ST_NOMEM : ST_REFUSED;
    }
    return error_set(err, st, "tool %.*s%s%s", STR_ARG(name), says, reason);
}

static enum status check_arguments(const struct tool *tool, struct str args,
                                   struct error *err)
{
    if (json_check(args, JSON_MAX_DEPTH, err) != ST_OK) {
        return error_context(err, "arguments");
    }
    return tool->parameters != NULL ? schema_check(tool->parameters, args, err) : ST_OK;
}

static enum status make_approved(const struct admitted *a, const struct tool *tool,
                                 struct str args, struct approved **out,
                                 struct error *err)
{
    struct approved *c = mem_zalloc(sizeof(*c));
    char *copy = mem_dup(args.ptr, args.len);

    if (c == NULL || copy == NULL) {
        mem_free(c);
        mem_free(copy);
        return error_set(err, ST_NOMEM, "out of memory for a tool call");
    }
    *c = (struct approved){a, tool, str_n(copy, args.len)};
    *out = c;
    return ST_OK;
}

enum status gate_call(const struct admitted *a, const struct gate_policy *p,
                      const struct catalog *tools, const struct call_request *req,
                      struct verdict *v, struct approved **out, struct error *err)
{
    const struct tool *tool = catalog_find(tools, req->name);
    struct str args = req->args.len > 0 ? req->args : STR_LIT("{}");
    struct tool none = {.name = req->name};
    struct call_facts f;
    struct error why = {0};

    gate_call_facts(a, p, tool != NULL ? tool : &none, &f);
    f.tool_known = tool != NULL;
    f.offered = req->offered;
    f.approved = req->approved;
    if (tool != NULL) {
        f.arguments_valid = check_arguments(tool, args, &why) == ST_OK;
    }
    *v = gate_call_decide(&f);
    if (v->answer == GATE_ALLOW) {
        return make_approved(a, tool, args, out, err);
    }
    return refuse(v, req->name, &why, err);
}

enum status gate_explain(const struct soul *soul, const struct gate_policy *p,
                         const struct origin *from, const struct catalog *tools,
                         struct str name, struct str args, struct verdict *v,
                         struct error *err)
{
    const struct tool *tool = catalog_find(tools, name);
    struct call_request req = {name, args, true, false};
    struct admitted *a = NULL;
    struct approved *approved = NULL;
    enum status st = gate_suppose(soul, from, &a);

    if (st != ST_OK) {
        return error_set(err, st, "out of memory for a verdict");
    }
    if (args.len == 0 && tool != NULL) {
        *v = gate_offer(a, p, tool);
    } else {
        st = gate_call(a, p, tools, &req, v, &approved, err);
        approved_free(approved);
    }
    admitted_free(a);
    return st == ST_REFUSED ? ST_OK : st; /* a refusal is an answer */
}

void approved_free(struct approved *c)
{
    if (c != NULL) {
        mem_wipe((char *)(uintptr_t)c->args.ptr, c->args.len);
        mem_free((char *)(uintptr_t)c->args.ptr);
        mem_free(c);
    }
}

const struct admitted *approved_by(const struct approved *c)
{
    return c->by;
}

const struct tool *approved_tool(const struct approved *c)
{
    return c->tool;
}

struct str approved_args(const struct approved *c)
{
    return c->args;
}
