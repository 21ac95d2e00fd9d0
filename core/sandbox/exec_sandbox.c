/* In: the arguments of `soulacy __exec-sandbox`. Out: this process turned into the given
 * command under resource limits and a small environment. A limit that cannot be set is a
 * line on stderr and no more, as documented; it never isolates anything. */
#define _GNU_SOURCE /* execvpe */
#include "sandbox/exec_sandbox.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXIT_FLAGS 2
#define EXIT_EXEC 127
#define MEGABYTE (1024u * 1024u)

static bool flag_value(const char *arg, const char *name, struct str *value)
{
    size_t n = strlen(name);

    if (strncmp(arg, name, n) != 0 || arg[n] != '=') {
        return false;
    }
    *value = str_c(arg + n + 1);
    return true;
}

static enum status number(const char *name, struct str text, int64_t max, uint64_t *out,
                          struct error *err)
{
    int64_t v = 0;

    if (str_to_i64(text, 0, max, &v) != ST_OK) {
        return error_set(err, ST_INVALID, "%s: a whole number from 0 to %lld is needed",
                         name, (long long)max);
    }
    *out = (uint64_t)v;
    return ST_OK;
}

static enum status add_env(struct str name, const char *arg,
                           struct exec_sandbox_args *out, struct error *err)
{
    if (name.len == 0 || str_find_char(name, '=') != SIZE_MAX) {
        return error_set(err, ST_INVALID, "--env: a name is needed");
    }
    if (out->nenv == EXEC_SANDBOX_MAX_ENV) {
        return error_set(err, ST_TOO_LARGE, "--env: more than %d names",
                         EXEC_SANDBOX_MAX_ENV);
    }
    out->env[out->nenv++] = arg;
    return ST_OK;
}

static enum status parse_flag(const char *arg, struct exec_sandbox_args *out,
                              struct error *err)
{
    const int64_t most = INT64_MAX / MEGABYTE;
    struct str v;

    if (flag_value(arg, "--cpu", &v)) {
        return number("--cpu", v, INT32_MAX, &out->cpu_seconds, err);
    }
    if (flag_value(arg, "--mem", &v)) {
        return number("--mem", v, most, &out->mem_mb, err);
    }
    if (flag_value(arg, "--nofile", &v)) {
        return number("--nofile", v, INT32_MAX, &out->nofile, err);
    }
    if (flag_value(arg, "--fsize", &v)) {
        return number("--fsize", v, most, &out->fsize_mb, err);
    }
    if (flag_value(arg, "--env", &v)) {
        return add_env(v, v.ptr, out, err);
    }
    return error_set(err, ST_INVALID, "unknown flag %s", arg);
}

enum status exec_sandbox_parse(int argc, char **argv, struct exec_sandbox_args *out,
                               struct error *err)
{
    struct exec_sandbox_args args;

    memset(&args, 0, sizeof(args));
    for (int i = 0; i < argc; i++) {
        enum status st;

        if (strcmp(argv[i], "--") == 0) {
            if (i + 1 >= argc) {
                break;
            }
            args.command = argv + i + 1;
            *out = args;
            return ST_OK;
        }
        st = parse_flag(argv[i], &args, err);
        if (st != ST_OK) {
            return st;
        }
    }
    return error_set(err, ST_INVALID, "no command after --");
}

static void set_limit(const char *name, __rlimit_resource_t resource, uint64_t soft,
                      uint64_t hard)
{
    struct rlimit lim = {(rlim_t)soft, (rlim_t)hard};

    if (soft != 0 && setrlimit(resource, &lim) != 0) {
        (void)fprintf(stderr, "soulacy: warning: sandbox limit %s not applied: %s\n",
                      name,
                      strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    }
}

static bool name_is(const char *pair, const char *name)
{
    size_t n = strlen(name);

    return strncmp(pair, name, n) == 0 && pair[n] == '=';
}

static bool is_kept(const char *pair, const struct exec_sandbox_args *a)
{
    static const char *const base[] = {"PATH", "HOME", "LANG", "TMPDIR"};

    for (size_t i = 0; i < sizeof(base) / sizeof(base[0]); i++) {
        if (name_is(pair, base[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < a->nenv; i++) {
        if (name_is(pair, a->env[i])) {
            return true;
        }
    }
    return false;
}

int exec_sandbox_main(int argc, char **argv, char **envp)
{
    struct exec_sandbox_args a = {0};
    struct error err;
    size_t kept = 0;

    if (exec_sandbox_parse(argc, argv, &a, &err) != ST_OK) {
        (void)fprintf(stderr, "soulacy __exec-sandbox: %s\n", err.text);
        return EXIT_FLAGS;
    }
    /* Moved together in place: the array is this process's own. */
    for (size_t i = 0; envp[i] != NULL; i++) {
        if (is_kept(envp[i], &a)) {
            envp[kept++] = envp[i];
        }
    }
    envp[kept] = NULL;
    set_limit("cpu", RLIMIT_CPU, a.cpu_seconds, a.cpu_seconds + 1);
    set_limit("mem", RLIMIT_AS, a.mem_mb * MEGABYTE, a.mem_mb * MEGABYTE);
    set_limit("fsize", RLIMIT_FSIZE, a.fsize_mb * MEGABYTE, a.fsize_mb * MEGABYTE);
    set_limit("nofile", RLIMIT_NOFILE, a.nofile, a.nofile);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the parser set it */
    (void)execvpe(a.command[0], a.command, envp);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    (void)fprintf(stderr, "soulacy __exec-sandbox: %s: %s\n", a.command[0],
                  strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    return EXIT_EXEC;
}
