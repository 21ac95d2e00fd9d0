/* One SOUL.yaml to struct soul. In: its text, where it lies, and the configuration if
 * there is one. Out: the agent, or every problem at once. soul_parse is pure: tool files
 * are named, not opened. Never expands ${NAME}, never lets a tool take a name that
 * belongs to a built-in, an MCP server or a peer. */
#include "config/soul.h"

#include "config/checks.h"
#include "config/keys.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"

#include <string.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)64 * 1024 * 1024)
#define MS_DAY INT64_C(86400000)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SOUL(member) .offset = offsetof(struct soul, member)
#define TOOL(member) .offset = offsetof(struct soul_tool, member)
#define FOREIGN(name) \
    { \
        name, K_TREE, .flags = KEY_FOREIGN \
    }

static const char *const trigger_names[] = {"channel", "webhook", "internal", NULL};
static const char *const choice_names[] = {"auto", "none", "required", "any", NULL};

static const struct key soul_rows[] = {
    {"id", K_STR, SOUL(id), .check = check_agent_id, .flags = KEY_REQUIRED},
    {"name", K_STR, SOUL(name), .check = check_line},
    {"description", K_STR, SOUL(description), .flags = 0},
    {"version", K_STR, SOUL(version), .check = check_line},
    {"tags", K_LIST, SOUL(tags), .check = check_line},
    {"trigger", K_ENUM, SOUL(trigger), "channel", .choices = trigger_names},
    {"channels", K_OPT_LIST, SOUL(channels), .check = check_line},
    {"llm.provider", K_STR, SOUL(llm.provider), .check = check_entry_name,
     .flags = KEY_NULLABLE},
    {"llm.model", K_STR, SOUL(llm.model), .check = check_line, .flags = KEY_NULLABLE},
    {"llm.base_url", K_STR, SOUL(llm.base_url), .check = check_url,
     .flags = KEY_NULLABLE},
    {"llm.tool_choice", K_CHOICE, SOUL(llm.tool_choice), .choices = choice_names,
     .flags = KEY_NULLABLE},
    {"llm.temperature", K_DOUBLE, SOUL(llm.temperature), .min = 0, .max = 2000},
    {"llm.max_tokens", K_INT, SOUL(llm.max_tokens), .min = 1, .max = 10000000},
    {"llm.allowed_providers", K_LIST, SOUL(llm.allowed_providers),
     .check = check_entry_name},
    {"system_prompt", K_STR, SOUL(system_prompt), .flags = 0},
    {"tools", K_GROUP, .flags = 0},
    {"builtins", K_OPT_LIST, SOUL(builtins), .check = check_line},
    {"knowledge", K_OPT_LIST, SOUL(knowledge), .check = check_line},
    {"mcp_servers", K_OPT_LIST, SOUL(mcp_servers), .check = check_line},
    {"mcp_tools", K_OPT_LIST, SOUL(mcp_tools), .check = check_line},
    {"agents", K_LIST, SOUL(agents), .check = check_agent_id},
    {"capabilities", K_LIST, .check = check_line, .flags = KEY_NODE},
    {"system_tools", K_BOOL, SOUL(system), .flags = 0},
    {"env", K_LIST, SOUL(env), .check = check_env_name},
    {"confirm_tools", K_OPT_LIST, SOUL(confirm_tools), .check = check_line},
    {"unattended", K_BOOL, SOUL(unattended), "false"},
    {"execution.backend", K_STR, SOUL(backend), .check = check_plugin_name,
     .flags = KEY_NULLABLE},
    {"workflow", K_TREE, SOUL(workflow), .flags = KEY_LATER,
     .note = "takes effect once workflows are part of the build"},
    {"max_turns", K_INT, SOUL(max_turns), .min = 1, .max = 1000},
    {"run_timeout", K_DURATION, SOUL(run_timeout_ms), .min = 1, .max = 7 * MS_DAY},
    {"stream_reply", K_BOOL, SOUL(stream_reply), "false"},
    {"enabled", K_BOOL, SOUL(enabled), "true"},
    {"security.passphrase", K_SECRET, SOUL(passphrase), .check = check_line},
    FOREIGN("labels"),
    FOREIGN("schedule"),
    FOREIGN("memory"),
    FOREIGN("skills"),
    FOREIGN("persona"),
    FOREIGN("metadata"),
    FOREIGN("author"),
    FOREIGN("license"),
    FOREIGN("homepage"),
    FOREIGN("icon"),
    FOREIGN("examples"),
    FOREIGN("tests"),
    FOREIGN("evals"),
    FOREIGN("input_schema"),
    FOREIGN("output_schema"),
    FOREIGN("notifications"),
};
static const struct key_table soul_keys = {soul_rows, COUNT(soul_rows), false};

static const struct key tool_rows[] = {
    {"name", K_STR, TOOL(name), .check = check_tool_name, .flags = KEY_REQUIRED},
    {"description", K_STR, TOOL(description), .flags = 0},
    {"python_file", K_PATH, TOOL(python_file), .check = check_line,
     .flags = KEY_NULLABLE},
    {"inline", K_STR, TOOL(inline_src), .flags = KEY_NULLABLE},
    {"function", K_STR, TOOL(function), .check = check_identifier, .flags = KEY_NULLABLE},
    {"parameters", K_TREE, .flags = KEY_NODE},
    {"timeout", K_DURATION, TOOL(timeout_ms), .min = 1, .max = MS_DAY},
    {"retries", K_INT, TOOL(retries), "0", 0, 5},
    {"retry_backoff", K_DURATION, TOOL(retry_backoff_ms), "1s", 0, MS_DAY},
};
static const struct key_table tool_keys = {tool_rows, COUNT(tool_rows), false};

static const char *const builtin_names[] = {
    "read_file",  "list_dir",      "find_files", "fetch_url",  "http_request",
    "env_get",    "sys_info",      "shell_exec", "run_script", "install_library",
    "write_file", "download_file", "web_search", "kb_search"};
#define SYSTEM_FIRST 7 /* of the names above, the five SYSTEM tools */
#define SYSTEM_COUNT 5

struct soul_reader {
    struct soul *soul;
    const struct config *cfg; /* NULL: checked without one */
    const struct yaml_node *root;
    struct reader r;
};

static bool is_builtin(struct str name)
{
    for (size_t i = 0; i < COUNT(builtin_names); i++) {
        if (str_eq_c(name, builtin_names[i])) {
            return true;
        }
    }
    return false;
}

void soul_free(struct soul *s)
{
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->ntools; i++) {
        schema_free(s->tools[i].parameters);
    }
    secret_done(&s->passphrase);
    arena_free(s->arena);
    mem_free(s);
}

const struct soul_tool *soul_tool_find(const struct soul *s, struct str name)
{
    for (size_t i = 0; i < s->ntools; i++) {
        if (str_eq_c(name, s->tools[i].name)) {
            return &s->tools[i];
        }
    }
    return NULL;
}

/* ---- ${NAME} ------------------------------------------------------------------------ */

static bool has_variable(struct str s)
{
    for (size_t i = 0; i + 2 < s.len; i++) {
        char c = s.ptr[i + 2];
        bool name = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (s.ptr[i] == '$' && s.ptr[i + 1] == '{' && name) {
            return true;
        }
    }
    return false;
}

/* Source text may hold ${ for reasons of its own. Depth bounded by the parser. */
static void refuse_variables(struct soul_reader *x, const struct yaml_node *n)
{
    if (n->kind == YAML_SCALAR && has_variable(n->text)) {
        problem_add(
            x->r.probs, false, n->pos,
            "${...} is not replaced in SOUL.yaml: name the variable under `env` and "
            "read it in the tool");
    }
    for (const struct yaml_node *c = n->first; c != NULL; c = c->next) {
        bool source = n->kind == YAML_MAP &&
                      (str_eq_c(c->key, "inline") || str_eq_c(c->key, "workflow"));
        if (!source) {
            refuse_variables(x, c);
        }
    }
}

/* ---- tools --------------------------------------------------------------------------- */

static void check_name(struct soul_reader *x, const struct yaml_node *n,
                       struct soul_tool *t, size_t index)
{
    struct str name = str_c(t->name);
    const struct yaml_node *named = yaml_get(n, "name");
    const struct yaml_node *at = named != NULL ? named : n;
    if (is_builtin(name)) {
        key_problem(&x->r, at, "name", "is the name of a built-in tool");
    }
    if (str_starts(name, STR_LIT("mcp__")) || str_starts(name, STR_LIT("agent__"))) {
        key_problem(&x->r, at, "name", "may not begin with mcp__ or agent__");
    }
    for (size_t i = 0; i < index && name.len != 0; i++) {
        if (str_eq_c(name, x->soul->tools[i].name)) {
            key_problem(&x->r, at, "name", "is used by another tool of this agent");
        }
    }
}

static void check_source(struct soul_reader *x, const struct yaml_node *n,
                         struct soul_tool *t)
{
    bool file = t->python_file != NULL && t->python_file[0] != '\0';
    bool text = t->inline_src != NULL && t->inline_src[0] != '\0';
    const struct yaml_node *function = yaml_get(n, "function");
    if (file == text) {
        key_problem(&x->r, n, "python_file",
                    file ? "and inline exclude each other: keep one"
                         : "or inline is required: a tool needs its source");
    }
    if (t->function == NULL || t->function[0] == '\0') {
        t->function = t->name;
        const char *bad = t->name[0] != '\0' ? check_identifier(str_c(t->name)) : NULL;
        if (bad != NULL && function == NULL) {
            key_problem(&x->r, n, "function", bad);
        }
    }
}

static void compile_parameters(struct soul_reader *x, const struct yaml_node *n,
                               struct soul_tool *t)
{
    const struct yaml_node *p = yaml_get(n, "parameters");
    struct error err = {.status = ST_OK};
    struct buf json;
    buf_init(&json, YAML_MAX_BYTES);
    enum status st = ST_OK;
    if (p == NULL || p->kind == YAML_NULL) {
        buf_add_c(&json, "{\"type\":\"object\"}");
        st = buf_status(&json);
        p = n;
    } else if (p->kind != YAML_MAP) {
        st = error_set(&err, ST_INVALID, "must be a JSON Schema of an object");
    } else {
        st = yaml_to_json(p, &json);
        if (st == ST_TOO_LARGE) {
            st = error_set(&err, ST_INVALID, "larger than 1 MiB");
        }
    }
    if (st == ST_OK) {
        st = schema_compile(buf_str(&json), SCHEMA_STRICT, &t->parameters, &err);
    }
    if (st == ST_NOMEM) {
        x->r.nomem = true;
    } else if (st != ST_OK) {
        key_problem(&x->r, p, "parameters", err.text);
    }
    buf_done(&json);
}

static void read_tool(struct soul_reader *x, const struct yaml_node *n, size_t index)
{
    struct soul_tool *t = &x->soul->tools[index];
    char *prefix = arena_printf(x->r.arena, "tools[%zu].", index);
    if (prefix == NULL) {
        x->r.nomem = true;
        return;
    }
    x->r.prefix = prefix;
    t->pos = n->pos;
    if (n->kind != YAML_MAP) {
        problem_add(x->r.probs, false, n->pos, "tools[%zu]: must be a mapping", index);
        return;
    }
    key_read_table(&x->r, &tool_keys, n, t);
    if (x->r.nomem || t->name == NULL) {
        return;
    }
    check_name(x, n, t, index);
    check_source(x, n, t);
    compile_parameters(x, n, t);
}

static void read_tools(struct soul_reader *x)
{
    const struct yaml_node *list = yaml_get(x->root, "tools");
    if (list == NULL || list->kind == YAML_NULL) {
        return;
    }
    if (list->kind != YAML_SEQ) {
        key_problem(&x->r, list, "tools", "must be a list of tools");
        return;
    }
    size_t n = 0;
    for (const struct yaml_node *i = list->first; i != NULL; i = i->next) {
        n++;
    }
    x->soul->tools = arena_array(x->r.arena, n + 1, sizeof(*x->soul->tools));
    x->r.nomem = x->r.nomem || x->soul->tools == NULL;
    for (const struct yaml_node *i = list->first; i != NULL && !x->r.nomem; i = i->next) {
        read_tool(x, i, x->soul->ntools++);
    }
    x->r.prefix = "";
}

/* ---- what spans fields ---------------------------------------------------------------- */

/* The node of one item of a list, for its place. */
static const struct yaml_node *item_of(const struct yaml_node *list, const char *text)
{
    const struct yaml_node *n = list != NULL ? list->first : NULL;
    while (n != NULL && !str_eq_c(n->text, text)) {
        n = n->next;
    }
    return n != NULL ? n : list;
}

static void unknown_item(struct soul_reader *x, const char *key, const char *item,
                         const char *what, const char *const *names, size_t n)
{
    const char *near = key_nearest(str_c(item), names, n);
    char *text = arena_printf(x->r.arena, "%s is no %s%s%s%s", item, what,
                              near != NULL ? ", did you mean " : "",
                              near != NULL ? near : "", near != NULL ? "?" : "");
    const struct yaml_node *at = item_of(yaml_get(x->root, key), item);
    key_problem(&x->r, at != NULL ? at : x->root, key, text != NULL ? text : what);
}

static void check_builtins(struct soul_reader *x)
{
    const struct opt_list *l = &x->soul->builtins;
    for (size_t i = 0; i < l->list.n && !l->all; i++) {
        if (!is_builtin(str_c(l->list.items[i]))) {
            unknown_item(x, "builtins", l->list.items[i], "built-in tool", builtin_names,
                         COUNT(builtin_names));
        }
    }
}

static void check_capabilities(struct soul_reader *x)
{
    static const char *const known[] = {"system"};
    const struct yaml_node *list = yaml_get(x->root, "capabilities");
    struct str *items = NULL;
    size_t n = 0;
    if (list == NULL || !key_list_items(x->r.arena, list, &items, &n, &x->r.nomem)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char *item = arena_dup(x->r.arena, items[i]);
        if (item == NULL) {
            x->r.nomem = true;
        } else if (strcmp(item, "system") == 0) {
            x->soul->system = true;
        } else {
            unknown_item(x, "capabilities", item, "capability", known, 1);
        }
    }
}

static bool in_list(const struct str_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* A misspelt name here would leave a tool without its question. */
static bool can_confirm(const struct soul_reader *x, const char *name)
{
    struct str s = str_c(name);
    struct str peer = STR_LIT("agent__");
    return is_builtin(s) || soul_tool_find(x->soul, s) != NULL ||
           str_starts(s, STR_LIT("mcp__")) ||
           (str_starts(s, peer) && in_list(&x->soul->agents, name + peer.len));
}

static void check_confirm(struct soul_reader *x)
{
    const struct opt_list *l = &x->soul->confirm_tools;
    const char *names[COUNT(builtin_names) + 64];
    size_t n = COUNT(builtin_names);
    memcpy(names, builtin_names, sizeof(builtin_names));
    for (size_t i = 0; i < x->soul->ntools && i < 64; i++) {
        if (x->soul->tools[i].name != NULL) {
            names[n++] = x->soul->tools[i].name;
        }
    }
    for (size_t i = 0; i < l->list.n && !l->all; i++) {
        if (!can_confirm(x, l->list.items[i])) {
            unknown_item(x, "confirm_tools", l->list.items[i], "tool of this agent",
                         names, n);
        }
    }
    size_t covered = 0;
    for (size_t i = SYSTEM_FIRST; i < SYSTEM_FIRST + SYSTEM_COUNT; i++) {
        covered += in_list(&l->list, builtin_names[i]) ? 1 : 0;
    }
    if (x->soul->system && covered != 0 && covered != SYSTEM_COUNT) {
        const struct yaml_node *at = yaml_get(x->root, "confirm_tools");
        problem_add(x->r.probs, true, at->pos,
                    "confirm_tools: names %zu of the five SYSTEM tools; the others run "
                    "without a question",
                    covered);
    }
}

static void check_env(struct soul_reader *x)
{
    const struct yaml_node *list = yaml_get(x->root, "env");
    for (size_t i = 0; i < x->soul->env.n; i++) {
        const char *name = x->soul->env.items[i];
        if (str_ends(str_c(name), STR_LIT("_API_KEY"))) {
            problem_add(x->r.probs, true, item_of(list, name)->pos,
                        "env: %s hands a provider's key to the tools of this agent",
                        name);
        }
    }
}

static void check_with_config(struct soul_reader *x)
{
    const struct config *c = x->cfg;
    const struct soul *s = x->soul;
    if (s->backend != NULL && !in_list(&c->executor.allowed_backends, s->backend)) {
        key_problem(&x->r, key_node(x->root, "execution.backend"), "execution.backend",
                    "is not in executor.allowed_backends of the configuration");
    }
    if (s->max_turns > c->runtime.max_turns_ceiling) {
        problem_add(x->r.probs, true, yaml_get(x->root, "max_turns")->pos,
                    "max_turns: over runtime.max_turns_ceiling, which holds");
    }
    const char *p = s->llm.provider;
    if (p != NULL && strcmp(p, "local") != 0 && config_provider(c, p) == NULL) {
        problem_add(x->r.probs, true, key_node(x->root, "llm.provider")->pos,
                    "llm.provider: %s is no entry of llm.providers in the configuration",
                    p);
    }
}

static void check_whole(struct soul_reader *x)
{
    struct soul *s = x->soul;
    if (in_list(&s->agents, s->id)) {
        key_problem(&x->r, yaml_get(x->root, "agents"), "agents",
                    "names this agent itself");
    }
    if (s->workflow != NULL && yaml_get(s->workflow, "steps") == NULL) {
        key_problem(&x->r, s->workflow, "workflow", "must be a mapping with `steps`");
    }
    const struct yaml_node *t = key_node(x->root, "llm.temperature");
    s->llm.has_temperature = t != NULL && t->kind == YAML_SCALAR;
    check_builtins(x);
    check_capabilities(x);
    check_confirm(x);
    check_env(x);
    if (x->cfg != NULL) {
        check_with_config(x);
    }
}

static enum status read_soul(struct soul_reader *x, struct str text, const char *file)
{
    struct soul *s = x->soul;
    struct yaml_node *root = NULL;
    unsigned char digest[SHA256_LEN];
    struct error err = {.status = ST_OK};
    s->file = arena_dup(s->arena, str_c(file));
    const char *slash = strrchr(file, '/');
    size_t dir_len = slash == NULL ? 0 : slash == file ? 1 : (size_t)(slash - file);
    s->dir = arena_dup(s->arena, dir_len != 0 ? str_n(file, dir_len) : STR_LIT("."));
    if (s->file == NULL || s->dir == NULL ||
        hash_sha256(&text, 1, digest, &err) != ST_OK) {
        return ST_NOMEM;
    }
    hash_hex(digest, s->digest);
    enum status st = yaml_parse(text, s->arena, x->r.probs, &root);
    if (st != ST_OK) {
        return st;
    }
    if (root->kind != YAML_MAP) {
        problem_add(x->r.probs, false, root->pos, "must be a mapping of fields");
        return ST_INVALID;
    }
    x->root = root;
    x->r.dir = s->dir;
    refuse_variables(x, root);
    key_read_table(&x->r, &soul_keys, root, s);
    if (!x->r.nomem) {
        read_tools(x);
    }
    if (!x->r.nomem) {
        check_whole(x);
    }
    return x->r.nomem ? ST_NOMEM : ST_OK;
}

enum status soul_parse(struct str text, const char *file, const struct config *cfg,
                       struct problems *probs, struct soul **out, struct error *err)
{
    struct soul *s = mem_zalloc(sizeof(*s));
    if (s == NULL) {
        return error_set(err, ST_NOMEM, "%s: out of memory", file);
    }
    s->arena = arena_new(ARENA_MAX);
    struct soul_reader x = {.soul = s, .cfg = cfg};
    x.r = (struct reader){.arena = s->arena,
                          .probs = probs,
                          .home = cfg != NULL ? cfg->home : NULL,
                          .prefix = ""};
    size_t errors = probs->nerrors;
    enum status st = s->arena != NULL ? read_soul(&x, text, file) : ST_NOMEM;
    problems_sort(probs);
    if (probs->nerrors != errors) {
        size_t n = probs->nerrors - errors;
        st = error_set(err, ST_INVALID, "%s: %zu error%s", file, n, n == 1 ? "" : "s");
    } else if (st != ST_OK) {
        error_set(err, st, "%s: %s", file, status_name(st));
    }
    if (st != ST_OK) {
        soul_free(s);
        return st;
    }
    *out = s;
    return ST_OK;
}

enum status soul_load(const char *file, const struct config *cfg, struct problems *probs,
                      struct soul **out, struct error *err)
{
    struct buf text;
    struct buf path;
    char cwd[4096];
    buf_init(&text, YAML_MAX_BYTES + 1);
    buf_init(&path, 16384);
    if (file[0] != '/') {
        if (getcwd(cwd, sizeof(cwd)) == NULL) {
            return error_set(err, ST_IO, "%s: no working directory", file);
        }
        buf_addf(&path, "%s/", cwd);
    }
    buf_add_c(&path, file);
    enum status st = buf_status(&path);
    if (st != ST_OK) {
        error_set(err, st, "%s: %s", file, status_name(st));
    } else {
        st = io_read_file(path.ptr, YAML_MAX_BYTES, &text, err);
    }
    if (st == ST_TOO_LARGE) {
        problem_add(probs, false, (struct yaml_pos){0, 0}, "larger than 1 MiB");
        st = error_set(err, ST_INVALID, "%s: larger than 1 MiB", file);
    } else if (st == ST_OK) {
        st = soul_parse(buf_str(&text), path.ptr, cfg, probs, out, err);
    }
    buf_wipe(&text);
    buf_done(&path);
    return st;
}
