#define _GNU_SOURCE /* signalfd's sigset helpers are POSIX; getpwnam_r, getuid too; ppoll no */
/* A configuration in, a running gateway out: makes the parts in order, connects them, waits
 * for signals and changed files, and takes everything down in reverse order. Decides
 * nothing about messages or tools. */
#include "runtime.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/version.h"
#include "config/plugin_values.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DRAIN_MS 10000
#define MAX_LAUNCHES 256
#define MAX_PROTECTED 64
#define HTTP_THREADS 16
#define JOB_THREADS 128

struct runtime {
    enum runtime_mode mode;
    struct config *cfg;
    struct config *old[32]; /* replaced by reloads; readers may still hold them */
    size_t nold;
    const struct config_env *env;
    char *prefix;
    struct log *log;
    struct spawn *spawn;
    struct metrics *metrics;
    struct store *store;
    struct audit *audit;
    struct agent_registry *agents;
    struct pool *http, *turns, *jobs;
    struct launches *launches;
    struct plugin_registry *plugins;
    struct exec *exec;
    struct lanes *lanes;
    struct ops *ops;
    struct server *server;
    struct readiness *readiness;
    struct agent_core core;
    char *base_env[5], *work_root;
    const char *protected_paths[MAX_PROTECTED];
    char *protected_mem[MAX_PROTECTED];
    struct event condemned;
    int signals; /* signalfd */
    int64_t started_ms;
};

enum status runtime_prefix(char **out, struct error *err) {
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

/* ---- facts about this machine and user ----------------------------------------------- */

static enum status keep_base_env(struct runtime *r, struct error *err) {
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

static enum status find_user(struct runtime *r, struct error *err) {
    const char *name = r->cfg->runtime.sandbox.user;
    struct passwd pw, *found = NULL;
    char text[4096];

    r->core.root_gateway = geteuid() == 0;
    r->core.drop_uid = r->core.drop_gid = SPAWN_KEEP_ID;
    if (!r->core.root_gateway || r->cfg->runtime.sandbox.isolation == ISOLATION_NONE) {
        return ST_OK;
    }
    if (getpwnam_r(name, &pw, text, sizeof(text), &found) != 0 || found == NULL) {
        return error_set(err, ST_INVALID, "runtime.sandbox.user: there is no user %s", name);
    }
    if (found->pw_uid == 0) {
        return error_set(err, ST_INVALID, "runtime.sandbox.user: %s is root", name);
    }
    r->core.drop_uid = found->pw_uid;
    r->core.drop_gid = found->pw_gid;
    return ST_OK;
}

/* Adds the real path of what must stay out of tools' folders; absent ones are skipped. */
static void protect(struct runtime *r, const char *path) {
    char *real = path != NULL && path[0] != '\0' ? realpath(path, NULL) : NULL;

    if (real != NULL && r->core.nprotected < MAX_PROTECTED) {
        r->protected_mem[r->core.nprotected] = real;
        r->protected_paths[r->core.nprotected++] = real;
    } else {
        free(real); /* of libc, not of base */
    }
    r->core.protected_paths = r->protected_paths;
}

static void protect_all(struct runtime *r) {
    const struct config *c = r->cfg;

    protect(r, c->file);
    protect(r, c->runtime.state_dir);
    protect(r, c->server.tls_key);
    protect(r, r->prefix);
    for (size_t i = 0; i < c->nplugins; i++) {
        protect(r, c->plugins[i].path);
    }
}

static enum status make_folders(struct runtime *r, struct error *err) {
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

/* ---- parts ----------------------------------------------------------------------------- */

static enum status open_log(struct runtime *r, struct error *err) {
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    const struct config *c = r->cfg;
    enum log_level level = r->mode == RUNTIME_SERVE ? LOG_INFO : LOG_WARN;
    enum status st;

    for (size_t i = 0; i < 4 && r->mode == RUNTIME_SERVE; i++) {
        if (strcmp(c->log.level, levels[i]) == 0) {
            level = (enum log_level)i;
        }
    }
    st = log_open(level, strcmp(c->log.format, "json") == 0 ? LOG_JSON : LOG_CONSOLE,
                  c->log.file, &r->log, err);
    if (st == ST_OK && secret_is_set(&c->server.api_key)) {
        st = log_hide_secret(r->log, &c->server.api_key);
    }
    for (size_t i = 0; st == ST_OK && i < c->llm.nproviders; i++) {
        if (secret_is_set(&c->llm.providers[i].api_key)) {
            st = log_hide_secret(r->log, &c->llm.providers[i].api_key);
        }
    }
    return st;
}

static enum status open_spawn(struct runtime *r, struct error *err) {
    struct buf path;
    enum status st;

    buf_init(&path, 8192);
    buf_addf(&path, "%s/libexec/soulacy/soulacy-spawn", r->prefix);
    st = buf_status(&path) == ST_OK ? spawn_open(path.ptr, r->log, &r->spawn, err)
                                    : error_set(err, ST_NOMEM, "the prefix is too long");
    buf_done(&path);
    return st;
}

static void save_anchor(void *ctx, const char *head_hex, uint64_t count) {
    struct runtime *r = ctx;
    struct error err = {0};
    char text[128];

    (void)snprintf(text, sizeof(text), "%s %llu", head_hex, (unsigned long long)count);
    if (store_put(r->store, "audit_head", str_c(text), &err) != ST_OK) {
        metric_add(r->metrics, METRIC_AUDIT_FAILED, 1);
        log_line(r->log, LOG_ERROR, "audit", "the head could not be anchored: %s", err.text);
    }
}

static bool load_anchor(void *ctx, char head_hex[65], uint64_t *count) {
    struct runtime *r = ctx;
    struct arena *a = arena_new(4096);
    struct str text, head;
    struct error err;
    int64_t n = 0;
    bool ok = a != NULL && store_get(r->store, "audit_head", a, &text, &err) == ST_OK &&
              str_split(&text, ' ', &head) && head.len == 64 &&
              str_to_i64(text, 0, INT64_MAX, &n) == ST_OK;

    if (ok) {
        memcpy(head_hex, head.ptr, 64);
        head_hex[64] = '\0';
        *count = (uint64_t)n;
    }
    arena_free(a);
    return ok;
}

static enum status open_state(struct runtime *r, struct error *err) {
    struct audit_anchor anchor = {r, save_anchor, load_anchor};
    struct buf key;
    enum status st = store_open(r->cfg->runtime.state_dir, &r->store, err);

    if (st != ST_OK) {
        return st;
    }
    buf_init(&key, 8192);
    buf_addf(&key, "%s/audit.key", r->cfg->runtime.state_dir);
    st = buf_status(&key) == ST_OK
             ? audit_open(r->cfg->audit.file, key.ptr, r->cfg->audit.required, &anchor,
                          &r->audit, err)
             : error_set(err, ST_NOMEM, "runtime.state_dir is too long");
    buf_done(&key);
    return st;
}

static void log_problems(struct runtime *r, const struct problems *probs) {
    for (const struct problem *p = probs->first; p != NULL; p = p->next) {
        log_line(r->log, p->warning ? LOG_WARN : LOG_ERROR, "agents", "%s", p->text);
    }
}

static enum status open_agents(struct runtime *r, struct error *err) {
    struct arena *a = arena_new((size_t)4 * 1024 * 1024);
    struct agent_snapshot *snap;
    struct problems probs;
    enum status st;

    if (a == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the agents");
    }
    problems_init(&probs, a, "agents");
    st = agent_registry_new(r->cfg, r->log, &probs, &r->agents, err);
    log_problems(r, &probs);
    arena_free(a);
    if (st != ST_OK) {
        return st;
    }
    snap = agents_take(r->agents);
    for (size_t i = 0; i < agents_count(snap); i++) {
        if (agents_at(snap, i)->system) {
            log_line(r->log, LOG_WARN, "agents", "agent %s holds the system capability%s",
                     agents_at(snap, i)->id,
                     r->cfg->runtime.allow_system_tools
                         ? ""
                         : " (without effect: runtime.allow_system_tools is false)");
        }
    }
    if (r->mode == RUNTIME_SERVE) {
        log_line(r->log, LOG_INFO, "agents", "%zu loaded", agents_count(snap));
    }
    agents_put(snap);
    return ST_OK;
}

static enum status open_pools(struct runtime *r, struct error *err) {
    size_t turns = (size_t)r->cfg->runtime.max_concurrent_sessions;
    struct pool_config http = {"http", HTTP_THREADS, 4096, 0, 0};
    struct pool_config turn = {"turn", turns, LANES_MAX_WAITING + turns, 0, 0};
    struct pool_config job = {"job", JOB_THREADS, LANES_MAX_WAITING, 0, 0};
    enum status st = pool_new(&turn, &r->turns, err);

    if (st == ST_OK) {
        st = pool_new(&job, &r->jobs, err);
    }
    if (st == ST_OK && r->mode == RUNTIME_SERVE) {
        st = pool_new(&http, &r->http, err);
    }
    if (st == ST_OK) {
        st = lanes_new(r->turns, &r->lanes, err);
    }
    return st;
}

/* ---- plugins --------------------------------------------------------------------------- */

static enum status plugin_values(void *ctx, uint32_t kind, const char *name,
                                 const struct sy_cfg_key *keys, size_t nkeys,
                                 struct arena *arena, const struct sy_cfg_value **out,
                                 size_t *nout, struct error *err) {
    struct runtime *r = ctx;
    struct sy_cfg_value *values = NULL;
    struct problems probs;
    enum status st;

    (void)nkeys;
    problems_init(&probs, arena, r->cfg->file != NULL ? r->cfg->file : "(defaults)");
    st = config_plugin_values(r->cfg, name, kind, keys, arena, &probs, &values, nout);
    *out = values;
    if (st != ST_OK && probs.first != NULL) {
        const struct problem *p = probs.first;

        return error_set(err, st, "%s:%u:%u: %s", probs.file, p->pos.line, p->pos.column,
                         p->text);
    }
    return st == ST_OK ? ST_OK : error_set(err, st, "its configuration cannot be read");
}

static void on_condemned(void *ctx, struct plugin_instance *p) {
    struct runtime *r = ctx;

    (void)p;
    event_fire(&r->condemned);
}

static void on_retire(void *arg, uint64_t id) {
    struct runtime *r = arg;

    for (size_t i = 0; i < plugin_count(r->plugins); i++) {
        struct plugin_instance *p = plugin_at(r->plugins, i);

        if (plugin_kind(p) == SY_KIND_EXECUTOR) {
            plugin_executor_retire(p, id);
        }
    }
}

static enum status open_registry(struct runtime *r, struct error *err) {
    static struct plugin_service services[3];
    struct plugin_registry_config cfg = {.log = r->log,
                                         .plugin_dir = r->cfg->plugin_dir,
                                         .services = services,
                                         .nservices = 3,
                                         .values = plugin_values,
                                         .values_ctx = r,
                                         .condemned = on_condemned,
                                         .condemned_ctx = r};

    services[0] = (struct plugin_service){SY_HOST_SPAWN_ID, launch_spawn_service()};
    services[1] = (struct plugin_service){SY_HOST_HTTP_ID, server_http_service()};
    services[2] = (struct plugin_service){SY_HOST_GATEWAY_ID, ops_service()};
    return plugin_registry_new(&cfg, &r->plugins, err);
}

/* Load one; `needed` says whether the gateway can do without it. */
static enum status load_one(struct runtime *r, const struct plugin_spec *spec, bool needed,
                            struct error *err) {
    struct plugin_instance *p = NULL;
    struct error why = {0};
    enum status st = plugin_load(r->plugins, spec, &p, &why);

    if (st != ST_OK) {
        log_line(r->log, LOG_ERROR, "plugins", "%s", why.text);
        if (needed) {
            *err = why;
        }
        return needed ? st : ST_OK;
    }
    plugin_slot_set(p, PLUGIN_SLOT_SPAWN, r->launches);
    plugin_slot_set(p, PLUGIN_SLOT_HTTP, r->server);
    plugin_slot_set(p, PLUGIN_SLOT_GATEWAY, r->ops);
    return ST_OK;
}

static enum status load_executors(struct runtime *r, struct error *err) {
    const struct config *c = r->cfg;
    struct plugin_spec spec = {.kind = SY_KIND_EXECUTOR};
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < c->executor.allowed_backends.n; i++) {
        const char *name = c->executor.allowed_backends.items[i];

        spec.path = spec.name = name;
        if (plugin_find(r->plugins, SY_KIND_EXECUTOR, name) == NULL) {
            st = load_one(r, &spec, strcmp(name, c->executor.backend) == 0, err);
        }
    }
    return st;
}

static enum status load_plugins(struct runtime *r, struct error *err) {
    const struct config *c = r->cfg;
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < c->nplugins; i++) {
        struct plugin_spec spec = {.path = c->plugins[i].path,
                                   .sha256 = c->plugins[i].sha256};

        st = load_one(r, &spec, c->plugins[i].critical, err);
    }
    if (st == ST_OK) {
        st = load_executors(r, err);
    }
    for (size_t i = 0; st == ST_OK && r->mode == RUNTIME_SERVE && i < c->nchannels; i++) {
        struct plugin_spec spec = {.path = c->channels[i].name,
                                   .kind = SY_KIND_CHANNEL,
                                   .name = c->channels[i].name};

        if (c->channels[i].enabled &&
            plugin_find(r->plugins, SY_KIND_CHANNEL, spec.name) == NULL) {
            st = load_one(r, &spec, false, err);
        }
    }
    return st;
}

static enum status start_plugins(struct runtime *r, struct error *err) {
    for (size_t i = 0; i < plugin_count(r->plugins); i++) {
        struct plugin_instance *p = plugin_at(r->plugins, i);
        struct error why = {0};

        if (r->mode != RUNTIME_SERVE && plugin_kind(p) != SY_KIND_EXECUTOR) {
            continue;
        }
        if (plugin_start(p, &why) != ST_OK) {
            log_line(r->log, LOG_ERROR, "plugins", "%s", why.text);
            if (strcmp(plugin_name(p), r->cfg->executor.backend) == 0 &&
                plugin_kind(p) == SY_KIND_EXECUTOR) {
                *err = why;
                return err->status;
            }
        }
    }
    return ST_OK;
}

/* ---- readiness and status ---------------------------------------------------------------- */

static void part(struct buf *out, const char *name, bool ok, const char *text) {
    json_add_key(out, name);
    buf_add_char(out, '{');
    json_add_key_bool(out, "ok", ok);
    if (text != NULL && text[0] != '\0') {
        json_add_key_string(out, "detail", str_c(text));
    }
    buf_add_char(out, '}');
}

static bool store_part(struct runtime *r, struct buf *out) {
    struct error err = {0};
    bool ok = store_health(r->store, &err) == ST_OK;

    part(out, "store", ok, err.text);
    return ok;
}

static bool python_part(struct runtime *r, struct buf *out) {
    char text[512];
    enum readiness_state state = readiness_python_state(r->readiness, text);

    part(out, "python", state != READINESS_FAILED,
         state == READINESS_PENDING ? "being looked for" : text);
    return state != READINESS_FAILED;
}

static bool sandbox_part(struct runtime *r, struct buf *out) {
    struct probe_report report;
    enum readiness_state state = readiness_probe_state(r->readiness, &report);
    bool ok = state != READINESS_FAILED;

    json_add_key(out, "sandbox");
    buf_add_char(out, '{');
    json_add_key_bool(out, "ok", ok);
    if (state == READINESS_PENDING) {
        json_add_key_string(out, "detail", STR_LIT("the probe is running"));
    } else {
        json_add_key(out, "probe");
        probe_report_json(&report, out);
    }
    buf_add_char(out, '}');
    return ok;
}

static bool plugins_part(struct runtime *r, struct buf *out) {
    bool all = true;

    json_add_key(out, "plugins");
    buf_add_char(out, '[');
    for (size_t i = 0; i < plugin_count(r->plugins); i++) {
        struct plugin_instance *p = plugin_at(r->plugins, i);
        char text[256];
        int32_t health = plugin_health(p, text);
        bool backend = plugin_kind(p) == SY_KIND_EXECUTOR &&
                       strcmp(plugin_name(p), r->cfg->executor.backend) == 0;

        all = all && !(backend && health == SY_HEALTH_DOWN);
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "name", str_c(plugin_name(p)));
        json_add_key_string(out, "kind",
                            plugin_kind(p) == SY_KIND_EXECUTOR ? STR_LIT("executor")
                                                               : STR_LIT("channel"));
        json_add_key_string(out, "version", str_c(plugin_version(p)));
        json_add_key_string(out, "state", str_c(plugin_state_name(plugin_state(p))));
        json_add_key_string(out, "health",
                            health == SY_HEALTH_OK         ? STR_LIT("ok")
                            : health == SY_HEALTH_DEGRADED ? STR_LIT("degraded")
                                                           : STR_LIT("down"));
        json_add_key_string(out, "detail", str_c(text));
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
    return all;
}

static bool parts(struct runtime *r, struct buf *out) {
    bool spawn = spawn_alive(r->spawn);
    bool ok = store_part(r, out);

    part(out, "spawn", spawn, spawn ? NULL : "soulacy-spawn is gone");
    ok = python_part(r, out) && ok;
    ok = sandbox_part(r, out) && ok;
    ok = plugins_part(r, out) && ok;
    return ok && spawn;
}

static bool on_ready(void *ctx, bool detail, struct buf *out) {
    struct runtime *r = ctx;
    struct buf all;
    bool ok;

    buf_init(&all, (size_t)256 * 1024);
    buf_add_char(&all, '{');
    ok = parts(r, &all);
    buf_add_char(out, '{');
    json_add_key_bool(out, "ready", ok);
    if (detail) {
        json_add_key(out, "parts");
        buf_add_str(out, buf_str(&all));
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
    buf_done(&all);
    return ok;
}

static void on_status(void *ctx, struct buf *out) {
    struct runtime *r = ctx;
    char url[128];

    json_add_key_string(out, "url", str_c(runtime_url(r, url)));
    json_add_key_i64(out, "pid", getpid());
    json_add_key_i64(out, "uptime_ms", clock_mono_ms() - r->started_ms);
    json_add_key_string(out, "backend", str_c(r->cfg->executor.backend));
    json_add_key_bool(out, "api_key", secret_is_set(&r->cfg->server.api_key));
    json_add_key_bool(out, "open_to_network",
                      r->server != NULL && server_open_to_network(r->server));
    json_add_key_i64(out, "runs_active", metric_get(r->metrics, METRIC_RUNS_ACTIVE));
    json_add_key(out, "parts");
    buf_add_char(out, '{');
    (void)parts(r, out);
    buf_add_char(out, '}');
}

/* ---- open and close ------------------------------------------------------------------------ */

static enum status python_of(void *ctx, int64_t deadline_ms, const struct interpreter **out,
                             struct error *err) {
    struct runtime *r = ctx;

    return readiness_python(r->readiness, deadline_ms, out, err);
}

static uint64_t limit(int64_t value, uint64_t unit, bool enabled) {
    return enabled && value > 0 ? (uint64_t)value * unit : SPAWN_NO_LIMIT;
}

static enum status open_readiness(struct runtime *r, struct error *err) {
    const struct config_sandbox *s = &r->cfg->runtime.sandbox;
    struct readiness_config cfg = {
        .spawn = r->spawn,
        .python_bin = r->cfg->runtime.python_bin,
        .base_env = r->core.base_env,
        .nbase_env = r->core.nbase_env,
        .log = r->log,
        .probe = {.isolation = s->isolation,
                  .limits_must_hold = s->on_limit_failure == LIMIT_REFUSE ||
                                      s->isolation != ISOLATION_NONE,
                  .network = s->isolation == ISOLATION_NONE || s->network,
                  .uid = r->core.drop_uid,
                  .gid = r->core.drop_gid,
                  .cpu_seconds = limit(s->cpu_seconds, 1, s->enabled),
                  .mem_bytes = limit(s->memory_mb, (uint64_t)1 << 20, s->enabled),
                  .open_files = limit(s->open_files, 1, s->enabled),
                  .file_bytes = limit(s->file_size_mb, (uint64_t)1 << 20, s->enabled),
                  .processes = limit(s->processes, 1, s->enabled),
                  .work_root = s->isolation != ISOLATION_NONE ? r->work_root : NULL,
                  .deadline_ms = CLOCK_NEVER}};

    return readiness_new(&cfg, &r->readiness, err);
}

static void fill_core(struct runtime *r) {
    struct agent_core *c = &r->core;

    atomic_store(&c->cfg, r->cfg);
    c->env = r->env;
    c->agents = r->agents;
    c->store = r->store;
    c->exec = r->exec;
    c->audit = r->audit;
    c->metrics = r->metrics;
    c->log = r->log;
    c->lanes = r->lanes;
    c->python_ctx = r;
    c->python = python_of;
    c->status_ctx = r;
    c->status = on_status;
}

/* Signals become readable on a descriptor; every thread made later inherits the mask. */
static enum status take_signals(struct runtime *r, struct error *err) {
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return error_set(err, ST_INTERNAL, "cannot block signals");
    }
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->signals >= 0 ? ST_OK
                           : error_set_errno(err, ST_IO, errno, "cannot watch signals");
}

static enum status open_server(struct runtime *r, struct error *err) {
    struct server_status status = {r, on_ready};

    return r->mode == RUNTIME_SERVE
               ? server_new(r->cfg, r->http, r->metrics, r->log, &status, &r->server, err)
               : ST_OK;
}

static enum status open_parts(struct runtime *r, struct error *err) {
    enum status st = event_init(&r->condemned, err);

    if (st == ST_OK && (st = runtime_prefix(&r->prefix, err)) == ST_OK &&
        (st = open_log(r, err)) == ST_OK && (st = open_spawn(r, err)) == ST_OK &&
        (st = keep_base_env(r, err)) == ST_OK && (st = find_user(r, err)) == ST_OK &&
        (st = make_folders(r, err)) == ST_OK) {
        protect_all(r);
        r->metrics = metrics_new();
        st = r->metrics != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
    }
    if (st == ST_OK && r->mode == RUNTIME_SERVE && (st = take_signals(r, err)) == ST_OK) {
        st = open_state(r, err);
    }
    if (st == ST_OK && (st = open_readiness(r, err)) == ST_OK &&
        (st = open_agents(r, err)) == ST_OK && (st = open_pools(r, err)) == ST_OK &&
        (st = launches_new(r->spawn, exec_harness(), MAX_LAUNCHES, &r->launches, err)) ==
            ST_OK &&
        (st = ops_new(&r->core, &r->ops, err)) == ST_OK &&
        (st = open_server(r, err)) == ST_OK && (st = open_registry(r, err)) == ST_OK) {
        launches_on_retire(r->launches, on_retire, r);
        st = exec_new(r->launches, r->plugins, r->jobs, r->log, &r->exec, err);
    }
    if (st == ST_OK) {
        fill_core(r);
        st = load_plugins(r, err);
    }
    return st == ST_OK ? start_plugins(r, err) : st;
}

enum status runtime_open(enum runtime_mode mode, struct config *cfg,
                         const struct config_env *env, struct runtime **out,
                         struct error *err) {
    struct runtime *r = mem_zalloc(sizeof(*r));
    enum status st;

    if (r == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    r->mode = mode;
    r->cfg = cfg;
    r->env = env;
    r->signals = -1;
    r->condemned.fd = -1;
    r->started_ms = clock_mono_ms();
    st = open_parts(r, err);
    if (st != ST_OK) {
        r->cfg = NULL; /* stays the caller's */
        runtime_close(r);
        return st;
    }
    *out = r;
    return ST_OK;
}

static void stop_plugins(struct runtime *r) {
    for (size_t i = plugin_count(r->plugins); i > 0; i--) {
        plugin_stop(plugin_at(r->plugins, i - 1));
    }
}

void runtime_close(struct runtime *r) {
    if (r == NULL) {
        return;
    }
    if (r->server != NULL) {
        server_drain(r->server, clock_mono_ms() + DRAIN_MS);
    }
    if (r->ops != NULL) {
        ops_cancel_all(r->ops);
    }
    pool_free(r->turns); /* runs what is queued: cancelled turns end at once */
    exec_free(r->exec);
    pool_free(r->jobs);
    if (r->plugins != NULL) {
        stop_plugins(r);
    }
    server_free(r->server);
    pool_free(r->http);
    lanes_free(r->lanes);
    ops_free(r->ops);
    plugin_registry_free(r->plugins);
    launches_free(r->launches);
    readiness_free(r->readiness);
    agent_registry_free(r->agents);
    audit_close(r->audit);
    store_close(r->store);
    spawn_close(r->spawn);
    metrics_free(r->metrics);
    log_close(r->log);
    io_close(&r->signals);
    event_done(&r->condemned);
    for (size_t i = 0; i < r->core.nbase_env; i++) {
        mem_free(r->base_env[i]);
    }
    for (size_t i = 0; i < r->core.nprotected; i++) {
        free(r->protected_mem[i]); /* of realpath */
    }
    mem_free(r->work_root);
    mem_free(r->prefix);
    for (size_t i = 0; i < r->nold; i++) {
        config_free(r->old[i]);
    }
    config_free(r->cfg);
    mem_free(r);
}

/* ---- the control thread ------------------------------------------------------------------ */

static void warn_open(struct runtime *r) {
    if (secret_is_set(&r->cfg->server.api_key)) {
        return;
    }
    if (server_open_to_network(r->server)) {
        log_line(r->log, LOG_WARN, "server",
                 "server.api_key is empty and the gateway is open to the network (%s:%d): "
                 "API endpoints are unauthenticated. Set server.api_key",
                 server_address(r->server), server_port(r->server));
    }
}

/* Accept what waits: agents that grew, and a changed config.yaml. */
static void reload(struct runtime *r) {
    struct arena *a = arena_new((size_t)4 * 1024 * 1024);
    struct config *fresh = NULL;
    struct problems probs;
    struct error err = {0};
    struct buf text;

    log_line(r->log, LOG_INFO, "reload", "SIGHUP: reading configuration and agents again");
    if (a == NULL || r->nold == sizeof(r->old) / sizeof(r->old[0])) {
        log_line(r->log, LOG_ERROR, "reload",
                 a == NULL ? "out of memory" : "too many reloads; restart the gateway");
        arena_free(a);
        return;
    }
    problems_init(&probs, a, r->cfg->file != NULL ? r->cfg->file : "(defaults)");
    if (config_load(r->cfg->file, r->env, &probs, &fresh, &err) != ST_OK) {
        buf_init(&text, (size_t)256 * 1024);
        problems_print(&probs, &text);
        log_line(r->log, LOG_ERROR, "reload", "config.yaml is not accepted, the old one stays: %s",
                 text.len > 0 ? text.ptr : err.text);
        buf_done(&text);
    } else {
        /* The listener, the state and the plugins were made from the first one; gate,
         * limits, timeouts and agents follow the new one. */
        r->old[r->nold++] = r->cfg;
        r->cfg = fresh;
        atomic_store(&r->core.cfg, fresh);
        agent_registry_set_config(r->agents, fresh);
        launches_retire_all(r->launches);
    }
    (void)agent_registry_refresh(r->agents, true);
    arena_free(a);
}

/* True: time to stop. */
static bool on_signals(struct runtime *r) {
    struct signalfd_siginfo info;
    bool stop = false;

    while (io_read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGHUP) {
            reload(r);
        } else {
            log_line(r->log, LOG_INFO, "runtime", "signal %u: draining", info.ssi_signo);
            stop = true;
        }
    }
    return stop;
}

static void stop_condemned(struct runtime *r) {
    event_clear(&r->condemned);
    for (size_t i = 0; i < plugin_count(r->plugins); i++) {
        struct plugin_instance *p = plugin_at(r->plugins, i);

        if (plugin_condemned(p) && plugin_state(p) == PLUGIN_STARTED) {
            log_line(r->log, LOG_ERROR, "plugins", "%s is stopped for misbehaving",
                     plugin_name(p));
            plugin_stop(p);
        }
    }
}

enum status runtime_serve(struct runtime *r, struct error *err) {
    enum status st = server_start(r->server, err);
    char url[128];
    bool stop = false;

    if (st != ST_OK) {
        return st;
    }
    r->core.keyless_open =
        !secret_is_set(&r->cfg->server.api_key) && server_open_to_network(r->server);
    warn_open(r);
    log_line(r->log, LOG_INFO, "runtime", "soulacy %s listens on %s", SOULACY_VERSION,
             runtime_url(r, url));
    while (!stop) {
        struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
                               {.fd = agent_registry_fd(r->agents), .events = POLLIN},
                               {.fd = r->condemned.fd, .events = POLLIN}};

        if (poll(fds, 3, 1000) < 0 && errno != EINTR) {
            return error_set_errno(err, ST_IO, errno, "the control thread cannot wait");
        }
        stop = (fds[0].revents & POLLIN) != 0 && on_signals(r);
        if ((fds[1].revents & POLLIN) != 0) {
            (void)agent_registry_refresh(r->agents, false);
        }
        if ((fds[2].revents & POLLIN) != 0) {
            stop_condemned(r);
        }
        if (!spawn_alive(r->spawn)) {
            return error_set(err, ST_IO, "soulacy-spawn is gone and could not be restarted");
        }
    }
    return ST_OK;
}

struct ops *runtime_ops(struct runtime *r) {
    return r->ops;
}

struct agent_core *runtime_core(struct runtime *r) {
    return &r->core;
}

struct readiness *runtime_readiness(struct runtime *r) {
    return r->readiness;
}

const char *runtime_url(struct runtime *r, char out[128]) {
    const char *host = server_address(r->server);
    bool six = strchr(host, ':') != NULL;

    (void)snprintf(out, 128, "%s://%s%.64s%s:%d",
                   r->cfg->server.tls_cert[0] != '\0' ? "https" : "http", six ? "[" : "",
                   host, six ? "]" : "", server_port(r->server));
    return out;
}
