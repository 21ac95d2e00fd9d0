#define _GNU_SOURCE /* realpath(3) is behind it in glibc */
/* The configuration in; facts about the machine, the user and the folders out: where the
 * program's parts are, which environment children get, whom a root gateway becomes, which
 * paths no tool folder may hold. */
#include "base/mem.h"
#include "runtime_internal.h"

#include <errno.h>
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

static enum status find_user(struct runtime *r, struct error *err)
{
    const char *name = r->cfg->runtime.sandbox.user;
    struct passwd pw, *found = NULL;
    char text[4096];

    r->core.root_gateway = geteuid() == 0;
    r->core.drop_uid = r->core.drop_gid = SPAWN_KEEP_ID;
    if (!r->core.root_gateway || r->cfg->runtime.sandbox.isolation == ISOLATION_NONE) {
        return ST_OK;
    }
    if (getpwnam_r(name, &pw, text, sizeof(text), &found) != 0 || found == NULL) {
        return error_set(err, ST_INVALID, "runtime.sandbox.user: there is no user %s",
                         name);
    }
    if (found->pw_uid == 0) {
        return error_set(err, ST_INVALID, "runtime.sandbox.user: %s is root", name);
    }
    r->core.drop_uid = found->pw_uid;
    r->core.drop_gid = found->pw_gid;
    return ST_OK;
}

/* Adds the real path of what must stay out of tools' folders; absent ones are skipped. */
static void protect(struct runtime *r, const char *path)
{
    char *real = path != NULL && path[0] != '\0' ? realpath(path, NULL) : NULL;

    if (real != NULL && r->core.nprotected < RUNTIME_MAX_PROTECTED) {
        r->protected_mem[r->core.nprotected] = real;
        r->protected_paths[r->core.nprotected++] = real;
    } else {
        free(real); /* of libc, not of base */
    }
    r->core.protected_paths = r->protected_paths;
}

static void protect_all(struct runtime *r)
{
    const struct config *c = r->cfg;

    protect(r, c->file);
    protect(r, c->runtime.state_dir);
    protect(r, c->server.tls_key);
    protect(r, r->prefix);
    for (size_t i = 0; i < c->nplugins; i++) {
        protect(r, c->plugins[i].path);
    }
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
    if (st == ST_OK) {
        protect_all(r);
    }
    return st;
}
