/* The user's text in; a tool call, a list of tools or a short help text out. This is no
 * language model: it makes the gateway usable and testable without a key. The calls it
 * makes pass the same gate as any model's. Pure. */
#include "base/json.h"
#include "model/model.h"

#define REPLY_MAX ((size_t)1024 * 1024)

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

/* The declared type of a parameter, or "" when the schema does not say. */
static struct str parameter_type(const struct model_request *req, struct str tool,
                                 struct str key, cJSON **hold)
{
    struct str type = STR_NONE;
    const cJSON *props;

    for (size_t i = 0; i < req->ntools && *hold == NULL; i++) {
        if (str_eq(req->tools[i].name, tool)) {
            struct error ignored;

            if (json_parse(req->tools[i].parameters, hold, &ignored) != ST_OK) {
                return type;
            }
        }
    }
    props = *hold != NULL ? json_get(*hold, "properties") : NULL;
    for (const cJSON *p = props != NULL ? props->child : NULL; p != NULL; p = p->next) {
        if (str_eq_c(key, p->string)) {
            (void)json_get_str(p, "type", &type);
        }
    }
    return type;
}

/* A value as written on the command line: text where the tool wants text, JSON where it
 * is JSON, text otherwise. */
static void add_value(struct buf *out, struct str type, struct str value, bool quoted)
{
    struct error ignored;

    if (!quoted && !str_eq_c(type, "string") &&
        json_check(value, JSON_MAX_DEPTH, &ignored) == ST_OK) {
        buf_add_str(out, value);
    } else {
        json_add_string(out, value);
    }
}

/* Reads a value, in quotes or up to white space; *s moves behind it. */
static bool take_value(struct str *s, struct buf *value, bool *quoted)
{
    char quote = s->len > 0 && (s->ptr[0] == '"' || s->ptr[0] == '\'') ? s->ptr[0] : '\0';
    size_t i = quote != '\0' ? 1 : 0;

    *quoted = quote != '\0';
    buf_clear(value);
    for (; i < s->len; i++) {
        char c = s->ptr[i];

        if (quote != '\0' ? c == quote : is_space(c)) {
            break;
        }
        if (quote != '\0' && c == '\\' && i + 1 < s->len) {
            c = s->ptr[++i];
        }
        buf_add_char(value, c);
    }
    if (quote != '\0') {
        if (i == s->len) {
            return false; /* no closing quote */
        }
        i++;
    }
    *s = str_trim(str_n(s->ptr + i, s->len - i));
    return true;
}

static enum status pairs_to_json(const struct model_request *req, struct str tool,
                                 struct str rest, struct buf *out, struct error *err)
{
    struct buf value;
    enum status st = ST_OK;

    buf_init(&value, REPLY_MAX);
    buf_add_char(out, '{');
    while (rest.len > 0 && st == ST_OK) {
        size_t eq = str_find_char(rest, '=');
        struct str key = str_n(rest.ptr, eq == SIZE_MAX ? 0 : eq);
        cJSON *hold = NULL;
        bool quoted;

        if (key.len == 0 || str_find_char(key, ' ') != SIZE_MAX) {
            st = error_set(err, ST_INVALID, "arguments are written key=value");
            break;
        }
        rest = str_n(rest.ptr + eq + 1, rest.len - eq - 1);
        if (!take_value(&rest, &value, &quoted)) {
            st = error_set(err, ST_INVALID, "the value of %.*s has no closing quote",
                           STR_ARG(key));
            break;
        }
        json_add_sep(out);
        json_add_string(out, key);
        buf_add_char(out, ':');
        add_value(out, parameter_type(req, tool, key, &hold), buf_str(&value), quoted);
        cJSON_Delete(hold);
    }
    buf_add_char(out, '}');
    if (st == ST_OK && (buf_status(out) != ST_OK || buf_status(&value) != ST_OK)) {
        st = no_memory(err);
    }
    buf_done(&value);
    return st;
}

static enum status one_call(struct arena *a, struct str name, struct str args,
                            struct model_reply *out, struct error *err)
{
    struct model_call *call = arena_alloc(a, sizeof(*call));
    const char *n = arena_dup(a, name), *j = arena_dup(a, args);

    if (call == NULL || n == NULL || j == NULL) {
        return no_memory(err);
    }
    *call =
        (struct model_call){STR_LIT("call_1"), str_n(n, name.len), str_n(j, args.len)};
    out->calls = call;
    out->ncalls = 1;
    return ST_OK;
}

/* /tool {"tool": NAME, "args": {...}} */
static enum status call_from_json(struct str text, struct arena *a,
                                  struct model_reply *out, struct error *err)
{
    struct str name = STR_NONE, args = STR_LIT("{}");
    cJSON *doc = NULL;
    enum status st = json_parse(text, &doc, err);

    if (st != ST_OK) {
        return st;
    }
    if (!json_get_str(doc, "tool", &name) && !json_get_str(doc, "name", &name)) {
        st = error_set(err, ST_INVALID, "the JSON has no \"tool\"");
    }
    if (st == ST_OK && json_raw_member(text, "args", &args) != ST_OK) {
        (void)!json_raw_member(text, "arguments", &args);
    }
    if (st == ST_OK) {
        st = one_call(a, name, args, out, err);
    }
    cJSON_Delete(doc);
    return st;
}

static enum status call_tool(const struct model_request *req, struct str rest,
                             struct arena *a, struct model_reply *out, struct error *err)
{
    struct str name;
    struct buf args;
    enum status st;

    if (rest.len > 0 && rest.ptr[0] == '{') {
        return call_from_json(rest, a, out, err);
    }
    name = take_word(&rest);
    if (str_starts(name, STR_LIT("tool="))) {
        name = str_n(name.ptr + 5, name.len - 5);
    }
    if (name.len == 0) {
        return error_set(err, ST_INVALID, "name a tool; /tools lists them");
    }
    buf_init(&args, REPLY_MAX);
    if (rest.len > 0 && rest.ptr[0] == '{') {
        st = one_call(a, name, rest, out, err);
    } else {
        st = pairs_to_json(req, name, rest, &args, err);
        if (st == ST_OK) {
            st = one_call(a, name, buf_str(&args), out, err);
        }
    }
    buf_done(&args);
    return st;
}

static void list_parameters(struct buf *b, struct str schema)
{
    struct error ignored;
    cJSON *doc = NULL;
    const cJSON *props, *required;

    if (json_parse(schema, &doc, &ignored) != ST_OK) {
        return;
    }
    props = json_get(doc, "properties");
    required = json_get(doc, "required");
    for (const cJSON *p = props != NULL ? props->child : NULL; p != NULL; p = p->next) {
        struct str type = STR_LIT("any"), about = STR_NONE;
        bool needed = false;

        for (const cJSON *r = required != NULL ? required->child : NULL; r != NULL;
             r = r->next) {
            needed = needed || (cJSON_IsString(r) &&
                                str_eq(str_c(r->valuestring), str_c(p->string)));
        }
        (void)json_get_str(p, "type", &type);
        (void)json_get_str(p, "description", &about);
        buf_addf(b, "\n    %s: %.*s%s", p->string, STR_ARG(type),
                 needed ? ", required" : "");
        buf_addf(b, "%s%.*s", about.len > 0 ? ". " : "", STR_ARG(about));
    }
    cJSON_Delete(doc);
}

static enum status list_tools(const struct model_request *req, struct arena *a,
                              struct model_reply *out, struct error *err)
{
    struct buf b;
    enum status st;

    buf_init(&b, REPLY_MAX);
    buf_addf(&b,
             req->ntools > 0 ? "Tools of %s on this channel:" : "%s has no tools here.",
             req->agent_name);
    for (size_t i = 0; i < req->ntools; i++) {
        const struct model_tool *t = &req->tools[i];

        buf_addf(&b, "\n- %.*s", STR_ARG(t->name));
        buf_addf(&b, "%s%.*s", t->description.len > 0 ? ": " : "",
                 STR_ARG(t->description));
        list_parameters(&b, t->parameters);
    }
    st = keep_text(a, &b, &out->text, err);
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
            buf_addf(&b, "%.*s failed: ", STR_ARG(m->tool_name));
        }
        buf_add_str(&b, m->text);
    }
    st = keep_text(a, &b, &out->text, err);
    buf_done(&b);
    return st;
}

static enum status say(const char *text, struct model_reply *out)
{
    out->text = str_c(text);
    return ST_OK;
}

static enum status answer(const struct model_request *req, struct arena *a,
                          struct model_reply *out, struct error *err)
{
    const struct model_message *last =
        req->nmessages > 0 ? &req->messages[req->nmessages - 1] : NULL;
    struct error why = {0};
    struct str text, word;
    enum status st;

    if (last == NULL) {
        return say(usage, out);
    }
    if (last->role == MODEL_TOOL) {
        return show_results(req, a, out, err);
    }
    text = last->text;
    word = take_word(&text);
    if (str_eq_c(word, "/tools") && text.len == 0) {
        return list_tools(req, a, out, err);
    }
    if (!str_eq_c(word, "/tool")) {
        return say(usage, out);
    }
    st = call_tool(req, text, a, out, &why);
    if (st == ST_NOMEM || st == ST_OK) {
        return st == ST_OK ? ST_OK : no_memory(err);
    }
    out->text =
        str_c(arena_printf(a, "/tool: %s. Say anything else for help.", why.text));
    return out->text.ptr != NULL ? ST_OK : no_memory(err);
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
