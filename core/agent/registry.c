/* The agents in force. In: agent folders, a configuration, word that files changed. Out:
 * snapshots, swapped as a whole, and for each file why it is not in force if it is not.
 * Never lets a file that is broken, or that asks for more than the operator let in,
 * replace a good one; never stops a reader. `lock` guards `current` alone; the rest is of
 * the control thread. */
#include "agent/registry.h"

#include "agent/registry_scan.h"
#include "agent/registry_version.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Some editors move the file away and then write it anew. For so long a file that comes
 * back is an edit; after that it is a new agent. */
#define GONE_MS 5000
#define PARSE_ARENA_BYTES ((size_t)4 * 1024 * 1024)
#define PROBLEM_MAX 600

struct entry {
    char *file;
    struct version *version; /* last accepted one; NULL: none */
    bool present;            /* the file is there */
    int64_t gone_ms;         /* when it was last found missing */
    bool waits;
    char problem[PROBLEM_MAX]; /* empty: none */
    char seen[SHA256_HEX];     /* digest of the file when the problem was told */
    char said[PROBLEM_MAX];    /* the problem that was told last */
};

struct agent_registry {
    const struct config *cfg;
    struct log *log;
    int64_t (*now_ms)(void);
    struct watcher watcher;
    struct entry **entries; /* by path */
    size_t n;
    bool reparse; /* the configuration is new */
    bool again;   /* the last look was cut short for want of memory */

    pthread_mutex_t lock;
    struct agent_snapshot *current;
};

/* What one look at the files works with. */
struct pass {
    struct agent_registry *r;
    bool grow;
    struct problems *probs; /* at start only; NULL: log instead */
};

static void entry_free(struct entry *e)
{
    if (e != NULL) {
        version_unref(e->version);
        mem_free(e->file);
        mem_free(e);
    }
}

static void set_problem(struct entry *e, bool waits, const struct error *why)
{
    size_t n = strlen(why->text);
    n = n < sizeof(e->problem) ? n : sizeof(e->problem) - 1;
    memcpy(e->problem, why->text, n);
    e->problem[n] = '\0';
    e->waits = waits;
}

/* The agent goes with its file. */
static void mark_missing(const struct pass *p, struct entry *e)
{
    if (e->version != NULL && p->probs == NULL) {
        log_line(p->r->log, LOG_INFO, "agents", "agent %s: removed with %s",
                 e->version->soul->id, e->file);
    }
    e->present = false;
    e->gone_ms = p->r->now_ms();
    e->problem[0] = '\0';
    e->waits = false;
}

static bool is_remembered(const struct pass *p, const struct entry *e)
{
    /* An explicit reload takes what is there, and nothing else. */
    return !p->grow && p->r->now_ms() - e->gone_ms < GONE_MS;
}

/* The problems of one file to the caller of agent_registry_new; the first error as the
 * one line of the file's state. */
static void take_problems(const struct pass *p, struct entry *e,
                          const struct problems *found, const struct error *err)
{
    struct error line = *err;
    for (const struct problem *i = found->last != NULL ? found->first : NULL; i != NULL;
         i = i->next) {
        if (!i->warning) {
            error_set(&line, ST_INVALID, "line %u: %s", i->pos.line, i->text);
            break;
        }
    }
    for (const struct problem *i = found->first; i != NULL; i = i->next) {
        if (p->probs != NULL) {
            problem_add(p->probs, i->warning, (struct yaml_pos){0}, "%s:%u:%u: %s",
                        e->file, i->pos.line, i->pos.column, i->text);
        }
    }
    if (err->status != ST_OK) {
        if (found->nerrors == 0 && p->probs != NULL) {
            problem_add(p->probs, false, (struct yaml_pos){0}, "%s: %s", e->file,
                        err->text);
        }
        set_problem(e, false, &line);
    }
}

static void accept_take(const struct pass *p, struct entry *e, struct soul *soul,
                        const struct version *was)
{
    struct version *v = NULL;
    struct error err = {.status = ST_OK};
    bool same_bytes =
        e->version != NULL && strcmp(soul->digest, e->version->soul->digest) == 0;
    if (version_new_take(soul, was, &v, &err) != ST_OK) {
        set_problem(e, false, &err);
        return;
    }
    if (p->probs == NULL && !same_bytes) {
        log_line(p->r->log, LOG_INFO, "agents", "agent %s: %s %s", v->soul->id,
                 e->version != NULL ? "reloaded from" : "loaded from", e->file);
    }
    for (size_t i = 0; i < v->soul->ntools; i++) {
        const struct soul_tool *tool = &v->soul->tools[i];
        if (tool->python_file != NULL && v->tools[i].hex[0] == '\0' && p->probs != NULL) {
            problem_add(p->probs, true, (struct yaml_pos){0},
                        "%s:%u:%u: tool %s: %s cannot be read", e->file, tool->pos.line,
                        tool->pos.column, tool->name, tool->python_file);
        }
    }
    version_unref(e->version);
    e->version = v;
}

/* A valid file against the version in force. */
static void judge_take(const struct pass *p, struct entry *e, struct soul *soul)
{
    struct error why = {.status = ST_OK};
    if (p->grow) {
        accept_take(p, e, soul, NULL);
        return;
    }
    if (e->version == NULL) {
        error_set(&why, ST_REFUSED, "new agent \"%s\": waits for a reload", soul->id);
    } else if (strcmp(e->version->soul->id, soul->id) != 0) {
        error_set(&why, ST_REFUSED, "id is now \"%s\": waits for a reload", soul->id);
    } else if (soul_grows(e->version->soul, soul, &why)) {
        why.status = ST_REFUSED;
        error_context(&why, "more authority waits for a reload");
    } else {
        accept_take(p, e, soul, e->version);
        return;
    }
    set_problem(e, true, &why);
    soul_free(soul);
}

static void parse_and_judge(const struct pass *p, struct entry *e, struct str text)
{
    struct error err = {.status = ST_OK};
    struct problems found;
    struct soul *soul = NULL;
    struct arena *a = arena_new(PARSE_ARENA_BYTES);
    if (a == NULL) {
        error_set(&err, ST_NOMEM, "out of memory for reading an agent");
        set_problem(e, false, &err);
        return;
    }
    problems_init(&found, a, e->file);
    enum status st = soul_parse(text, e->file, p->r->cfg, &found, &soul, &err);
    if (st != ST_OK && err.status == ST_OK) {
        error_set(&err, st, "not a valid agent");
    }
    if (st == ST_OK) {
        err.status = ST_OK;
    }
    p->r->again = p->r->again || st == ST_NOMEM;
    take_problems(p, e, &found, &err);
    if (st == ST_OK) {
        judge_take(p, e, soul);
    }
    arena_free(a);
}

/* Nothing to do when the file is the one in force, and with grow its tools are too. */
static bool is_in_force(const struct pass *p, const struct entry *e, const char *digest)
{
    return e->version != NULL && !p->r->reparse &&
           strcmp(e->version->soul->digest, digest) == 0 &&
           !(p->grow && version_changed_tool(e->version) != NULL);
}

static void evaluate(const struct pass *p, struct entry *e)
{
    struct buf text;
    struct error err = {.status = ST_OK};
    unsigned char d[SHA256_LEN];
    char digest[SHA256_HEX] = "";
    e->problem[0] = '\0';
    e->waits = false;
    buf_init(&text, (size_t)YAML_MAX_BYTES + 1);
    enum status st = io_read_file(e->file, (size_t)YAML_MAX_BYTES, &text, &err);
    struct str bytes = buf_str(&text);
    if (st == ST_OK) {
        st = hash_sha256(&bytes, 1, d, &err);
    }
    if (st == ST_OK) {
        hash_hex(d, digest);
        if (!is_in_force(p, e, digest)) {
            parse_and_judge(p, e, bytes);
        }
    } else if (st == ST_NOT_FOUND) {
        mark_missing(p, e);
    } else {
        set_problem(e, false, &err);
        if (p->probs != NULL) {
            problem_add(p->probs, false, (struct yaml_pos){0}, "%s", err.text);
        }
    }
    if (strcmp(e->seen, digest) != 0) {
        e->said[0] = '\0'; /* other bytes: the same problem is news again */
        memcpy(e->seen, digest, sizeof(digest));
    }
    buf_done(&text);
}

static void check_tools(struct entry *e)
{
    struct error why;
    const struct soul_tool *tool = version_changed_tool(e->version);
    if (tool != NULL && e->problem[0] == '\0') {
        error_set(&why, ST_REFUSED, "tool %s: %s changed: waits for a reload", tool->name,
                  tool->python_file);
        set_problem(e, true, &why);
    }
}

/* Of two files with one id the first by path is in force. */
static void refuse_duplicates(const struct pass *p)
{
    for (size_t i = 0; i < p->r->n; i++) {
        struct entry *e = p->r->entries[i];
        for (size_t k = 0; k < i && e->present && e->version != NULL; k++) {
            const struct entry *first = p->r->entries[k];
            if (!first->present || first->version == NULL ||
                strcmp(first->version->soul->id, e->version->soul->id) != 0) {
                continue;
            }
            struct error why;
            error_set(&why, ST_CONFLICT, "id \"%s\" is taken by %s, so %s is not used",
                      e->version->soul->id, first->file, e->file);
            if (p->probs != NULL) {
                problem_add(p->probs, false, (struct yaml_pos){0}, "%s", why.text);
            }
            set_problem(e, false, &why);
            version_unref(e->version);
            e->version = NULL;
        }
    }
}

static void say_problems(const struct pass *p)
{
    for (size_t i = 0; i < p->r->n; i++) {
        struct entry *e = p->r->entries[i];
        if (p->probs == NULL && e->problem[0] != '\0' &&
            strcmp(e->problem, e->said) != 0) {
            log_line(p->r->log, LOG_WARN, "agents", "%s: %s%s", e->file, e->problem,
                     e->version != NULL ? " (the version before stays in force)" : "");
        }
        memcpy(e->said, e->problem, sizeof(e->said));
    }
}

static bool same_agents(const struct agent_snapshot *a, const struct agent_snapshot *b)
{
    if (a == NULL || a->nagents != b->nagents) {
        return false;
    }
    for (size_t i = 0; i < a->nagents; i++) {
        if (a->agents[i] != b->agents[i]) {
            return false;
        }
    }
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct version *const *x = a;
    const struct version *const *y = b;
    return strcmp((*x)->soul->id, (*y)->soul->id);
}

static bool add_file_state(struct agent_snapshot *s, const struct entry *e)
{
    struct agent_file_state *f = &s->files[s->nfiles];
    f->file = arena_dup(s->arena, str_c(e->file));
    f->waits = e->waits;
    bool ok = f->file != NULL;
    if (e->version != NULL) {
        f->id = arena_dup(s->arena, str_c(e->version->soul->id));
        ok = ok && f->id != NULL;
    }
    if (e->problem[0] != '\0') {
        f->problem = arena_dup(s->arena, str_c(e->problem));
        ok = ok && f->problem != NULL;
    }
    s->nfiles += ok ? 1 : 0;
    return ok;
}

static struct agent_snapshot *build_snapshot(const struct agent_registry *r)
{
    struct agent_snapshot *s = snapshot_new(r->n, r->n);
    if (s == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = r->entries[i];
        if (!e->present) {
            continue;
        }
        if (!add_file_state(s, e)) {
            agents_put(s);
            return NULL;
        }
        if (e->version != NULL) {
            s->agents[s->nagents++] = version_ref(e->version);
        }
    }
    qsort(s->agents, s->nagents, sizeof(struct version *), by_id);
    return s;
}

/* Make the new state the one that readers take. */
static enum status publish(struct agent_registry *r, bool *changed, struct error *err)
{
    struct agent_snapshot *s = build_snapshot(r);
    if (s == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for the agents");
    }
    *changed = !same_agents(r->current, s);
    uint64_t before = r->current != NULL ? r->current->generation : 0;
    s->generation = before + (*changed ? 1 : 0);
    pthread_mutex_lock(&r->lock);
    struct agent_snapshot *old = r->current;
    r->current = s;
    pthread_mutex_unlock(&r->lock);
    agents_put(old);
    return ST_OK;
}

static struct entry *entry_new(const char *file)
{
    struct entry *e = mem_zalloc(sizeof(*e));
    char *copy = e != NULL ? mem_strdup(file) : NULL;
    if (copy == NULL) {
        mem_free(e);
        return NULL;
    }
    e->file = copy;
    return e;
}

/* An entry that was there before: with its file, or remembered for a while in case an
 * editor is at work. false: forget it. */
static bool update_entry(const struct pass *p, struct entry *e, bool present)
{
    if (present && !e->present && !is_remembered(p, e)) {
        version_unref(e->version);
        e->version = NULL;
    }
    if (!present && e->present) {
        mark_missing(p, e);
    }
    e->present = present;
    return present || is_remembered(p, e);
}

/* Merge the files there are (both lists are in order of path) into `all`, which has room
 * for both. */
static enum status merge_entries(const struct pass *p, const char **files, size_t nfiles,
                                 struct entry **all, size_t *n)
{
    struct agent_registry *r = p->r;
    enum status st = ST_OK;
    size_t old = 0;
    size_t i = 0;
    while (old < r->n || (i < nfiles && st == ST_OK)) {
        int c = -1; /* a new file, an entry with its file, an entry without */
        if (old < r->n) {
            c = i < nfiles && st == ST_OK ? strcmp(files[i], r->entries[old]->file) : 1;
        }
        if (c < 0) {
            struct entry *e = entry_new(files[i++]);
            st = e != NULL ? ST_OK : ST_NOMEM;
            if (e != NULL) {
                e->present = true;
                all[(*n)++] = e;
            }
            continue;
        }
        struct entry *e = r->entries[old++];
        i += c == 0 ? 1 : 0;
        /* Once memory is out, the rest stays as it is. */
        if (st != ST_OK || update_entry(p, e, c == 0)) {
            all[(*n)++] = e;
        } else {
            entry_free(e);
        }
    }
    return st;
}

static enum status match_entries(const struct pass *p, const char **files, size_t nfiles,
                                 struct error *err)
{
    struct agent_registry *r = p->r;
    size_t total;
    size_t n = 0;
    struct entry **all =
        size_add(r->n, nfiles, &total) ? mem_array(total, sizeof(struct entry *)) : NULL;
    enum status st = ST_NOMEM;
    if (all != NULL) {
        st = merge_entries(p, files, nfiles, all, &n);
        mem_free(r->entries);
        r->entries = all;
        r->n = n;
    }
    return st == ST_OK ? st : error_set(err, st, "out of memory for the agents");
}

static enum status look_at_files(const struct pass *p, struct error *err)
{
    struct agent_registry *r = p->r;
    const char **files = NULL;
    size_t n = 0;
    struct arena *a = arena_new((size_t)16 * 1024 * 1024);
    if (a == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for agent files");
    }
    watcher_begin(&r->watcher);
    enum status st = scan_agents((const char *const *)r->cfg->agent_dirs.items,
                                 r->cfg->agent_dirs.n, &r->watcher, a, &files, &n, err);
    if (st == ST_OK) {
        st = match_entries(p, files, n, err);
    }
    arena_free(a);
    for (size_t i = 0; i < r->n; i++) {
        struct entry *e = r->entries[i];
        if (st == ST_OK && e->present) {
            evaluate(p, e);
        }
        for (size_t k = 0; e->version != NULL && k < e->version->soul->ntools; k++) {
            const char *file = e->version->soul->tools[k].python_file;
            if (file != NULL) {
                watcher_add_folder_of(&r->watcher, file);
            }
        }
    }
    watcher_end(&r->watcher);
    return st;
}

/* One look at everything. */
static enum status run_pass(const struct pass *p, bool *changed, struct error *err)
{
    struct agent_registry *r = p->r;
    enum status st = look_at_files(p, err);
    if (st != ST_OK) {
        return st;
    }
    refuse_duplicates(p);
    for (size_t i = 0; i < r->n; i++) {
        if (r->entries[i]->present && r->entries[i]->version != NULL) {
            check_tools(r->entries[i]);
        }
    }
    say_problems(p);
    r->reparse = false;
    return publish(r, changed, err);
}

enum status agent_registry_new(const struct config *cfg, struct log *log,
                               struct problems *probs, struct agent_registry **out,
                               struct error *err)
{
    struct error why;
    bool changed = false;
    struct agent_registry *r = mem_zalloc(sizeof(*r));
    if (r == NULL || pthread_mutex_init(&r->lock, NULL) != 0) {
        mem_free(r);
        return error_set(err, ST_NOMEM, "out of memory for the agents");
    }
    r->cfg = cfg;
    r->log = log;
    r->now_ms = clock_mono_ms;
    if (watcher_open(&r->watcher, &why) != ST_OK) {
        problem_add(probs, true, (struct yaml_pos){0},
                    "%s: edits of agents are not noticed, only a reload reads them",
                    why.text);
    }
    const struct pass p = {.r = r, .grow = true, .probs = probs};
    enum status st = run_pass(&p, &changed, err);
    if (st != ST_OK) {
        agent_registry_free(r);
        return st;
    }
    *out = r;
    return ST_OK;
}

void agent_registry_free(struct agent_registry *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        entry_free(r->entries[i]);
    }
    mem_free(r->entries);
    agents_put(r->current);
    watcher_done(&r->watcher);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}

int agent_registry_fd(const struct agent_registry *r)
{
    return r->watcher.fd;
}

void agent_registry_set_config(struct agent_registry *r, const struct config *cfg)
{
    r->cfg = cfg;
    r->reparse = true;
}

void agent_registry_set_clock(struct agent_registry *r, int64_t (*now_ms)(void))
{
    r->now_ms = now_ms;
}

/* Is this the bare name of an agent's file or of one of its tools' files? */
static bool cares_about(void *ctx, const char *name)
{
    const struct agent_registry *r = ctx;
    if (str_ends(str_c(name), STR_LIT(".yaml"))) {
        return true;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct version *v = r->entries[i]->version;
        for (size_t k = 0; v != NULL && k < v->soul->ntools; k++) {
            const char *file = v->soul->tools[k].python_file;
            const char *slash = file != NULL ? strrchr(file, '/') : NULL;
            if (slash != NULL && strcmp(slash + 1, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool agent_registry_refresh(struct agent_registry *r, bool grow)
{
    struct error err;
    bool changed = false;
    bool due = watcher_drain(&r->watcher, cares_about, r);
    if (!due && !grow && !r->reparse && !r->again) {
        return false;
    }
    const struct pass p = {.r = r, .grow = grow};
    r->again = false;
    if (run_pass(&p, &changed, &err) != ST_OK) {
        r->again = true;
        log_line(r->log, LOG_ERROR, "agents", "agents stay as they are: %s", err.text);
        return false;
    }
    return changed;
}

struct agent_snapshot *agents_take(struct agent_registry *r)
{
    pthread_mutex_lock(&r->lock);
    struct agent_snapshot *s = r->current;
    atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&r->lock);
    return s;
}
