/* drive --build DIR --backend NAME [--isolation LEVEL] [--set KEY=VALUE]...
 *
 * The parts behind the gate on a line protocol, so that a script can break the backend
 * while calls run. Comes in, a line each:
 *   run ID TIMEOUT_MS FILE [MEM_MB [CPU_S [NPROC]]]   start a call of tool() in FILE
 *   cancel ID | settle | retire | health | check | quit
 * Goes out: "log ID TEXT", "started ID LAYERS", "end ID CAUSE STOCK START_MS RUN_MS TEXT",
 * "settled MS", "retired", "health STATE TEXT", "check STATUS TEXT"; text is escaped. */
#include "base/clock.h"
#include "base/mem.h"
#include "parity/rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 64

struct call {
    struct rig *rig;
    char id[32];
    struct buf source;
    struct plan plan;
    struct event cancel;
    pthread_t thread;
    bool used;
};

static void say(const char *head, struct str text)
{
    flockfile(stdout);
    (void)fputs(head, stdout);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '\n') {
            (void)fputs("\\n", stdout);
        } else if (c >= 0x20) {
            (void)putc(c, stdout);
        }
    }
    (void)putc('\n', stdout);
    (void)fflush(stdout);
    funlockfile(stdout);
}

static void on_log(void *ctx, struct str text)
{
    const struct call *c = ctx;
    char head[64];
    (void)snprintf(head, sizeof head, "log %s ", c->id);
    say(head, text);
}

static void on_started(void *ctx, const char *layers)
{
    const struct call *c = ctx;
    char head[64];
    (void)snprintf(head, sizeof head, "started %s ", c->id);
    say(head, str_c(layers));
}

static void *run_call(void *arg)
{
    struct call *c = arg;
    struct exec_outcome o;
    char head[128];
    const struct exec_events events = {.ctx = c, .log = on_log, .started = on_started};
    exec_run(c->rig->exec, &c->plan, &c->cancel, &events, &o);
    (void)snprintf(head, sizeof head, "end %s %s %d %lld %lld ", c->id,
                   exec_cause_name(o.cause), o.from_stock ? 1 : 0, (long long)o.start_ms,
                   (long long)o.run_ms);
    struct str text = buf_str(&o.text);
    say(head, str_n(text.ptr, text.len < 2000 ? text.len : 2000));
    exec_outcome_done(&o);
    return NULL;
}

static int64_t word_number(struct str *line, int64_t fallback)
{
    struct str word;
    int64_t v = fallback;
    if (!str_split(line, ' ', &word) || str_to_i64(word, 0, INT64_MAX, &v) != ST_OK) {
        return fallback;
    }
    return v;
}

static void start_call(struct rig *r, struct call *c, struct str line)
{
    struct str id;
    struct str file;
    struct error err;
    char path[4096];
    if (!str_split(&line, ' ', &id)) {
        return;
    }
    int64_t timeout_ms = word_number(&line, 20000);
    (void)str_split(&line, ' ', &file);
    (void)snprintf(c->id, sizeof c->id, "%.*s", STR_ARG(id));
    (void)snprintf(path, sizeof path, "%.*s", STR_ARG(file));
    c->rig = r;
    buf_init(&c->source, (size_t)1024 * 1024);
    if (event_init(&c->cancel, &err) != ST_OK ||
        io_read_file(path, (size_t)1024 * 1024, &c->source, &err) != ST_OK) {
        say("error ", str_c(err.text));
        return;
    }
    rig_plan(r, &c->plan);
    c->plan.launch.mem_bytes = (uint64_t)word_number(&line, 512) * 1024 * 1024;
    c->plan.launch.cpu_seconds = (uint64_t)word_number(&line, 30);
    c->plan.launch.open_files = 256;
    c->plan.launch.file_bytes = (uint64_t)64 * 1024 * 1024;
    int64_t nproc = word_number(&line, 0);
    if (nproc > 0) {
        c->plan.launch.processes = (uint64_t)nproc;
    }
    c->plan.call.source = buf_str(&c->source);
    c->plan.call.timeout_ms = timeout_ms;
    fake_plan_key(&c->plan);
    c->used = pthread_create(&c->thread, NULL, run_call, c) == 0;
}

/* Of calls that have ended, or are being cancelled. */
static void free_calls(struct call *calls, size_t *n)
{
    for (size_t i = 0; i < *n; i++) {
        if (calls[i].used) {
            (void)pthread_join(calls[i].thread, NULL);
        }
        event_done(&calls[i].cancel);
        buf_done(&calls[i].source);
        calls[i].used = false;
    }
    *n = 0;
}

static void settle(struct rig *r, struct call *calls, size_t *n)
{
    char head[64];
    int64_t began = clock_mono_ms();
    bool gone = false;
    while (!gone && clock_mono_ms() - began < 60000) {
        gone = rig_settle(r);
    }
    (void)snprintf(head, sizeof head, "settled %lld",
                   gone ? (long long)(clock_mono_ms() - began) : -1LL);
    if (gone) {
        free_calls(calls, n);
    }
    say(head, STR_NONE);
}

static void check(struct rig *r, struct plugin_instance *p)
{
    struct buf out;
    struct error err = {.text = ""};
    char head[64];
    (void)r;
    buf_init(&out, (size_t)64 * 1024);
    enum status st = plugin_executor_check(p, clock_mono_ms() + 10000, &out, &err);
    (void)snprintf(head, sizeof head, "check %s ", status_name(st));
    say(head, st == ST_OK ? buf_str(&out) : str_c(err.text));
    buf_done(&out);
}

static bool command(struct rig *r, struct call *calls, size_t *n, struct str line)
{
    struct plugin_instance *p = plugin_at(r->plugins, 0);
    struct str verb;
    if (!str_split(&line, ' ', &verb) || str_eq_c(verb, "quit")) {
        return false;
    }
    if (str_eq_c(verb, "run") && *n < CALLS) {
        start_call(r, &calls[(*n)++], line);
    } else if (str_eq_c(verb, "cancel")) {
        for (size_t i = 0; i < *n; i++) {
            if (str_eq_c(line, calls[i].id)) {
                event_fire(&calls[i].cancel);
            }
        }
    } else if (str_eq_c(verb, "settle")) {
        settle(r, calls, n);
    } else if (str_eq_c(verb, "retire")) {
        launches_retire_all(r->launches);
        say("retired", STR_NONE);
    } else if (str_eq_c(verb, "health")) {
        char text[256] = "";
        char head[32];
        (void)snprintf(head, sizeof head, "health %d ", plugin_health(p, text));
        say(head, str_c(text));
    } else if (str_eq_c(verb, "check")) {
        check(r, p);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct call calls[CALLS];
    const char *settings[16];
    struct rig_options opt = {.backend = "docker",
                              .python = "/usr/bin/python3",
                              .quiet = true,
                              .settings = settings};
    struct rig r;
    struct error err = {.text = ""};
    char line[8192];
    size_t n = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--build") == 0) {
            opt.build_dir = argv[i + 1];
        } else if (strcmp(argv[i], "--backend") == 0) {
            opt.backend = argv[i + 1];
        } else if (strcmp(argv[i], "--set") == 0 && opt.nsettings < 16) {
            settings[opt.nsettings++] = argv[i + 1];
        } else if (strcmp(argv[i], "--isolation") == 0) {
            opt.isolation = strcmp(argv[i + 1], "strict") == 0 ? ISOLATION_STRICT
                                                               : ISOLATION_RESTRICTED;
        }
    }
    if (opt.build_dir == NULL || !rig_open(&r, &opt, &err)) {
        say("refused ", str_c(err.text));
        return 2;
    }
    say("ready", STR_NONE);
    bool go_on = true;
    while (go_on && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        go_on = command(&r, calls, &n, str_c(line));
    }
    for (size_t i = 0; i < n; i++) {
        event_fire(&calls[i].cancel);
    }
    free_calls(calls, &n);
    rig_close(&r);
    say("closed", STR_NONE);
    return 0;
}
