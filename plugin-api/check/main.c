#define _GNU_SOURCE /* realpath, mkstemp */
/* soulacy-plugin-check: loads a plugin as the gateway does and holds it to the ABI.
 * In: a shared object and perhaps a config.yaml. Out: one line for each rule broken, and
 * exit status 0 (none), 1 (some), 2 (wrong usage). It opens no socket and runs nothing. */
#include "check.h"

#include "base/cond.h"

#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIVES 100
#define FAULT_STEPS 24

void check_fail(struct check *c, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    c->failures++;
    if (strcmp(line, c->last_line) != 0) {
        (void)printf("FAIL %s\n", line);
        (void)fflush(stdout);
    }
    memcpy(c->last_line, line, sizeof line);
}

/* Run one part and print ok when it added no failure. */
static void step(struct check *c, const char *name, void (*part)(struct check *c))
{
    size_t before = c->failures;
    part(c);
    if (c->failures == before) {
        (void)printf("ok   %s\n", name);
    } else {
        (void)printf("FAIL %s: %zu times\n", name, c->failures - before);
    }
    (void)fflush(stdout);
}

static void one_life(struct check *c)
{
    (void)check_cycle(c, false);
}

static void many_lives(struct check *c)
{
    size_t before = c->failures;
    for (int i = 1; i < LIVES && c->failures == before; i++) {
        (void)check_cycle(c, true);
    }
}

/* Each k-th upcall fails, from every one to one in FAULT_STEPS. */
static void failing_core(struct check *c)
{
    size_t before = c->failures;
    for (uint64_t k = 1; k <= FAULT_STEPS && c->failures == before; k++) {
        c->fail_every = k;
        c->upcalls = 0;
        (void)check_cycle(c, true);
    }
    c->fail_every = 0;
}

static void locale_is_untouched(struct check *c)
{
    const char *now = setlocale(LC_ALL, NULL);
    if (now == NULL || strcmp(now, "C") != 0) {
        check_fail(c, "changed the locale");
    }
}

static int run(struct check *c)
{
    step(c, "exports its entry and nothing else", check_symbols);
    step(c, "loads, starts, works, stops", one_life);
    if (c->failures > 0) {
        (void)printf("the rest is left out\n");
        return 1;
    }
    step(c, "lives 100 times and leaves nothing", many_lives);
    step(c, "bears a core whose calls fail", failing_core);
    step(c, "leaves the process as it was", locale_is_untouched);
    return c->failures == 0 ? 0 : 1;
}

static enum status load_config(const char *path, struct config **out, struct error *err)
{
    /* The gateway's own paths do not matter here, but have to be found. */
    static const char *const pairs[] = {"HOME=/nonexistent", NULL};
    struct config_env *env = NULL;
    struct problems probs;
    struct buf b;
    struct arena *a = arena_new((size_t)4 * 1024 * 1024);
    if (a == NULL || config_env_new(pairs, &env) != ST_OK) {
        arena_free(a);
        return error_set(err, ST_NOMEM, "out of memory");
    }
    problems_init(&probs, a, path);
    enum status st = config_load(path, env, &probs, out, err);
    buf_init(&b, (size_t)1024 * 1024);
    problems_print(&probs, &b);
    (void)fprintf(stderr, "%.*s", STR_ARG(buf_str(&b)));
    buf_done(&b);
    config_env_free(env);
    arena_free(a);
    return st;
}

/* A file of our own for the core's log. */
static enum status open_log(char *path, struct log **out, struct error *err)
{
    int fd = mkstemp(path);
    if (fd < 0) {
        return error_set(err, ST_IO, "cannot make %s", path);
    }
    (void)close(fd);
    return log_open(LOG_WARN, LOG_CONSOLE, path, out, err);
}

int main(int argc, char **argv)
{
    static struct check c;
    static char full[4096];
    char log_path[] = "/tmp/soulacy-plugin-check-XXXXXX";
    struct config *cfg = NULL;
    struct error err = {.status = ST_OK};
    int res = 2;
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        (void)fprintf(stderr, "usage: soulacy-plugin-check PLUGIN.so [CONFIG.yaml]\n");
        return 2;
    }
    if (realpath(argv[1], full) == NULL) {
        (void)fprintf(stderr, "soulacy-plugin-check: %s: no such file\n", argv[1]);
        return 2;
    }
    c.plugin_path = full;
    c.log_path = log_path;
    (void)signal(SIGPIPE, SIG_IGN); /* as the gateway does */
    if (load_config(argc == 3 ? argv[2] : NULL, &cfg, &err) != ST_OK ||
        open_log(log_path, &c.log, &err) != ST_OK ||
        pthread_mutex_init(&c.lock, NULL) != 0 || cond_init(&c.changed) != ST_OK) {
        (void)fprintf(stderr, "soulacy-plugin-check: %s\n", err.text);
    } else {
        c.cfg = cfg;
        loan_watch();
        res = run(&c);
    }
    log_close(c.log);
    (void)unlink(log_path);
    config_free(cfg);
    return res;
}
