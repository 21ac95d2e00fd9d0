/* An approved call and the policy in, the exact limits of its process and the bytes of its
 * request out. The only place where a plan is made. Pure: opens nothing, asks nothing. */
#include "sandbox/plan.h"

#include "base/hash.h"
#include "base/mem.h"
#include "gate/gate.h"

#include <soulacy/executor.h>

#include <inttypes.h>
#include <string.h>

#define MIB (UINT64_C(1024) * 1024)
#define PLAN_ARENA_MAX (96 * MIB)
#define KEY_TEXT_MAX ((size_t)MIB)

struct plan {
    struct arena *arena;
    bool failed; /* the arena ran dry: sticky while the plan is being made */
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

uint64_t plan_must(const struct config *cfg)
{
    const struct config_sandbox *s = &cfg->runtime.sandbox;
    struct launch_spec l = {.isolation = s->isolation,
                            .network = s->isolation == ISOLATION_NONE || s->network};

    fill_limits(s, &l);
    return must_bits(&l);
}

static void *keep_array(struct plan *p, size_t n, size_t size)
{
    void *out = arena_array(p->arena, n + 1, size);

    if (out == NULL) {
        p->failed = true;
    }
    return out;
}

static struct str keep(struct plan *p, struct str s)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): plan_build checked it */
    char *copy = arena_dup(p->arena, s);

    p->failed = p->failed || copy == NULL;
    return str_n(copy, copy != NULL ? s.len : 0);
}

static const char *keep_c(struct plan *p, const char *s)
{
    return keep(p, str_c(s)).ptr;
}

/* Copies of n strings, with room for spare more. *kept: how many are there, also after a
 * failure, so that they can be wiped. */
static const char **keep_list(struct plan *p, const char *const *items, size_t n,
                              size_t spare, size_t *kept)
{
    const char **out = keep_array(p, n + spare, sizeof(*out));

    *kept = 0;
    for (size_t i = 0; i < n && !p->failed; i++) {
        out[i] = keep_c(p, items[i]);
        *kept += p->failed ? 0 : 1;
    }
    return out;
}

/* The agent names that variable in its `env`: the value that counts is its own. */
static bool agent_lists(const struct soul *soul, const char *pair)
{
    size_t n = str_find_char(str_c(pair), '=');

    for (size_t i = 0; i < soul->env.n; i++) {
        if (str_eq(str_c(soul->env.items[i]), str_n(pair, n))) {
            return true;
        }
    }
    return false;
}

static void fill_env(const struct soul *soul, const struct plan_policy *policy,
                     struct plan *p)
{
    struct launch_spec *l = &p->launch;
    const char **env = keep_list(p, policy->base_env, policy->nbase_env, NPINS, &l->nenv);

    for (size_t i = 0; i < NPINS && l->isolation != ISOLATION_NONE && !p->failed; i++) {
        if (!agent_lists(soul, thread_pins[i])) {
            env[l->nenv++] = thread_pins[i];
        }
    }
    l->env = env;
}

static void fill_argv(const struct plan_policy *policy, struct plan *p)
{
    const char *const argv[] = {policy->python->path, "-I", "-S", "-c",
                                policy->bootstrap};

    p->launch.argv =
        keep_list(p, argv, sizeof(argv) / sizeof(argv[0]), 0, &p->launch.nargv);
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
    for (size_t i = 0; i < p->nprotected; i++) {
        if (contains(folder, p->protected_paths[i])) {
            return error_set(err, ST_REFUSED,
                             "the tool's folder also holds the gateway's own files; put "
                             "the tool into a folder of its own");
        }
    }
    return ST_OK;
}

/* What only a fenced run can break, or only an agent can ask for. */
static enum status check_policy(const struct soul *soul, const struct plan_policy *p,
                                const char *folder, struct error *err)
{
    const struct str_list *allowed = &p->cfg->executor.allowed_backends;
    bool named = soul->backend == NULL;

    for (size_t i = 0; i < allowed->n; i++) {
        named = named || str_eq(str_c(soul->backend), str_c(allowed->items[i]));
    }
    if (!named) {
        return error_set(err, ST_REFUSED,
                         "the agent's execution.backend %s is not in "
                         "executor.allowed_backends",
                         soul->backend);
    }
    if (folder == NULL || p->cfg->runtime.sandbox.isolation == ISOLATION_NONE) {
        return ST_OK;
    }
    return check_folder(p, folder, err);
}

static void add_path(struct plan *p, struct spawn_path *paths, const char *path,
                     bool writable)
{
    paths[p->launch.npaths++] = (struct spawn_path){keep_c(p, path), writable};
}

static void add_paths(struct plan *p, struct spawn_path *paths,
                      const struct str_list *list, bool writable)
{
    for (size_t i = 0; i < list->n; i++) {
        add_path(p, paths, list->items[i], writable);
    }
}

/* What a fenced process may see, and where its work folder is made. */
static void fill_paths(const struct plan_policy *policy, const char *folder,
                       struct plan *p)
{
    const struct config_sandbox *s = &policy->cfg->runtime.sandbox;
    const struct str_list *python = &policy->python->paths;
    size_t most = python->n + s->read_paths.n + s->write_paths.n + 1;
    struct spawn_path *paths = keep_array(p, most, sizeof(*paths));

    if (p->failed) {
        return;
    }
    add_paths(p, paths, python, false);
    add_paths(p, paths, &s->read_paths, false);
    add_paths(p, paths, &s->write_paths, true);
    if (folder != NULL) {
        add_path(p, paths, folder, false);
    }
    p->launch.paths = paths;
    p->launch.work_root = keep_c(p, policy->work_root);
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

static void key_numbers(struct buf *b, const struct launch_spec *l)
{
    buf_addf(b, "i%d l%d n%d m%" PRIx64 " u%" PRIu32 " g%" PRIu32 " ", (int)l->isolation,
             (int)l->limits_must_hold, (int)l->network, l->must, l->uid, l->gid);
    buf_addf(b, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
             l->cpu_seconds, l->mem_bytes, l->open_files, l->file_bytes, l->processes);
}

static enum status fill_key(struct launch_spec *l, struct error *err)
{
    unsigned char digest[SHA256_LEN] = {0};
    struct str part;
    struct buf b;
    enum status st;

    buf_init(&b, KEY_TEXT_MAX);
    key_text(&b, l->backend);
    key_numbers(&b, l);
    key_list(&b, l->argv, l->nargv);
    key_list(&b, l->env, l->nenv);
    buf_addf(&b, "[%zu]", l->npaths);
    for (size_t i = 0; i < l->npaths; i++) {
        buf_add_char(&b, l->paths[i].writable ? 'w' : 'r');
        key_text(&b, l->paths[i].path);
    }
    key_text(&b, l->work_root);
    part = buf_str(&b);
    st = buf_status(&b) == ST_OK
             ? hash_sha256(&part, 1, digest, err)
             : error_set(err, buf_status(&b),
                         "the tool's environment and paths are too much for a plan");
    hash_hex(digest, l->key);
    buf_done(&b);
    return st;
}

static void fill_launch(const struct soul *soul, const struct plan_policy *policy,
                        const char *folder, struct plan *p)
{
    const struct config_sandbox *s = &policy->cfg->runtime.sandbox;
    struct launch_spec *l = &p->launch;

    l->backend =
        keep_c(p, soul->backend != NULL ? soul->backend : policy->cfg->executor.backend);
    l->isolation = s->isolation;
    l->network = s->isolation == ISOLATION_NONE || s->network;
    l->uid = l->gid = SPAWN_KEEP_ID;
    if (policy->root_gateway && s->isolation != ISOLATION_NONE) {
        l->uid = policy->drop_uid;
        l->gid = policy->drop_gid;
    }
    fill_limits(s, l);
    l->must = must_bits(l);
    fill_argv(policy, p);
    fill_env(soul, policy, p);
    if (s->isolation != ISOLATION_NONE) {
        fill_paths(policy, folder, p);
    }
}

static void fill_call(const struct approved *call, const struct plan_policy *policy,
                      const struct tool_source *source, const char *run_id,
                      struct plan *p)
{
    const struct soul_tool *tool = approved_tool(call)->python;
    const struct config *cfg = policy->cfg;
    struct plan_call *c = &p->call;

    c->run_id = keep_c(p, run_id);
    c->agent_id = keep_c(p, admitted_soul(approved_by(call))->id);
    c->tool_name = keep_c(p, tool->name);
    c->source = keep(p, source->text);
    c->filename = keep_c(p, source->filename);
    c->function = keep_c(p, tool->function);
    c->args = keep(p, approved_args(call));
    c->env = keep_list(p, policy->agent_env, policy->nagent_env, 0, &c->nenv);
    c->timeout_ms =
        tool->timeout_ms > 0 ? tool->timeout_ms : cfg->runtime.tool_timeout_ms;
    if (c->timeout_ms > policy->max_timeout_ms) {
        c->timeout_ms = policy->max_timeout_ms;
    }
    c->retries = (uint32_t)tool->retries;
    c->retry_backoff_ms = tool->retry_backoff_ms;
    c->max_output_bytes = (size_t)cfg->runtime.max_tool_output_kb * 1024;
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

static enum status plan_new(struct plan **out, struct error *err)
{
    struct arena *arena = arena_new(PLAN_ARENA_MAX);
    struct plan *p = arena != NULL ? arena_alloc(arena, sizeof(*p)) : NULL;

    if (p == NULL) {
        arena_free(arena);
        return error_set(err, ST_NOMEM, "out of memory for a plan");
    }
    p->arena = arena;
    *out = p;
    return ST_OK;
}

enum status plan_build(const struct approved *call, const struct plan_policy *policy,
                       const struct tool_source *source, const char *run_id,
                       struct plan **out, struct error *err)
{
    const struct soul *soul = admitted_soul(approved_by(call));
    struct plan *p = NULL;
    enum status st;

    if (approved_tool(call)->kind != TOOL_PYTHON) {
        return error_set(err, ST_INVALID, "a plan is for Python tools");
    }
    st = check_policy(soul, policy, source->folder, err);
    if (st == ST_OK) {
        st = plan_new(&p, err);
    }
    if (st != ST_OK) {
        return st;
    }
    fill_launch(soul, policy, source->folder, p);
    fill_call(call, policy, source, run_id, p);
    st = p->failed ? error_set(err, ST_NOMEM, "out of memory for a plan")
                   : fill_key(&p->launch, err);
    if (st != ST_OK) {
        plan_free(p);
        return st;
    }
    *out = p;
    return ST_OK;
}

const struct launch_spec *plan_launch(const struct plan *p)
{
    return &p->launch;
}

const struct plan_call *plan_call(const struct plan *p)
{
    return &p->call;
}
