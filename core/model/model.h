/* One answer of a language model. A provider turns the neutral request into its protocol
 * and its stream back into the neutral reply. */
#ifndef SOULACY_MODEL_MODEL_H
#define SOULACY_MODEL_MODEL_H

#include "base/arena.h"
#include "base/io.h"

enum model_role { MODEL_USER, MODEL_ASSISTANT, MODEL_TOOL };

/* A call the model asks for. args: raw JSON text exactly as the model wrote it. */
struct model_call {
    struct str id, name, args;
};

struct model_message {
    enum model_role role;
    struct str text;
    const struct model_call *calls; /* MODEL_ASSISTANT */
    size_t ncalls;
    struct str call_id, tool_name; /* MODEL_TOOL */
    bool is_error;                 /* MODEL_TOOL */
};

struct model_tool {
    struct str name, description;
    struct str parameters; /* JSON Schema text */
};

struct model_request {
    struct str system;
    const struct model_message *messages;
    size_t nmessages;
    const struct model_tool *tools;
    size_t ntools;
    const char *agent_name;
    int64_t deadline_ms;        /* monotonic */
    const struct event *cancel; /* may be NULL */
    void *ctx;
    void (*token)(void *ctx, struct str text); /* text as it comes; may be NULL */
};

struct model_reply { /* lives in the arena given */
    struct str text;
    struct model_call *calls;
    size_t ncalls;
    int64_t input_tokens, output_tokens;
};

/* The embedded provider: no language model, and it says so. It obeys three commands of
 * the user's text and shows tool results. Pure. */
enum status model_local(const struct model_request *req, struct arena *a,
                        struct model_reply *out, struct error *err) SY_MUST_CHECK;

#endif
