/* In: a test program's tests. Out: its exit status. See kit.h. */
#define _GNU_SOURCE /* setgroups, mkdtemp */
#include "kit.h"

#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

extern char **environ;

static bool copy_file(const char *from, const char *to, mode_t mode)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char text[65536];
    ssize_t n = -1;
    bool ok = in >= 0 && out >= 0;

    while (ok && (n = read(in, text, sizeof(text))) > 0) {
        ok = write(out, text, (size_t)n) == n;
    }
    ok = ok && n == 0 && fchmod(out, mode) == 0;
    io_close(&in);
    io_close(&out);
    return ok;
}

static bool kit_make(struct kit *k)
{
    const char *build = getenv("SOULACY_BUILD_DIR");
    char from[4096];

    (void)snprintf(k->dir, sizeof(k->dir), "/tmp/soulacy-kit-XXXXXX");
    if (build == NULL || mkdtemp(k->dir) == NULL || chmod(k->dir, 0755) != 0) {
        return false;
    }
    (void)snprintf(k->helper, sizeof(k->helper), "%s/soulacy-spawn", k->dir);
    (void)snprintf(k->payload, sizeof(k->payload), "%s/payload", k->dir);
    (void)snprintf(k->work, sizeof(k->work), "%s/work", k->dir);
    (void)snprintf(k->secret, sizeof(k->secret), "%s/secret", k->dir);
    (void)snprintf(from, sizeof(from), "%s/libexec/soulacy/soulacy-spawn", build);
    if (!copy_file(from, k->helper, 0755)) {
        return false;
    }
    (void)snprintf(from, sizeof(from), "%s/tests/sandbox_payload", build);
    return copy_file(from, k->payload, 0755) && copy_file("/dev/null", k->secret, 0666) &&
           io_write_file(k->secret, str_c("secret\n"), 0666, NULL) == ST_OK &&
           chmod(k->secret, 0666) == 0 && mkdir(k->work, 0700) == 0 &&
           chmod(k->work, 01777) == 0;
}

static void kit_remove(const struct kit *k)
{
    (void)unlink(k->helper);
    (void)unlink(k->payload);
    (void)unlink(k->secret);
    (void)rmdir(k->work);
    (void)rmdir(k->dir);
}

static int open_spawn(void **state)
{
    struct kit *k = *state;
    struct error err;

    if (spawn_open(k->helper, NULL, &k->spawn, &err) != ST_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static int close_spawn(void **state)
{
    struct kit *k = *state;

    spawn_close(k->spawn);
    k->spawn = NULL;
    return 0;
}

static int run_all(const char *name, const struct CMUnitTest *tests, size_t n,
                   struct kit *k)
{
    struct CMUnitTest *own = mem_array(n, sizeof(*own));
    int failed;

    if (own == NULL) {
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        own[i] = tests[i];
        own[i].initial_state = k;
        own[i].setup_func = open_spawn;
        own[i].teardown_func = close_spawn;
    }
    failed = _cmocka_run_group_tests(name, own, n, NULL, NULL);
    mem_free(own);
    return failed;
}

static bool become_nobody(void)
{
    return setgroups(0, NULL) == 0 &&
           setresgid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY) == 0 &&
           setresuid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY) == 0 &&
           prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

/* The same program once more, which turns itself into nobody. */
static int again_as_nobody(char *self)
{
    char flag[] = "--as-nobody";
    char *argv[] = {self, flag, NULL};
    pid_t pid;
    int status = 0;

    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid) {
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int kit_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
             size_t ntests)
{
    bool nobody = argc > 1 && strcmp(argv[1], "--as-nobody") == 0;
    struct kit k;
    int failed;

    memset(&k, 0, sizeof(k));
    if (!kit_make(&k)) {
        (void)fprintf(stderr, "%s: cannot make %s\n", name, k.dir);
        return 1;
    }
    if (nobody && (chown(k.dir, KIT_NOBODY, KIT_NOBODY) != 0 || !become_nobody())) {
        return 1;
    }
    failed = run_all(name, tests, ntests, &k);
    if (kit_entries(k.work) != 0) {
        (void)fprintf(stderr, "%s: something is left in %s\n", name, k.work);
        failed++;
    }
    kit_remove(&k);
    if (geteuid() == 0) {
        failed += again_as_nobody(argv[0]);
    }
    return failed == 0 ? 0 : 1;
}

const char **kit_argv(const struct kit *k, const char *w1, const char *w2, const char *w3,
                      const char *w4, const char *storage[8])
{
    const char *all[] = {k->payload, w1, w2, w3, w4};
    size_t n = 0;

    for (size_t i = 0; i < 5 && all[i] != NULL; i++) {
        storage[n++] = all[i];
    }
    storage[n] = NULL;
    return storage;
}

struct spawn_plan kit_plan(const struct kit *k, enum isolation level, const char **argv)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8"};
    bool drop = level != ISOLATION_NONE && geteuid() == 0;
    struct spawn_plan p = {.argv = argv,
                           .env = env,
                           .nenv = 2,
                           .isolation = level,
                           .uid = drop ? KIT_NOBODY : SPAWN_KEEP_ID,
                           .gid = drop ? KIT_NOBODY : SPAWN_KEEP_ID,
                           .cpu_seconds = SPAWN_NO_LIMIT,
                           .mem_bytes = SPAWN_NO_LIMIT,
                           .open_files = SPAWN_NO_LIMIT,
                           .file_bytes = SPAWN_NO_LIMIT,
                           .processes = SPAWN_NO_LIMIT,
                           .work_root = k->work,
                           .deadline_ms = clock_mono_ms() + KIT_DEADLINE_MS};

    while (argv[p.nargv] != NULL) {
        p.nargv++;
    }
    return p;
}

/* What is there now; false at the end of the stream. */
static bool drain(int fd, struct buf *out)
{
    for (;;) {
        char *room = buf_room(out, 65536);
        ssize_t n;

        assert_non_null(room);
        n = io_read(fd, room, 65536);
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            return true;
        }
        if (n == 0) {
            return false;
        }
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
    }
}

void kit_run(struct kit *k, const struct spawn_plan *p, struct kit_run *out)
{
    struct child *c = NULL;
    struct error err = {0};
    bool out_open = true, err_open = true;
    int64_t give_up = clock_mono_ms() + 2 * KIT_DEADLINE_MS;

    memset(out, 0, sizeof(*out));
    buf_init(&out->out, 64 << 20);
    buf_init(&out->err, 64 << 20);
    if (spawn_child(k->spawn, p, &c, &err) != ST_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    child_close_stdin(c);
    while (out_open || err_open) {
        struct pollfd fds[2] = {{out_open ? child_stdout(c) : -1, POLLIN, 0},
                                {err_open ? child_stderr(c) : -1, POLLIN, 0}};

        assert_true(clock_mono_ms() < give_up);
        (void)poll(fds, 2, clock_poll_timeout(give_up));
        out_open = out_open && drain(child_stdout(c), &out->out);
        err_open = err_open && drain(child_stderr(c), &out->err);
    }
    assert_int_equal(io_wait(child_exit_fd(c), POLLIN, -1, give_up), ST_OK);
    if (child_layers(c, out->layers, sizeof(out->layers)) != ST_OK) {
        out->layers[0] = '\0';
    }
    assert_int_equal(child_reap(c, give_up, &out->end), ST_OK);
}

void kit_run_done(struct kit_run *r)
{
    buf_done(&r->out);
    buf_done(&r->err);
}

void kit_say(struct kit *k, enum isolation level, bool network, const char *w1,
             const char *w2, const char *w3, const char *w4, char out[256])
{
    const char *words[8];
    struct spawn_plan p = kit_plan(k, level, kit_argv(k, w1, w2, w3, w4, words));
    struct kit_run r;

    p.network = network;
    kit_run(k, &p, &r);
    if (r.end.setup[0] != '\0') {
        print_error("%s\n", r.end.setup);
        fail();
    }
    (void)snprintf(out, 256, "%.*s", (int)strcspn(r.out.ptr, "\n"), r.out.ptr);
    kit_run_done(&r);
}

void kit_await(const struct child *c, const char *text)
{
    struct buf got;
    int64_t give_up = clock_mono_ms() + KIT_DEADLINE_MS;

    buf_init(&got, 1 << 20);
    while (strstr(got.ptr, text) == NULL) {
        assert_int_equal(io_wait(child_stdout(c), POLLIN, -1, give_up), ST_OK);
        if (!drain(child_stdout(c), &got)) {
            assert_non_null(strstr(got.ptr, text));
        }
    }
    buf_done(&got);
}

size_t kit_processes(const char *token)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    size_t n = 0;

    assert_non_null(proc);
    while ((e = readdir(proc)) != NULL) {
        char path[300], text[4096];
        ssize_t got = -1;
        int fd = -1;

        if (e->d_name[0] >= '0' && e->d_name[0] <= '9') {
            (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
            fd = open(path, O_RDONLY | O_CLOEXEC);
            got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
            io_close(&fd);
        }
        for (ssize_t i = 0; i < got; i++) {
            text[i] = text[i] == '\0' ? ' ' : text[i];
        }
        if (got > 0) {
            text[got] = '\0';
            n += strstr(text, token) != NULL ? 1 : 0;
        }
    }
    closedir(proc);
    return n;
}

size_t kit_entries(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    size_t n = 0;

    if (d == NULL) {
        return 0;
    }
    while ((e = readdir(d)) != NULL) {
        n += e->d_name[0] != '.' ? 1 : 0;
    }
    closedir(d);
    return n;
}

size_t kit_open_fds(void)
{
    return kit_entries("/proc/self/fd");
}
