/* In: the bytes of one message. Out: a struct hplan that points into them, or the reason
 * why not. It never reads outside the message, allocates nothing, touches no file. What
 * it accepts is well formed, not permitted: permission is the core's business. */
#include "sandbox/helper/hplan.h"

#include <string.h>

struct cursor {
    char *at;
    size_t left;
};

/* The next string, or NULL when the NUL is missing. */
static char *take_string(struct cursor *c)
{
    char *s = c->at;
    char *nul = c->left > 0 ? memchr(s, '\0', c->left) : NULL;

    if (nul == NULL) {
        return NULL;
    }
    c->left -= (size_t)(nul - s) + 1;
    c->at = nul + 1;
    return s;
}

/* Absolute, not "/" itself, without "." or ".." or empty parts. */
static bool path_is_plain(const char *path)
{
    const char *part = path;

    if (path[0] != '/' || path[1] == '\0' || strlen(path) > WIRE_MAX_PATH) {
        return false;
    }
    while (*part == '/') {
        const char *end = strchr(part + 1, '/');
        size_t len = end != NULL ? (size_t)(end - part) - 1 : strlen(part + 1);

        if (len == 0 || (len == 1 && part[1] == '.') ||
            (len == 2 && part[1] == '.' && part[2] == '.')) {
            return false;
        }
        if (end == NULL) {
            break;
        }
        part = end;
    }
    return true;
}

/* The host's process table is never part of a sandbox's paths. */
static bool path_may_be_shown(const char *path)
{
    return path_is_plain(path) && strcmp(path, "/proc") != 0 &&
           strncmp(path, "/proc/", 6) != 0;
}

static bool head_is_sane(const struct wire_head *h, size_t size, const char **why)
{
    if (h->magic != WIRE_MAGIC || h->size != size) {
        *why = "not a plan";
        return false;
    }
    if (h->isolation > LEVEL_STRICT || h->limits_must_hold > 1 || h->network > 1 ||
        h->self > 1) {
        *why = "a flag out of range";
        return false;
    }
    if (h->nargv == 0 || h->nargv > WIRE_MAX_ARGV || h->nenv > WIRE_MAX_ENV ||
        h->npaths > WIRE_MAX_PATHS) {
        *why = "a count out of range";
        return false;
    }
    if ((h->uid == WIRE_KEEP_ID) != (h->gid == WIRE_KEEP_ID)) {
        *why = "uid without gid";
        return false;
    }
    return true;
}

static bool take_vectors(struct cursor *c, struct hplan *out, const char **why)
{
    for (size_t i = 0; i < out->nargv; i++) {
        out->argv[i] = take_string(c);
        if (out->argv[i] == NULL) {
            *why = "argv cut short";
            return false;
        }
    }
    out->argv[out->nargv] = NULL;
    if (out->argv[0][0] != '/') {
        *why = "argv[0] is not absolute";
        return false;
    }
    for (size_t i = 0; i < out->nenv; i++) {
        out->env[i] = take_string(c);
        if (out->env[i] == NULL || out->env[i][0] == '=' ||
            strchr(out->env[i], '=') == NULL) {
            *why = "an environment entry is not NAME=value";
            return false;
        }
    }
    out->env[out->nenv] = NULL;
    return true;
}

static bool take_paths(struct cursor *c, struct hplan *out, const char **why)
{
    for (size_t i = 0; i < out->npaths; i++) {
        const char *s = take_string(c);

        if (s == NULL || (s[0] != 'r' && s[0] != 'w') || !path_may_be_shown(s + 1)) {
            *why = "a path is not a plain absolute one";
            return false;
        }
        out->paths[i].path = s + 1;
        out->paths[i].writable = s[0] == 'w';
    }
    return true;
}

static bool take_folders(struct cursor *c, struct hplan *out, const char **why)
{
    const char *cwd = take_string(c);
    const char *work = cwd != NULL ? take_string(c) : NULL;

    if (work == NULL) {
        *why = "folders cut short";
        return false;
    }
    if ((cwd[0] != '\0' && cwd[0] != '/') || strlen(cwd) > WIRE_MAX_PATH) {
        *why = "cwd is not absolute";
        return false;
    }
    if (work[0] != '\0' && !path_may_be_shown(work)) {
        *why = "work_root is not a plain absolute path";
        return false;
    }
    out->cwd = cwd[0] != '\0' ? cwd : NULL;
    out->work_root = work[0] != '\0' ? work : NULL;
    return true;
}

bool hplan_decode(char *message, size_t size, struct hplan *out, const char **why)
{
    struct wire_head h;
    struct cursor c;

    *why = "not a plan";
    if (size < sizeof(h) || size > WIRE_PLAN_MAX) {
        return false;
    }
    memcpy(&h, message, sizeof(h));
    if (!head_is_sane(&h, size, why)) {
        return false;
    }
    out->level = (enum level)h.isolation;
    out->limits_must_hold = h.limits_must_hold != 0 || out->level != LEVEL_NONE;
    out->network = h.network != 0;
    out->self = h.self != 0;
    out->uid = h.uid;
    out->gid = h.gid;
    out->cpu_seconds = h.cpu_seconds;
    out->mem_bytes = h.mem_bytes;
    out->open_files = h.open_files;
    out->file_bytes = h.file_bytes;
    out->processes = h.processes;
    out->deadline_ms = h.deadline_ms;
    out->nargv = h.nargv;
    out->nenv = h.nenv;
    out->npaths = h.npaths;
    c = (struct cursor){message + sizeof(h), size - sizeof(h)};
    if (!take_vectors(&c, out, why) || !take_folders(&c, out, why) ||
        !take_paths(&c, out, why)) {
        return false;
    }
    if (c.left != 0) {
        *why = "bytes behind the plan";
        return false;
    }
    return true;
}
