/* The agents in force: loading, edits of every kind, held back growth, tool files. */
#include "support/test.h"

#include "agent/registry.h"
#include "base/clock.h"
#include "base/hash.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct fixture {
    struct test_dir dir;
    char agents[PATH_MAX], more[PATH_MAX], log_file[PATH_MAX];
    char *dirs[2];
    struct config cfg;
    struct log *log;
    struct arena *arena;
    struct problems probs;
    struct agent_registry *r;
    struct agent_snapshot *snap;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    test_dir_make(&f->dir);
    test_path(&f->dir, "agents", f->agents);
    test_path(&f->dir, "more", f->more);
    assert_int_equal(mkdir(f->agents, 0700), 0);
    f->dirs[0] = f->agents;
    f->dirs[1] = f->more;
    f->cfg.agent_dirs = (struct str_list){.items = f->dirs, .n = 2};
    f->cfg.runtime.max_turns_ceiling = 50;
    f->cfg.runtime.default_max_turns = 10;
    test_path(&f->dir, "log", f->log_file);
    assert_int_equal(log_open(LOG_DEBUG, LOG_CONSOLE, f->log_file, &f->log, NULL), ST_OK);
    f->arena = arena_new((size_t)4 * 1024 * 1024);
    assert_non_null(f->arena);
    problems_init(&f->probs, f->arena, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    agents_put(f->snap);
    agent_registry_free(f->r);
    log_close(f->log);
    arena_free(f->arena);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static void start(struct fixture *f)
{
    struct error err;
    assert_int_equal(agent_registry_new(&f->cfg, f->log, &f->probs, &f->r, &err), ST_OK);
    f->snap = agents_take(f->r);
}

/* Wait for word of a change, then look. Returns whether the set changed. */
static bool refresh(struct fixture *f, bool grow)
{
    if (!grow) {
        struct pollfd p = {.fd = agent_registry_fd(f->r), .events = POLLIN};
        assert_int_equal(poll(&p, 1, 5000), 1);
    }
    bool changed = agent_registry_refresh(f->r, grow);
    agents_put(f->snap);
    f->snap = agents_take(f->r);
    return changed;
}

static const char *under(struct fixture *f, const char *name, char path[PATH_MAX])
{
    char with_dir[256];
    snprintf(with_dir, sizeof(with_dir), "agents/%s", name);
    return test_path(&f->dir, with_dir, path);
}

static void put(struct fixture *f, const char *name, const char *text)
{
    char path[PATH_MAX];
    char *slash = strrchr(under(f, name, path), '/');
    *slash = '\0';
    mkdir(path, 0700); /* may be there */
    *slash = '/';
    test_write_file(path, text);
}

static void put_agent(struct fixture *f, const char *name, const char *id,
                      const char *rest)
{
    char text[2048];
    snprintf(text, sizeof(text), "id: %s\n%s", id, rest);
    put(f, name, text);
}

static const struct soul *find(const struct fixture *f, const char *id)
{
    return agents_find(f->snap, str_c(id));
}

static const struct agent_file_state *state_of(const struct fixture *f, const char *end)
{
    const struct agent_file_state *all = NULL;
    size_t n = agents_file_states(f->snap, &all);
    for (size_t i = 0; i < n; i++) {
        if (str_ends(str_c(all[i].file), str_c(end))) {
            return &all[i];
        }
    }
    return NULL;
}

static void assert_problem(const struct fixture *f, const char *end, bool waits,
                           const char *word)
{
    const struct agent_file_state *s = state_of(f, end);
    assert_non_null(s);
    assert_int_equal(s->waits, waits);
    if (word == NULL) {
        assert_null(s->problem);
        return;
    }
    assert_non_null(s->problem);
    if (strstr(s->problem, word) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", s->problem, word);
        fail();
    }
}

/* How many lines of the log have both words. */
static size_t logged(const struct fixture *f, const char *a, const char *b)
{
    char line[4096];
    size_t n = 0;
    FILE *log = fopen(f->log_file, "re");
    assert_non_null(log);
    while (fgets(line, sizeof(line), log) != NULL) {
        n += strstr(line, a) != NULL && strstr(line, b) != NULL ? 1 : 0;
    }
    fclose(log);
    return n;
}

static void loads_both_layouts(void **state)
{
    struct fixture *f = *state;
    put_agent(f, "two/SOUL.yaml", "zeta", "");
    put_agent(f, "one.soul.yaml", "alpha", "");
    put_agent(f, ".hidden.soul.yaml", "hidden", "");
    put_agent(f, "other.yaml", "other", "");
    put_agent(f, "two/deep/SOUL.yaml", "deep", "");
    start(f);
    assert_int_equal(f->probs.nerrors, 0);
    assert_int_equal(agents_count(f->snap), 2);
    assert_string_equal(agents_at(f->snap, 0)->id, "alpha");
    assert_string_equal(agents_at(f->snap, 1)->id, "zeta");
    assert_non_null(find(f, "alpha"));
    assert_non_null(find(f, "zeta"));
    assert_null(find(f, "deep"));
    assert_null(find(f, "zet"));
    assert_null(find(f, "zetaa"));
    assert_int_equal(agents_generation(f->snap), 1);
    assert_problem(f, "one.soul.yaml", false, NULL);
    assert_string_equal(state_of(f, "two/SOUL.yaml")->id, "zeta");
}

static void no_folder_is_no_agent(void **state)
{
    struct fixture *f = *state;
    rmdir(f->agents);
    start(f);
    assert_int_equal(agents_count(f->snap), 0);
    /* The folder is noticed when it comes. */
    assert_int_equal(mkdir(f->agents, 0700), 0);
    assert_false(refresh(f, false));
    put_agent(f, "a.soul.yaml", "a", "");
    assert_false(refresh(f, false));
    assert_problem(f, "a.soul.yaml", true, "new agent \"a\"");
    assert_true(refresh(f, true));
    assert_non_null(find(f, "a"));
}

static void at_start_every_problem_is_told(void **state)
{
    struct fixture *f = *state;
    put_agent(f, "a.soul.yaml", "same", "description: first\n");
    put_agent(f, "b.soul.yaml", "same", "description: second\n");
    put(f, "c.soul.yaml", "id: [\n");
    put(f, "d.soul.yaml", "id: d\nnonsense_key: 1\n");
    put_agent(f, "e.soul.yaml", "good", "");
    start(f);
    assert_int_equal(agents_count(f->snap), 2);
    assert_string_equal(find(f, "same")->description, "first");
    assert_true(f->probs.nerrors >= 3);
    struct buf text;
    buf_init(&text, 100000);
    problems_print(&f->probs, &text);
    /* One line names both files. */
    const char *line = strstr(text.ptr, "id \"same\"");
    assert_non_null(line);
    const char *a = strstr(line, "a.soul.yaml");
    const char *b = strstr(line, "b.soul.yaml");
    assert_non_null(a);
    assert_non_null(b);
    assert_true(strchr(line, '\n') > a && strchr(line, '\n') > b);
    assert_non_null(strstr(text.ptr, "c.soul.yaml"));
    assert_non_null(strstr(text.ptr, "d.soul.yaml"));
    buf_done(&text);
    assert_problem(f, "b.soul.yaml", false, "a.soul.yaml");
    assert_null(state_of(f, "b.soul.yaml")->id);
}

static void a_harmless_edit_is_taken(void **state)
{
    struct fixture *f = *state;
    put_agent(f, "a.soul.yaml", "a", "description: one\n");
    start(f);
    const struct soul *old = find(f, "a");
    struct agent_snapshot *kept = agents_take(f->r);
    put_agent(f, "a.soul.yaml", "a", "description: two\n");
    assert_true(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "two");
    assert_int_equal(agents_generation(f->snap), 2);
    assert_string_equal(old->description, "one"); /* readers keep what they took */
    agents_put(kept);
    assert_int_equal(logged(f, "agent a", "reloaded"), 1);
    /* Written again without a change: nothing changes. */
    put_agent(f, "a.soul.yaml", "a", "description: two\n");
    assert_false(refresh(f, false));
    assert_int_equal(agents_generation(f->snap), 2);
}

static void a_broken_edit_keeps_the_last_good_one(void **state)
{
    struct fixture *f = *state;
    put_agent(f, "a.soul.yaml", "a", "description: good\n");
    start(f);
    put(f, "a.soul.yaml", "id: a\ndescription: [\n");
    assert_false(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "good");
    assert_problem(f, "a.soul.yaml", false, "line");
    assert_int_equal(logged(f, "a.soul.yaml", "stays in force"), 1);
    /* Told once, also when something else makes the registry look again. */
    put(f, "b.soul.yaml", "");
    assert_false(refresh(f, false));
    assert_int_equal(logged(f, "agents/a.soul.yaml", "stays in force"), 1);
    put(f, "a.soul.yaml", ""); /* cut to nothing */
    assert_false(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "good");
    /* Not even an explicit reload takes a broken file. */
    refresh(f, true);
    assert_string_equal(find(f, "a")->description, "good");
    put_agent(f, "a.soul.yaml", "a", "description: better\n");
    assert_true(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "better");
    assert_problem(f, "a.soul.yaml", false, NULL);
}

static void growth_waits_for_a_reload(void **state)
{
    struct fixture *f = *state;
    put_agent(f, "a.soul.yaml", "a", "description: one\n");
    start(f);
    put_agent(f, "a.soul.yaml", "a", "description: two\ncapabilities: [system]\n");
    assert_false(refresh(f, false));
    assert_false(find(f, "a")->system);
    assert_string_equal(find(f, "a")->description, "one"); /* nothing of it is taken */
    assert_problem(f, "a.soul.yaml", true, "waits for a reload");
    assert_int_equal(logged(f, "a.soul.yaml", "waits for a reload"), 1);
    assert_true(refresh(f, true));
    assert_true(find(f, "a")->system);
    assert_problem(f, "a.soul.yaml", false, NULL);
    /* Less authority is taken at once. */
    put_agent(f, "a.soul.yaml", "a", "description: three\n");
    assert_true(refresh(f, false));
    assert_false(find(f, "a")->system);
}

static void another_id_is_another_agent(void **state)
{
    struct fixture *f = *state;
    put_agent(f, "a.soul.yaml", "a", "");
    put_agent(f, "b.soul.yaml", "b", "");
    start(f);
    put_agent(f, "b.soul.yaml", "a", "");
    assert_false(refresh(f, false));
    assert_non_null(find(f, "b"));
    assert_problem(f, "b.soul.yaml", true, "id is now \"a\"");
    assert_true(refresh(f, true));
    assert_null(find(f, "b"));
    assert_int_equal(agents_count(f->snap), 1);
    assert_problem(f, "b.soul.yaml", false, "is taken by");
    /* The first one goes: the second does not slip in by that. */
    char path[PATH_MAX];
    unlink(under(f, "a.soul.yaml", path));
    assert_true(refresh(f, false));
    assert_int_equal(agents_count(f->snap), 0);
    assert_problem(f, "b.soul.yaml", true, "new agent");
}

static void a_new_agent_waits(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    start(f);
    assert_int_equal(mkdir(under(f, "new", path), 0700), 0);
    assert_false(refresh(f, false));
    put_agent(f, "new/SOUL.yaml", "new", ""); /* in a folder that was not there */
    assert_false(refresh(f, false));
    assert_null(find(f, "new"));
    assert_problem(f, "new/SOUL.yaml", true, "new agent \"new\"");
    assert_true(refresh(f, true));
    assert_non_null(find(f, "new"));
    assert_int_equal(logged(f, "agent new", "loaded from"), 1);
}

static _Atomic int64_t fake_ms = 1000;

static int64_t fake_clock(void)
{
    return atomic_load(&fake_ms);
}

static void a_removed_file_removes_its_agent(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    put_agent(f, "a/SOUL.yaml", "a", "");
    put_agent(f, "b/SOUL.yaml", "b", "");
    start(f);
    agent_registry_set_clock(f->r, fake_clock);
    unlink(under(f, "a/SOUL.yaml", path));
    assert_true(refresh(f, false));
    assert_null(find(f, "a"));
    assert_null(state_of(f, "a/SOUL.yaml"));
    assert_int_equal(logged(f, "agent a", "removed"), 1);
    /* With its whole folder. */
    test_remove_tree(under(f, "b", path));
    assert_true(refresh(f, false));
    assert_int_equal(agents_count(f->snap), 0);
    /* After a while it is not an edit any more when it comes back. */
    atomic_fetch_add(&fake_ms, 5000);
    put_agent(f, "a/SOUL.yaml", "a", "");
    assert_false(refresh(f, false));
    assert_problem(f, "a/SOUL.yaml", true, "new agent");
}

/* write temporary, rename over it; move away, write anew; truncate, write. */
static void editors_tricks_are_edits(void **state)
{
    struct fixture *f = *state;
    char from[PATH_MAX];
    char to[PATH_MAX];
    put_agent(f, "a.soul.yaml", "a", "description: one\n");
    start(f);
    agent_registry_set_clock(f->r, fake_clock);
    put_agent(f, "a.soul.yaml.tmp", "a", "description: two\n");
    assert_int_equal(
        rename(under(f, "a.soul.yaml.tmp", from), under(f, "a.soul.yaml", to)), 0);
    assert_true(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "two");

    assert_int_equal(rename(under(f, "a.soul.yaml", from), under(f, "a.soul.yaml~", to)),
                     0);
    assert_true(refresh(f, false)); /* seen in between */
    atomic_fetch_add(&fake_ms, 4999);
    put_agent(f, "a.soul.yaml", "a", "description: three\n");
    assert_true(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "three");

    FILE *file = fopen(under(f, "a.soul.yaml", from), "we");
    assert_non_null(file);
    fputs("id: a\ndescr", file);
    fflush(file);
    struct pollfd p = {.fd = agent_registry_fd(f->r), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0); /* half a file is no event */
    put(f, "noise.soul.yaml", "");
    assert_false(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "three");
    fputs("iption: four\n", file);
    fclose(file);
    assert_true(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "four");
}

static void writes_that_do_not_matter_are_passed_over(void **state)
{
    struct fixture *f = *state;
    put_agent(f, "a/SOUL.yaml", "a", "");
    put(f, "a/out.log", "1");
    start(f);
    put(f, "a/out.log", "2");
    assert_false(refresh(f, false));
    struct pollfd p = {.fd = agent_registry_fd(f->r), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0); /* drained */
}

static const char *const with_tool = "tools:\n"
                                     "  - name: add\n"
                                     "    description: adds\n"
                                     "    python_file: lib/add.py\n"
                                     "  - name: sub\n"
                                     "    description: subtracts\n"
                                     "    inline: |\n"
                                     "      def sub(): return 1\n";

static bool digest_is(struct fixture *f, const char *source)
{
    char want[SHA256_HEX];
    char have[65];
    unsigned char d[SHA256_LEN];
    struct str text = str_c(source);
    assert_int_equal(hash_sha256(&text, 1, d, NULL), ST_OK);
    hash_hex(d, want);
    assert_true(agents_tool_digest(f->snap, find(f, "a"), "add", have));
    return strcmp(want, have) == 0;
}

static void an_edited_tool_file_waits(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    char hex[65];
    assert_int_equal(mkdir(under(f, "a", path), 0700), 0);
    put(f, "a/lib/add.py", "def add(): return 1\n");
    put_agent(f, "a/SOUL.yaml", "a", with_tool);
    start(f);
    assert_int_equal(f->probs.nerrors + f->probs.nwarnings, 0);
    assert_true(digest_is(f, "def add(): return 1\n"));
    assert_false(agents_tool_digest(f->snap, find(f, "a"), "sub", hex));
    assert_false(agents_tool_digest(f->snap, find(f, "a"), "none", hex));

    put(f, "a/lib/add.py", "def add(): return 2\n");
    assert_false(refresh(f, false));
    assert_true(digest_is(f, "def add(): return 1\n"));
    assert_problem(f, "a/SOUL.yaml", true, "tool add");
    assert_int_equal(logged(f, "add.py", "waits for a reload"), 1);
    /* An edit of the agent that is taken does not take the tool file along. */
    char text[1024];
    snprintf(text, sizeof(text), "description: new\n%s", with_tool);
    put_agent(f, "a/SOUL.yaml", "a", text);
    assert_true(refresh(f, false));
    assert_string_equal(find(f, "a")->description, "new");
    assert_true(digest_is(f, "def add(): return 1\n"));
    assert_problem(f, "a/SOUL.yaml", true, "tool add");

    assert_true(refresh(f, true));
    assert_true(digest_is(f, "def add(): return 2\n"));
    assert_problem(f, "a/SOUL.yaml", false, NULL);
    /* And back, which is a change again. */
    put(f, "a/lib/add.py", "def add(): return 1\n");
    assert_false(refresh(f, false));
    assert_problem(f, "a/SOUL.yaml", true, "tool add");
    put(f, "a/lib/add.py", "def add(): return 2\n");
    assert_false(refresh(f, false));
    assert_problem(f, "a/SOUL.yaml", false, NULL);
}

static void a_tool_file_that_was_missing_matches_nothing(void **state)
{
    struct fixture *f = *state;
    char hex[65] = "x";
    char path[PATH_MAX];
    put_agent(f, "a/SOUL.yaml", "a", with_tool);
    start(f);
    assert_int_equal(f->probs.nerrors, 0);
    assert_int_equal(f->probs.nwarnings, 1);
    assert_true(agents_tool_digest(f->snap, find(f, "a"), "add", hex));
    assert_string_equal(hex, "");
    assert_int_equal(mkdir(under(f, "a/lib", path), 0700), 0);
    put(f, "a/lib/add.py", "code\n");
    assert_false(refresh(f, false));
    assert_true(agents_tool_digest(f->snap, find(f, "a"), "add", hex));
    assert_string_equal(hex, "");
    assert_problem(f, "a/SOUL.yaml", true, "tool add");
    assert_true(refresh(f, true));
    assert_true(digest_is(f, "code\n"));
}

static void a_new_configuration_reads_all_again(void **state)
{
    struct fixture *f = *state;
    char *dirs[1] = {f->more};
    struct config other = f->cfg;
    put_agent(f, "a.soul.yaml", "a", "");
    start(f);
    assert_int_equal(mkdir(f->more, 0700), 0);
    char path[PATH_MAX];
    test_write_file(test_path(&f->dir, "more/b.soul.yaml", path), "id: b\n");
    other.agent_dirs = (struct str_list){.items = dirs, .n = 1};
    agent_registry_set_config(f->r, &other);
    assert_true(refresh(f, true));
    assert_null(find(f, "a"));
    assert_non_null(find(f, "b"));
    assert_false(refresh(f, true)); /* nothing new: nothing changes */
}

/* What is no regular file of a sane size neither hangs nor ends anything. */
static void odd_files_are_told(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    char target[PATH_MAX];
    size_t size = (size_t)1024 * 1024;
    char *big = malloc(size + 2);
    assert_non_null(big);
    put_agent(f, "good.soul.yaml", "good", "");
    assert_int_equal(mkfifo(under(f, "fifo.soul.yaml", path), 0600), 0);
    assert_int_equal(symlink("nowhere", under(f, "dangling.soul.yaml", path)), 0);
    test_write_file(test_path(&f->dir, "elsewhere", target), "id: linked\n");
    assert_int_equal(symlink(target, under(f, "linked.soul.yaml", path)), 0);
    memset(big, '#', size + 1);
    big[size + 1] = '\0';
    put(f, "over.soul.yaml", big);
    memcpy(big, "id: big\n", 8);
    big[size] = '\0';
    put(f, "limit.soul.yaml", big);
    free(big);
    start(f);
    assert_int_equal(agents_count(f->snap), 3);
    assert_non_null(find(f, "good"));
    assert_non_null(find(f, "linked"));
    assert_non_null(find(f, "big"));
    assert_problem(f, "fifo.soul.yaml", false, "not a regular file");
    assert_problem(f, "over.soul.yaml", false, "larger than");
    assert_null(state_of(f, "dangling.soul.yaml"));
    assert_int_equal(f->probs.nerrors, 2);
}

static void descriptors_are_given_back(void **state)
{
    struct fixture *f = *state;
    size_t before = test_open_fds();
    put_agent(f, "a/SOUL.yaml", "a", with_tool);
    start(f);
    refresh(f, true);
    agents_put(f->snap);
    f->snap = NULL;
    agent_registry_free(f->r);
    f->r = NULL;
    assert_int_equal(test_open_fds(), before);
}

struct reader {
    struct fixture *f;
    atomic_bool stop;
    atomic_uint bad, looks;
};

static void *read_snapshots(void *arg)
{
    struct reader *me = arg;
    uint64_t last = 0;
    while (!atomic_load(&me->stop)) {
        struct agent_snapshot *s = agents_take(me->f->r);
        const struct soul *soul = agents_find(s, STR_LIT("a"));
        uint64_t generation = agents_generation(s);
        bool good = soul != NULL && generation >= last && agents_count(s) == 1 &&
                    strcmp(agents_at(s, 0)->id, "a") == 0;
        last = generation;
        atomic_fetch_add(&me->bad, good ? 0 : 1);
        atomic_fetch_add(&me->looks, 1);
        agents_put(s);
    }
    return NULL;
}

static void readers_never_see_half_a_set(void **state)
{
    struct fixture *f = *state;
    struct reader me = {.f = f};
    pthread_t threads[2];
    char text[64];
    put_agent(f, "a.soul.yaml", "a", "description: one\n");
    start(f);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_snapshots, &me), 0);
    }
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof(text), "description: \"%d\"\n", i);
        put_agent(f, "a.soul.yaml", "a", text);
        assert_true(refresh(f, false));
    }
    while (atomic_load(&me.looks) < 10) {
        sched_yield();
    }
    atomic_store(&me.stop, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&me.bad), 0);
}

/* One round without a failure; never anything but the old or the new agent before. */
static bool start_and_refresh(struct fixture *f)
{
    struct agent_registry *r = NULL;
    struct error err;
    struct arena *a = arena_new((size_t)1024 * 1024);
    if (a == NULL) {
        return false;
    }
    struct problems probs;
    problems_init(&probs, a, NULL);
    bool ok = agent_registry_new(&f->cfg, NULL, &probs, &r, &err) == ST_OK;
    if (ok) {
        agent_registry_refresh(r, true);
        struct agent_snapshot *s = agents_take(r);
        ok = agents_count(s) == 1 && probs.nerrors == 0 &&
             state_of(&(struct fixture){.snap = s}, "SOUL.yaml")->problem == NULL;
        agents_put(s);
    }
    agent_registry_free(r);
    arena_free(a);
    return ok;
}

static void survives_failing_allocations(void **state)
{
    struct fixture *f = *state;
    size_t fds = test_open_fds();
    put_agent(f, "a/SOUL.yaml", "a", "description: one\n");
    TEST_SWEEP(start_and_refresh(f));
    assert_int_equal(test_open_fds(), fds);
}

/* An edit while memory runs out: the old agent stays until the new one is whole, and the
 * next look goes on where this one was cut short. */
static void an_edit_survives_failing_allocations(void **state)
{
    struct fixture *f = *state;
    char text[64];
    put_agent(f, "a.soul.yaml", "a", "description: first\n");
    start(f);
    bool done = false;
    for (unsigned n = 1; !done && n < 5000; n++) {
        snprintf(text, sizeof(text), "description: \"%u\"\n", n);
        put_agent(f, "a.soul.yaml", "a", text);
        mem_fail_after(n);
        done = agent_registry_refresh(f->r, false);
        mem_fail_after(0);
        agents_put(f->snap);
        f->snap = agents_take(f->r);
        assert_int_equal(agents_count(f->snap), 1);
        snprintf(text, sizeof(text), "%u", n);
        if (strcmp(find(f, "a")->description, text) != 0) {
            assert_true(agent_registry_refresh(f->r, false));
            agents_put(f->snap);
            f->snap = agents_take(f->r);
            done = false;
        }
        assert_string_equal(find(f, "a")->description, text);
    }
    assert_true(done);
}

#define REGISTRY_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REGISTRY_TEST(loads_both_layouts),
        REGISTRY_TEST(no_folder_is_no_agent),
        REGISTRY_TEST(at_start_every_problem_is_told),
        REGISTRY_TEST(a_harmless_edit_is_taken),
        REGISTRY_TEST(a_broken_edit_keeps_the_last_good_one),
        REGISTRY_TEST(growth_waits_for_a_reload),
        REGISTRY_TEST(another_id_is_another_agent),
        REGISTRY_TEST(a_new_agent_waits),
        REGISTRY_TEST(a_removed_file_removes_its_agent),
        REGISTRY_TEST(editors_tricks_are_edits),
        REGISTRY_TEST(writes_that_do_not_matter_are_passed_over),
        REGISTRY_TEST(an_edited_tool_file_waits),
        REGISTRY_TEST(a_tool_file_that_was_missing_matches_nothing),
        REGISTRY_TEST(a_new_configuration_reads_all_again),
        REGISTRY_TEST(odd_files_are_told),
        REGISTRY_TEST(descriptors_are_given_back),
        REGISTRY_TEST(readers_never_see_half_a_set),
        REGISTRY_TEST(survives_failing_allocations),
        REGISTRY_TEST(an_edit_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
