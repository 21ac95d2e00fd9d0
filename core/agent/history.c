/* Rows of the store in, messages for a model out, and back. Calls are stored as an array of
 * {"id","name","args"} with args as text, so that no number is parsed and printed again.
 * Never shows a model a call without its result. */
#include "agent/history.h"

#include "base/json.h"

#define HISTORY_MESSAGES 200
#define HISTORY_BYTES ((size_t)512 * 1024)
#define CALLS_BYTES ((size_t)256 * 1024 * 1024)

static enum status no_memory(struct error *err)
{
    return error_set(err, ST_NOMEM, "out of memory for the session's history");
}

/* ---- rows ------------------------------------------------------------------------ */

static enum status calls_to_json(const struct model_message *m, struct arena *a,
                                 struct str *out)
{
    struct buf b;
    const char *copy;

    *out = STR_NONE;
    if (m->ncalls == 0) {
        return ST_OK;
    }
    buf_init(&b, CALLS_BYTES);
    buf_add_char(&b, '[');
    for (size_t i = 0; i < m->ncalls; i++) {
        json_add_sep(&b);
        buf_add_char(&b, '{');
        json_add_key_string(&b, "id", m->calls[i].id);
        json_add_key_string(&b, "name", m->calls[i].name);
        json_add_key_string(&b, "args", m->calls[i].args);
        buf_add_char(&b, '}');
    }
    buf_add_char(&b, ']');
    copy = buf_status(&b) == ST_OK ? arena_dup(a, buf_str(&b)) : NULL;
    *out = str_n(copy, copy != NULL ? b.len : 0);
    buf_done(&b);
    return copy != NULL ? ST_OK : ST_NOMEM;
}

enum status history_row(const struct model_message *m, struct arena *a,
                        struct message *out)
{
    static const enum message_role roles[] = {[MODEL_USER] = ROLE_USER,
                                              [MODEL_ASSISTANT] = ROLE_ASSISTANT,
                                              [MODEL_TOOL] = ROLE_TOOL};

    *out = (struct message){.role = roles[m->role],
                            .is_error = m->is_error,
                            .text = m->text,
                            .call_id = m->call_id,
                            .tool_name = m->tool_name};
    return calls_to_json(m, a, &out->tool_calls);
}

static enum status take_member(const cJSON *obj, const char *key, struct arena *a,
                               struct str *out)
{
    struct str s = STR_NONE;

    if (!json_get_str(obj, key, &s)) {
        return ST_INTERNAL;
    }
    *out = str_n(arena_dup(a, s), s.len);
    return out->ptr != NULL ? ST_OK : ST_NOMEM;
}

static enum status take_call(const cJSON *c, struct arena *a, struct model_call *out)
{
    enum status st = take_member(c, "id", a, &out->id);

    if (st == ST_OK) {
        st = take_member(c, "name", a, &out->name);
    }
    return st == ST_OK ? take_member(c, "args", a, &out->args) : st;
}

static enum status calls_from_json(struct str text, struct arena *a,
                                   struct model_message *m)
{
    struct model_call *calls;
    cJSON *doc = NULL;
    enum status st = json_parse(text, &doc, NULL);

    if (st != ST_OK) {
        return st == ST_NOMEM ? ST_NOMEM : ST_INTERNAL;
    }
    calls = arena_array(a, (size_t)cJSON_GetArraySize(doc) + 1, sizeof(*calls));
    st = calls != NULL ? ST_OK : ST_NOMEM;
    for (const cJSON *c = doc->child; st == ST_OK && c != NULL; c = c->next) {
        st = take_call(c, a, &calls[m->ncalls]);
        m->ncalls += st == ST_OK ? 1 : 0;
    }
    m->calls = calls;
    cJSON_Delete(doc);
    return st;
}

static enum status from_row(const struct message *row, struct arena *a,
                            struct model_message *out)
{
    *out = (struct model_message){.role = row->role == ROLE_USER        ? MODEL_USER
                                          : row->role == ROLE_ASSISTANT ? MODEL_ASSISTANT
                                                                        : MODEL_TOOL,
                                  .text = row->text,
                                  .call_id = row->call_id,
                                  .tool_name = row->tool_name,
                                  .is_error = row->is_error};
    return row->tool_calls.len > 0 ? calls_from_json(row->tool_calls, a, out) : ST_OK;
}

/* ---- repair ----------------------------------------------------------------------- */

/* The calls of the newest assistant message, and which of them have a result. */
struct open_calls {
    const struct model_call *calls;
    size_t n;
    bool *answered; /* as many as the longest list has */
};

static bool answers_a_call(struct open_calls *open, const struct model_message *m)
{
    for (size_t i = 0; i < open->n; i++) {
        if (!open->answered[i] && str_eq(open->calls[i].id, m->call_id)) {
            open->answered[i] = true;
            return true;
        }
    }
    return false;
}

/* Results for the calls that have none; nothing is open afterwards. */
static void close_calls(struct open_calls *open, struct model_message *out, size_t *n)
{
    for (size_t i = 0; i < open->n; i++) {
        if (!open->answered[i]) {
            out[(*n)++] = (struct model_message){
                .role = MODEL_TOOL,
                .text = STR_LIT("no result: the run was cut off before this call ended"),
                .call_id = open->calls[i].id,
                .tool_name = open->calls[i].name,
                .is_error = true};
        }
        open->answered[i] = false;
    }
    open->n = 0;
}

enum status history_repair(const struct model_message *in, size_t n, struct arena *a,
                           struct model_message **out, size_t *nout)
{
    struct open_calls open = {0};
    struct model_message *list;
    size_t most = n, kept = 0;
    bool begun = false;

    for (size_t i = 0; i < n; i++) {
        most += in[i].ncalls;
    }
    list = arena_array(a, most + 1, sizeof(*list));
    open.answered = arena_array(a, most + 1, sizeof(*open.answered));
    if (list == NULL || open.answered == NULL) {
        return ST_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        begun = begun || in[i].role == MODEL_USER;
        if (in[i].role != MODEL_TOOL) {
            close_calls(&open, list, &kept);
            open.calls = in[i].calls;
            open.n = begun ? in[i].ncalls : 0;
        }
        if (begun && (in[i].role != MODEL_TOOL || answers_a_call(&open, &in[i]))) {
            list[kept++] = in[i];
        }
    }
    close_calls(&open, list, &kept);
    *out = list;
    *nout = kept;
    return ST_OK;
}

enum status history_load(struct store *s, struct session_key key, struct arena *a,
                         struct model_message **out, size_t *n, struct error *err)
{
    struct model_message *list;
    struct message *rows = NULL;
    size_t nrows = 0;
    enum status st =
        store_history(s, key, HISTORY_MESSAGES, HISTORY_BYTES, a, &rows, &nrows, err);

    if (st != ST_OK) {
        return st == ST_NOT_FOUND ? ST_OK : error_context(err, "the session's history");
    }
    list = arena_array(a, nrows + 1, sizeof(*list));
    st = list != NULL ? ST_OK : ST_NOMEM;
    for (size_t i = 0; st == ST_OK && i < nrows; i++) {
        st = from_row(&rows[i], a, &list[i]);
    }
    if (st == ST_OK) {
        st = history_repair(list, nrows, a, out, n);
    }
    if (st == ST_NOMEM) {
        return no_memory(err);
    }
    return st == ST_OK ? ST_OK
                       : error_set(err, st, "the session's history is not well formed");
}
