/* Builds what agent_world.h says. Also takes the place of core/audit, whose records a test
 * can make fail. */
#include "support/agent_world.h"

#include "base/clock.h"
#include "base/cond.h"

#include <fcntl.h>

static enum status give_python(void *ctx, int64_t deadline_ms,
                               const struct interpreter **out, struct error *err)
{
    static char path[] = "/usr/bin/python3";
    static const struct interpreter python = {.path = path};
    (void)ctx;
    (void)err;
    (void)deadline_ms;
    *out = &python;
    return ST_OK;
}

enum status audit_write(struct audit *a, const struct audit_record *r, struct error *err)
{
    struct agent_world *w = (struct agent_world *)(void *)a;
    assert_true(r->event != NULL && r->took_ms >= -1);
    if (atomic_load(&w->audit_fails)) {
        return error_set(err, ST_IO, "the audit disk is full");
    }
    atomic_fetch_add(&w->audited, 1);
    return ST_OK;
}

static void write_soul(struct agent_world *w, const char *soul)
{
    char path[PATH_MAX], next[PATH_MAX];
    test_write_file(test_path(&w->dir, "next", next), soul);
    assert_int_equal(rename(next, test_path(&w->dir, "agents/a/SOUL.yaml", path)), 0);
}

static void load_config(struct agent_world *w, const char *extra)
{
    struct arena *a = arena_new((size_t)1024 * 1024);
    struct problems probs;
    struct buf text;
    assert_non_null(a);
    problems_init(&probs, a, "config.yaml");
    buf_init(&text, (size_t)64 * 1024);
    buf_addf(&text, "%s\n", extra);
    if (config_parse(buf_str(&text), w->dir.path, w->env, &probs, &w->cfg, NULL) !=
        ST_OK) {
        fail_msg("config: %s", probs.first != NULL ? probs.first->text : "?");
    }
    buf_done(&text);
    arena_free(a);
}

static void load_agents(struct agent_world *w)
{
    struct arena *a = arena_new((size_t)1024 * 1024);
    struct problems probs;
    assert_non_null(a);
    problems_init(&probs, a, "agents");
    assert_int_equal(agent_registry_new(w->cfg, NULL, &probs, &w->core.agents, NULL),
                     ST_OK);
    if (probs.first != NULL) {
        fail_msg("agents: %s", probs.first->text);
    }
    arena_free(a);
}

static void open_store(struct agent_world *w)
{
    char path[PATH_MAX];
    assert_int_equal(store_open(test_path(&w->dir, "state", path), &w->core.store, NULL),
                     ST_OK);
}

struct agent_world *world_new(const char *soul, const char *extra)
{
    static const char *const env[] = {"HOME=/root", "PATH=/bin", NULL};
    struct agent_world *w = calloc(1, sizeof(*w));
    char path[PATH_MAX];
    assert_non_null(w);
    json_init();
    test_dir_make(&w->dir);
    assert_int_equal(mkdir(test_path(&w->dir, "agents", path), 0755), 0);
    assert_int_equal(mkdir(test_path(&w->dir, "agents/a", path), 0755), 0);
    write_soul(w, soul);
    assert_int_equal(config_env_new(env, &w->env), ST_OK);
    load_config(w, extra);
    load_agents(w);
    open_store(w);
    struct pool_config turns = {
        .name = "turn", .max_threads = 8, .max_queued = LANES_MAX_WAITING + 8};
    assert_int_equal(pool_new(&turns, &w->turns, NULL), ST_OK);
    assert_int_equal(lanes_new(w->turns, &w->core.lanes, NULL), ST_OK);
    atomic_store(&w->core.cfg, w->cfg);
    w->core.env = w->env;
    w->core.exec = &w->exec;
    w->core.audit = (struct audit *)(void *)w;
    w->core.metrics = metrics_new();
    assert_non_null(w->core.metrics);
    w->core.work_root = w->dir.path;
    w->core.python = give_python;
    assert_int_equal(ops_new(&w->core, &w->ops, NULL), ST_OK);
    return w;
}

void world_free(struct agent_world *w)
{
    ops_cancel_all(w->ops);
    pool_stop(w->turns);
    ops_free(w->ops);
    lanes_free(w->core.lanes);
    pool_free(w->turns);
    store_close(w->core.store);
    agent_registry_free(w->core.agents);
    metrics_free(w->core.metrics);
    config_free(w->cfg);
    config_env_free(w->env);
    test_dir_remove(&w->dir);
    free(w);
}

void world_edit(struct agent_world *w, const char *soul)
{
    write_soul(w, soul);
    (void)agent_registry_refresh(w->core.agents, true);
}

void world_reopen_store(struct agent_world *w)
{
    store_close(w->core.store);
    w->core.store = NULL;
    open_store(w);
}

/* ---- asking --------------------------------------------------------------------------- */

static void keep_event(struct asked *a, struct str json)
{
    static const char run[] = "{\"type\":\"run\",\"run_id\":\"";
    size_t len = strlen(a->events);
    if (len + json.len + 2 < sizeof(a->events)) {
        memcpy(a->events + len, json.ptr, json.len);
        memcpy(a->events + len + json.len, "\n", 2);
    }
    if (str_starts(json, str_c(run))) {
        const char *id = json.ptr + sizeof(run) - 1;
        size_t n = strcspn(id, "\"");
        if (n < sizeof(a->run_id)) {
            memcpy(a->run_id, id, n);
            a->run_id[n] = '\0';
        }
    }
}

static void on_line(void *ctx, uint32_t kind, struct str json)
{
    struct asked *a = ctx;
    pthread_mutex_lock(&a->lock);
    a->late += a->finals > 0 ? 1 : 0;
    if (kind == SY_LINE_EVENT) {
        keep_event(a, json);
    } else {
        free(a->final);
        a->final = strndup(json.ptr, json.len);
        a->kind = kind;
        a->finals++;
    }
    pthread_cond_broadcast(&a->moved);
    pthread_mutex_unlock(&a->lock);
}

struct asked *world_ask_by(struct agent_world *w, const char *op, const char *args,
                           int64_t deadline_ms, bool local)
{
    struct asked *a = calloc(1, sizeof(*a));
    struct error err = {0};
    assert_non_null(a);
    pthread_mutex_init(&a->lock, NULL);
    assert_int_equal(cond_init(&a->moved), ST_OK);
    struct ops_request req = {.op = str_c(op),
                              .args = str_c(args),
                              .entry = ENTRY_TOOLS_RUN,
                              .local = local,
                              .peer = STR_LIT("127.0.0.1"),
                              .deadline_ms = deadline_ms,
                              .events = true,
                              .ctx = a,
                              .line = on_line};
    enum status st = ops_call(w->ops, &req, &a->id, &err);
    if (st != ST_OK) { /* nothing was begun: shown as an end of its own kind */
        assert_int_equal(a->finals, 0);
        assert_int_equal(err.status, st);
        on_line(a, SY_LINE_ERROR,
                STR_LIT("{\"code\":\"not_begun\",\"message\":\"-\",\"status\":0}"));
    }
    return a;
}

struct asked *world_ask(struct agent_world *w, const char *op, const char *args)
{
    return world_ask_by(w, op, args, 0, true);
}

void asked_wait(struct asked *a)
{
    int64_t until = clock_mono_ms() + 20000;
    bool in_time = true;
    pthread_mutex_lock(&a->lock);
    while (a->finals == 0 && in_time) {
        in_time = cond_wait_until(&a->moved, &a->lock, until);
    }
    pthread_mutex_unlock(&a->lock);
    assert_true(in_time);
    mem_fail_after(0); /* a sweep is about what has ended now */
    if (a->json == NULL) {
        assert_int_equal(json_parse(str_c(a->final), &a->json, NULL), ST_OK);
    }
}

void asked_wait_run(struct asked *a)
{
    int64_t until = clock_mono_ms() + 20000;
    bool in_time = true;
    pthread_mutex_lock(&a->lock);
    while (a->run_id[0] == '\0' && a->finals == 0 && in_time) {
        in_time = cond_wait_until(&a->moved, &a->lock, until);
    }
    pthread_mutex_unlock(&a->lock);
    assert_true(a->run_id[0] != '\0');
}

void asked_free(struct asked *a)
{
    asked_wait(a);
    pthread_mutex_lock(&a->lock);
    size_t finals = a->finals, late = a->late;
    pthread_mutex_unlock(&a->lock);
    assert_int_equal(finals, 1);
    assert_int_equal(late, 0);
    cJSON_Delete(a->json);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
    free(a->final);
    free(a);
}

void world_says(struct agent_world *w, const char *op, const char *args, ...)
{
    struct asked *a = world_ask(w, op, args);
    va_list ap;
    asked_wait(a);
    va_start(ap, args);
    for (const char *s = va_arg(ap, const char *); s != NULL;
         s = va_arg(ap, const char *)) {
        if (a->kind != SY_LINE_RESULT || strstr(a->final, s) == NULL) {
            fail_msg("%s %s: %s lacks %s", op, args, a->final, s);
        }
    }
    va_end(ap);
    assert_int_equal(a->kind, SY_LINE_RESULT);
    asked_free(a);
}

void world_fails(struct agent_world *w, const char *op, const char *args, int status,
                 const char *code, const char *field)
{
    struct asked *a = world_ask(w, op, args);
    struct str got_code = STR_NONE, got_field = STR_NONE, message = STR_NONE;
    int64_t got_status = 0;
    asked_wait(a);
    if (a->kind != SY_LINE_ERROR || !json_get_i64(a->json, "status", &got_status) ||
        !json_get_str(a->json, "code", &got_code) || got_status != status ||
        !str_eq_c(got_code, code) ||
        json_get_str(a->json, "field", &got_field) != (field != NULL) ||
        (field != NULL && !str_eq_c(got_field, field))) {
        fail_msg("%s %s: %s, not %d %s %s", op, args, a->final, status, code,
                 field != NULL ? field : "");
    }
    assert_true(json_get_str(a->json, "message", &message) && message.len > 0);
    asked_free(a);
}
