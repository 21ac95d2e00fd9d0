/* chat: one message to the running gateway, or one after the other from a terminal. Shows
 * the tool calls of each turn. Keeps nothing. */
#include "base/io.h"
#include "cli/gateway.h"
#include "cli/show_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OUT_MAX ((size_t)320 * 1024 * 1024)
#define LINE_MAX_BYTES ((size_t)1024 * 1024)

struct talk {
    struct gateway g;
    const char *agent, *user;
    char session[204];
    bool verbose;
};

/* The only agent, or `assistant`; the gateway knows them. */
static enum cli_exit find_agent(struct talk *t)
{
    const char *asked = args_value(&t->g.c->args, "agent");
    struct str id = STR_NONE, only = STR_NONE;
    const cJSON *list;
    struct buf names;
    cJSON *doc = NULL;
    size_t n = 0;
    bool assistant = false;
    enum cli_exit result;

    t->agent = asked;
    if (asked != NULL) {
        return CLI_DONE;
    }
    result = gateway_ask(&t->g, "GET", "/api/v1/agents", STR_NONE, &doc, NULL);
    if (result != CLI_DONE) {
        return result;
    }
    buf_init(&names, 1024);
    list = json_get(doc, "agents");
    for (const cJSON *a = list != NULL ? list->child : NULL; a != NULL; a = a->next) {
        if (json_get_str(a, "id", &id)) {
            buf_addf(&names, "%s%.*s", n++ > 0 ? ", " : "", STR_ARG(id));
            only = id;
            assistant = assistant || str_eq_c(id, "assistant");
        }
    }
    if (n == 1 || assistant) {
        t->agent = n == 1 ? arena_dup(t->g.c->arena, only) : "assistant";
    } else {
        result = n == 0
                     ? cli_fail(t->g.c, "the gateway has no agent; `soulacy agent list` "
                                        "says why")
                     : cli_fail(t->g.c, "say which agent with --agent: %s", names.ptr);
    }
    buf_done(&names);
    cJSON_Delete(doc);
    return result;
}

static enum cli_exit name_session(struct talk *t)
{
    const char *asked = args_value(&t->g.c->args, "session");
    unsigned char raw[8];
    struct error err = {0};
    struct buf id;

    if (asked != NULL) {
        if (strlen(asked) > 200) {
            return cli_misuse(t->g.c, "--session is at most 200 bytes");
        }
        (void)snprintf(t->session, sizeof(t->session), "%s", asked);
        return CLI_DONE;
    }
    if (io_random(raw, sizeof(raw), &err) != ST_OK) {
        return cli_fail(t->g.c, "%s", err.text);
    }
    buf_init(&id, 64);
    buf_add_c(&id, "cli-");
    buf_add_hex(&id, raw, sizeof(raw));
    (void)snprintf(t->session, sizeof(t->session), "%s", id.ptr);
    buf_done(&id);
    return CLI_DONE;
}

static void show_turn(const struct talk *t, const cJSON *doc, struct buf *out)
{
    const cJSON *calls = json_get(doc, "tool_calls");
    const cJSON *admission = json_get(doc, "admission");
    struct str reply = STR_NONE;

    if (t->verbose && admission != NULL) {
        buf_addf(out, "%smessage%s\n", cli_colour("bold"), cli_colour("off"));
        show_admission(admission, out);
    }
    for (const cJSON *call = calls != NULL ? calls->child : NULL; call != NULL;
         call = call->next) {
        show_call(call, t->verbose, out);
    }
    (void)json_get_str(doc, "reply", &reply);
    if (t->verbose) {
        buf_addf(out, "%sreply%s\n", cli_colour("bold"), cli_colour("off"));
        cli_indent(out, "  ", reply);
    } else {
        cli_text(out, reply);
        buf_add_char(out, '\n');
    }
}

static enum cli_exit say(const struct talk *t, struct str text)
{
    struct buf body, raw, out;
    cJSON *doc = NULL;
    enum cli_exit result;

    buf_init(&body, OUT_MAX);
    buf_init(&raw, OUT_MAX);
    buf_init(&out, OUT_MAX);
    buf_add_char(&body, '{');
    json_add_key_string(&body, "agent_id", str_c(t->agent));
    json_add_key_string(&body, "text", text);
    json_add_key_string(&body, "session_id", str_c(t->session));
    json_add_key_string(&body, "user_id", str_c(t->user));
    buf_add_char(&body, '}');
    result = gateway_ask(&t->g, "POST", "/api/v1/chat", buf_str(&body), &doc, &raw);
    if (result == CLI_DONE) {
        if (!t->g.c->json) {
            show_turn(t, doc, &out);
        }
        result = cli_print(t->g.c, t->g.c->json ? &raw : &out);
    }
    cJSON_Delete(doc);
    buf_done(&out);
    buf_done(&raw);
    buf_done(&body);
    return result;
}

/* One line without its end; ST_NOT_FOUND at the end of the input. */
static enum status read_line(struct buf *line, struct error *err)
{
    int ch = fgetc(stdin);

    buf_clear(line);
    while (ch != EOF && ch != '\n' && buf_status(line) == ST_OK) {
        buf_add_char(line, (char)ch);
        ch = fgetc(stdin);
    }
    if (buf_status(line) != ST_OK) {
        return error_set(err, ST_TOO_LARGE, "a line over %zu bytes", LINE_MAX_BYTES);
    }
    return ch == EOF && line->len == 0 ? ST_NOT_FOUND : ST_OK;
}

/* A turn that fails is told, and the talk goes on. */
static enum cli_exit talk(const struct talk *t)
{
    struct buf line;
    struct error err = {0};
    struct str text;
    enum status st;

    (void)fprintf(stderr,
                  "%s at %s, session %s. /tools lists its tools, an empty line or "
                  "Ctrl-D ends.\n",
                  t->agent, t->g.base, t->session);
    buf_init(&line, LINE_MAX_BYTES);
    for (;;) {
        (void)fputs("> ", stdout);
        (void)fflush(stdout);
        st = read_line(&line, &err);
        text = str_trim(buf_str(&line));
        if (st != ST_OK || text.len == 0) {
            break;
        }
        (void)!say(t, text);
    }
    buf_done(&line);
    return st == ST_OK || st == ST_NOT_FOUND ? CLI_DONE
                                             : cli_fail(t->g.c, "%s", err.text);
}

/* Text that comes through a pipe, whole. */
static enum cli_exit say_stdin(const struct talk *t)
{
    struct buf all;
    struct error err = {0};
    enum cli_exit result;

    buf_init(&all, LINE_MAX_BYTES);
    if (io_read_all(STDIN_FILENO, LINE_MAX_BYTES, &all, &err) != ST_OK) {
        result = cli_fail(t->g.c, "%s", err.text);
    } else if (str_trim(buf_str(&all)).len == 0) {
        result = cli_misuse(t->g.c, "there is no text to send");
    } else {
        result = say(t, str_trim(buf_str(&all)));
    }
    buf_done(&all);
    return result;
}

enum cli_exit cmd_chat(struct cli *c)
{
    struct talk t = {.user = args_value(&c->args, "user")};
    enum cli_exit result = gateway_find(c, &t.g);

    if (result != CLI_DONE) {
        return result;
    }
    t.verbose = args_value(&c->args, "verbose") != NULL;
    if (t.user == NULL) {
        t.user = config_env_get(c->env, "USER");
    }
    if (t.user == NULL) {
        t.user = "cli";
    }
    result = name_session(&t);
    if (result == CLI_DONE) {
        result = find_agent(&t);
    }
    if (result != CLI_DONE) {
        return result;
    }
    if (c->args.nwords > 0) {
        return say(&t, str_c(c->args.words[0]));
    }
    return cli_is_tty(STDIN_FILENO) ? talk(&t) : say_stdin(&t);
}
