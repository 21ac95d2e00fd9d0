/* Wires what lies behind the gate for tests. Comes in: build folder, backend, python.
 * Goes out: a working exec, and counts of what it left behind. */
#include "parity/rig.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A list of texts, separated by commas. */
static bool fill_list(struct arena *a, struct str text, struct sy_cfg_value *v)
{
    struct sy_str *items = arena_array(a, text.len + 1, sizeof *items);
    struct str part;
    v->list = items;
    while (items != NULL && str_split(&text, ',', &part)) {
        items[v->nlist++] = (struct sy_str){part.ptr, part.len};
    }
    return items != NULL;
}

/* One setting, or the key's fallback. False: no memory, or no number. */
static bool fill_value(struct arena *a, const struct sy_cfg_key *k, const char *text,
                       struct sy_cfg_value *v)
{
    struct str s = str_c(text);
    *v = (struct sy_cfg_value){.key = {k->name, strlen(k->name)}, .type = k->type};
    if (k->type == SY_CFG_LIST) {
        return fill_list(a, s, v);
    }
    if (k->type == SY_CFG_INT || k->type == SY_CFG_DURATION) {
        return str_to_i64(s, INT64_MIN, INT64_MAX, &v->i) == ST_OK;
    }
    if (k->type == SY_CFG_BOOL) {
        v->i = str_eq_c(s, "true") ? 1 : 0;
    }
    v->s = (struct sy_str){s.ptr, s.len};
    return true;
}

static enum status rig_values(void *ctx, uint32_t kind, const char *name,
                              const struct sy_cfg_key *keys, size_t nkeys,
                              struct arena *arena, const struct sy_cfg_value **out,
                              size_t *nout, struct error *err)
{
    const struct rig *r = ctx;
    struct sy_cfg_value *values = arena_array(arena, nkeys + 1, sizeof *values);
    (void)kind;
    (void)name;
    *nout = 0;
    *out = values;
    for (size_t i = 0; values != NULL && i < nkeys; i++) {
        const char *text = keys[i].fallback;
        size_t n = strlen(keys[i].name);
        for (size_t j = 0; j < r->opt.nsettings; j++) {
            const char *set = r->opt.settings[j];
            if (strncmp(set, keys[i].name, n) == 0 && set[n] == '=') {
                text = set + n + 1;
            }
        }
        if (text != NULL && !fill_value(arena, &keys[i], text, &values[(*nout)++])) {
            return error_set(err, ST_INVALID, "bad value of %s", keys[i].name);
        }
    }
    return values != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
}

static bool open_plugins(struct rig *r, struct error *err)
{
    char dir[4096];
    struct plugin_instance *p = NULL;
    (void)snprintf(dir, sizeof dir, "%s/lib/soulacy", r->opt.build_dir);
    r->service = (struct plugin_service){SY_HOST_SPAWN_ID, launch_spawn_service()};
    const struct plugin_registry_config cfg = {.log = r->log,
                                               .plugin_dir = dir,
                                               .services = &r->service,
                                               .nservices = 1,
                                               .values = rig_values,
                                               .values_ctx = r};
    if (plugin_registry_new(&cfg, &r->plugins, err) != ST_OK) {
        return false;
    }
    const struct plugin_spec spec = {
        .path = r->opt.backend, .kind = SY_KIND_EXECUTOR, .name = r->opt.backend};
    if (plugin_load(r->plugins, &spec, &p, err) != ST_OK) {
        return false;
    }
    plugin_slot_set(p, PLUGIN_SLOT_SPAWN, r->launches);
    return plugin_start(p, err) == ST_OK;
}

static void fill_command(struct rig *r)
{
    r->argv[0] = r->opt.python;
    r->argv[1] = "-I";
    r->argv[2] = "-S";
    r->argv[3] = "-c";
    (void)snprintf(
        r->bootstrap, sizeof r->bootstrap, "%s%s",
        r->opt.no_json ? "import sys;sys.modules['json']=sys.modules['_json']=None;" : "",
        exec_bootstrap());
    r->argv[4] = r->bootstrap;
    (void)snprintf(r->mark, sizeof r->mark, "SOULACY_TEST_MARK=%d-%lld", (int)getpid(),
                   (long long)clock_mono_us());
    r->env[0] = "PATH=/usr/bin:/bin";
    r->env[1] = "HOME=/nonexistent";
    r->env[2] = "LANG=C.UTF-8";
    r->env[3] = "TMPDIR=/tmp";
    r->env[4] = r->mark;
}

static bool make_work_root(struct rig *r, struct error *err)
{
    if (r->opt.isolation == ISOLATION_NONE) {
        return true;
    }
    (void)snprintf(r->work_root, sizeof r->work_root, "/tmp/soulacy-rig-XXXXXX");
    if (mkdtemp(r->work_root) == NULL || chmod(r->work_root, 0755) != 0) {
        (void)error_set(err, ST_IO, "no work folder");
        return false;
    }
    return true;
}

bool rig_open(struct rig *r, const struct rig_options *opt, struct error *err)
{
    char helper[4096];
    const struct pool_config jobs = {
        .name = "jobs", .max_threads = 80, .max_queued = 4096};
    *r = (struct rig){.opt = *opt};
    (void)signal(SIGPIPE, SIG_IGN); /* as the program does */
    fill_command(r);
    (void)snprintf(helper, sizeof helper, "%s/libexec/soulacy/soulacy-spawn",
                   opt->build_dir);
    if (!opt->quiet && log_open(LOG_INFO, LOG_CONSOLE, "", &r->log, err) != ST_OK) {
        return false;
    }
    return make_work_root(r, err) &&
           spawn_open(helper, r->log, &r->spawn, err) == ST_OK &&
           launches_new(r->spawn, exec_preamble(), 64, &r->launches, err) == ST_OK &&
           open_plugins(r, err) && pool_new(&jobs, &r->jobs, err) == ST_OK &&
           exec_new(r->launches, r->plugins, r->jobs, r->log, &r->exec, err) == ST_OK;
}

void rig_close(struct rig *r)
{
    exec_free(r->exec);
    pool_free(r->jobs);
    plugin_registry_free(r->plugins);
    launches_free(r->launches);
    spawn_close(r->spawn);
    log_close(r->log);
    if (r->work_root[0] != '\0') {
        (void)rmdir(r->work_root); /* fails, and shows, when something was left in it */
    }
}

void rig_plan(const struct rig *r, struct plan *p)
{
    fake_plan_init(p, r->opt.backend, r->argv, sizeof r->argv / sizeof r->argv[0]);
    p->launch.env = r->env;
    p->launch.nenv = sizeof r->env / sizeof r->env[0];
    p->launch.isolation = r->opt.isolation;
    p->launch.must = SY_MUST_KILL_TREE;
    if (r->opt.isolation != ISOLATION_NONE) {
        p->launch.network = false;
        p->launch.limits_must_hold = true;
        p->launch.work_root = r->work_root;
        p->launch.must |= SY_MUST_FS_ROOT | SY_MUST_NO_NEW_PRIV | SY_MUST_NO_NET;
        if (geteuid() == 0) {
            p->launch.uid = 65534;
            p->launch.gid = 65534;
        }
    }
    if (r->opt.isolation == ISOLATION_STRICT) {
        p->launch.must |= SY_MUST_NAMESPACES;
    }
}

bool rig_settle(struct rig *r)
{
    int64_t by_ms = clock_mono_ms() + 5000;
    while (exec_active(r->exec) > 0 || launches_children(r->launches) > 0) {
        if (clock_mono_ms() > by_ms) {
            return false;
        }
        (void)poll(NULL, 0, 1); /* teardown has no event of its own to wait for */
    }
    return true;
}

static bool has_mark(const char *pid, const char *mark)
{
    char path[300];
    char text[4096];
    (void)snprintf(path, sizeof path, "/proc/%s/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, sizeof text);
    (void)close(fd);
    struct str s = str_n(text, n > 0 ? (size_t)n : 0);
    return str_find(s, str_c(mark)) != SIZE_MAX;
}

size_t rig_leftovers(const struct rig *r)
{
    size_t count = 0;
    DIR *dir = opendir("/proc");
    if (dir == NULL) {
        return SIZE_MAX;
    }
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && has_mark(e->d_name, r->mark)) {
            count++;
        }
    }
    (void)closedir(dir);
    return count;
}
