/* In: the helper's path (argv[1], or SOULACY_BUILD_DIR). Out: one JSON line per figure:
 * the median time from asking for a child to knowing its end, as a ratio to posix_spawn
 * and waitpid of the same program in a small process, measured in turns; once with the
 * memory this program has, once with 200 MB resident. Of several batches the best counts:
 * what else runs on the machine only ever makes it worse. Exit 1 when a target is missed. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "sandbox/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCHES 7
#define ROUNDS 61
#define WARM_UP 5
#define BIG_BYTES (200u * 1024 * 1024)

static const char tiny[] = "/bin/true";

static int64_t plain_us(void)
{
    char name[] = "/bin/true";
    char *argv[] = {name, NULL};
    char *env[] = {NULL};
    int64_t begin = clock_mono_us();
    pid_t pid;
    int status;

    if (posix_spawn(&pid, tiny, NULL, NULL, argv, env) != 0 ||
        waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return clock_mono_us() - begin;
}

/* The small process: one byte in, one measurement out. */
static int serve_baseline(void)
{
    char byte;

    while (io_read(0, &byte, 1) == 1) {
        int64_t us = plain_us();

        if (write(1, &us, sizeof(us)) != (ssize_t)sizeof(us)) {
            return 1;
        }
    }
    return 0;
}

struct baseline {
    int ask, answer;
    pid_t pid;
};

static bool baseline_open(const char *self, struct baseline *b)
{
    char arg0[] = "bench", arg1[] = "--baseline";
    char *argv[] = {arg0, arg1, NULL};
    char *env[] = {NULL};
    posix_spawn_file_actions_t fa;
    int in = -1, out = -1;
    bool ok;

    if (io_pipe(&in, &b->ask, NULL) != ST_OK ||
        io_pipe(&b->answer, &out, NULL) != ST_OK ||
        posix_spawn_file_actions_init(&fa) != 0) {
        return false;
    }
    ok = posix_spawn_file_actions_adddup2(&fa, in, 0) == 0 &&
         posix_spawn_file_actions_adddup2(&fa, out, 1) == 0 &&
         posix_spawn(&b->pid, self, &fa, NULL, argv, env) == 0;
    posix_spawn_file_actions_destroy(&fa);
    io_close(&in);
    io_close(&out);
    return ok;
}

static int64_t baseline_us(const struct baseline *b)
{
    int64_t us = -1;

    if (write(b->ask, "x", 1) != 1 || io_read(b->answer, &us, sizeof(us)) != sizeof(us)) {
        return -1;
    }
    return us;
}

static int64_t ours_us(struct spawn *s, enum isolation level)
{
    const char *argv[] = {tiny};
    bool drop = level != ISOLATION_NONE && geteuid() == 0;
    struct spawn_plan p = {.argv = argv,
                           .nargv = 1,
                           .isolation = level,
                           .uid = drop ? 65534 : SPAWN_KEEP_ID,
                           .gid = drop ? 65534 : SPAWN_KEEP_ID,
                           .cpu_seconds = 30,
                           .mem_bytes = 512u << 20,
                           .open_files = 256,
                           .file_bytes = 64u << 20,
                           .processes = SPAWN_NO_LIMIT,
                           .deadline_ms = clock_mono_ms() + 10000};
    int64_t begin = clock_mono_us();
    struct child *c = NULL;
    struct spawn_exit end;
    int64_t us;

    if (spawn_child(s, &p, &c, NULL) != ST_OK ||
        io_wait(child_exit_fd(c), POLLIN, -1, p.deadline_ms) != ST_OK) {
        return -1;
    }
    us = clock_mono_us() - begin;
    if (child_reap(c, p.deadline_ms, &end) != ST_OK || end.exit_code != 0) {
        (void)fprintf(stderr, "bench_spawn: %s\n", end.setup);
        return -1;
    }
    return us;
}

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

struct sums {
    int64_t base[ROUNDS], ours[ROUNDS];
};

/* The median of ours over that of the baseline; negative when something failed. */
static double measure(struct spawn *s, const struct baseline *b, enum isolation level)
{
    static struct sums m;

    for (int i = -WARM_UP; i < ROUNDS; i++) {
        int at = i < 0 ? 0 : i;

        m.base[at] = baseline_us(b);
        m.ours[at] = ours_us(s, level);
        if (m.base[at] < 0 || m.ours[at] < 0) {
            return -1;
        }
    }
    qsort(m.base, ROUNDS, sizeof(int64_t), by_value);
    qsort(m.ours, ROUNDS, sizeof(int64_t), by_value);
    return (double)m.ours[ROUNDS / 2] / (double)m.base[ROUNDS / 2];
}

enum figure { SMALL, BIG, RESTRICTED, STRICT, FIGURES };

/* One batch of each. big becomes resident and goes again. False: something failed. */
static bool batch(struct spawn *s, const struct baseline *b, char *big,
                  double best[FIGURES])
{
    double now[FIGURES];

    now[SMALL] = measure(s, b, ISOLATION_NONE);
    memset(big, 1, BIG_BYTES);
    now[BIG] = measure(s, b, ISOLATION_NONE);
    if (madvise(big, BIG_BYTES, MADV_DONTNEED) != 0) {
        return false;
    }
    now[RESTRICTED] = measure(s, b, ISOLATION_RESTRICTED);
    now[STRICT] = measure(s, b, ISOLATION_STRICT);
    for (int i = 0; i < FIGURES; i++) {
        if (now[i] < 0) {
            return false;
        }
        best[i] = now[i] < best[i] ? now[i] : best[i];
    }
    return true;
}

/* target 0: only told. */
static bool tell(const char *name, double value, double target)
{
    bool ok = target <= 0 || value <= target;

    (void)printf("{\"name\":\"%s\",\"value\":%.3f,\"target\":", name, value);
    if (target > 0) {
        (void)printf("%.3f", target);
    } else {
        (void)printf("null");
    }
    (void)printf(",\"ok\":%s}\n", ok ? "true" : "false");
    return ok;
}

int main(int argc, char **argv)
{
    struct baseline b;
    struct spawn *s = NULL;
    struct error err;
    char helper[4096];
    const char *build = getenv("SOULACY_BUILD_DIR");
    double best[FIGURES] = {1e9, 1e9, 1e9, 1e9};
    bool ok;
    char *big;

    if (argc > 1 && strcmp(argv[1], "--baseline") == 0) {
        return serve_baseline();
    }
    (void)snprintf(helper, sizeof(helper), "%s/libexec/soulacy/soulacy-spawn",
                   build != NULL ? build : ".");
    if (spawn_open(argc > 1 ? argv[1] : helper, NULL, &s, &err) != ST_OK) {
        (void)fprintf(stderr, "bench_spawn: %s\n", err.text);
        return 2;
    }
    big =
        mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (big == MAP_FAILED || !baseline_open("/proc/self/exe", &b)) {
        return 2;
    }
    for (int i = 0; i < BATCHES; i++) {
        if (!batch(s, &b, big, best)) {
            return 2;
        }
    }
    ok = tell("spawn_path", best[SMALL], 1.4);
    ok = tell("spawn_path_200mb", best[BIG], best[SMALL] * 1.05) && ok;
    (void)tell("spawn_path_restricted", best[RESTRICTED], 0);
    (void)tell("spawn_path_strict", best[STRICT], 0);
    spawn_close(s);
    io_close(&b.ask);
    io_close(&b.answer);
    (void)waitpid(b.pid, NULL, 0);
    return ok ? 0 : 1;
}
