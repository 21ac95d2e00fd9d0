/* The bytes between core and harness. Pure.
 *
 * To the harness, once: "<decimal length>\n<harness source>" (the preamble, read by the
 * bootstrap). Then one request frame; back comes one answer frame.
 *
 * frame   = magic "SYF1" | kind u8 | call id u64 LE | length u32 LE | payload
 * request = kind 'Q', payload: fields, each u8 tag | u32 LE length | bytes (source, file
 *           name, function, arguments as raw JSON text, environment pairs, limits)
 *   1 source | 2 file name | 3 function | 4 arguments | 5 NAME=value (repeated)
 *   6 limits: "cpu=SECONDS as=BYTES nofile=N fsize=BYTES nproc=N", those there are
 * answer  = kind 'R' (result) or 'E' (error), payload: same field coding
 *   1 result | 2 's' (text as it is) or 'j' (JSON)
 *   3 class | 4 message | 5 traceback | 6 cause | 7 detail (decimal)
 * Before it reads the request the harness writes one frame of kind 'H', id 0 and no
 * payload: it is up. Executors may wait for it; the reader skips it.
 * Whatever else stands on the answer channel is skipped: a tool can write there too. */
#ifndef SOULACY_EXEC_FRAME_H
#define SOULACY_EXEC_FRAME_H

#include "base/buf.h"
#include "base/error.h"
#include "sandbox/plan.h"

struct frame_reader; /* opaque: fed byte-wise, finds the answer of one call id */

struct frame_answer {
    bool is_error;
    struct str result;    /* text (string results as they are, else JSON) */
    bool result_is_text;  /* the tool returned a str */
    struct str err_class; /* "ValueError", or a harness cause such as "exit" */
    struct str err_message;
    struct str traceback;
    struct str cause; /* "": an exception of the tool. "exit": SystemExit, the code in
                         detail. "memory": MemoryError */
    int detail;
};

enum status frame_reader_new(uint64_t call_id, size_t max_payload,
                             struct frame_reader **out) SY_MUST_CHECK;
void frame_reader_free(struct frame_reader *r);
/* Feed bytes. ST_OK: answer complete (spans live in the reader). ST_BUSY: more needed.
 * ST_TOO_LARGE: announced length over the cap. ST_INVALID: the frame is not one. */
enum status frame_feed(struct frame_reader *r, struct str bytes, struct frame_answer *out,
                       struct error *err) SY_MUST_CHECK;

/* The request frame of a call. */
enum status frame_request(const struct plan_call *call, const struct launch_spec *launch,
                          uint64_t call_id, struct buf *out) SY_MUST_CHECK;

#endif
