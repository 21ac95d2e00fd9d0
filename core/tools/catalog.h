/* The tools of one agent with typed identities. Names are looked up, never parsed. */
#ifndef SOULACY_TOOLS_CATALOG_H
#define SOULACY_TOOLS_CATALOG_H

#include "config/soul.h"

enum tool_kind {
    TOOL_PYTHON = 0,
    TOOL_SAFE, /* read_file list_dir find_files fetch_url http_request env_get sys_info */
    TOOL_SYSTEM, /* shell_exec run_script install_library write_file download_file */
    TOOL_SEARCH, /* web_search */
    TOOL_KB,     /* kb_search */
    TOOL_MCP,
    TOOL_PEER,
    TOOL_KIND_COUNT_
};
const char *tool_kind_name(enum tool_kind k); /* "python", "safe", "system", ... */

struct tool {
    enum tool_kind kind;
    struct str name;
    struct str description;
    const struct schema *parameters; /* NULL: this build does not carry it out */
    const struct soul_tool *python;  /* TOOL_PYTHON only */
    struct str server;               /* TOOL_MCP: name in mcp.servers */
};

struct catalog {
    struct tool *tools; /* fixed order: Python tools as written, then built-ins */
    size_t n;
};

/* Every tool that this agent could ever name. Lives in the arena and borrows soul. */
enum status catalog_build(const struct soul *soul, struct arena *a, struct catalog *out,
                          struct error *err) SY_MUST_CHECK;
const struct tool *catalog_find(const struct catalog *c, struct str name);
/* The kind of a built-in name; false when it is none. */
bool builtin_kind(struct str name, enum tool_kind *kind);

#endif
