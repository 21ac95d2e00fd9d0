/* An approved call and the policy in, the exact limits of its process and the bytes of its
 * request out. The only place where a plan is made. Pure: opens nothing, asks nothing. */
#include "sandbox/plan.h"

#include "base/hash.h"
#include "base/mem.h"
#include "gate/gate.h"

#include <soulacy/executor.h>
#include <string.h>

#define MIB (UINT64_C(1024) * 1024)
#define PLAN_ARENA_MAX (96 * MIB)

struct plan {
    struct arena *arena;
    struct launch_spec launch;
    struct plan_call call;
};

/* Numeric libraries start a thread a core, each with its own arena: 512 MiB of address
 * space do not hold that. Set above ISOLATION_NONE unless the agent lists them. */
static const char *const thread_pins[] = {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1",
                                          "MKL_NUM_THREADS=1", "MALLOC_ARENA_MAX=2"};
#define NPINS (sizeof(thread_pins) / sizeof(thread_pins[0]))

static uint64_t or_none(int64_t value, uint64_t unit)
{
    return value > 0 ? (uint64_t)value * unit : SPAWN_NO_LIMIT;
}

static void fill_limits(const struct config_sandbox *s, struct launch_spec *l)
{
    bool on = s->enabled;

    l->cpu_seconds = or_none(on ? s->cpu_seconds : 0, 1);
    l->mem_bytes = or_none(on ? s->memory_mb : 0, MIB);
    l->open_files = or_none(on ? s->open_files : 0, 1);
    l->file_bytes = or_none(on ? s->file_size_mb : 0, MIB);
    l->processes = or_none(on ? s->processes : 0, 1);
    l->limits_must_hold =
        s->on_limit_failure == LIMIT_REFUSE || s->isolation != ISOLATION_NONE;
}

static uint64_t bit_if(bool condition, uint64_t bit)
{
    return condition ? bit : 0;
}

/* What the executor has to keep, or refuse. Best-effort limits are not among it. */
static uint64_t must_bits(const struct launch_spec *l)
{
    bool fenced = l->isolation != ISOLATION_NONE;
    uint64_t must = SY_MUST_KILL_TREE;

    if (l->limits_must_hold) {
        must |= bit_if(l->cpu_seconds != SPAWN_NO_LIMIT, SY_MUST_CPU_TIME) |
                bit_if(l->mem_bytes != SPAWN_NO_LIMIT, SY_MUST_MEM) |
                bit_if(l->open_files != SPAWN_NO_LIMIT, SY_MUST_FILES) |
                bit_if(l->file_bytes != SPAWN_NO_LIMIT, SY_MUST_FILE_SIZE) |
                bit_if(l->processes != SPAWN_NO_LIMIT, SY_MUST_PIDS);
    }
    must |= bit_if(fenced, SY_MUST_FS_ROOT | SY_MUST_NO_NEW_PRIV);
    must |= bit_if(fenced && !l->network, SY_MUST_NO_NET);
    must |= bit_if(l->isolation == ISOLATION_STRICT, SY_MUST_NAMESPACES);
    return must;
}

/* Copies n strings into the arena; NULL when out of memory. */
static const char **copy_list(struct arena *a, const char *const *items, size_t n,
                              size_t spare)
{
    const char **out = arena_array(a, n + spare + 1, sizeof(*out));

    for (size_t i = 0; out != NULL && i < n; i++) {
        out[i] = arena_dup(a, str_c(items[i]));
        if (out[i] == NULL) {
            return NULL;
        }
    }
    return out;
}

static bool same_name(const char *pair, const char *other)
{
    const char *eq = strchr(pair, '=');
    size_t n = eq != NULL ? (size_t)(eq - pair) : strlen(pair);

    return strncmp(pair, other, n) == 0 && (other[n] == '=' || other[n] == '\0');
}

static bool agent_lists(const struct soul *soul, const char *pair)
{
    for (size_t i = 0; i < soul->env.n; i++) {
        if (same_name(pair, soul->env.items[i])) {
            return true;
        }
    }
    return false;
}

static enum status fill_env(const struct soul *soul, const struct plan_policy *p,
                            struct arena *a, struct launch_spec *l)
{
    const char **env = copy_list(a, p->base_env, p->nbase_env, NPINS);

    if (env == NULL) {
        return ST_NOMEM;
    }
    l->nenv = p->nbase_env;
    if (l->isolation != ISOLATION_NONE) {
        for (size_t i = 0; i < NPINS; i++) {
            if (!agent_lists(soul, thread_pins[i])) {
                env[l->nenv++] = thread_pins[i];
            }
        }
    }
    l->env = env;
    return ST_OK;
}

static enum status fill_argv(const struct plan_policy *p, struct arena *a,
                             struct launch_spec *l)
{
    const char *const argv[] = {p->python->path, "-I", "-S", "-c", p->bootstrap};

    l->nargv = sizeof(argv) / sizeof(argv[0]);
    l->argv = copy_list(a, argv, l->nargv, 0);
    return l->argv != NULL ? ST_OK : ST_NOMEM;
}

/* True when inner is outer or lies below it. Both real paths. */
static bool contains(const char *outer, const char *inner)
{
    size_t n = strlen(outer);

    while (n > 1 && outer[n - 1] == '/') {
        n--;
    }
    return strncmp(outer, inner, n) == 0 &&
           (inner[n] == '\0' || inner[n] == '/' || n == 1);
}

static enum status check_folder(const struct plan_policy *p, const char *folder,
                                struct error *err)
{
    for (size_t i = 0; folder != NULL && i < p->nprotected; i++) {
        if (contains(folder, p->protected_paths[i])) {
            return error_set(err, ST_REFUSED,
                             "the tool's folder also holds the gateway's own files; put "
                             "the tool into a folder of its own");
        }
    }
    return ST_OK;
}

static enum status add_path(struct arena *a, struct spawn_path *paths, size_t *n,
                            const char *path, bool writable)
{
    char *copy = arena_dup(a, str_c(path));

    if (copy == NULL) {
        return ST_NOMEM;
    }
    paths[*n] = (struct spawn_path){copy, writable};
    (*n)++;
    return ST_OK;
}

static enum status add_paths(struct arena *a, struct spawn_path *paths, size_t *n,
                             const struct str_list *list, bool writable)
{
    for (size_t i = 0; i < list->n; i++) {
        if (add_path(a, paths, n, list->items[i], writable) != ST_OK) {
            return ST_NOMEM;
        }
    }
    return ST_OK;
}

static enum status fill_paths(const struct plan_policy *p, const char *folder,
                              struct arena *a, struct launch_spec *l)
{
    const struct config_sandbox *s = &p->cfg->runtime.sandbox;
    size_t most = p->python->paths.n + s->read_paths.n + s->write_paths.n + 1;
    struct spawn_path *paths = arena_array(a, most, sizeof(*paths));

    if (l->isolation == ISOLATION_NONE) {
        return ST_OK;
    }
    if (paths == NULL ||
        add_paths(a, paths, &l->npaths, &p->python->paths, false) != ST_OK ||
        add_paths(a, paths, &l->npaths, &s->read_paths, false) != ST_OK ||
        add_paths(a, paths, &l->npaths, &s->write_paths, true) != ST_OK ||
        (folder != NULL && add_path(a, paths, &l->npaths, folder, false) != ST_OK)) {
        return ST_NOMEM;
    }
    l->paths = paths;
    l->work_root = arena_dup(a, str_c(p->work_root));
    return l->work_root != NULL ? ST_OK : ST_NOMEM;
}

static void key_text(struct buf *b, const char *s)
{
    size_t n = s != NULL ? strlen(s) : 0;

    buf_addf(b, "%zu:", n);
    buf_add(b, s, n);
}

static void key_list(struct buf *b, const char *const *items, size_t n)
{
    buf_addf(b, "[%zu]", n);
    for (size_t i = 0; i < n; i++) {
        key_text(b, items[i]);
    }
}

static enum status fill_key(struct launch_spec *l, struct error *err)
{
    unsigned char digest[SHA256_LEN];
    struct str part;
    struct buf b;
    enum status st;

    buf_init(&b, MIB);
    key_text(&b, l->backend);
    buf_addf(&b, "i%d l%d n%d m%llx u%u g%u ", (int)l->isolation, l->limits_must_hold,
             l->network, (unsigned long long)l->must, l->uid, l->gid);
    buf_addf(&b, "%llu %llu %llu %llu %llu ", (unsigned long long)l->cpu_seconds,
             (unsigned long long)l->mem_bytes, (unsigned long long)l->open_files,
             (unsigned long long)l->file_bytes, (unsigned long long)l->processes);
    key_list(&b, l->argv, l->nargv);
    key_list(&b, l->env, l->nenv);
    buf_addf(&b, "[%zu]", l->npaths);
    for (size_t i = 0; i < l->npaths; i++) {
        buf_add_char(&b, l->paths[i].writable ? 'w' : 'r');
        key_text(&b, l->paths[i].path);
    }
    key_text(&b, l->work_root);
    st = buf_status(&b);
    part = buf_str(&b);
    if (st == ST_OK) {
        st = hash_sha256(&part, 1, digest, err);
    }
    if (st == ST_OK) {
        hash_hex(digest, l->key);
    }
    buf_done(&b);
    return st;
}

static enum status fill_launch(const struct soul *soul, const struct plan_policy *p,
                               const char *folder, struct plan *plan, struct error *err)
{
    const struct config_sandbox *s = &p->cfg->runtime.sandbox;
    const char *backend =
        soul->backend != NULL ? soul->backend : p->cfg->executor.backend;
    struct launch_spec *l = &plan->launch;

    l->backend = arena_dup(plan->arena, str_c(backend));
    l->isolation = s->isolation;
    l->network = s->isolation == ISOLATION_NONE || s->network;
    l->uid = l->gid = SPAWN_KEEP_ID;
    if (p->root_gateway && s->isolation != ISOLATION_NONE) {
        l->uid = p->drop_uid;
        l->gid = p->drop_gid;
    }
    fill_limits(s, l);
    l->must = must_bits(l);
    if (l->backend == NULL || fill_argv(p, plan->arena, l) != ST_OK ||
        fill_env(soul, p, plan->arena, l) != ST_OK ||
        fill_paths(p, folder, plan->arena, l) != ST_OK) {
        return error_set(err, ST_NOMEM, "out of memory for a plan");
    }
    return fill_key(l, err);
}

static enum status copy_view(struct arena *a, struct str *s)
{
    const char *p = arena_dup(a, *s);

    if (p == NULL) {
        return ST_NOMEM;
    }
    s->ptr = p;
    return ST_OK;
}

static enum status fill_call(const struct approved *call, const struct plan_policy *p,
                             const struct tool_source *source, const char *run_id,
                             struct plan *plan)
{
    const struct soul *soul = admitted_soul(approved_by(call));
    const struct soul_tool *tool = approved_tool(call)->python;
    struct plan_call *c = &plan->call;
    struct arena *a = plan->arena;

    c->run_id = arena_dup(a, str_c(run_id));
    c->agent_id = arena_dup(a, str_c(soul->id));
    c->tool_name = arena_dup(a, str_c(tool->name));
    c->source = source->text;
    c->filename = arena_dup(a, str_c(source->filename));
    c->function = arena_dup(a, str_c(tool->function));
    c->args = approved_args(call);
    c->env = copy_list(a, p->agent_env, p->nagent_env, 0);
    c->nenv = c->env != NULL ? p->nagent_env : 0;
    c->timeout_ms =
        tool->timeout_ms > 0 ? tool->timeout_ms : p->cfg->runtime.tool_timeout_ms;
    if (c->timeout_ms > p->max_timeout_ms) {
        c->timeout_ms = p->max_timeout_ms;
    }
    c->retries = (uint32_t)tool->retries;
    c->retry_backoff_ms = tool->retry_backoff_ms;
    c->max_output_bytes = (size_t)p->cfg->runtime.max_tool_output_kb * 1024;
    if (c->run_id == NULL || c->agent_id == NULL || c->tool_name == NULL ||
        c->filename == NULL || c->function == NULL || c->env == NULL ||
        copy_view(a, &c->source) != ST_OK || copy_view(a, &c->args) != ST_OK) {
        return ST_NOMEM;
    }
    return ST_OK;
}

enum status plan_build(const struct approved *call, const struct plan_policy *policy,
                       const struct tool_source *source, const char *run_id,
                       struct plan **out, struct error *err)
{
    const struct soul *soul = admitted_soul(approved_by(call));
    struct arena *arena = NULL;
    struct plan *plan = NULL;
    enum status st;

    if (approved_tool(call)->kind != TOOL_PYTHON) {
        return error_set(err, ST_INVALID, "a plan is for Python tools");
    }
    if (policy->cfg->runtime.sandbox.isolation != ISOLATION_NONE) {
        st = check_folder(policy, source->folder, err);
        if (st != ST_OK) {
            return st;
        }
    }
    arena = arena_new(PLAN_ARENA_MAX);
    plan = arena != NULL ? arena_alloc(arena, sizeof(*plan)) : NULL;
    if (plan == NULL) {
        arena_free(arena);
        return error_set(err, ST_NOMEM, "out of memory for a plan");
    }
    plan->arena = arena;
    st = fill_launch(soul, policy, source->folder, plan, err);
    if (st == ST_OK && fill_call(call, policy, source, run_id, plan) != ST_OK) {
        st = error_set(err, ST_NOMEM, "out of memory for a plan");
    }
    if (st != ST_OK) {
        plan_free(plan);
        return st;
    }
    *out = plan;
    return ST_OK;
}

void plan_free(struct plan *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->call.nenv; i++) {
        mem_wipe((char *)(uintptr_t)p->call.env[i], strlen(p->call.env[i]));
    }
    mem_wipe((char *)(uintptr_t)p->call.args.ptr, p->call.args.len);
    arena_free(p->arena);
}

const struct launch_spec *plan_launch(const struct plan *p)
{
    return &p->launch;
}

const struct plan_call *plan_call(const struct plan *p)
{
    return &p->call;
}
