/* WebSocket frames of a client (RFC 6455), taken apart, and ours put together. Pure. */
#ifndef SOULACY_SERVER_WS_H
#define SOULACY_SERVER_WS_H

#include "base/buf.h"

enum ws_event { WS_MORE = 0, WS_TEXT, WS_PING, WS_PONG, WS_CLOSE, WS_BAD };

enum ws_opcode { WS_OP_TEXT = 1, WS_OP_CLOSE = 8, WS_OP_PING = 9, WS_OP_PONG = 10 };

struct ws_parser;

/* max: bytes of one whole message. */
struct ws_parser *ws_parser_new(size_t max) SY_MUST_CHECK;
void ws_parser_free(struct ws_parser *p); /* NULL is fine */
/* Take bytes from *in until something is whole. TEXT: *payload is the message, valid
 * UTF-8, good until the next call. PING: what the pong repeats. BAD: *code is the close
 * code to send. */
enum ws_event ws_next(struct ws_parser *p, struct str *in, struct str *payload,
                      int *code);

void ws_add_frame(struct buf *out, enum ws_opcode op, struct str payload);
void ws_add_close(struct buf *out, int code);
/* Sec-WebSocket-Accept for a 24 byte key; out of at least 29 bytes. */
bool ws_accept(struct str key, char *out, size_t cap);

#endif
