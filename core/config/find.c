/* Which config.yaml. In: the command line's path and the environment snapshot. Out: a
 * path to read, or none. Never opens the file. */
#include "config/config.h"

#include "base/mem.h"

#include <errno.h>
#include <sys/stat.h>

/* 1: a file (or anything else) is there, 0: nothing, -1: cannot be told. */
static int exists(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        return 1;
    }
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

static enum status take(const char *path, char **out, struct error *err)
{
    char *copy = mem_strdup(path);
    if (copy == NULL) {
        return error_set(err, ST_NOMEM, "configuration: out of memory");
    }
    *out = copy;
    return ST_OK;
}

static enum status must_exist(const char *path, const char *named_by, char **out,
                              struct error *err)
{
    if (exists(path) != 1) {
        return error_set_errno(err, ST_NOT_FOUND, errno, "%s (named by %s)", path,
                               named_by);
    }
    return take(path, out, err);
}

enum status config_find(const char *explicit_path, const struct config_env *env,
                        char **path, struct error *err)
{
    if (explicit_path != NULL) {
        return must_exist(explicit_path, "--config", path, err);
    }
    const char *named = config_env_get(env, "SOULACY_CONFIG_PATH");
    if (named != NULL) {
        return must_exist(named, "SOULACY_CONFIG_PATH", path, err);
    }
    if (exists("config.yaml") == 1) {
        return take("config.yaml", path, err);
    }
    const char *home = config_env_get(env, "HOME");
    if (home == NULL) {
        *path = NULL;
        return ST_OK;
    }
    struct buf full;
    buf_init(&full, 8192);
    buf_addf(&full, "%s/.soulacy/config.yaml", home);
    enum status st = buf_status(&full);
    if (st != ST_OK) {
        st = error_set(err, st, "configuration: HOME is too long");
    } else if (exists(full.ptr) == 1) {
        st = take(full.ptr, path, err);
    } else {
        *path = NULL;
    }
    buf_done(&full);
    return st;
}
