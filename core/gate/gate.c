/* A message's facts in, a verdict out; and the only place where `admitted` is made. Starts
 * from deny: a message is admitted only by the last row. Pure: no file, clock or socket. */
#include "gate/gate.h"

#include "gate/rows.h"

#define ORIGIN_MAX ((size_t)64 * 1024) /* bytes of an origin's texts */

struct admitted {
    const struct soul *soul;
    struct origin from; /* its texts live in arena */
    struct str text;
    bool passphrase_ok;
    struct arena *arena;
};

struct message_row {
    struct gate_row row;
    bool (*matches)(const struct message_facts *f);
};

static bool agent_unknown(const struct message_facts *f)
{
    return !f->agent_known;
}

static bool agent_disabled(const struct message_facts *f)
{
    return !f->agent_enabled;
}

static bool trigger_differs(const struct message_facts *f)
{
    return !gate_trigger_fits(f->trigger, f->entry);
}

static bool channel_not_served(const struct message_facts *f)
{
    return !f->channel_served;
}

static bool group_ignored(const struct message_facts *f)
{
    return f->group && f->ignore_groups;
}

static bool sender_not_listed(const struct message_facts *f)
{
    return !f->sender_listed;
}

static bool chat_not_listed(const struct message_facts *f)
{
    return !f->chat_listed;
}

static bool phrase_missing(const struct message_facts *f)
{
    return !f->phrase_found;
}

static bool passphrase_missing(const struct message_facts *f)
{
    return !f->passphrase_ok;
}

static const struct message_row message_rows[] = {
    {{0, "agent-unknown", "there is no agent of that id"}, agent_unknown},
    {{0, "agent-disabled", "the agent is switched off (enabled: false)"}, agent_disabled},
    {{0, "trigger-kind", "the agent's trigger does not take this kind of message"},
     trigger_differs},
    {{0, "channel-not-served", "the agent does not serve this channel (channels)"},
     channel_not_served},
    {{0, "group-ignored", "messages of groups are ignored (ignore_groups)"},
     group_ignored},
    {{0, "sender-not-allowed", "the sender is not in allowed_user_ids"},
     sender_not_listed},
    {{0, "chat-not-allowed", "the conversation is not in allowed_chat_ids"},
     chat_not_listed},
    {{0, "no-trigger-phrase", "the message does not begin with the trigger phrase"},
     phrase_missing},
    {{0, "passphrase", "the agent's passphrase was not given"}, passphrase_missing},
};
#define NMESSAGE (sizeof(message_rows) / sizeof(message_rows[0]))

static const struct gate_row message_allow = {0, "message-allow",
                                              "no rule is against it"};

struct verdict gate_message(const struct message_facts *f)
{
    for (size_t i = 0; i < NMESSAGE; i++) {
        if (message_rows[i].matches(f)) {
            return (struct verdict){GATE_DENY, &message_rows[i].row};
        }
    }
    return (struct verdict){GATE_ALLOW, &message_allow};
}

const struct gate_row *gate_message_row(size_t i)
{
    if (i < NMESSAGE) {
        return &message_rows[i].row;
    }
    return i == NMESSAGE ? &message_allow : NULL;
}

bool gate_trigger_fits(enum trigger trigger, enum gate_entry entry)
{
    switch (entry) {
    case ENTRY_CHANNEL:
    case ENTRY_CHAT:
    case ENTRY_STREAM:
    case ENTRY_COMPLETIONS:
        return trigger == TRIGGER_CHANNEL;
    case ENTRY_WEBHOOK:
        return trigger == TRIGGER_WEBHOOK;
    case ENTRY_TOOLS_RUN: /* an operator tries a tool */
    case ENTRY_WORKFLOW:
    case ENTRY_PEER:
    case ENTRY_MCP:
    case ENTRY_CLI:
        return true;
    case ENTRY_COUNT_:
    default: /* a way in that is not in the table serves nobody */
        return false;
    }
}

bool gate_listed(const struct str_list *list, struct str item)
{
    for (size_t i = 0; i < list->n; i++) {
        if (str_eq_c(item, list->items[i])) {
            return true;
        }
    }
    return false;
}

bool gate_channel_served(const struct soul *soul, struct str channel)
{
    return !soul->channels.present || soul->channels.all ||
           gate_listed(&soul->channels.list, channel);
}

static bool is_word_byte(char c)
{
    unsigned char u = (unsigned char)c;

    return (u >= '0' && u <= '9') || (u >= 'A' && u <= 'Z') || (u >= 'a' && u <= 'z') ||
           u == '_' || u >= 0x80;
}

bool gate_phrase(struct str s, struct str phrase, struct str *rest)
{
    struct str text = str_trim(s);

    if (phrase.len == 0) {
        *rest = s;
        return true;
    }
    if (text.len < phrase.len || !str_eq_nocase(str_n(text.ptr, phrase.len), phrase)) {
        return false;
    }
    if (text.len > phrase.len && is_word_byte(phrase.ptr[phrase.len - 1]) &&
        is_word_byte(text.ptr[phrase.len])) {
        return false;
    }
    *rest = str_trim(str_n(text.ptr + phrase.len, text.len - phrase.len));
    return true;
}

static bool sender_listed(const struct config_channel *ch, const struct origin *from)
{
    if (ch->allowed_user_ids.n == 0 || gate_listed(&ch->allowed_user_ids, from->sender)) {
        return true;
    }
    for (size_t i = 0; i < from->nsender_ids; i++) {
        if (gate_listed(&ch->allowed_user_ids, from->sender_ids[i])) {
            return true;
        }
    }
    return false;
}

/* Activation: the rules of the channel, which the core applies for every channel. */
static void activation_facts(const struct config_channel *ch, const struct origin *from,
                             struct str *text, struct message_facts *f)
{
    f->group = from->group;
    f->sender_listed = true;
    f->chat_listed = true;
    f->phrase_found = true;
    if (ch == NULL) {
        return;
    }
    f->ignore_groups = ch->ignore_groups;
    f->sender_listed = sender_listed(ch, from);
    f->chat_listed = ch->allowed_chat_ids.n == 0 ||
                     gate_listed(&ch->allowed_chat_ids, from->conversation);
    f->phrase_found = gate_phrase(*text, str_c(ch->trigger_phrase), text) || !from->group;
}

/* Makes *s a copy that lives in the arena; failure is kept in *failed. */
static void keep(struct arena *a, struct str *s, bool *failed)
{
    s->ptr = arena_dup(a, *s);
    *failed = *failed || s->ptr == NULL;
}

static enum status make_admitted(const struct soul *soul, const struct origin *from,
                                 struct str text, bool passphrase_ok,
                                 struct admitted **out)
{
    struct arena *arena = arena_new(text.len + ORIGIN_MAX);
    struct admitted *a = arena != NULL ? arena_alloc(arena, sizeof(*a)) : NULL;
    bool failed = a == NULL;

    if (!failed) {
        *a = (struct admitted){soul, *from, text, passphrase_ok, arena};
        a->from.sender_ids = NULL; /* of use to activation only */
        a->from.nsender_ids = 0;
        keep(arena, &a->text, &failed);
        keep(arena, &a->from.channel, &failed);
        keep(arena, &a->from.sender, &failed);
        keep(arena, &a->from.sender_name, &failed);
        keep(arena, &a->from.conversation, &failed);
        keep(arena, &a->from.peer, &failed);
    }
    if (failed) {
        arena_free(arena);
        return ST_NOMEM;
    }
    *out = a;
    return ST_OK;
}

enum status gate_admit(const struct soul *soul, const struct config_channel *channel,
                       const struct origin *from, struct str text, bool passphrase_ok,
                       struct verdict *v, struct admitted **out, struct error *err)
{
    struct message_facts f = {.entry = from->entry, .passphrase_ok = passphrase_ok};

    if (soul != NULL) {
        f.agent_known = true;
        f.agent_enabled = soul->enabled;
        f.trigger = soul->trigger;
        f.channel_served = gate_channel_served(soul, from->channel);
    }
    activation_facts(channel, from, &text, &f);
    *v = gate_message(&f);
    if (v->answer != GATE_ALLOW) {
        return error_set(err, ST_REFUSED, "%s", v->row->text);
    }
    if (make_admitted(soul, from, text, passphrase_ok, out) != ST_OK) {
        return error_set(err, ST_NOMEM, "out of memory for a message");
    }
    return ST_OK;
}

enum status gate_suppose(const struct soul *soul, const struct origin *from,
                         struct admitted **out)
{
    return make_admitted(soul, from, STR_NONE, true, out);
}

void admitted_free(struct admitted *a)
{
    if (a != NULL) {
        arena_free(a->arena);
    }
}

const struct soul *admitted_soul(const struct admitted *a)
{
    return a->soul;
}

const struct origin *admitted_origin(const struct admitted *a)
{
    return &a->from;
}

struct str admitted_text(const struct admitted *a)
{
    return a->text;
}

bool admitted_passphrase_ok(const struct admitted *a)
{
    return a->passphrase_ok;
}

const char *gate_entry_name(enum gate_entry e)
{
    static const char *const names[ENTRY_COUNT_] = {
        [ENTRY_CHANNEL] = "channel",
        [ENTRY_CHAT] = "chat",
        [ENTRY_STREAM] = "stream",
        [ENTRY_TOOLS_RUN] = "tools.run",
        [ENTRY_COMPLETIONS] = "completions",
        [ENTRY_WEBHOOK] = "webhook",
        [ENTRY_WORKFLOW] = "workflow",
        [ENTRY_PEER] = "peer",
        [ENTRY_MCP] = "mcp",
        [ENTRY_CLI] = "cli",
    };

    return (unsigned)e < ENTRY_COUNT_ ? names[e] : "unknown";
}

const char *gate_answer_name(enum gate_answer a)
{
    static const char *const names[] = {"deny", "ask", "allow"};

    return (unsigned)a < 3 ? names[a] : "deny";
}
