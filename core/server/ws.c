/* Comes in: bytes of a WebSocket client, in any pieces. Goes out: whole text messages and
 * control frames. Never takes an unmasked frame, a binary one, reserved bits, text that
 * is not UTF-8, or more than the maximum; no extension is negotiated. */
#include "server/ws.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <libwebsockets.h>
#include <string.h>

#define CONTROL_MAX 125U

struct ws_parser {
    unsigned char head[14];
    size_t nhead;
    size_t left;   /* of the frame's payload; meaningful when in_payload */
    size_t masked; /* payload bytes done, for the mask */
    bool in_payload, fin, in_message;
    unsigned op;
    unsigned char mask[4];
    struct buf message;
    char control[CONTROL_MAX];
    size_t ncontrol;
    bool delivered; /* message was handed out and is to be cleared */
};

struct ws_parser *ws_parser_new(size_t max)
{
    struct ws_parser *p = mem_zalloc(sizeof *p);
    if (p) {
        buf_init(&p->message, max);
    }
    return p;
}

void ws_parser_free(struct ws_parser *p)
{
    if (p) {
        buf_done(&p->message);
        mem_free(p);
    }
}

/* How long the head is, as far as its first two bytes say. */
static size_t head_bytes(const struct ws_parser *p)
{
    if (p->nhead < 2) {
        return 2;
    }
    unsigned len = p->head[1] & 0x7fU;
    return 2 + (len == 126 ? 2U : len == 127 ? 8U : 0U) + 4;
}

static enum ws_event bad(int *code, int why)
{
    *code = why;
    return WS_BAD;
}

static bool opcode_ok(const struct ws_parser *p)
{
    switch (p->op) {
    case 0:
        return p->in_message;
    case WS_OP_TEXT:
        return !p->in_message;
    case WS_OP_CLOSE:
    case WS_OP_PING:
    case WS_OP_PONG:
        return p->fin;
    default:
        return false;
    }
}

static enum ws_event head_done(struct ws_parser *p, int *code)
{
    p->fin = (p->head[0] & 0x80U) != 0;
    p->op = p->head[0] & 0x0fU;
    uint64_t len = p->head[1] & 0x7fU;
    size_t at = 2;
    if (len >= 126) {
        size_t n = len == 126 ? 2 : 8;
        len = 0;
        for (size_t i = 0; i < n; i++) {
            len = (len << 8) | p->head[at++];
        }
    }
    if ((p->head[0] & 0x70U) != 0) {
        return bad(code, 1002);
    }
    if (p->op == 2) {
        return bad(code, 1003);
    }
    if (!opcode_ok(p) || (p->op >= 8 && len > CONTROL_MAX)) {
        return bad(code, 1002);
    }
    if (p->op < 8 && len > p->message.max - p->message.len) {
        return bad(code, 1009);
    }
    memcpy(p->mask, p->head + at, 4);
    p->left = (size_t)len;
    p->masked = 0;
    p->ncontrol = 0;
    p->nhead = 0;
    p->in_payload = true;
    p->in_message = p->in_message || p->op == WS_OP_TEXT;
    return WS_MORE;
}

static enum ws_event take_payload(struct ws_parser *p, struct str *in, int *code)
{
    size_t n = in->len < p->left ? in->len : p->left;
    char *to = NULL;
    if (p->op >= 8) {
        to = p->control + p->ncontrol;
        p->ncontrol += n;
    } else if (n > 0) {
        to = buf_room(&p->message, n);
        if (!to) {
            return bad(code, 1009);
        }
        p->message.len += n;
        to[n] = 0;
    }
    for (size_t i = 0; i < n && to; i++) {
        to[i] = (char)((unsigned char)in->ptr[i] ^ p->mask[(p->masked + i) % 4]);
    }
    p->masked += n;
    p->left -= n;
    *in = str_n(in->ptr + n, in->len - n);
    return WS_MORE;
}

static bool close_ok(struct str payload)
{
    if (payload.len == 0) {
        return true;
    }
    if (payload.len == 1) {
        return false;
    }
    int code = (unsigned char)payload.ptr[0] * 256 + (unsigned char)payload.ptr[1];
    bool known =
        (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
        (code >= 3000 && code <= 4999);
    return known && utf8_valid(str_n(payload.ptr + 2, payload.len - 2));
}

static enum ws_event frame_done(struct ws_parser *p, struct str *payload, int *code)
{
    p->in_payload = false;
    if (p->op >= 8) {
        *payload = str_n(p->control, p->ncontrol);
        if (p->op == WS_OP_CLOSE) {
            return close_ok(*payload) ? WS_CLOSE : bad(code, 1002);
        }
        return p->op == WS_OP_PING ? WS_PING : WS_PONG;
    }
    if (!p->fin) {
        return WS_MORE;
    }
    p->in_message = false;
    p->delivered = true;
    *payload = buf_str(&p->message);
    return utf8_valid(*payload) ? WS_TEXT : bad(code, 1007);
}

enum ws_event ws_next(struct ws_parser *p, struct str *in, struct str *payload, int *code)
{
    if (p->delivered) {
        p->delivered = false;
        size_t max = p->message.max;
        buf_done(&p->message);
        buf_init(&p->message, max);
    }
    for (;;) {
        enum ws_event ev = WS_MORE;
        if (p->in_payload) {
            ev = take_payload(p, in, code);
            if (ev == WS_MORE && p->left == 0) {
                ev = frame_done(p, payload, code);
            } else if (ev == WS_MORE) {
                return WS_MORE;
            }
        } else if (in->len == 0) {
            return WS_MORE;
        } else {
            p->head[p->nhead++] = (unsigned char)in->ptr[0];
            *in = str_n(in->ptr + 1, in->len - 1);
            if (p->nhead == 2 && (p->head[1] & 0x80U) == 0) {
                ev = bad(code,
                         1002); /* not masked: its head is shorter than we wait for */
            } else if (p->nhead >= 2 && p->nhead == head_bytes(p)) {
                ev = head_done(p, code);
            }
        }
        if (ev != WS_MORE) {
            return ev;
        }
    }
}

void ws_add_frame(struct buf *out, enum ws_opcode op, struct str payload)
{
    unsigned char head[10];
    size_t n = 2;
    head[0] = (unsigned char)(0x80U | (unsigned)op);
    if (payload.len < 126) {
        head[1] = (unsigned char)payload.len;
    } else if (payload.len <= 0xffff) {
        head[1] = 126;
        head[2] = (unsigned char)(payload.len >> 8);
        head[3] = (unsigned char)payload.len;
        n = 4;
    } else {
        head[1] = 127;
        for (size_t i = 0; i < 8; i++) {
            head[2 + i] = (unsigned char)((uint64_t)payload.len >> (56 - 8 * i));
        }
        n = 10;
    }
    buf_add(out, head, n);
    buf_add_str(out, payload);
}

void ws_add_close(struct buf *out, int code)
{
    char payload[2] = {(char)(code >> 8), (char)code};
    ws_add_frame(out, WS_OP_CLOSE, str_n(payload, sizeof payload));
}

bool ws_accept(struct str key, char *out, size_t cap)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char in[24 + sizeof guid];
    unsigned char digest[20];
    if (key.len != 24 || cap < 29) {
        return false;
    }
    memcpy(in, key.ptr, 24);
    memcpy(in + 24, guid, sizeof guid);
    lws_SHA1(in, 24 + sizeof guid - 1, digest);
    return lws_b64_encode_string((const char *)digest, sizeof digest, out, (int)cap) > 0;
}
