/* A configuration in, a running gateway out: makes the parts in order, connects them, waits
 * for signals and changed files, and takes everything down in reverse order. Decides
 * nothing about messages or tools. */
#include "runtime/runtime.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/version.h"
#include "runtime/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#define DRAIN_MS 10000
#define HTTP_THREADS 16
#define JOB_THREADS 128

static enum status open_log(struct runtime *r, struct error *err)
{
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

static enum status open_spawn(struct runtime *r, struct error *err)
{
    struct buf path;
    enum status st;

    buf_init(&path, 8192);
    buf_addf(&path, "%s/libexec/soulacy/soulacy-spawn", r->prefix);
    st = buf_status(&path) == ST_OK ? spawn_open(path.ptr, r->log, &r->spawn, err)
                                    : error_set(err, ST_NOMEM, "the prefix is too long");
    buf_done(&path);
    return st;
}

/* Not waited for: a log ahead of its anchor is accepted, one behind it is not. */
static void save_anchor(void *ctx, const char *head_hex, uint64_t count)
{
    struct runtime *r = ctx;
    struct error err = {0};
    char text[128];

    (void)snprintf(text, sizeof(text), "%s %llu", head_hex, (unsigned long long)count);
    if (store_put_later(r->store, "audit_head", str_c(text), &err) != ST_OK) {
        log_line(r->log, LOG_ERROR, "audit", "the head could not be anchored: %s",
                 err.text);
    }
}

static bool load_anchor(void *ctx, char head_hex[65], uint64_t *count)
{
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

static enum status open_state(struct runtime *r, struct error *err)
{
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

static void log_problems(struct runtime *r, const struct problems *probs)
{
    for (const struct problem *p = probs->first; p != NULL; p = p->next) {
        log_line(r->log, p->warning ? LOG_WARN : LOG_ERROR, "agents", "%s", p->text);
    }
}

static enum status open_agents(struct runtime *r, struct error *err)
{
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

static enum status open_pools(struct runtime *r, struct error *err)
{
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

/* ---- open and close ------------------------------------------------------------------------ */

static enum status python_of(void *ctx, int64_t deadline_ms,
                             const struct interpreter **out, struct error *err)
{
    struct runtime *r = ctx;

    return readiness_python(r->readiness, deadline_ms, out, err);
}

static uint64_t limit(int64_t value, uint64_t unit, bool enabled)
{
    return enabled && value > 0 ? (uint64_t)value * unit : SPAWN_NO_LIMIT;
}

static enum status open_readiness(struct runtime *r, struct error *err)
{
    const struct config_sandbox *s = &r->cfg->runtime.sandbox;
    bool fenced = s->isolation != ISOLATION_NONE;
    struct readiness_config cfg = {
        .spawn = r->spawn,
        .python_bin = r->cfg->runtime.python_bin,
        .base_env = r->core.base_env,
        .nbase_env = r->core.nbase_env,
        .log = r->log,
        .probe = {.isolation = s->isolation,
                  .limits_must_hold = s->on_limit_failure == LIMIT_REFUSE || fenced,
                  .network = !fenced || s->network,
                  .uid = fenced ? r->core.drop_uid : SPAWN_KEEP_ID,
                  .gid = fenced ? r->core.drop_gid : SPAWN_KEEP_ID,
                  .cpu_seconds = limit(s->cpu_seconds, 1, s->enabled),
                  .mem_bytes = limit(s->memory_mb, (uint64_t)1 << 20, s->enabled),
                  .open_files = limit(s->open_files, 1, s->enabled),
                  .file_bytes = limit(s->file_size_mb, (uint64_t)1 << 20, s->enabled),
                  .processes = limit(s->processes, 1, s->enabled),
                  .work_root = fenced ? r->work_root : NULL,
                  .deadline_ms = CLOCK_NEVER}};

    return readiness_new(&cfg, &r->readiness, err);
}

static void fill_core(struct runtime *r)
{
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
    c->status = runtime_status;
}

/* Signals become readable on a descriptor; every thread made later inherits the mask. */
static enum status take_signals(struct runtime *r, struct error *err)
{
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

static enum status open_server(struct runtime *r, struct error *err)
{
    struct server_status status = {r, runtime_ready};

    return server_new(r->cfg, r->http, r->metrics, r->log, &status, &r->server, err);
}

static enum status open_metrics(struct runtime *r, struct error *err)
{
    r->metrics = metrics_new();
    return r->metrics != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
}

static enum status open_ops(struct runtime *r, struct error *err)
{
    return ops_new(&r->core, &r->ops, err);
}

static enum status open_exec(struct runtime *r, struct error *err)
{
    enum status st = exec_new(r->launches, r->plugins, r->jobs, r->log, &r->exec, err);

    if (st == ST_OK) {
        fill_core(r);
    }
    return st;
}

static enum status open_launches(struct runtime *r, struct error *err)
{
    return launches_new(r->spawn, exec_preamble(), RUNTIME_MAX_LAUNCHES, &r->launches,
                        err);
}

/* In this order: the spawn helper before any thread, signals before the threads that
 * inherit their mask, plugins started last. */
static const struct {
    bool serve_only;
    enum status (*open)(struct runtime *r, struct error *err);
} steps[] = {
    {false, open_log},
    {false, open_spawn},
    {false, runtime_find_facts},
    {false, open_metrics},
    {true, take_signals},
    {true, open_state},
    {false, open_readiness},
    {false, open_agents},
    {false, open_pools},
    {false, open_launches},
    {false, open_ops},
    {true, open_server},
    {false, runtime_open_registry},
    {false, open_exec},
    {false, runtime_load_plugins},
    {false, runtime_start_plugins},
};

static enum status open_parts(struct runtime *r, struct error *err)
{
    enum status st = event_init(&r->condemned, err);

    if (st == ST_OK) {
        st = runtime_prefix(&r->prefix, err);
    }
    for (size_t i = 0; st == ST_OK && i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (r->mode == RUNTIME_SERVE || !steps[i].serve_only) {
            st = steps[i].open(r, err);
        }
    }
    return st;
}

enum status runtime_open(enum runtime_mode mode, struct config *cfg,
                         const struct config_env *env, struct runtime **out,
                         struct error *err)
{
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

void runtime_close(struct runtime *r)
{
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
        runtime_stop_plugins(r);
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
        mem_free(r->protected_mem[i]);
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

static void judge_openness(struct runtime *r)
{
    bool open =
        !secret_is_set(&r->cfg->server.api_key) && server_open_to_network(r->server);

    atomic_store(&r->core.keyless_open, open);
    if (open) {
        log_line(
            r->log, LOG_WARN, "server",
            "server.api_key is empty and the gateway is open to the network (%s:%d): "
            "API endpoints are unauthenticated. Set server.api_key",
            server_address(r->server), server_port(r->server));
    }
}

/* Accept what waits: agents that grew, and a changed config.yaml. */
static void reload(struct runtime *r)
{
    struct arena *a = arena_new((size_t)4 * 1024 * 1024);
    struct config *fresh = NULL;
    struct problems probs;
    struct error err = {0};
    struct buf text;

    log_line(r->log, LOG_INFO, "reload",
             "SIGHUP: reading configuration and agents again");
    if (a == NULL || r->nold == RUNTIME_MAX_RELOADS) {
        log_line(r->log, LOG_ERROR, "reload",
                 a == NULL ? "out of memory" : "too many reloads; restart the gateway");
        arena_free(a);
        return;
    }
    problems_init(&probs, a, r->cfg->file != NULL ? r->cfg->file : "(defaults)");
    if (config_load(r->cfg->file, r->env, &probs, &fresh, &err) != ST_OK) {
        buf_init(&text, (size_t)256 * 1024);
        problems_print(&probs, &text);
        log_line(r->log, LOG_ERROR, "reload",
                 "config.yaml is not accepted, the old one stays: %s",
                 text.len > 0 ? text.ptr : err.text);
        buf_done(&text);
    } else {
        const char *kept = NULL;

        /* The listener, the state and the plugins were made from the first one; gate,
         * limits, timeouts and agents follow the new one. */
        if (config_restart_key(r->cfg, fresh, &kept) != ST_OK || kept != NULL) {
            log_line(r->log, LOG_WARN, "reload", "%s takes effect with a restart",
                     kept != NULL ? kept : "a changed key");
        }
        r->old[r->nold++] = r->cfg;
        r->cfg = fresh;
        atomic_store(&r->core.cfg, fresh);
        server_reload(r->server, fresh);
        judge_openness(r);
        agent_registry_set_config(r->agents, fresh);
        launches_retire_all(r->launches);
    }
    (void)agent_registry_refresh(r->agents, true);
    arena_free(a);
}

/* True: time to stop. */
static bool on_signals(struct runtime *r)
{
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

/* The audit counts by itself what it could not write; the metric follows. */
static void count_audit_failures(struct runtime *r)
{
    int64_t known = metric_get(r->metrics, METRIC_AUDIT_FAILED);
    int64_t now = (int64_t)audit_failed(r->audit);

    if (now > known) {
        metric_add(r->metrics, METRIC_AUDIT_FAILED, now - known);
        log_line(r->log, LOG_ERROR, "audit", "%lld records could not be written so far",
                 (long long)now);
    }
}

enum status runtime_serve(struct runtime *r, struct error *err)
{
    enum status st = server_start(r->server, err);
    char url[128];
    bool stop = false;

    if (st != ST_OK) {
        return st;
    }
    judge_openness(r);
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
            runtime_stop_condemned(r);
        }
        count_audit_failures(r);
        if (!spawn_alive(r->spawn)) {
            return error_set(err, ST_IO,
                             "soulacy-spawn is gone and could not be restarted");
        }
    }
    return ST_OK;
}

struct ops *runtime_ops(struct runtime *r)
{
    return r->ops;
}

struct agent_core *runtime_core(struct runtime *r)
{
    return &r->core;
}

struct readiness *runtime_readiness(struct runtime *r)
{
    return r->readiness;
}

const char *runtime_url(struct runtime *r, char out[128])
{
    const char *host = server_address(r->server);
    bool six = strchr(host, ':') != NULL;

    (void)snprintf(out, 128, "%s://%s%.64s%s:%d",
                   r->cfg->server.tls_cert[0] != '\0' ? "https" : "http", six ? "[" : "",
                   host, six ? "]" : "", server_port(r->server));
    return out;
}
