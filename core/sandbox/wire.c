/* In: a struct spawn_plan. Out: the bytes of one message for the helper. It checks form
 * (absolute paths, counts, sizes), never policy. Pure. */
#include "sandbox/wire_encode.h"

#include <string.h>

static void add_string(struct buf *b, const char *s, size_t len)
{
    buf_add(b, s, len);
    buf_add_char(b, '\0');
}

/* A trailing slash means nothing here, the helper does not take one. */
static size_t path_len(const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    return len;
}

static enum status check(const struct spawn_plan *p, struct error *err)
{
    if (p->nargv == 0 || p->nargv > WIRE_MAX_ARGV || p->argv[0][0] != '/') {
        return error_set(err, ST_INVALID, "spawn: argv[0] must be an absolute path");
    }
    if (p->nenv > WIRE_MAX_ENV || p->npaths > WIRE_MAX_PATHS) {
        return error_set(err, ST_TOO_LARGE,
                         "spawn: over %d environment entries or %d paths", WIRE_MAX_ENV,
                         WIRE_MAX_PATHS);
    }
    if ((p->uid == SPAWN_KEEP_ID) != (p->gid == SPAWN_KEEP_ID)) {
        return error_set(err, ST_INVALID, "spawn: uid and gid go together");
    }
    if ((p->cwd != NULL && p->cwd[0] != '/') ||
        (p->work_root != NULL && p->work_root[0] != '/')) {
        return error_set(err, ST_INVALID, "spawn: a folder is not an absolute path");
    }
    for (size_t i = 0; i < p->nenv; i++) {
        if (p->env[i][0] == '=' || strchr(p->env[i], '=') == NULL) {
            return error_set(err, ST_INVALID, "spawn: environment entry %zu has no name",
                             i);
        }
    }
    for (size_t i = 0; i < p->npaths; i++) {
        if (p->paths[i].path[0] != '/') {
            return error_set(err, ST_INVALID, "spawn: path %zu is not absolute", i);
        }
    }
    return ST_OK;
}

enum status wire_encode(const struct spawn_plan *p, bool self, struct buf *out,
                        struct error *err)
{
    struct wire_head h;
    enum status st = check(p, err);
    uint32_t size;

    if (st != ST_OK) {
        return st;
    }
    memset(&h, 0, sizeof(h));
    h.magic = WIRE_MAGIC;
    h.isolation = (uint8_t)p->isolation;
    h.limits_must_hold = p->limits_must_hold ? 1 : 0;
    h.network = p->network ? 1 : 0;
    h.self = self ? 1 : 0;
    h.uid = p->uid;
    h.gid = p->gid;
    h.nargv = (uint32_t)p->nargv;
    h.nenv = (uint32_t)p->nenv;
    h.npaths = (uint32_t)p->npaths;
    h.cpu_seconds = p->cpu_seconds;
    h.mem_bytes = p->mem_bytes;
    h.open_files = p->open_files;
    h.file_bytes = p->file_bytes;
    h.processes = p->processes;
    h.deadline_ms = p->deadline_ms;
    buf_add(out, &h, sizeof(h));
    for (size_t i = 0; i < p->nargv; i++) {
        add_string(out, p->argv[i], strlen(p->argv[i]));
    }
    for (size_t i = 0; i < p->nenv; i++) {
        add_string(out, p->env[i], strlen(p->env[i]));
    }
    add_string(out, p->cwd, p->cwd != NULL ? path_len(p->cwd) : 0);
    add_string(out, p->work_root, p->work_root != NULL ? path_len(p->work_root) : 0);
    for (size_t i = 0; i < p->npaths; i++) {
        buf_add_char(out, p->paths[i].writable ? 'w' : 'r');
        add_string(out, p->paths[i].path, path_len(p->paths[i].path));
    }
    st = buf_status(out);
    if (st != ST_OK) {
        return error_set(err, st, "spawn: the plan is over %d bytes or memory is short",
                         SPAWN_PLAN_MAX);
    }
    size = (uint32_t)out->len;
    memcpy(out->ptr + offsetof(struct wire_head, size), &size, sizeof(size));
    return ST_OK;
}
