#define _XOPEN_SOURCE 700 /* realpath */
/* What one key alone can't tell. In: a configuration that was read whole. Out: defaults
 * that depend on other keys, and problems for combinations that make no sense or would
 * hand our own files to tools. Only with `real` does it look at the file system. */
#include "config/env.h"

#include "config/checks.h"
#include "config/keys.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct checker {
    struct config *cfg;
    const struct config_env *env;
    struct reader r;
    bool real;
};

static void complain(struct checker *x, const char *path, const char *text)
{
    struct yaml_node nowhere = {.origin = YAML_FROM_DEFAULT};
    const struct yaml_node *n = key_node(x->cfg->root, path);
    key_problem(&x->r, n != NULL ? n : &nowhere, path, text);
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

/* ---- defaults that depend on other keys ---------------------------------------- */

static void default_backends(struct checker *x)
{
    struct config *c = x->cfg;
    if (c->executor.allowed_backends.n != 0 ||
        key_node(c->root, "executor.allowed_backends") != NULL) {
        return;
    }
    char **items = arena_array(c->arena, 2, sizeof(*items));
    if (items == NULL) {
        x->r.nomem = true;
        return;
    }
    items[0] = c->executor.backend;
    c->executor.allowed_backends = (struct str_list){items, 1};
}

static void default_audit(struct checker *x)
{
    struct config *c = x->cfg;
    if (c->audit.file[0] == '\0') {
        c->audit.file = arena_printf(c->arena, "%s/audit.jsonl", c->runtime.state_dir);
        x->r.nomem = x->r.nomem || c->audit.file == NULL;
    }
}

/* python_bin may be a name for PATH or a path. */
static void default_python(struct checker *x)
{
    struct config *c = x->cfg;
    struct str bin = str_c(c->runtime.python_bin);
    struct yaml_node nowhere = {.origin = YAML_FROM_DEFAULT};
    const struct yaml_node *n = key_node(c->root, "runtime.python_bin");
    if (bin.len == 0) {
        complain(x, "runtime.python_bin", "must not be empty");
    } else if (bin.ptr[0] == '~' || str_find_char(bin, '/') != SIZE_MAX) {
        char *full =
            key_abs_path(&x->r, n != NULL ? n : &nowhere, "runtime.python_bin", bin);
        c->runtime.python_bin = full != NULL ? full : c->runtime.python_bin;
    }
}

/* ---- providers ------------------------------------------------------------------- */

struct known_provider {
    const char *name, *type, *base_url;
};

static const struct known_provider known_providers[] = {
    {"anthropic", "anthropic", "https://api.anthropic.com"},
    {"openai", "openai", "https://api.openai.com/v1"},
    {"ollama", "ollama", "http://127.0.0.1:11434"},
    {"local", "local", ""},
    {"openrouter", "openai", "https://openrouter.ai/api/v1"},
    {"groq", "openai", "https://api.groq.com/openai/v1"},
    {"deepseek", "openai", "https://api.deepseek.com/v1"},
    {"mistral", "openai", "https://api.mistral.ai/v1"},
    {"together", "openai", "https://api.together.xyz/v1"},
    {"fireworks", "openai", "https://api.fireworks.ai/inference/v1"},
    {"xai", "openai", "https://api.x.ai/v1"},
    {"lmstudio", "openai", "http://127.0.0.1:1234/v1"},
    {"vllm", "openai", "http://127.0.0.1:8000/v1"},
    {"llamacpp", "openai", "http://127.0.0.1:8080/v1"},
};

/* By name, or by type: the first row of a type carries its default address. */
static const struct known_provider *known_provider(const char *name, const char *type)
{
    size_t n = sizeof(known_providers) / sizeof(known_providers[0]);
    for (size_t i = 0; i < n; i++) {
        const struct known_provider *k = &known_providers[i];
        bool typed = type[0] == '\0' || strcmp(k->type, type) == 0;
        if (typed && strcmp(k->name, name) == 0) {
            return k;
        }
    }
    for (size_t i = 0; i < n && type[0] != '\0'; i++) {
        if (strcmp(known_providers[i].type, type) == 0) {
            return &known_providers[i];
        }
    }
    return NULL;
}

/* <NAME>_API_KEY in the environment serves as the key. */
static void key_from_env(struct checker *x, struct config_provider *p)
{
    if (secret_is_set(&p->api_key)) {
        return;
    }
    char *name = arena_printf(x->cfg->arena, "%s_API_KEY", p->name);
    for (char *c = name; c != NULL && *c != '\0'; c++) {
        if (*c >= 'a' && *c <= 'z') {
            *c = (char)(*c - 'a' + 'A');
        } else if (*c == '-') {
            *c = '_';
        }
    }
    const char *value = name != NULL ? config_env_get(x->env, name) : NULL;
    if (name == NULL ||
        (value != NULL && secret_set(&p->api_key, str_c(value)) != ST_OK)) {
        x->r.nomem = true;
    }
}

static void check_provider(struct checker *x, struct config_provider *p)
{
    const struct known_provider *k = known_provider(p->name, p->type);
    char *path = arena_printf(x->cfg->arena, "llm.providers.%s.type", p->name);
    if (path == NULL) {
        x->r.nomem = true;
        return;
    }
    if (k == NULL) {
        complain(x, path, "is required: the name is not a well-known one");
        return;
    }
    if (p->type[0] == '\0') {
        p->type = arena_dup(x->cfg->arena, str_c(k->type));
    }
    if (p->base_url[0] == '\0') {
        p->base_url = arena_dup(x->cfg->arena, str_c(k->base_url));
    }
    x->r.nomem = x->r.nomem || p->type == NULL || p->base_url == NULL;
    key_from_env(x, p);
}

static void check_providers(struct checker *x)
{
    struct config *c = x->cfg;
    const char *names[65] = {"local"};
    size_t n = 1;
    bool found = strcmp(c->llm.default_provider, "local") == 0;
    for (size_t i = 0; i < c->llm.nproviders; i++) {
        struct config_provider *p = &c->llm.providers[i];
        check_provider(x, p);
        found = found || strcmp(c->llm.default_provider, p->name) == 0;
        if (n < 65) {
            names[n++] = p->name;
        }
    }
    if (!found) {
        const char *near = key_nearest(str_c(c->llm.default_provider), names, n);
        char *text = arena_printf(c->arena, "names no entry of llm.providers%s%s%s",
                                  near != NULL ? ", did you mean " : "",
                                  near != NULL ? near : "", near != NULL ? "?" : "");
        complain(x, "llm.default_provider", text != NULL ? text : "names no provider");
    }
}

/* ---- MCP, search, server ----------------------------------------------------------- */

static void check_mcp_server(struct checker *x, struct config_mcp_server *s)
{
    struct arena *a = x->cfg->arena;
    bool http = s->url[0] != '\0';
    bool stdio = s->command[0] != '\0';
    char *path = arena_printf(a, "mcp.servers.%s", s->name);
    if (s->transport[0] == '\0') {
        s->transport = arena_dup(a, str_c(http && !stdio ? "http" : "stdio"));
    }
    if (path == NULL || s->transport == NULL) {
        x->r.nomem = true;
        return;
    }
    if (strcmp(s->transport, "http") == 0) {
        if (!http || stdio) {
            complain(x, path, "transport http needs `url` and takes no `command`");
        }
    } else if (!stdio || http) {
        complain(x, path, "transport stdio needs `command` and takes no `url`");
    }
}

static void check_search(struct checker *x)
{
    struct config *c = x->cfg;
    const char *p = c->search.provider;
    bool keyed = strcmp(p, "tavily") == 0 || strcmp(p, "serper") == 0;
    if (keyed && !secret_is_set(&c->search.api_key)) {
        complain(x, "search.api_key", "is required by this search.provider");
    }
    if (strcmp(p, "searxng") == 0 && c->search.base_url[0] == '\0') {
        complain(x, "search.base_url", "is required by this search.provider");
    }
}

static void check_server(struct checker *x)
{
    struct config *c = x->cfg;
    if ((c->server.tls_cert[0] == '\0') != (c->server.tls_key[0] == '\0')) {
        complain(x, "server.tls_cert",
                 "and server.tls_key go together: set both or none");
    }
    if (c->runtime.default_max_turns > c->runtime.max_turns_ceiling) {
        complain(x, "runtime.default_max_turns",
                 "must not be over runtime.max_turns_ceiling");
    }
    if (c->runtime.state_dir[0] == '\0') {
        complain(x, "runtime.state_dir", "must not be empty");
    }
}

/* ---- our own files ------------------------------------------------------------------ */

/* Is inner the folder outer, or below it? Both absolute. */
static bool is_within(const char *inner, const char *outer)
{
    size_t n = strlen(outer);
    if (n == 1) {
        return true;
    }
    return strncmp(inner, outer, n) == 0 && (inner[n] == '\0' || inner[n] == '/');
}

/* path behind its links, as far as it exists. NULL: out of memory. */
static char *behind_links(struct checker *x, const char *path)
{
    char found[PATH_MAX];
    struct arena *a = x->cfg->arena;
    char *head = arena_dup(a, str_c(path));
    while (x->real && head != NULL && strlen(head) < PATH_MAX) {
        size_t len = strlen(head);
        if (realpath(head, found) != NULL) {
            bool top = strcmp(found, "/") == 0;
            return arena_printf(a, "%s%s", top && path[len] != '\0' ? "" : found,
                                path + len);
        }
        char *slash = strrchr(head, '/');
        if (slash == NULL || slash == head) {
            break;
        }
        *slash = '\0';
    }
    return arena_dup(a, str_c(path));
}

/* Without ".." no text comparison can be led astray. */
static bool has_dotdot(const char *path)
{
    struct str rest = str_c(path);
    struct str part;
    while (str_split(&rest, '/', &part)) {
        if (str_eq_c(part, "..")) {
            return true;
        }
    }
    return false;
}

/* A path that a key opens to tools. */
struct opened {
    const char *key;
    const struct yaml_node *at; /* NULL: the key's own node */
    const char *path, *real;
};

static bool open_path(struct checker *x, const char *key, const struct yaml_node *at,
                      const char *path, struct opened *o)
{
    *o = (struct opened){key, at, path, behind_links(x, path)};
    x->r.nomem = x->r.nomem || o->real == NULL;
    return o->real != NULL;
}

static void complain_at(struct checker *x, const struct opened *o, const char *text)
{
    if (o->at != NULL) {
        key_problem(&x->r, o->at, o->key, text);
    } else {
        complain(x, o->key, text);
    }
}

/* Against one thing of ours: true when it was in the way. below: also when it lies inside
 * our folder, not only when it contains it. */
static bool guard_one(struct checker *x, const struct opened *o, const char *ours,
                      const char *what, bool below)
{
    if (ours == NULL || ours[0] != '/') {
        return false;
    }
    char *real = behind_links(x, ours);
    if (real == NULL) {
        x->r.nomem = true;
        return true;
    }
    bool overlap = is_within(ours, o->path) || is_within(real, o->real) ||
                   (below && (is_within(o->path, ours) || is_within(o->real, real)));
    if (overlap) {
        char *text =
            arena_printf(x->cfg->arena, "%s overlaps %s (%s)", o->path, what, ours);
        complain_at(x, o, text != NULL ? text : "overlaps the gateway's own files");
    }
    return overlap;
}

static const char *node_text(const struct config *c, const char *path)
{
    const struct yaml_node *n = key_node(c->root, path);
    return n != NULL && n->kind == YAML_SCALAR && n->text.len != 0 ? n->text.ptr : NULL;
}

/* Agent and tool folders, seen from an opened path. */
static bool guard_tools(struct checker *x, const struct opened *o)
{
    const struct config *c = x->cfg;
    for (size_t i = 0; i < c->agent_dirs.n; i++) {
        if (guard_one(x, o, c->agent_dirs.items[i], "agent_dirs", true)) {
            return true;
        }
    }
    for (size_t i = 0; i < c->runtime.allowed_tool_dirs.n; i++) {
        if (guard_one(x, o, c->runtime.allowed_tool_dirs.items[i],
                      "runtime.allowed_tool_dirs", true)) {
            return true;
        }
    }
    return false;
}

/* Config, state, plugin and key files, seen from an opened path; the first one is said. */
static bool guard(struct checker *x, const struct opened *o)
{
    const struct config *c = x->cfg;
    const struct {
        const char *path, *what;
        bool below;
    } ours[] = {
        {c->file, "the configuration file", false},
        {c->runtime.state_dir, "runtime.state_dir", true},
        {c->plugin_dir, "plugin_dir", true},
        {c->server.tls_key, "server.tls_key", false},
        {c->server.tls_cert, "server.tls_cert", false},
        {c->audit.file, "audit.file", false},
        {node_text(c, "executor.ssh_identity"), "executor.ssh_identity", false},
        {node_text(c, "executor.ssh_known_hosts"), "executor.ssh_known_hosts", false},
    };
    if (has_dotdot(o->path)) {
        complain_at(x, o, "must be a path without ..");
        return true;
    }
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (guard_one(x, o, ours[i].path, ours[i].what, ours[i].below)) {
            return true;
        }
    }
    for (size_t i = 0; i < c->nplugins; i++) {
        if (guard_one(x, o, c->plugins[i].path, "a plugin", false)) {
            return true;
        }
    }
    return false;
}

static void check_paths(struct checker *x)
{
    const struct config *c = x->cfg;
    const struct config_sandbox *s = &c->runtime.sandbox;
    const struct yaml_node *list = key_node(c->root, "runtime.sandbox.write_paths");
    const struct yaml_node *at = list != NULL ? list->first : NULL;
    struct opened o;
    for (size_t i = 0; i < s->write_paths.n && !x->r.nomem; i++) {
        if (open_path(x, "runtime.sandbox.write_paths", at, s->write_paths.items[i],
                      &o) &&
            !guard(x, &o)) {
            (void)guard_tools(x, &o);
        }
        at = at != NULL ? at->next : NULL;
    }
    list = key_node(c->root, "runtime.allowed_tool_dirs");
    at = list != NULL ? list->first : NULL;
    bool closed = s->isolation != ISOLATION_NONE;
    for (size_t i = 0; closed && i < c->runtime.allowed_tool_dirs.n && !x->r.nomem; i++) {
        if (open_path(x, "runtime.allowed_tool_dirs", at,
                      c->runtime.allowed_tool_dirs.items[i], &o)) {
            (void)guard(x, &o);
        }
        at = at != NULL ? at->next : NULL;
    }
}

/* ---- docker and ssh ------------------------------------------------------------------ */

static bool guard_sockets(struct checker *x, const struct opened *o)
{
    static const char *const sockets[] = {"/var/run/docker.sock", "/run/docker.sock",
                                          "/run/podman/podman.sock",
                                          "/run/containerd/containerd.sock"};
    for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
        if (guard_one(x, o, sockets[i], "a container engine's socket", false)) {
            return true;
        }
    }
    return guard_one(x, o, node_text(x->cfg, "executor.docker_socket"),
                     "executor.docker_socket", false);
}

static void guard_host_path(struct checker *x, const struct opened *o)
{
    static const char *const never[] = {"/proc", "/sys", "/dev"};
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (is_within(o->path, never[i]) || is_within(o->real, never[i])) {
            complain_at(x, o, "may not mount /proc, /sys or /dev of the host");
            return;
        }
    }
    if (strcmp(o->path, "/") == 0 || strcmp(o->real, "/") == 0) {
        complain_at(x, o, "may not mount / of the host");
        return;
    }
    if (!guard_sockets(x, o) && !guard(x, o)) {
        (void)guard_tools(x, o);
    }
}

/* The host side becomes absolute in the tree, where the plugin reads it. */
static void check_volume_node(struct checker *x, struct yaml_node *n)
{
    const char *key = "executor.docker_volumes";
    struct str host;
    struct str container;
    bool read_only = false;
    if (n->kind != YAML_SCALAR || check_volume(n->text) != NULL) {
        return; /* said already */
    }
    volume_split(n->text, &host, &container, &read_only);
    char *full = key_abs_path(&x->r, n, key, host);
    if (full == NULL) {
        return;
    }
    struct opened o;
    if (open_path(x, key, n, full, &o)) {
        guard_host_path(x, &o);
    }
    char *text = arena_printf(x->cfg->arena, "%s:%.*s%s", full, STR_ARG(container),
                              read_only ? ":ro" : "");
    x->r.nomem = x->r.nomem || text == NULL;
    n->text = str_c(text);
}

/* The list as items of their own, when it came as one text from the environment. */
static void split_volumes(struct checker *x, struct yaml_node *list)
{
    struct str *items = NULL;
    size_t n = 0;
    if (list->kind != YAML_SCALAR ||
        !key_list_items(x->cfg->arena, list, &items, &n, &x->r.nomem)) {
        return;
    }
    struct yaml_node **tail = &list->first;
    for (size_t i = 0; i < n && !x->r.nomem; i++) {
        struct yaml_node *item = arena_alloc(x->cfg->arena, sizeof(*item));
        char *text = arena_dup(x->cfg->arena, items[i]);
        if (item == NULL || text == NULL) {
            x->r.nomem = true;
            return;
        }
        *item = (struct yaml_node){
            .kind = YAML_SCALAR, .text = str_c(text), .origin = list->origin};
        *tail = item;
        tail = &item->next;
    }
    list->kind = YAML_SEQ;
    list->text = STR_NONE;
}

static void check_executors(struct checker *x)
{
    struct config *c = x->cfg;
    const struct str_list *allowed = &c->executor.allowed_backends;
    bool docker =
        strcmp(c->executor.backend, "docker") == 0 || in_list(allowed, "docker");
    bool ssh = strcmp(c->executor.backend, "ssh") == 0 || in_list(allowed, "ssh");
    const struct yaml_node *there = key_node(c->root, "executor.docker_volumes");
    if (there != NULL && there->kind != YAML_NULL) {
        struct yaml_node *list = config_node_make(
            c->root, c->arena, STR_LIT("executor.docker_volumes"), &x->r.nomem);
        if (list != NULL) {
            split_volumes(x, list);
        }
        for (struct yaml_node *n = list != NULL ? list->first : NULL;
             n != NULL && !x->r.nomem; n = n->next) {
            check_volume_node(x, n);
        }
    }
    const char *network = node_text(c, "executor.docker_network");
    if (docker && c->runtime.sandbox.isolation != ISOLATION_NONE &&
        !c->runtime.sandbox.network && network != NULL && strcmp(network, "none") != 0) {
        complain(
            x, "executor.docker_network",
            "must be none while runtime.sandbox.network is false and isolation is on");
    }
    const struct yaml_node *hosts = key_node(c->root, "executor.ssh_hosts");
    bool some = hosts != NULL && (hosts->first != NULL || hosts->text.len != 0);
    if (ssh && node_text(c, "executor.ssh_host") == NULL && !some) {
        complain(x, "executor.ssh_host",
                 "is required by the ssh executor (or ssh_hosts)");
    }
}

enum status config_check(struct config *c, const struct config_env *env,
                         struct problems *probs, bool real)
{
    struct checker x = {.cfg = c, .env = env, .real = real};
    x.r = (struct reader){.arena = c->arena,
                          .probs = probs,
                          .dir = c->dir,
                          .home = c->home,
                          .prefix = "",
                          .env_names = true};
    default_backends(&x);
    if (!x.r.nomem && c->runtime.state_dir != NULL) {
        default_audit(&x);
        default_python(&x);
    }
    check_providers(&x);
    for (size_t i = 0; i < c->nmcp_servers && !x.r.nomem; i++) {
        check_mcp_server(&x, &c->mcp_servers[i]);
    }
    check_search(&x);
    if (!x.r.nomem && c->runtime.state_dir != NULL) {
        check_server(&x);
        check_paths(&x);
        check_executors(&x);
    }
    return x.r.nomem ? ST_NOMEM : ST_OK;
}
