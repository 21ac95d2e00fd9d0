#define _GNU_SOURCE /* realpath(3) is behind it in glibc */
/* The configuration in; facts about the machine, the user and the folders out: where the
 * program's parts are, which environment children get, whom a root gateway becomes, which
 * paths no tool folder may hold. */
#include "base/mem.h"
#include "runtime/internal.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status runtime_prefix(char **out, struct error *err)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    for (int up = 0; n > 0 && up < 2; up++) {
        path[n] = '\0';
        slash = strrchr(path, '/');
        n = slash != NULL ? slash - path : -1;
    }
    if (n < 0) {
        return error_set_errno(err, ST_IO, errno, "cannot tell where the program is");
    }
    *out = mem_dup(path, (size_t)n);
    return *out != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
}

static enum status keep_base_env(struct runtime *r, struct error *err)
{
    static const char *const names[] = {"PATH", "HOME", "LANG", "TMPDIR"};
    struct buf b;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = config_env_get(r->env, names[i]);

        if (value == NULL) {
            continue;
        }
        buf_init(&b, (size_t)64 * 1024);
        buf_addf(&b, "%s=%s", names[i], value);
        r->base_env[r->core.nbase_env] = buf_take(&b);
        buf_done(&b);
        if (r->base_env[r->core.nbase_env++] == NULL) {
            return error_set(err, ST_NOMEM, "%s is too long", names[i]);
        }
    }
    r->core.base_env = (const char *const *)r->base_env;
    return ST_OK;
}

/* Whom a root gateway becomes. At ISOLATION_NONE nobody is needed, but a reload may change
 * that, so the user is looked up all the same. */
static enum status find_user(struct runtime *r, struct error *err)
{
    const struct config_sandbox *s = &r->cfg->runtime.sandbox;
    bool needed = s->isolation != ISOLATION_NONE;
    struct passwd pw, *found = NULL;
    char text[4096];

    r->core.root_gateway = geteuid() == 0;
    r->core.drop_uid = r->core.drop_gid = SPAWN_KEEP_ID;
    if (!r->core.root_gateway) {
        return ST_OK;
    }
    if (getpwnam_r(s->user, &pw, text, sizeof(text), &found) != 0 || found == NULL) {
        return needed ? error_set(err, ST_INVALID,
                                  "runtime.sandbox.user: there is no user %s", s->user)
                      : ST_OK;
    }
    if (found->pw_uid == 0) {
        return needed ? error_set(err, ST_INVALID, "runtime.sandbox.user: %s is root",
                                  s->user)
                      : ST_OK;
    }
    r->core.drop_uid = found->pw_uid;
    r->core.drop_gid = found->pw_gid;
    return ST_OK;
}

/* Adds the real path of what must stay out of tools' folders; absent ones are skipped. */
static enum status protect(struct runtime *r, const char *path, struct error *err)
{
    char real[PATH_MAX];
    char *copy;

    if (path == NULL || path[0] == '\0' || realpath(path, real) == NULL) {
        return ST_OK;
    }
    copy = r->core.nprotected < RUNTIME_MAX_PROTECTED ? mem_strdup(real) : NULL;
    if (copy == NULL) {
        return error_set(err, ST_NOMEM, "too many protected paths");
    }
    r->protected_mem[r->core.nprotected] = copy;
    r->protected_paths[r->core.nprotected++] = copy;
    r->core.protected_paths = r->protected_paths;
    return ST_OK;
}

static enum status protect_all(struct runtime *r, struct error *err)
{
    const struct config *c = r->cfg;
    const char *const paths[] = {c->file, c->runtime.state_dir, c->server.tls_key,
                                 r->prefix};
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < sizeof(paths) / sizeof(paths[0]); i++) {
        st = protect(r, paths[i], err);
    }
    for (size_t i = 0; st == ST_OK && i < c->nplugins; i++) {
        st = protect(r, c->plugins[i].path, err);
    }
    return st;
}

static enum status make_folders(struct runtime *r, struct error *err)
{
    struct buf b;
    enum status st;

    buf_init(&b, 8192);
    buf_addf(&b, "%s/work", r->cfg->runtime.state_dir);
    r->work_root = buf_take(&b);
    buf_done(&b);
    if (r->work_root == NULL) {
        return error_set(err, ST_NOMEM, "runtime.state_dir is too long");
    }
    r->core.work_root = r->work_root;
    st = io_mkdirs(r->cfg->runtime.state_dir, 0711, err);
    if (st == ST_OK) {
        st = io_mkdirs(r->work_root, 0711, err);
    }
    return st == ST_OK ? ST_OK : error_context(err, "runtime.state_dir");
}

enum status runtime_find_facts(struct runtime *r, struct error *err)
{
    enum status st = keep_base_env(r, err);

    if (st == ST_OK) {
        st = find_user(r, err);
    }
    if (st == ST_OK) {
        st = make_folders(r, err);
    }
    return st == ST_OK ? protect_all(r, err) : st;
}
