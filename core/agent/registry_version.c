/* Accepted agents and snapshots of them. In: parsed agents. Out: immutable, counted
 * objects that any thread may read, with the digest of each tool file as it was when an
 * operator let it in. Never takes a changed tool file for the accepted one. */
#include "agent/registry_version.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"
#include "tools/source.h"

#include <string.h>

/* A file that cannot be read gets the empty digest, which no file ever matches. */
static void digest_file(const char *path, struct tool_digest *out)
{
    struct buf bytes;
    unsigned char d[SHA256_LEN];
    out->hex[0] = '\0';
    buf_init(&bytes, TOOL_SOURCE_MAX + 1);
    if (io_read_file(path, TOOL_SOURCE_MAX, &bytes, NULL) == ST_OK) {
        struct str text = buf_str(&bytes);
        if (hash_sha256(&text, 1, d, NULL) == ST_OK) {
            hash_hex(d, out->hex);
        }
    }
    buf_done(&bytes);
}

/* What `was` accepted for the same tool with the same file. */
static void carry_digest(const struct version *was, const struct soul_tool *tool,
                         struct tool_digest *out)
{
    const struct soul_tool *old = soul_tool_find(was->soul, str_c(tool->name));
    out->hex[0] = '\0';
    if (old != NULL && old->python_file != NULL &&
        strcmp(old->python_file, tool->python_file) == 0) {
        *out = was->tools[old - was->soul->tools];
    }
}

enum status version_new_take(struct soul *soul, const struct version *was,
                             struct version **out, struct error *err)
{
    struct version *v = mem_zalloc(sizeof(*v));
    struct tool_digest *tools = mem_array(soul->ntools, sizeof(*tools));
    if (v == NULL || tools == NULL) {
        mem_free(tools);
        mem_free(v);
        soul_free(soul);
        return error_set(err, ST_NOMEM, "out of memory for an agent");
    }
    for (size_t i = 0; i < soul->ntools; i++) {
        const struct soul_tool *tool = &soul->tools[i];
        if (tool->python_file == NULL) {
            continue;
        }
        if (was != NULL) {
            carry_digest(was, tool, &tools[i]);
        } else {
            digest_file(tool->python_file, &tools[i]);
        }
    }
    atomic_init(&v->refs, 1);
    v->soul = soul;
    v->tools = tools;
    *out = v;
    return ST_OK;
}

struct version *version_ref(struct version *v)
{
    atomic_fetch_add(&v->refs, 1);
    return v;
}

void version_unref(struct version *v)
{
    if (v != NULL && atomic_fetch_sub(&v->refs, 1) == 1) {
        soul_free(v->soul);
        mem_free(v->tools);
        mem_free(v);
    }
}

const struct soul_tool *version_changed_tool(const struct version *v)
{
    for (size_t i = 0; i < v->soul->ntools; i++) {
        const struct soul_tool *tool = &v->soul->tools[i];
        struct tool_digest now;
        if (tool->python_file == NULL) {
            continue;
        }
        digest_file(tool->python_file, &now);
        if (strcmp(now.hex, v->tools[i].hex) != 0) {
            return tool;
        }
    }
    return NULL;
}

struct agent_snapshot *snapshot_new(size_t max_agents, size_t max_files)
{
    struct agent_snapshot *s = mem_zalloc(sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    atomic_init(&s->refs, 1);
    s->agents = mem_array(max_agents, sizeof(struct version *));
    s->files = mem_array(max_files, sizeof(*s->files));
    s->arena = arena_new((size_t)16 * 1024 * 1024);
    if (s->agents == NULL || s->files == NULL || s->arena == NULL) {
        agents_put(s);
        return NULL;
    }
    return s;
}

void agents_put(struct agent_snapshot *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < s->nagents; i++) {
        version_unref(s->agents[i]);
    }
    mem_free(s->agents);
    mem_free(s->files);
    arena_free(s->arena);
    mem_free(s);
}

static int compare(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n != 0 ? memcmp(a.ptr, b.ptr, n) : 0;
    if (c != 0 || a.len == b.len) {
        return c;
    }
    return a.len < b.len ? -1 : 1;
}

const struct soul *agents_find(const struct agent_snapshot *s, struct str id)
{
    size_t low = 0;
    size_t high = s->nagents;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = compare(id, str_c(s->agents[middle]->soul->id));
        if (c == 0) {
            return s->agents[middle]->soul;
        }
        if (c < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

size_t agents_count(const struct agent_snapshot *s)
{
    return s->nagents;
}

const struct soul *agents_at(const struct agent_snapshot *s, size_t i)
{
    return s->agents[i]->soul;
}

uint64_t agents_generation(const struct agent_snapshot *s)
{
    return s->generation;
}

size_t agents_file_states(const struct agent_snapshot *s,
                          const struct agent_file_state **out)
{
    *out = s->files;
    return s->nfiles;
}

bool agents_tool_digest(const struct agent_snapshot *s, const struct soul *soul,
                        const char *tool_name, char out[65])
{
    for (size_t i = 0; i < s->nagents; i++) {
        const struct version *v = s->agents[i];
        const struct soul_tool *tool =
            v->soul == soul ? soul_tool_find(soul, str_c(tool_name)) : NULL;
        if (tool != NULL && tool->python_file != NULL) {
            memcpy(out, v->tools[tool - soul->tools].hex, sizeof(v->tools->hex));
            return true;
        }
    }
    return false;
}
