/* In: a plugin the configuration names. Out: an instance that is created and queried but
 * not started, or one line that says why not. The order is fixed: file, dlopen, symbol,
 * entry, configuration, create, query. A file once mapped stays mapped: nothing is ever
 * unloaded. */
#include "plugin/internal.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* dlerror names the descriptor's path; people get the reason alone. */
static enum status dl_fault(const char *fd_path, struct error *err)
{
    const char *why = dlerror();
    const char *hint = "";
    if (why == NULL) {
        why = "unknown reason";
    }
    size_t n = strlen(fd_path);
    if (strncmp(why, fd_path, n) == 0 && why[n] == ':') {
        why += n + 1 + strspn(why + n + 1, " ");
    }
    if (strstr(why, "undefined symbol") != NULL) {
        hint =
            " (a plugin may use its own symbols and those of the libraries it names; the "
            "core exports none)";
    } else if (strstr(why, "cannot open shared object") != NULL) {
        hint = " (a library it needs is not installed)";
    } else if (strstr(why, "invalid ELF header") != NULL ||
               strstr(why, "file too short") != NULL ||
               strstr(why, "wrong ELF class") != NULL) {
        hint = " (not a shared object for this machine)";
    }
    return error_set(err, ST_INVALID, "cannot be loaded: %s%s", why, hint);
}

/* Map the file. Its descriptor stays open for good afterwards: the dynamic linker knows
 * the object by the descriptor's path, and a second object under the same number would be
 * taken for the first. */
static enum status map_file(struct plugin_file *f, const void **symbol, struct error *err)
{
    char fd_path[32];
    (void)snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", f->fd);
    void *handle = dlopen(fd_path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return dl_fault(fd_path, err);
    }
    f->fd = -1;
    *symbol = dlsym(handle, "soulacy_plugin_v1");
    if (*symbol == NULL) {
        return error_set(err, ST_INVALID,
                         "exports no soulacy_plugin_v1: not a plugin for ABI %u",
                         SY_ABI_MAJOR);
    }
    return ST_OK;
}

static enum status check_entry(const struct plugin_registry *r,
                               const struct plugin_spec *spec, bool own,
                               const void *symbol, struct plugin_entry *out,
                               struct error *err)
{
    const char **taken = mem_array(r->n + 1, sizeof *taken);
    if (taken == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < r->n; i++) {
        taken[i] = r->items[i]->name;
    }
    /* A bare name is what the plugin is expected to call itself. */
    const char *name =
        spec->name == NULL && spec->path[0] != '/' ? spec->path : spec->name;
    const struct plugin_expect want = {.host_minor = SY_ABI_MINOR,
                                       .kind = spec->kind,
                                       .name = name,
                                       .own_dir = own,
                                       .taken = taken,
                                       .ntaken = r->n};
    enum status st = plugin_entry_check(symbol, &want, out, err);
    mem_free(taken);
    return st;
}

/* The plugin's values, from the configuration, then its create(). */
static enum status create(const struct plugin_registry *r, struct plugin_instance *p,
                          struct error *err)
{
    const struct sy_cfg_value *values = NULL;
    size_t nvalues = 0;
    enum status st = ST_OK;
    struct sy_error e = plugin_error_slot();
    struct arena *a = arena_new((size_t)4 * 1024 * 1024);
    if (a == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    if (r->cfg.values != NULL) {
        st = r->cfg.values(r->cfg.values_ctx, p->entry.p.kind, p->name, p->entry.p.keys,
                           p->entry.nkeys, a, &values, &nvalues, err);
    } else {
        for (size_t i = 0; i < p->entry.nkeys && st == ST_OK; i++) {
            if (p->entry.p.keys[i].required != 0) {
                st = error_set(err, ST_INVALID, "key '%s' is required",
                               p->entry.p.keys[i].name);
            }
        }
    }
    if (st == ST_OK) {
        sy_status res = p->entry.p.create(&p->host, values, nvalues, &p->self, &e);
        if (res != SY_OK) {
            st = plugin_take_error(p, "create()", res, &e, err);
        }
    }
    arena_free(a);
    return st;
}

static sy_status no_check(void *self, int64_t deadline_ms, void *out_ctx,
                          void (*out)(void *out_ctx, struct sy_str json),
                          struct sy_error *err)
{
    (void)self;
    (void)deadline_ms;
    (void)out_ctx;
    (void)out;
    (void)err;
    return SY_E_UNSUPPORTED;
}

static void no_prepare(void *self, const struct sy_launch *launch)
{
    (void)self;
    (void)launch;
}

static void no_retire(void *self, uint64_t launch_id)
{
    (void)self;
    (void)launch_id;
}

static void no_typing(void *self, struct sy_str account, struct sy_str conversation,
                      struct sy_str message_id, uint32_t busy, int64_t deadline_ms)
{
    (void)self;
    (void)account;
    (void)conversation;
    (void)message_id;
    (void)busy;
    (void)deadline_ms;
}

static enum status take_executor(struct plugin_instance *p, struct error *err)
{
    struct sy_executor *x = &p->executor;
    if (x->start == NULL || x->stop == NULL || x->run == NULL) {
        return error_set(err, ST_INVALID, "%s has no start(), stop() or run()",
                         SY_EXECUTOR_ID);
    }
    x->max_parallel = x->max_parallel == 0 ? 1 : x->max_parallel;
    x->prepare = x->prepare != NULL ? x->prepare : no_prepare;
    x->retire = x->retire != NULL ? x->retire : no_retire;
    x->check = x->check != NULL ? x->check : no_check;
    return ST_OK;
}

static enum status take_channel(struct plugin_instance *p, struct error *err)
{
    struct sy_channel *c = &p->channel;
    if (c->start == NULL || c->stop == NULL) {
        return error_set(err, ST_INVALID, "%s has no start() or stop()", SY_CHANNEL_ID);
    }
    c->typing = c->typing != NULL ? c->typing : no_typing;
    return ST_OK; /* send stays NULL: whether it is there matters to the core */
}

/* Ask for the plugin's side of its interface and keep a copy of the table. */
static enum status query(struct plugin_instance *p, struct error *err)
{
    bool channel = p->entry.p.kind == SY_KIND_CHANNEL;
    const char *id = channel ? SY_CHANNEL_ID : SY_EXECUTOR_ID;
    size_t full = channel ? sizeof p->channel : sizeof p->executor;
    size_t least = channel ? offsetof(struct sy_channel, stop) + sizeof(void *)
                           : offsetof(struct sy_executor, run) + sizeof(void *);
    void *to = channel ? (void *)&p->channel : (void *)&p->executor;
    uint32_t size = 0;
    const void *table = p->entry.p.query(p->self, id);
    if (table == NULL) {
        return error_set(err, ST_INVALID, "offers no %s", id);
    }
    memcpy(&size, table, sizeof size);
    if (size < least) {
        return error_set(err, ST_INVALID, "%s is %u bytes long, at least %zu are needed",
                         id, size, least);
    }
    memcpy(to, table, size < full ? size : full);
    return channel ? take_channel(p, err) : take_executor(p, err);
}

static enum status make_instance(struct plugin_registry *r, const struct plugin_entry *e,
                                 const struct plugin_file *f,
                                 struct plugin_instance **out, struct error *err)
{
    struct plugin_instance *p = plugin_instance_new(r, e, f, err);
    if (p == NULL) {
        return ST_NOMEM;
    }
    enum status st = create(r, p, err);
    bool created = st == ST_OK;
    if (st == ST_OK) {
        st = query(p, err);
    }
    if (st == ST_OK) {
        st = plugin_registry_add(r, p, err);
    }
    if (st != ST_OK) {
        if (created) {
            /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the entry check */
            e->p.destroy(p->self);
        }
        plugin_instance_free(p);
        return st;
    }
    plugin_set_state(p, PLUGIN_LOADED);
    *out = p;
    return ST_OK;
}

enum status plugin_load(struct plugin_registry *r, const struct plugin_spec *spec,
                        struct plugin_instance **out, struct error *err)
{
    struct plugin_file f = {-1, false, NULL};
    struct plugin_instance *p = NULL;
    struct plugin_entry entry;
    const void *symbol = NULL;
    enum status st = plugin_file_open(r->plugin_dir, spec, &f, err);
    if (st != ST_OK) {
        return st;
    }
    /* Code of the file runs from here on: should it crash, this line names it. */
    log_line(r->cfg.log, LOG_INFO, "plugin", "loading %s", f.path);
    st = map_file(&f, &symbol, err);
    if (st == ST_OK) {
        st = check_entry(r, spec, f.own, symbol, &entry, err);
    }
    if (st == ST_OK) {
        st = make_instance(r, &entry, &f, &p, err);
    }
    if (st != ST_OK) {
        (void)error_context(err, "%s", f.path);
    } else if (out != NULL) {
        *out = p;
    }
    plugin_file_done(&f);
    return st;
}
