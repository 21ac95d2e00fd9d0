/* The user's text in; a tool call, a list of tools or a short help text out. This is no
 * language model: it makes the gateway usable and testable without a key. The calls it
 * makes pass the same gate as any model's. Pure. */
#include "base/json.h"
#include "model/model.h"

#include <string.h>

/* Over the largest result of a tool (runtime.max_tool_output_kb). */
#define REPLY_MAX ((size_t)80 * 1024 * 1024)

static const char usage[] =
    "I am `local`, the gateway's built-in provider. I am no language model. I "
    "understand:\n"
    "  /tools                      list this agent's tools and their parameters\n"
    "  /tool NAME key=value ...    call a tool; quote values with spaces: key=\"a b\"\n"
    "  /tool NAME {\"key\": 1}       the same with the arguments as JSON\n"
    "  /tool {\"tool\": \"NAME\", \"args\": {...}}\n"
    "Set llm.default_provider in config.yaml to talk to a real model.";

static enum status no_memory(struct error *err)
{
    return error_set(err, ST_NOMEM, "provider local: the answer is too large");
}

static enum status keep_text(struct arena *a, struct buf *b, struct str *out,
                             struct error *err)
{
    const char *p = buf_status(b) == ST_OK ? arena_dup(a, buf_str(b)) : NULL;

    if (p == NULL) {
        return no_memory(err);
    }
    *out = str_n(p, b->len);
    return ST_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The word at the head of *s, which moves behind it. */
static struct str take_word(struct str *s)
{
    size_t n = 0;
    struct str word;

    *s = str_trim(*s);
    while (n < s->len && !is_space(s->ptr[n])) {
        n++;
    }
    word = str_n(s->ptr, n);
    *s = str_trim(str_n(s->ptr + n, s->len - n));
    return word;
}

/* The schema of that tool, to be freed; NULL when there is none to go by. */
static enum status schema_of(const struct model_request *req, struct str tool,
                             cJSON **schema)
{
    size_t i = 0;

    while (i < req->ntools && !str_eq(req->tools[i].name, tool)) {
        i++;
    }
    if (i < req->ntools &&
        json_parse(req->tools[i].parameters, schema, NULL) == ST_NOMEM) {
        return ST_NOMEM;
    }
    return ST_OK;
}

/* The schema says that this parameter is text. */
static bool wants_text(const cJSON *schema, struct str key)
{
    const cJSON *props = json_get(schema, "properties");

    for (const cJSON *p = props != NULL ? props->child : NULL; p != NULL; p = p->next) {
        struct str type = STR_NONE;

        if (str_eq_c(key, p->string) && json_get_str(p, "type", &type)) {
            return str_eq_c(type, "string");
        }
    }
    return false;
}

/* A value as written on the command line: text where it is quoted or the tool wants text,
 * JSON where it is JSON, text otherwise. */
static enum status add_value(struct buf *out, struct str value, bool text)
{
    enum status st = text ? ST_INVALID : json_check(value, JSON_MAX_DEPTH - 1, NULL);

    if (st == ST_OK) {
        buf_add_str(out, value);
    } else {
        json_add_string(out, value);
    }
    return st == ST_NOMEM ? ST_NOMEM : ST_OK;
}

/* Reads a value, in quotes or up to white space; *s moves behind it. False: a quote that
 * nothing closes. */
static bool take_value(struct str *s, struct buf *value, bool *quoted)
{
    char quote = s->len > 0 ? s->ptr[0] : ' ';
    size_t i;

    *quoted = quote == '"' || quote == '\'';
    buf_clear(value);
    for (i = *quoted ? 1 : 0; i < s->len; i++) {
        char c = s->ptr[i];

        if (*quoted ? c == quote : is_space(c)) {
            break;
        }
        if (*quoted && c == '\\' && i + 1 < s->len) {
            c = s->ptr[++i];
        }
        buf_add_char(value, c);
    }
    if (*quoted && i == s->len) {
        return false;
    }
    i += *quoted ? 1 : 0;
    *s = str_trim(str_n(s->ptr + i, s->len - i));
    return true;
}

/* Takes one key=value off *rest and appends it as a member. */
static enum status take_pair(const cJSON *schema, struct str *rest, struct buf *value,
                             struct buf *out, struct error *err)
{
    size_t eq = 0;
    struct str key;
    bool quoted;

    while (eq < rest->len && rest->ptr[eq] != '=' && !is_space(rest->ptr[eq])) {
        eq++;
    }
    if (eq == 0 || eq == rest->len || rest->ptr[eq] != '=') {
        return error_set(err, ST_INVALID, "arguments are written key=value");
    }
    key = str_n(rest->ptr, eq);
    *rest = str_n(rest->ptr + eq + 1, rest->len - eq - 1);
    if (!take_value(rest, value, &quoted)) {
        return error_set(err, ST_INVALID, "the value of %.*s has no closing quote",
                         (int)key.len, key.ptr);
    }
    json_add_sep(out);
    json_add_string(out, key);
    buf_add_char(out, ':');
    return add_value(out, buf_str(value), quoted || wants_text(schema, key));
}

static enum status pairs_to_json(const struct model_request *req, struct str tool,
                                 struct str rest, struct buf *out, struct error *err)
{
    cJSON *schema = NULL;
    struct buf value;
    enum status st = schema_of(req, tool, &schema);

    buf_init(&value, REPLY_MAX);
    buf_add_char(out, '{');
    while (rest.len > 0 && st == ST_OK) {
        st = take_pair(schema, &rest, &value, out, err);
        st = buf_status(&value) == ST_OK ? st : ST_NOMEM;
    }
    buf_add_char(out, '}');
    buf_done(&value);
    cJSON_Delete(schema);
    return st;
}

static enum status one_call(struct arena *a, struct str name, struct str args,
                            struct model_reply *out)
{
    struct model_call *call = arena_alloc(a, sizeof(*call) + name.len + args.len);
    char *texts;

    if (call == NULL) {
        return ST_NOMEM;
    }
    texts = (char *)(call + 1);
    memcpy(texts, name.ptr, name.len);
    memcpy(texts + name.len, args.ptr, args.len);
    *call = (struct model_call){STR_LIT("call_1"), str_n(texts, name.len),
                                str_n(texts + name.len, args.len)};
    out->calls = call;
    out->ncalls = 1;
    return ST_OK;
}

/* {"tool": NAME, "args": {...}}: both, and nothing that would be passed over. */
static enum status read_call(const cJSON *doc, struct str text, struct str *name,
                             struct str *args, struct error *err)
{
    for (const cJSON *m = doc->child; m != NULL; m = m->next) {
        struct str key = str_c(m->string);

        if (!str_eq_c(key, "tool") && !str_eq_c(key, "args")) {
            return error_set(err, ST_INVALID,
                             "the JSON has \"%s\"; it takes \"tool\" and \"args\"",
                             m->string);
        }
    }
    if (!json_get_str(doc, "tool", name)) {
        return error_set(err, ST_INVALID, "the JSON has no \"tool\" that is text");
    }
    (void)!json_raw_member(text, "args", args); /* stays {} when absent */
    return ST_OK;
}

static enum status call_from_json(struct str text, struct arena *a,
                                  struct model_reply *out, struct error *err)
{
    struct str name = STR_NONE, args = STR_LIT("{}");
    cJSON *doc = NULL;
    enum status st = json_parse(text, &doc, err);

    if (st == ST_OK) {
        st = read_call(doc, text, &name, &args, err);
    }
    if (st == ST_OK) {
        st = one_call(a, name, args, out);
    }
    cJSON_Delete(doc);
    return st;
}

static enum status call_tool(const struct model_request *req, struct str rest,
                             struct arena *a, struct model_reply *out, struct error *err)
{
    struct str name, prefix = STR_LIT("tool=");
    struct buf args;
    enum status st;

    if (rest.len > 0 && rest.ptr[0] == '{') {
        return call_from_json(rest, a, out, err);
    }
    name = take_word(&rest);
    if (str_starts(name, prefix)) {
        name = str_n(name.ptr + prefix.len, name.len - prefix.len);
    }
    if (name.len == 0) {
        return error_set(err, ST_INVALID, "name a tool; /tools lists them");
    }
    if (rest.len > 0 && rest.ptr[0] == '{') {
        return one_call(a, name, rest, out);
    }
    buf_init(&args, REPLY_MAX);
    st = pairs_to_json(req, name, rest, &args, err);
    if (st == ST_OK) {
        st = buf_status(&args) == ST_OK ? one_call(a, name, buf_str(&args), out)
                                        : ST_NOMEM;
    }
    buf_done(&args);
    return st;
}

static bool requires(const cJSON *schema, const char *name)
{
    const cJSON *list = json_get(schema, "required");

    for (const cJSON *r = list != NULL ? list->child : NULL; r != NULL; r = r->next) {
        if (cJSON_IsString(r) && str_eq(str_c(r->valuestring), str_c(name))) {
            return true;
        }
    }
    return false;
}

static enum status list_parameters(struct buf *b, struct str text)
{
    cJSON *schema = NULL;
    const cJSON *props;
    enum status st = json_parse(text, &schema, NULL);

    props = json_get(schema, "properties");
    for (const cJSON *p = props != NULL ? props->child : NULL; p != NULL; p = p->next) {
        struct str type = STR_LIT("any"), about = STR_NONE;

        (void)json_get_str(p, "type", &type);
        (void)json_get_str(p, "description", &about);
        buf_addf(b, "\n    %s: ", p->string);
        buf_add_str(b, type);
        buf_add_c(b, requires(schema, p->string) ? ", required" : "");
        buf_add_c(b, about.len > 0 ? ". " : "");
        buf_add_str(b, about);
    }
    cJSON_Delete(schema);
    return st == ST_NOMEM ? ST_NOMEM : ST_OK;
}

static enum status list_tools(const struct model_request *req, struct arena *a,
                              struct model_reply *out, struct error *err)
{
    enum status st = ST_OK;
    struct buf b;

    buf_init(&b, REPLY_MAX);
    buf_addf(&b,
             req->ntools > 0 ? "Tools of %s on this channel:" : "%s has no tools here.",
             req->agent_name);
    for (size_t i = 0; i < req->ntools && st == ST_OK; i++) {
        const struct model_tool *t = &req->tools[i];

        buf_add_c(&b, "\n- ");
        buf_add_str(&b, t->name);
        buf_add_c(&b, t->description.len > 0 ? ": " : "");
        buf_add_str(&b, t->description);
        st = list_parameters(&b, t->parameters);
    }
    st = st == ST_OK ? keep_text(a, &b, &out->text, err) : no_memory(err);
    buf_done(&b);
    return st;
}

/* The results that stand at the end of the history. */
static enum status show_results(const struct model_request *req, struct arena *a,
                                struct model_reply *out, struct error *err)
{
    size_t first = req->nmessages;
    struct buf b;
    enum status st;

    while (first > 0 && req->messages[first - 1].role == MODEL_TOOL) {
        first--;
    }
    buf_init(&b, REPLY_MAX);
    for (size_t i = first; i < req->nmessages; i++) {
        const struct model_message *m = &req->messages[i];

        if (b.len > 0) {
            buf_add_char(&b, '\n');
        }
        if (m->is_error) {
            buf_add_str(&b, m->tool_name);
            buf_add_c(&b, " failed: ");
        }
        buf_add_str(&b, m->text);
    }
    st = keep_text(a, &b, &out->text, err);
    buf_done(&b);
    return st;
}

static enum status answer_text(const struct model_request *req, struct str text,
                               struct arena *a, struct model_reply *out,
                               struct error *err)
{
    struct str word = take_word(&text);
    struct error why = {0};
    enum status st;

    if (str_eq_c(word, "/tools") && text.len == 0) {
        return list_tools(req, a, out, err);
    }
    if (!str_eq_c(word, "/tool")) {
        out->text = str_c(usage);
        return ST_OK;
    }
    st = call_tool(req, text, a, out, &why);
    if (st == ST_OK) {
        return ST_OK;
    }
    if (st != ST_NOMEM) {
        out->text =
            str_c(arena_printf(a, "/tool: %s. Say anything else for help.", why.text));
    }
    return out->text.ptr != NULL ? ST_OK : no_memory(err);
}

static enum status answer(const struct model_request *req, struct arena *a,
                          struct model_reply *out, struct error *err)
{
    const struct model_message *last =
        req->nmessages > 0 ? &req->messages[req->nmessages - 1] : NULL;

    if (last != NULL && last->role == MODEL_TOOL) {
        return show_results(req, a, out, err);
    }
    return answer_text(req, last != NULL ? last->text : STR_NONE, a, out, err);
}

enum status model_local(const struct model_request *req, struct arena *a,
                        struct model_reply *out, struct error *err)
{
    struct model_reply r = {0};
    enum status st = answer(req, a, &r, err);

    if (st != ST_OK) {
        return st;
    }
    if (req->token != NULL && r.text.len > 0) {
        req->token(req->ctx, r.text);
    }
    *out = r;
    return ST_OK;
}
