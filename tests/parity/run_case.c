/* run_case --build DIR [--backend NAME] [--isolation LEVEL] [--python PATH] [--json no]
 *          [--set KEY=VALUE]... FILE...
 *
 * Comes in: case files, Python tools whose first lines ("#: ") are one JSON object with
 * the call and what must come of it. Goes out: a line for each, exit status 1 when one
 * differs. The same files are run on every executor and must give the same bytes. */
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "parity/rig.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1024 * 1024)
#define ARGS_MAX ((size_t)96 * 1024 * 1024)
#define LOG_CAP ((size_t)4 * 1024 * 1024)

struct one {
    const char *name;
    struct buf source, head, args, log;
    cJSON *spec;
    struct plan plan;
    const char *env[8];
    struct event cancel;
    int64_t cancel_on_log; /* fire cancel at the first log text */
    bool failed;
};

static void complain(struct one *c, const char *what, const char *want, struct str got)
{
    c->failed = true;
    printf("not ok %s: %s\n    want: %s\n    got:  %.*s\n", c->name, what, want,
           (int)(got.len < 4000 ? got.len : 4000), got.ptr != NULL ? got.ptr : "");
}

static void on_log(void *ctx, struct str text)
{
    struct one *c = ctx;
    if (text.len > 4096) {
        c->failed = true;
    }
    buf_add_str(&c->log, text);
    if (c->cancel_on_log != 0) {
        event_fire(&c->cancel);
    }
}

/* The "#: " lines without that mark. */
static bool read_head(struct one *c)
{
    struct str left = buf_str(&c->source);
    struct str line;
    struct error err;
    while (str_split(&left, '\n', &line) && str_starts(line, STR_LIT("#:"))) {
        buf_add(&c->head, line.ptr + 2, line.len - 2);
        buf_add_char(&c->head, '\n');
    }
    if (json_parse(buf_str(&c->head), &c->spec, &err) != ST_OK) {
        complain(c, err.text, "a JSON object in #: lines", buf_str(&c->head));
        return false;
    }
    return true;
}

static int64_t number(const struct one *c, const char *key, int64_t fallback)
{
    int64_t v = fallback;
    return json_get_i64(c->spec, key, &v) ? v : fallback;
}

static void take_limit(const struct one *c, const char *key, uint64_t unit, uint64_t *out)
{
    int64_t v = number(c, key, -1);
    if (v >= 0) {
        *out = (uint64_t)v * unit;
    }
}

static void fill_args(struct one *c)
{
    struct str raw;
    int64_t fill = number(c, "args_fill", 0);
    if (fill > 0) {
        buf_add_c(&c->args, "{\"data\":\"");
        char *room = buf_room(&c->args, (size_t)fill);
        if (room != NULL) {
            memset(room, 'x', (size_t)fill);
            c->args.len += (size_t)fill;
        }
        buf_add_c(&c->args, "\"}");
    } else if (json_raw_member(buf_str(&c->head), "args", &raw) == ST_OK) {
        buf_add_str(&c->args, raw);
    } else {
        buf_add_c(&c->args, "{}");
    }
    c->plan.call.args = buf_str(&c->args);
}

static void fill_env(struct one *c)
{
    const cJSON *list = json_get(c->spec, "env");
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list)
    {
        if (c->plan.call.nenv < sizeof c->env / sizeof c->env[0]) {
            c->env[c->plan.call.nenv++] = item->valuestring;
        }
    }
    c->plan.call.env = c->env;
}

static void fill_plan(struct one *c, const struct rig *r)
{
    struct str s;
    struct launch_spec *l = &c->plan.launch;
    rig_plan(r, &c->plan);
    take_limit(c, "cpu", 1, &l->cpu_seconds);
    take_limit(c, "mem_mb", (uint64_t)1024 * 1024, &l->mem_bytes);
    take_limit(c, "nofile", 1, &l->open_files);
    take_limit(c, "fsize_mb", (uint64_t)1024 * 1024, &l->file_bytes);
    take_limit(c, "nproc", 1, &l->processes);
    c->plan.call.source = buf_str(&c->source);
    c->plan.call.timeout_ms = number(c, "timeout_ms", 20000);
    c->plan.call.retries = (uint32_t)number(c, "retries", 0);
    c->plan.call.retry_backoff_ms = number(c, "backoff_ms", 0);
    c->plan.call.max_output_bytes = (size_t)number(c, "max_output", 262144);
    if (json_get_str(c->spec, "function", &s)) {
        c->plan.call.function = s.ptr; /* cJSON strings end in NUL */
    }
    if (json_get_str(c->spec, "file", &s)) {
        c->plan.call.filename = s.ptr;
    }
    fill_args(c);
    fill_env(c);
    c->cancel_on_log = number(c, "cancel_on_log", 0);
    fake_plan_key(&c->plan);
}

static void check_text(struct one *c, const char *key, struct str got)
{
    char name[64];
    struct str want;
    if (json_get_str(c->spec, key, &want) && !str_eq(want, got)) {
        complain(c, key, want.ptr, got);
    }
    (void)snprintf(name, sizeof name, "%s_has", key);
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, json_get(c->spec, name))
    {
        if (str_find(got, str_c(item->valuestring)) == SIZE_MAX) {
            complain(c, name, item->valuestring, got);
        }
    }
    (void)snprintf(name, sizeof name, "%s_not", key);
    cJSON_ArrayForEach(item, json_get(c->spec, name))
    {
        if (str_find(got, str_c(item->valuestring)) != SIZE_MAX) {
            complain(c, name, item->valuestring, got);
        }
    }
    (void)snprintf(name, sizeof name, "%s_len", key);
    int64_t len = number(c, name, -1);
    if (len >= 0 && (size_t)len != got.len) {
        complain(c, name, cJSON_Print(json_get(c->spec, name)), str_n(got.ptr, 100));
    }
}

static void check_outcome(struct one *c, const struct exec_outcome *o, int64_t took_ms)
{
    struct str want;
    if (!json_get_str(c->spec, "cause", &want)) {
        want = STR_LIT("ok");
    }
    /* More than one word where Python versions differ. */
    if (str_find(want, str_c(exec_cause_name(o->cause))) == SIZE_MAX) {
        complain(c, exec_cause_name(o->cause), want.ptr, buf_str(&o->text));
    }
    if (o->detail != (int)number(c, "detail", o->detail)) {
        printf("    detail is %d\n", o->detail);
        c->failed = true;
    }
    if (o->attempts != (uint32_t)number(c, "attempts", (int64_t)o->attempts)) {
        printf("    attempts: %u\n", o->attempts);
        c->failed = true;
    }
    check_text(c, "text", buf_str(&o->text));
    check_text(c, "log", buf_str(&c->log));
    if (took_ms > number(c, "max_ms", 20000)) {
        printf("    took %lld ms\n", (long long)took_ms);
        c->failed = true;
    }
}

static bool skipped(const struct one *c, const struct rig *r)
{
    struct str want;
    static const char *const levels[] = {"none", "restricted", "strict"};
    if (r->opt.no_json && json_get_str(c->spec, "needs", &want)) {
        return true;
    }
    if (json_get_str(c->spec, "backends", &want) &&
        str_find(want, str_c(r->opt.backend)) == SIZE_MAX) {
        return true;
    }
    if (json_get_str(c->spec, "only", &want)) {
        return str_find(want, str_c(levels[r->opt.isolation])) == SIZE_MAX;
    }
    return false;
}

static void run_one(struct one *c, struct rig *r)
{
    struct exec_outcome o;
    const struct exec_events events = {.ctx = c, .log = on_log};
    int64_t began = clock_mono_ms();
    fill_plan(c, r);
    exec_run(r->exec, &c->plan, &c->cancel, &events, &o);
    check_outcome(c, &o, clock_mono_ms() - began);
    exec_outcome_done(&o);
    if (!rig_settle(r)) {
        complain(c, "teardown", "within 5 s", STR_NONE);
    }
    if (rig_leftovers(r) != 0) {
        complain(c, "left behind", "no process", STR_NONE);
    }
}

static bool run_file(const char *path, struct rig *r)
{
    struct one c = {.name = path};
    struct error err;
    buf_init(&c.source, FILE_MAX);
    buf_init(&c.head, FILE_MAX);
    buf_init(&c.args, ARGS_MAX);
    buf_init(&c.log, LOG_CAP);
    const char *slash = strrchr(path, '/');
    c.name = slash != NULL ? slash + 1 : path;
    c.cancel.fd = -1;
    if (io_read_file(path, FILE_MAX, &c.source, &err) != ST_OK ||
        event_init(&c.cancel, &err) != ST_OK) {
        complain(&c, "cannot be read", "a file", str_c(err.text));
    } else if (read_head(&c)) {
        if (skipped(&c, r)) {
            printf("skip %s\n", c.name);
        } else {
            run_one(&c, r);
        }
    }
    if (!c.failed) {
        printf("ok %s\n", c.name);
    }
    (void)fflush(stdout);
    event_done(&c.cancel);
    cJSON_Delete(c.spec);
    buf_done(&c.source);
    buf_done(&c.head);
    buf_done(&c.args);
    buf_done(&c.log);
    return !c.failed;
}

static size_t open_fds(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n;
}

static enum isolation level_of(const char *name)
{
    if (strcmp(name, "strict") == 0) {
        return ISOLATION_STRICT;
    }
    return strcmp(name, "restricted") == 0 ? ISOLATION_RESTRICTED : ISOLATION_NONE;
}

int main(int argc, char **argv)
{
    struct rig_options opt = {.build_dir = getenv("SOULACY_BUILD_DIR"),
                              .backend = "process",
                              .python = "/usr/bin/python3",
                              .quiet = true};
    struct rig r;
    struct error err = {.text = ""};
    const char *settings[16];
    int i = 1;
    opt.settings = settings;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--json") == 0) {
            opt.no_json = strcmp(argv[i + 1], "no") == 0;
        } else if (strcmp(argv[i], "--build") == 0) {
            opt.build_dir = argv[i + 1];
        } else if (strcmp(argv[i], "--backend") == 0) {
            opt.backend = argv[i + 1];
        } else if (strcmp(argv[i], "--python") == 0) {
            opt.python = argv[i + 1];
        } else if (strcmp(argv[i], "--set") == 0 && opt.nsettings < 16) {
            settings[opt.nsettings++] = argv[i + 1];
        } else if (strcmp(argv[i], "--isolation") == 0) {
            opt.isolation = level_of(argv[i + 1]);
        }
    }
    if (opt.build_dir == NULL || i >= argc) {
        fputs("usage: run_case --build DIR [--backend B] [--isolation L] [--json no] "
              "[--set KEY=VALUE]... FILE...\n",
              stderr);
        return 2;
    }
    if (!rig_open(&r, &opt, &err)) {
        fprintf(stderr, "rig: %s\n", err.text);
        return 2;
    }
    size_t fds = open_fds();
    int bad = 0;
    int files = argc - i;
    for (; i < argc; i++) {
        bad += run_file(argv[i], &r) ? 0 : 1;
    }
    /* Stock is no leftover: let it go first. */
    launches_retire_all(r.launches);
    int64_t by_ms = clock_mono_ms() + 20000;
    size_t fds_after = open_fds();
    while (fds_after > fds && clock_mono_ms() < by_ms) {
        (void)poll(NULL, 0, 10);
        fds_after = open_fds();
    }
    if (fds_after != fds) {
        printf("not ok: %zu descriptors before, %zu after\n", fds, fds_after);
        bad++;
    }
    rig_close(&r);
    printf("%d cases, %d bad\n", files, bad);
    return bad == 0 ? 0 : 1;
}
