#define _GNU_SOURCE /* pipe2; strcasestr in bench.h */
/* What the gateway adds to Python: exec_run of a trivial tool until its answer (and until
 * nothing of it is left) against a bare cold `python3 -I` that reads the same function
 * from stdin and calls it with the same JSON, in turns, as a ratio of medians.
 *
 *   bench_exec BUILD_DIR [PYTHON [ROUNDS]]
 */
#include "bench.h"
#include "parity/rig.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#define TOOL "def add(a, b):\n    return {'sum': a + b}\n"
#define ARGS "{\"a\": 19, \"b\": 23}"
#define ROUNDS_MAX 2000

static char reader[] = "import sys,json\n"
                       "d=json.loads(sys.stdin.read())\n"
                       "g={}\n"
                       "exec(compile(d['src'],'add.py','exec'),g)\n"
                       "print(json.dumps(g['add'](**d['args'])))\n";
static char input[] =
    "{\"src\": \"def add(a, b):\\n    return {'sum': a + b}\\n\", \"args\": " ARGS "}";

static double bare(char *python)
{
    static char isolated[] = "-I", command[] = "-c", path[] = "PATH=/usr/bin:/bin";
    char *argv[] = {python, isolated, command, reader, NULL};
    char *env[] = {path, NULL};
    posix_spawn_file_actions_t fa;
    int in[2], out[2], status;
    char answer[256];
    ssize_t n;
    pid_t pid;
    double begin = bench_now();

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        bench_die("pipe");
    }
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    if (posix_spawn(&pid, python, &fa, NULL, argv, env) != 0) {
        bench_die("cannot start python");
    }
    posix_spawn_file_actions_destroy(&fa);
    close(in[0]);
    close(out[1]);
    if (write(in[1], input, sizeof input - 1) != (ssize_t)sizeof input - 1) {
        bench_die("write");
    }
    close(in[1]);
    size_t got = 0;
    while ((n = read(out[0], answer + got, sizeof answer - got)) > 0) {
        got += (size_t)n;
    }
    close(out[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0 || got == 0) {
        bench_die("the bare call failed");
    }
    return bench_now() - begin;
}

static double ours(struct rig *r, double *gone)
{
    struct plan p;
    struct exec_outcome o;
    rig_plan(r, &p);
    p.call.source = STR_LIT(TOOL);
    p.call.function = "add";
    p.call.args = STR_LIT(ARGS);
    p.launch.cpu_seconds = 30;
    p.launch.mem_bytes = (uint64_t)512 * 1024 * 1024;
    p.launch.open_files = 256;
    p.launch.file_bytes = (uint64_t)64 * 1024 * 1024;
    fake_plan_key(&p);
    double begin = bench_now();
    exec_run(r->exec, &p, NULL, NULL, &o);
    double took = bench_now() - begin;
    if (o.cause != EXEC_OK || !str_eq_c(buf_str(&o.text), "{\"sum\": 42}")) {
        fprintf(stderr, "%s\n", o.text.ptr);
        bench_die("our call failed");
    }
    exec_outcome_done(&o);
    if (!rig_settle(r)) {
        bench_die("not torn down");
    }
    *gone = bench_now() - begin;
    return took;
}

static void measure(const struct rig_options *opt, char *python, size_t rounds)
{
    static double b[ROUNDS_MAX], a[ROUNDS_MAX], g[ROUNDS_MAX];
    static const char *const levels[] = {"none", "restricted", "strict"};
    char name[64];
    struct rig r;
    struct error err = {.text = ""};
    if (!rig_open(&r, opt, &err)) {
        bench_die(err.text);
    }
    for (size_t i = 0; i < 5; i++) {
        (void)bare(python);
        (void)ours(&r, &g[0]);
    }
    for (size_t i = 0; i < rounds; i++) {
        b[i] = bare(python);
        a[i] = ours(&r, &g[i]);
    }
    double base = bench_median(b, rounds);
    double target = opt->isolation == ISOLATION_STRICT ? 1.45 : 1.15;
    snprintf(name, sizeof name, "exec_overhead_%s", levels[opt->isolation]);
    bench_print(name, bench_median(a, rounds) / base, target, false);
    snprintf(name, sizeof name, "exec_overhead_gone_%s", levels[opt->isolation]);
    bench_print(name, bench_median(g, rounds) / base, target, false);
    rig_close(&r);
}

int main(int argc, char **argv)
{
    static char python[] = "/usr/bin/python3";
    struct rig_options opt = {.backend = "process", .quiet = true};
    int64_t rounds = 100;
    opt.build_dir = argc > 1 ? argv[1] : getenv("SOULACY_BUILD_DIR");
    char *path = argc > 2 ? argv[2] : python;
    opt.python = path;
    if (argc > 3 && str_to_i64(str_c(argv[3]), 1, ROUNDS_MAX, &rounds) != ST_OK) {
        bench_die("rounds");
    }
    if (opt.build_dir == NULL) {
        bench_die("usage: bench_exec BUILD_DIR [PYTHON [ROUNDS]]");
    }
    for (int level = ISOLATION_NONE; level <= ISOLATION_STRICT; level++) {
        opt.isolation = (enum isolation)level;
        measure(&opt, path, (size_t)rounds);
    }
    return 0;
}
