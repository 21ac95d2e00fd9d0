/* Launches by key. Comes in: specs made by plan.c. Goes out: a counted launch to hand to
 * an executor, and the news that one is over. It never gives an id twice, and never drops
 * a launch that is in use. */
#include "base/clock.h"
#include "base/mem.h"
#include "sandbox/launch_internal.h"

#include <string.h>

#define LAUNCH_ARENA_MAX ((size_t)1024 * 1024)

/* ---- copies of specs ----------------------------------------------------------------- */

static enum status copy_texts(struct arena *a, const char *const *in, size_t n,
                              const char *const **out)
{
    const char **list = arena_array(a, n + 1, sizeof *list);
    if (list == NULL) {
        return ST_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = arena_dup(a, str_c(in[i]));
        if (list[i] == NULL) {
            return ST_NOMEM;
        }
    }
    *out = list;
    return ST_OK;
}

static enum status copy_paths(struct arena *a, const struct launch_spec *in,
                              struct launch_spec *out)
{
    struct spawn_path *list = arena_array(a, in->npaths + 1, sizeof *list);
    if (list == NULL) {
        return ST_NOMEM;
    }
    for (size_t i = 0; i < in->npaths; i++) {
        list[i].writable = in->paths[i].writable;
        list[i].path = arena_dup(a, str_c(in->paths[i].path));
        if (list[i].path == NULL) {
            return ST_NOMEM;
        }
    }
    out->paths = list;
    return ST_OK;
}

static enum status copy_spec(struct arena *a, const struct launch_spec *in,
                             struct launch_spec *out)
{
    *out = *in;
    out->backend = arena_dup(a, str_c(in->backend));
    out->work_root = in->work_root != NULL ? arena_dup(a, str_c(in->work_root)) : NULL;
    if (out->backend == NULL || (in->work_root != NULL && out->work_root == NULL) ||
        copy_texts(a, in->argv, in->nargv, &out->argv) != ST_OK ||
        copy_texts(a, in->env, in->nenv, &out->env) != ST_OK) {
        return ST_NOMEM;
    }
    return copy_paths(a, in, out);
}

static uint64_t or_zero(uint64_t limit)
{
    return limit == SPAWN_NO_LIMIT ? 0 : limit;
}

static uint32_t or_zero32(uint64_t limit)
{
    if (limit == SPAWN_NO_LIMIT) {
        return 0;
    }
    return limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

static struct sy_str sy_c(const char *s)
{
    return (struct sy_str){s, strlen(s)};
}

static enum status fill_views(struct arena *a, const struct launch_spec *spec,
                              struct sy_launch *l)
{
    struct sy_str *argv = arena_array(a, spec->nargv + 1, sizeof *argv);
    struct sy_mount *mounts = arena_array(a, spec->npaths + 1, sizeof *mounts);
    if (argv == NULL || mounts == NULL) {
        return ST_NOMEM;
    }
    for (size_t i = 0; i < spec->nargv; i++) {
        argv[i] = sy_c(spec->argv[i]);
    }
    for (size_t i = 0; i < spec->npaths; i++) {
        mounts[i].source = sy_c(spec->paths[i].path);
        mounts[i].target = mounts[i].source;
        mounts[i].writable = spec->paths[i].writable ? 1 : 0;
    }
    l->argv = argv;
    l->nargv = spec->nargv;
    l->mounts = mounts;
    l->nmounts = spec->npaths;
    return ST_OK;
}

static void fill_launch(struct launch_entry *e, struct str preamble)
{
    struct sy_launch *l = &e->launch;
    l->size = sizeof *l;
    l->isolation = (uint32_t)e->spec.isolation;
    l->key = sy_c(e->spec.key);
    l->must = e->spec.must;
    l->preamble = (struct sy_str){preamble.ptr, preamble.len};
    l->mem_bytes = or_zero(e->spec.mem_bytes);
    uint64_t cpu = or_zero(e->spec.cpu_seconds);
    l->cpu_ms = cpu > UINT64_MAX / 1000 ? 0 : cpu * 1000;
    l->file_bytes = or_zero(e->spec.file_bytes);
    l->max_files = or_zero32(e->spec.open_files);
    l->max_pids = or_zero32(e->spec.processes);
    l->network = e->spec.network ? 1 : 0;
}

static void entry_free(struct launch_entry *e)
{
    if (e != NULL) {
        arena_free(e->arena);
        mem_free(e);
    }
}

static enum status entry_new(const struct launch_spec *spec, struct str preamble,
                             struct launch_entry **out)
{
    struct launch_entry *e = mem_zalloc(sizeof *e);
    if (e == NULL) {
        return ST_NOMEM;
    }
    e->arena = arena_new(LAUNCH_ARENA_MAX);
    if (e->arena == NULL || copy_spec(e->arena, spec, &e->spec) != ST_OK ||
        fill_views(e->arena, &e->spec, &e->launch) != ST_OK) {
        entry_free(e);
        return ST_NOMEM;
    }
    fill_launch(e, preamble);
    *out = e;
    return ST_OK;
}

/* ---- the registry -------------------------------------------------------------------- */

enum status launches_new(struct spawn *spawn, struct str preamble, size_t max_launches,
                         struct launches **out, struct error *err)
{
    struct launches *l = mem_zalloc(sizeof *l);
    if (l == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    l->children = mem_array(LAUNCH_CHILDREN_MAX, sizeof *l->children);
    if (l->children == NULL || pthread_mutex_init(&l->lock, NULL) != 0) {
        mem_free(l->children);
        mem_free(l);
        return error_set(err, ST_NOMEM, "out of memory");
    }
    l->spawn = spawn;
    l->preamble = preamble;
    l->max_launches = max_launches > 0 ? max_launches : 1;
    l->next_id = 1;
    *out = l;
    return ST_OK;
}

void launches_free(struct launches *l)
{
    if (l == NULL) {
        return;
    }
    for (size_t i = 0; i < l->nchildren; i++) {
        enum status st =
            child_reap(l->children[i].child, clock_mono_ms() + LAUNCH_FREE_REAP_MS, NULL);
        (void)st; /* the supervisor goes on by itself */
    }
    while (l->first != NULL) {
        struct launch_entry *e = l->first;
        l->first = e->next;
        entry_free(e);
    }
    (void)pthread_mutex_destroy(&l->lock);
    mem_free(l->children);
    mem_free(l);
}

static struct launch_entry *find_key(const struct launches *l, const char *key)
{
    for (struct launch_entry *e = l->first; e != NULL; e = e->next) {
        if (!e->retired && strcmp(e->spec.key, key) == 0) {
            return e;
        }
    }
    return NULL;
}

static struct launch_entry *oldest_idle(const struct launches *l)
{
    struct launch_entry *best = NULL;
    for (struct launch_entry *e = l->first; e != NULL; e = e->next) {
        if (!e->retired && e->users == 0 &&
            (best == NULL || e->last_used < best->last_used)) {
            best = e;
        }
    }
    return best;
}

static void unlink_entry(struct launches *l, struct launch_entry *gone)
{
    for (struct launch_entry **at = &l->first; *at != NULL; at = &(*at)->next) {
        if (*at == gone) {
            *at = gone->next;
            return;
        }
    }
}

static void tell_retired(const struct launches *l, uint64_t id)
{
    if (l->retire_fn != NULL && id != 0) {
        l->retire_fn(l->retire_arg, id);
    }
}

/* Make room and put e in; the entry that had to go comes back in *gone. Lock held. */
static enum status insert(struct launches *l, struct launch_entry *e,
                          struct launch_entry **gone)
{
    *gone = NULL;
    if (l->count >= l->max_launches) {
        *gone = oldest_idle(l);
        if (*gone == NULL) {
            return ST_BUSY;
        }
        unlink_entry(l, *gone);
        l->count--;
    }
    e->launch.id = l->next_id++;
    e->users = 1;
    e->last_used = ++l->clock;
    e->next = l->first;
    l->first = e;
    l->count++;
    return ST_OK;
}

static struct launch_entry *take_known(struct launches *l, const char *key)
{
    struct launch_entry *e = find_key(l, key);
    if (e != NULL) {
        e->users++;
        e->last_used = ++l->clock;
    }
    return e;
}

enum status launch_acquire(struct launches *l, const struct launch_spec *spec,
                           const struct sy_launch **out, struct error *err)
{
    (void)pthread_mutex_lock(&l->lock);
    struct launch_entry *e = take_known(l, spec->key);
    (void)pthread_mutex_unlock(&l->lock);
    if (e != NULL) {
        *out = &e->launch;
        return ST_OK;
    }
    struct launch_entry *made = NULL;
    if (entry_new(spec, l->preamble, &made) != ST_OK) {
        return error_set(err, ST_NOMEM, "out of memory for a launch");
    }
    struct launch_entry *gone = NULL;
    enum status st = ST_OK;
    (void)pthread_mutex_lock(&l->lock);
    e = take_known(l, spec->key); /* somebody was quicker? */
    if (e == NULL) {
        st = insert(l, made, &gone);
        e = made;
        made = NULL;
    }
    (void)pthread_mutex_unlock(&l->lock);
    entry_free(made);
    if (st != ST_OK) {
        entry_free(e);
        return error_set(err, st, "too many different launches are in use");
    }
    if (gone != NULL) {
        tell_retired(l, gone->launch.id);
        entry_free(gone);
    }
    *out = &e->launch;
    return ST_OK;
}

void launch_release(struct launches *l, const struct sy_launch *launch)
{
    struct launch_entry *gone = NULL;
    (void)pthread_mutex_lock(&l->lock);
    for (struct launch_entry *e = l->first; e != NULL; e = e->next) {
        if (&e->launch == launch) {
            e->users--;
            if (e->users == 0 && e->retired) {
                unlink_entry(l, e);
                gone = e;
            }
            break;
        }
    }
    (void)pthread_mutex_unlock(&l->lock);
    entry_free(gone);
}

void launches_on_retire(struct launches *l, void (*fn)(void *arg, uint64_t id), void *arg)
{
    l->retire_fn = fn;
    l->retire_arg = arg;
}

void launches_retire_all(struct launches *l)
{
    for (;;) {
        struct launch_entry *e = NULL;
        bool used = false;
        uint64_t id = 0;
        (void)pthread_mutex_lock(&l->lock);
        for (e = l->first; e != NULL && e->retired; e = e->next) {
        }
        if (e != NULL) {
            id = e->launch.id;
            e->retired = true;
            used = e->users > 0;
            l->count--;
            if (!used) {
                unlink_entry(l, e);
            }
        }
        (void)pthread_mutex_unlock(&l->lock);
        if (e == NULL) {
            return;
        }
        tell_retired(l, id);
        if (!used) {
            entry_free(e);
        }
    }
}
