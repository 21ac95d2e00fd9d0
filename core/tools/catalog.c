/* An agent in, the list of tools it could name out. Decides nothing: whether a tool is
 * offered or may run is the gate's. */
#include "tools/catalog.h"

struct builtin {
    const char *name;
    enum tool_kind kind;
    const char *description;
};

static const struct builtin builtins[] = {
    {"read_file", TOOL_SAFE, "Read a text file."},
    {"list_dir", TOOL_SAFE, "List a folder."},
    {"find_files", TOOL_SAFE, "Find files by name pattern."},
    {"fetch_url", TOOL_SAFE, "Fetch a page as text."},
    {"http_request", TOOL_SAFE, "Make an HTTP request."},
    {"env_get", TOOL_SAFE, "Read an environment variable that the agent lists."},
    {"sys_info", TOOL_SAFE, "Describe the host."},
    {"shell_exec", TOOL_SYSTEM, "Run a shell command."},
    {"run_script", TOOL_SYSTEM, "Run a script."},
    {"install_library", TOOL_SYSTEM, "Install a Python library."},
    {"write_file", TOOL_SYSTEM, "Write a file."},
    {"download_file", TOOL_SYSTEM, "Download a file."},
    {"web_search", TOOL_SEARCH, "Search the web."},
    {"kb_search", TOOL_KB, "Search the knowledge base."},
};
#define NBUILTINS (sizeof(builtins) / sizeof(builtins[0]))

const char *tool_kind_name(enum tool_kind k)
{
    static const char *const names[] = {"python", "safe", "system", "search",
                                        "kb",     "mcp",  "peer"};

    return (unsigned)k < sizeof(names) / sizeof(names[0]) ? names[k] : "unknown";
}

bool builtin_kind(struct str name, enum tool_kind *kind)
{
    for (size_t i = 0; i < NBUILTINS; i++) {
        if (str_eq_c(name, builtins[i].name)) {
            *kind = builtins[i].kind;
            return true;
        }
    }
    return false;
}

static void add_peers(const struct soul *soul, struct arena *a, struct catalog *c,
                      bool *failed)
{
    for (size_t i = 0; i < soul->agents.n; i++) {
        struct tool *t = &c->tools[c->n];
        char *name = arena_printf(a, "agent__%s", soul->agents.items[i]);

        if (name == NULL) {
            *failed = true;
            return;
        }
        *t = (struct tool){.kind = TOOL_PEER, .name = str_c(name)};
        c->n++;
    }
}

enum status catalog_build(const struct soul *soul, struct arena *a, struct catalog *out,
                          struct error *err)
{
    struct catalog c = {0};
    size_t most = soul->ntools + NBUILTINS + soul->agents.n;
    bool failed = false;

    c.tools = arena_array(a, most, sizeof(*c.tools));
    if (c.tools == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the tool list");
    }
    for (size_t i = 0; i < soul->ntools; i++) {
        const struct soul_tool *t = &soul->tools[i];

        c.tools[c.n++] = (struct tool){.kind = TOOL_PYTHON,
                                       .name = str_c(t->name),
                                       .description = str_c(t->description),
                                       .parameters = t->parameters,
                                       .python = t};
    }
    for (size_t i = 0; i < NBUILTINS; i++) {
        c.tools[c.n++] = (struct tool){.kind = builtins[i].kind,
                                       .name = str_c(builtins[i].name),
                                       .description = str_c(builtins[i].description)};
    }
    add_peers(soul, a, &c, &failed);
    if (failed) {
        return error_set(err, ST_NOMEM, "out of memory for the tool list");
    }
    *out = c;
    return ST_OK;
}

const struct tool *catalog_find(const struct catalog *c, struct str name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (str_eq(c->tools[i].name, name)) {
            return &c->tools[i];
        }
    }
    return NULL;
}
