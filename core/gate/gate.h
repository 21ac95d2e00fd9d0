/* Who may speak, and which call may run. Two gates, one table each, first matching row
 * wins, deny unless a row allows. The decisions are pure functions of facts; the offered
 * tool set and the dispatched call are judged by the same function.
 *
 * `admitted` and `approved` are opaque and made here only: a turn starts only from an
 * admitted, a plan is built only from an approved. */
#ifndef SOULACY_GATE_GATE_H
#define SOULACY_GATE_GATE_H

#include "config/soul.h"
#include "tools/catalog.h"

/* The ways into the gateway. */
enum gate_entry {
    ENTRY_CHANNEL = 0, /* a message of a channel other than http */
    ENTRY_CHAT,
    ENTRY_STREAM,
    ENTRY_TOOLS_RUN,
    ENTRY_COMPLETIONS,
    ENTRY_WEBHOOK,
    ENTRY_WORKFLOW,
    ENTRY_PEER,
    ENTRY_MCP,
    ENTRY_CLI,
    ENTRY_COUNT_
};
const char *gate_entry_name(enum gate_entry e); /* "channel", "chat", "tools.run", ... */

enum gate_answer { GATE_DENY = 0, GATE_ASK = 1, GATE_ALLOW = 2 };
const char *gate_answer_name(enum gate_answer a); /* "deny", "ask", "allow" */

/* The deciding row. `number` is the row of the gate table in docs/security.md (0: the rows
 * about messages and agents that stand before it); `id` is stable and goes to the log, the
 * audit and the API; `text` tells a person. */
struct gate_row {
    int number;
    const char *id;
    const char *text;
};

struct verdict {
    enum gate_answer answer;
    const struct gate_row *row; /* never NULL once decided; static storage */
};

/* Where a message or a call comes from, as the core judges it. Borrowed texts. */
struct origin {
    enum gate_entry entry;
    struct str channel; /* stamped by the core: "http", "whatsapp", "webhook" */
    bool local;         /* local http by decisions: through http, with the key, or keyless
                            from a loopback peer with no forwarding header */
    bool keyless_open;  /* a gateway without key that is open to the network */
    bool internal;      /* begun by the gateway itself (schedule, workflow) */
    bool approver;      /* an operator can be asked now */
    bool group;         /* group chat */
    struct str sender, sender_name, conversation, peer;
    const struct str *sender_ids; /* further ids of the sender */
    size_t nsender_ids;
};

/* ---- messages ------------------------------------------------------------------ */

struct message_facts {
    enum gate_entry entry;
    bool agent_known, agent_enabled;
    enum trigger trigger;
    bool channel_served; /* the agent's `channels` admits the stamp */
    bool group, ignore_groups;
    bool sender_listed; /* allowed_user_ids is empty or names the sender */
    bool chat_listed;   /* allowed_chat_ids is empty or names the conversation */
    bool phrase_found;  /* no trigger phrase, a direct message, or the phrase is there */
    bool passphrase_ok; /* no passphrase, or it was given in this session */
};
struct verdict gate_message(const struct message_facts *f); /* pure */

/* Text after the trigger phrase when s begins with it at a word border, case ignored
 * (ASCII); false when it does not. An empty phrase is always found. Pure. */
bool gate_phrase(struct str s, struct str phrase, struct str *rest);

struct admitted;

/* Judge a message for an agent. soul NULL: unknown agent. channel may be NULL (no
 * activation rules, as for http). On ST_OK *out holds what a turn needs; soul must outlive
 * it. ST_REFUSED: denied, *v says by which row. */
enum status gate_admit(const struct soul *soul, const struct config_channel *channel,
                       const struct origin *from, struct str text, bool passphrase_ok,
                       struct verdict *v, struct admitted **out,
                       struct error *err) SY_MUST_CHECK;
void admitted_free(struct admitted *a);
const struct soul *admitted_soul(const struct admitted *a);
const struct origin *admitted_origin(const struct admitted *a);
struct str admitted_text(const struct admitted *a); /* without the trigger phrase */
bool admitted_passphrase_ok(const struct admitted *a);

/* ---- calls --------------------------------------------------------------------- */

struct call_facts {
    enum gate_entry entry;
    bool agent_enabled, channel_served, trigger_fits, passphrase_ok;
    bool tool_known;
    enum tool_kind kind;
    bool offered;          /* it was in the set shown to the model; true when offering */
    bool arguments_valid;  /* true when offering */
    bool builtin_admitted; /* `builtins` */
    bool local, keyless_open;
    bool system_permit;     /* runtime.allow_system_tools */
    bool system_capability; /* capabilities: [system] */
    bool mcp_admitted, peer_admitted, kb_admitted;
    bool available;       /* this build carries it out */
    bool confirm;         /* confirm_tools covers it */
    bool confirm_by_name; /* ... by its own name, not by "*" */
    bool approved;        /* an explicit, unexpired, unused approval of these bytes */
    bool approver, internal, unattended;
};
struct verdict gate_call_decide(const struct call_facts *f); /* pure */

/* The settings of the core that the call gate looks at. */
struct gate_policy {
    bool allow_system_tools; /* runtime.allow_system_tools */
};

/* May this tool be shown to the model? Same function as dispatch, with valid arguments. */
struct verdict gate_offer(const struct admitted *a, const struct gate_policy *p,
                          const struct tool *tool);

/* One call about to run. */
struct call_request {
    struct str name; /* as the model or the caller wrote it */
    struct str args; /* JSON text as it came; empty counts as {} */
    bool offered;    /* the name was in the offered set of this turn */
    bool approved;   /* by the approvals module, for exactly these bytes */
};

struct approved;

/* Judge a call: tool lookup in the catalog, strict JSON, schema, then the table. ST_OK:
 * *out is made from exactly the bytes of args. ST_REFUSED: *v denies or asks, err has a
 * line for the model. a and the catalog must outlive *out. */
enum status gate_call(const struct admitted *a, const struct gate_policy *p,
                      const struct catalog *tools, const struct call_request *req,
                      struct verdict *v, struct approved **out,
                      struct error *err) SY_MUST_CHECK;
void approved_free(struct approved *c);
const struct admitted *approved_by(const struct approved *c);
const struct tool *approved_tool(const struct approved *c);
struct str approved_args(const struct approved *c);

/* What would happen to this call (args empty: as if they fitted), without a message: for
 * `policy explain` and the lists of effective tools. ST_OK when v is set. */
enum status gate_explain(const struct soul *soul, const struct gate_policy *p,
                         const struct origin *from, const struct catalog *tools,
                         struct str name, struct str args, struct verdict *v,
                         struct error *err) SY_MUST_CHECK;

/* Row i of each table in order, for documentation and `policy explain`; NULL past the
 * last one. */
const struct gate_row *gate_message_row(size_t i);
const struct gate_row *gate_call_row(size_t i);

#endif
