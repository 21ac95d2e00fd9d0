/* In: a reply or a typing note of the core. Out: what the channel plugin made of it, with
 * an outcome that is one of those the ABI knows. It never repeats a send. */
#include "plugin/internal.h"

#include "base/utf8.h"

#include <string.h>

bool plugin_channel_can_send(const struct plugin_instance *p)
{
    return p->channel.send != NULL;
}

uint32_t plugin_channel_max_text(const struct plugin_instance *p)
{
    return p->channel.max_text_chars;
}

/* An outcome nobody knows may have sent it: never repeated blindly. */
static void check_sent(struct plugin_instance *p, struct sy_sent *s)
{
    size_t n = strnlen(s->transport_id, sizeof s->transport_id);
    if (s->outcome < SY_SENT || s->outcome > SY_SENT_UNKNOWN) {
        plugin_misbehaved(p, "send() gave outcome %u, which is unknown", s->outcome);
        s->outcome = SY_SENT_UNKNOWN;
    }
    if (n == sizeof s->transport_id || !utf8_valid(str_n(s->transport_id, n))) {
        plugin_misbehaved(p, "send() gave a transport_id that is no text");
        s->transport_id[0] = '\0';
    }
    s->retry_after_ms = s->retry_after_ms < 0 ? 0 : s->retry_after_ms;
    s->size = sizeof *s;
}

enum status plugin_channel_send(struct plugin_instance *p, const struct sy_outgoing *msg,
                                struct sy_sent *out, struct error *err)
{
    struct sy_error e = plugin_error_slot();
    struct sy_sent sent;
    memset(&sent, 0, sizeof sent);
    sent.size = sizeof sent;
    *out = sent;
    out->outcome = SY_SENT_RETRY;
    if (p->channel.send == NULL) {
        return error_set(err, ST_UNSUPPORTED, "channel %s cannot send", p->name);
    }
    enum status st = plugin_downcall_begin(p, false, err);
    if (st != ST_OK) {
        return st;
    }
    sy_status got = p->channel.send(p->self, msg, &sent, &e);
    plugin_check_deadline(p, "send()", msg->deadline_ms);
    plugin_downcall_end(p, false);
    if (got != SY_OK) {
        return plugin_take_error(p, "send()", got, &e, err);
    }
    check_sent(p, &sent);
    if (sent.outcome == SY_SENT_NEVER) {
        (void)plugin_take_error(p, "send()", SY_E_REFUSED, &e, err);
    }
    *out = sent;
    return ST_OK;
}

void plugin_channel_typing(struct plugin_instance *p, struct sy_str account,
                           struct sy_str conversation, struct sy_str message_id,
                           bool busy, int64_t deadline_ms)
{
    struct error ignored;
    if (plugin_downcall_begin(p, false, &ignored) == ST_OK) {
        p->channel.typing(p->self, account, conversation, message_id, busy ? 1 : 0,
                          deadline_ms);
        plugin_check_deadline(p, "typing()", deadline_ms);
        plugin_downcall_end(p, false);
    }
}
