/* The children of launches, and the spawn service that executors call. Comes in: ids that
 * executors hold. Goes out: sandboxed children and how they ended. It never starts
 * anything that is not a launch's own spec, and never gives an id twice. */
#include "base/clock.h"
#include "plugin/plugin.h"
#include "sandbox/launch_internal.h"

#include <string.h>

static void set_sy_error(struct sy_error *out, const struct error *err)
{
    if (out != NULL) {
        (void)plugin_give_error(err, out);
    }
}

static sy_status fail(struct sy_error *out, enum status st, const char *text)
{
    struct error err;
    (void)error_set(&err, st, "%s", text);
    set_sy_error(out, &err);
    return (sy_status)st;
}

/* ---- children ------------------------------------------------------------------------ */

static void fill_plan(const struct launch_spec *s, struct spawn_plan *p)
{
    *p = (struct spawn_plan){
        .argv = s->argv,
        .nargv = s->nargv,
        .env = s->env,
        .nenv = s->nenv,
        .isolation = s->isolation,
        .limits_must_hold = s->limits_must_hold,
        .network = s->network,
        .uid = s->uid,
        .gid = s->gid,
        .cpu_seconds = s->cpu_seconds,
        .mem_bytes = s->mem_bytes,
        .open_files = s->open_files,
        .file_bytes = s->file_bytes,
        .processes = s->processes,
        .paths = s->paths,
        .npaths = s->npaths,
        .work_root = s->work_root,
        .deadline_ms = CLOCK_NEVER, /* the executor keeps it: stock has none */
    };
}

/* Put the child into the table; 0 when that is full. Lock held. */
static uint64_t remember(struct launches *l, struct child *c)
{
    if (l->nchildren >= LAUNCH_CHILDREN_MAX) {
        return 0;
    }
    uint64_t id = l->next_id++;
    l->children[l->nchildren++] = (struct launch_child){id, c};
    return id;
}

static struct launch_child *find_child(struct launches *l, uint64_t id)
{
    for (size_t i = 0; i < l->nchildren; i++) {
        if (l->children[i].id == id) {
            return &l->children[i];
        }
    }
    return NULL;
}

/* Hold the launch of that id against retirement while it is used. */
static struct launch_entry *hold_id(struct launches *l, uint64_t id)
{
    struct launch_entry *e = NULL;
    (void)pthread_mutex_lock(&l->lock);
    for (e = l->first; e != NULL && e->launch.id != id; e = e->next) {
    }
    if (e != NULL) {
        e->users++;
    }
    (void)pthread_mutex_unlock(&l->lock);
    return e;
}

sy_status launch_spawn(struct launches *l, uint64_t launch_id, struct sy_child *out,
                       struct sy_error *err)
{
    struct error why = {.status = ST_OK};
    struct child *c = NULL;
    struct spawn_plan plan;
    struct launch_entry *e = hold_id(l, launch_id);
    if (e == NULL) {
        return fail(err, ST_INVALID, "no launch has this id, or it was retired");
    }
    fill_plan(&e->spec, &plan);
    enum status st = spawn_child(l->spawn, &plan, &c, &why);
    launch_release(l, &e->launch);
    if (st != ST_OK) {
        set_sy_error(err, &why);
        return plugin_give_error(&why, NULL);
    }
    (void)pthread_mutex_lock(&l->lock);
    uint64_t id = remember(l, c);
    (void)pthread_mutex_unlock(&l->lock);
    if (id == 0) {
        st = child_reap(c, clock_mono_ms() + LAUNCH_FREE_REAP_MS, NULL);
        (void)st;
        return fail(err, ST_BUSY, "too many children");
    }
    struct sy_child made = {
        .size = sizeof made,
        .stdin_fd = child_stdin(c),
        .stdout_fd = child_stdout(c),
        .stderr_fd = child_stderr(c),
        .exit_fd = child_exit_fd(c),
        .id = id,
    };
    *out = made;
    return SY_OK;
}

void launch_kill(struct launches *l, uint64_t child_id)
{
    (void)pthread_mutex_lock(&l->lock);
    const struct launch_child *r = find_child(l, child_id);
    if (r != NULL) {
        child_kill(r->child); /* closes a descriptor; returns at once */
    }
    (void)pthread_mutex_unlock(&l->lock);
}

sy_status launch_layers(struct launches *l, uint64_t child_id, char *text, size_t cap)
{
    enum status st = ST_INVALID;
    (void)pthread_mutex_lock(&l->lock);
    const struct launch_child *r = find_child(l, child_id);
    if (r != NULL) {
        st = child_layers(r->child, text, cap);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return (sy_status)st;
}

static void fill_exit(const struct spawn_exit *in, struct sy_child_exit *out)
{
    out->size = sizeof *out;
    out->exit_code = in->exit_code;
    out->term_signal = in->term_signal;
    out->cpu_ms = in->cpu_ms;
    out->max_rss_bytes = in->max_rss_bytes;
    memcpy(out->setup, in->setup, sizeof out->setup);
    memcpy(out->layers, in->layers, sizeof out->layers);
}

sy_status launch_reap(struct launches *l, uint64_t child_id, int64_t deadline_ms,
                      struct sy_child_exit *out)
{
    struct child *c = NULL;
    struct spawn_exit end = {.exit_code = -1, .cpu_ms = -1, .max_rss_bytes = -1};
    (void)pthread_mutex_lock(&l->lock);
    struct launch_child *r = find_child(l, child_id);
    if (r != NULL) {
        /* Out of the table first: from here on it is this caller's alone. */
        c = r->child;
        *r = l->children[--l->nchildren];
    }
    (void)pthread_mutex_unlock(&l->lock);
    if (c == NULL) {
        return SY_E_INVALID;
    }
    enum status st = child_reap(c, deadline_ms, &end);
    if (out != NULL) {
        fill_exit(&end, out);
    }
    return (sy_status)st;
}

size_t launches_children(struct launches *l)
{
    (void)pthread_mutex_lock(&l->lock);
    size_t n = l->nchildren;
    (void)pthread_mutex_unlock(&l->lock);
    return n;
}

/* ---- the service table --------------------------------------------------------------- */

/* The launches of the instance behind ctx; NULL is a breach, counted already. */
static struct launches *enter(void *ctx, const char *what, struct plugin_instance **p)
{
    *p = plugin_upcall_begin(ctx, what, PLUGIN_FROM_START);
    return *p != NULL ? plugin_slot(*p, PLUGIN_SLOT_SPAWN) : NULL;
}

static void leave(struct plugin_instance *p)
{
    if (p != NULL) {
        plugin_upcall_end(p);
    }
}

static sy_status service_spawn(void *ctx, uint64_t launch_id, struct sy_child *out,
                               struct sy_error *err)
{
    struct plugin_instance *p = NULL;
    struct launches *l = enter(ctx, "spawn", &p);
    sy_status st = SY_E_INVALID;
    if (l != NULL && out != NULL && out->size >= sizeof *out) {
        st = launch_spawn(l, launch_id, out, err);
    } else {
        (void)fail(err, ST_INVALID,
                   "spawn: not allowed now, or a child without its size");
    }
    leave(p);
    return st;
}

static void service_kill(void *ctx, uint64_t child_id)
{
    struct plugin_instance *p = NULL;
    struct launches *l = enter(ctx, "kill", &p);
    if (l != NULL) {
        launch_kill(l, child_id);
    }
    leave(p);
}

static sy_status service_layers(void *ctx, uint64_t child_id, char *text, size_t cap)
{
    struct plugin_instance *p = NULL;
    struct launches *l = enter(ctx, "layers", &p);
    sy_status st = SY_E_INVALID;
    if (l != NULL && text != NULL && cap > 0) {
        st = launch_layers(l, child_id, text, cap);
    }
    leave(p);
    return st;
}

static sy_status service_reap(void *ctx, uint64_t child_id, int64_t deadline_ms,
                              struct sy_child_exit *out)
{
    struct plugin_instance *p = NULL;
    struct launches *l = enter(ctx, "reap", &p);
    sy_status st = SY_E_INVALID;
    if (l != NULL && (out == NULL || out->size >= sizeof *out)) {
        st = launch_reap(l, child_id, deadline_ms, out);
    }
    leave(p);
    return st;
}

static const struct sy_host_spawn service = {
    .size = sizeof service,
    .spawn = service_spawn,
    .kill = service_kill,
    .layers = service_layers,
    .reap = service_reap,
};

const struct sy_host_spawn *launch_spawn_service(void)
{
    return &service;
}
