/* In: the helper and the payload as the attacker. Out: rules 13, 14 and 15 of the
 * security rules hold at restricted and strict, and the attacks do work at none where
 * that proves that the attack is one. */
#define _GNU_SOURCE /* SYS_* */
#include "kit.h"

#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define FOR_CONFINED(level) \
    for (enum isolation level = ISOLATION_RESTRICTED; level <= ISOLATION_STRICT; level++)

/* The payload's answer: 0 or an errno. */
static int ask(struct kit *k, enum isolation level, bool network, const char *w1,
               const char *w2, const char *w3, const char *w4)
{
    char text[256];
    int64_t v = 0;

    kit_say(k, level, network, w1, w2, w3, w4, text);
    if (strcmp(text, "ok") == 0) {
        return 0;
    }
    assert_int_equal(str_to_i64(str_c(text), 1, 4096, &v), ST_OK);
    return (int)v;
}

static void number(char out[24], long v)
{
    (void)snprintf(out, 24, "%ld", v);
}

static int listen_dgram(const char *path)
{
    struct sockaddr_un at;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memset(&at, 0, sizeof(at));
    at.sun_family = AF_UNIX;
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%.100s", path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(chmod(path, 0777), 0);
    return fd;
}

static void test_rule_13_pairs(void **state)
{
    struct kit *k = *state;
    char path[200];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/dgram", k->dir);
    fd = listen_dgram(path);
    assert_int_equal(ask(k, ISOLATION_NONE, false, "dgram_pair", path, NULL, NULL), 0);
    FOR_CONFINED(level)
    {
        for (int net = 0; net < 2; net++) {
            assert_int_equal(ask(k, level, net != 0, "dgram_pair", path, NULL, NULL),
                             EPERM);
            assert_int_equal(ask(k, level, net != 0, "pair", "1", NULL, NULL), 0);
            assert_int_equal(ask(k, level, net != 0, "pair", "5", NULL, NULL), 0);
            assert_int_equal(ask(k, level, net != 0, "pair", "2", NULL, NULL), EPERM);
            assert_int_equal(ask(k, level, net != 0, "pair", "3", NULL, NULL), EPERM);
        }
    }
    io_close(&fd);
    assert_int_equal(unlink(path), 0);
}

static size_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (size_t)st.st_size;
}

/* On older Landlock by the filter: unit.spawn_filter. */
static void test_rule_13_truncate(void **state)
{
    struct kit *k = *state;

    FOR_CONFINED(level)
    {
        const char *words[8];
        struct spawn_path path = {k->secret, false};
        static const char *const verbs[] = {"truncate", "open_trunc", "write", "read"};

        for (size_t i = 0; i < 4; i++) {
            struct spawn_plan p =
                kit_plan(k, level, kit_argv(k, verbs[i], k->secret, NULL, NULL, words));
            struct kit_run r;

            p.paths = &path;
            p.npaths = 1;
            kit_run(k, &p, &r);
            assert_string_equal(r.end.setup, "");
            /* Readable, since the plan says so, and nothing more. */
            assert_true((strcmp(r.out.ptr, "ok\n") == 0) == (i == 3));
            kit_run_done(&r);
            assert_int_equal(size_of(k->secret), 7);
        }
    }
}

struct family {
    int family, type, proto;
    bool inet; /* what network: true allows */
};

static void test_rule_14_sockets(void **state)
{
    static const struct family rows[] = {{AF_INET, SOCK_STREAM, 0, true},
                                         {AF_INET, SOCK_STREAM, 6, true},
                                         {AF_INET, SOCK_DGRAM, 0, true},
                                         {AF_INET, SOCK_DGRAM, 17, true},
                                         {AF_INET6, SOCK_STREAM, 0, true},
                                         {AF_INET6, SOCK_DGRAM, 17, true},
                                         {AF_INET, SOCK_STREAM, 262, false} /* MPTCP */,
                                         {AF_INET, SOCK_STREAM, 132, false} /* SCTP */,
                                         {AF_INET, SOCK_RAW, 1, false},
                                         {AF_INET, SOCK_DGRAM, 1, false} /* ping */,
                                         {AF_INET6, SOCK_RAW, 58, false},
                                         {AF_UNIX, SOCK_STREAM, 0, false},
                                         {AF_UNIX, SOCK_DGRAM, 0, false},
                                         {AF_NETLINK, SOCK_RAW, 0, false},
                                         {AF_PACKET, SOCK_RAW, 0, false},
                                         {40 /* VSOCK */, SOCK_STREAM, 0, false},
                                         {38 /* ALG */, SOCK_SEQPACKET, 0, false},
                                         {31 /* BLUETOOTH */, SOCK_RAW, 0, false}};
    struct kit *k = *state;

    FOR_CONFINED(level)
    {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            char f[24], t[24], p[24];
            int got;

            number(f, rows[i].family);
            number(t, rows[i].type);
            number(p, rows[i].proto);
            assert_int_equal(ask(k, level, false, "socket", f, t, p), EPERM);
            got = ask(k, level, true, "socket", f, t, p);
            if (rows[i].inet) {
                assert_true(got == 0 || got == EAFNOSUPPORT); /* no IPv6 here */
            } else {
                assert_int_equal(got, EPERM);
            }
        }
    }
}

static void test_rule_14_rings(void **state)
{
    FOR_CONFINED(level)
    {
        for (int nr = 425; nr <= 427; nr++) {
            char text[24];

            number(text, nr);
            assert_int_equal(ask(*state, level, true, "call", text, NULL, NULL), EPERM);
        }
    }
}

static void test_rule_15_gateway_process(void **state)
{
    static const char *const files[] = {"environ", "mem", "maps", "cmdline",
                                        "root/etc/passwd"};
    char path[64], pid[24], nr[24];

    number(pid, getpid());
    number(nr, SYS_prlimit64);
    FOR_CONFINED(level)
    {
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
            (void)snprintf(path, sizeof(path), "/proc/%s/%s", pid, files[i]);
            assert_int_not_equal(ask(*state, level, true, "read", path, NULL, NULL), 0);
        }
        (void)snprintf(path, sizeof(path), "/proc/%s/fd", pid);
        assert_int_not_equal(ask(*state, level, true, "list", path, NULL, NULL), 0);
        assert_int_not_equal(ask(*state, level, true, "kill", pid, NULL, NULL), 0);
        assert_int_equal(ask(*state, level, true, "kill_child", NULL, NULL, NULL), 0);
        assert_int_equal(ask(*state, level, true, "call", nr, pid, NULL), EPERM);
        assert_int_equal(ask(*state, level, true, "ptrace", NULL, NULL, NULL), EPERM);
    }
    /* The attack is one. */
    (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    assert_int_equal(ask(*state, ISOLATION_NONE, true, "read", path, NULL, NULL), 0);
}

static void test_rule_15_set_id_files(void **state)
{
    struct kit *k = *state;

    assert_int_equal(ask(k, ISOLATION_NONE, false, "suid_copy", NULL, NULL, NULL), 0);
    FOR_CONFINED(level)
    {
        assert_int_equal(ask(k, level, false, "suid_copy", NULL, NULL, NULL), EPERM);
        assert_int_not_equal(ask(k, level, false, "setuid", NULL, NULL, NULL), 0);
    }
    assert_int_equal(kit_entries(k->work), 0);
}

static void test_rule_15_site_packages(void **state)
{
    static const char *const places[] = {
        "/usr/lib/python3/dist-packages/soulacy-test.pth",
        "/usr/local/lib/soulacy-test.pth", "/etc/soulacy-test", "/soulacy-test"};
    struct kit *k = *state;

    FOR_CONFINED(level)
    {
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            assert_int_not_equal(ask(k, level, false, "write", places[i], NULL, NULL), 0);
            assert_int_equal(access(places[i], F_OK), -1);
        }
    }
}

/* Two agents in turn: neither sees the other's value, in its environment or its folder. */
static void test_rule_15_two_agents(void **state)
{
    struct kit *k = *state;

    FOR_CONFINED(level)
    {
        for (int i = 0; i < 6; i++) {
            const char *words[8];
            const char *env[] = {i % 2 == 0 ? "TOKEN=secret-of-a" : "TOKEN=secret-of-b"};
            struct spawn_plan p =
                kit_plan(k, level, kit_argv(k, "env", NULL, NULL, NULL, words));
            struct kit_run r;

            p.env = env;
            p.nenv = 1;
            kit_run(k, &p, &r);
            assert_non_null(
                strstr(r.out.ptr, i % 2 == 0 ? "secret-of-a" : "secret-of-b"));
            assert_null(strstr(r.out.ptr, i % 2 == 0 ? "secret-of-b" : "secret-of-a"));
            kit_run_done(&r);
        }
    }
}

static void test_files_outside(void **state)
{
    struct kit *k = *state;
    char other[200];

    (void)snprintf(other, sizeof(other), "%s/../secret", k->work);
    assert_int_equal(ask(k, ISOLATION_NONE, false, "read", k->secret, NULL, NULL), 0);
    FOR_CONFINED(level)
    {
        assert_int_not_equal(ask(k, level, false, "read", k->secret, NULL, NULL), 0);
        assert_int_not_equal(ask(k, level, false, "read", other, NULL, NULL), 0);
        assert_int_not_equal(ask(k, level, false, "read", "../../secret", NULL, NULL), 0);
        assert_int_not_equal(ask(k, level, false, "via_link", k->secret, NULL, NULL), 0);
        assert_int_not_equal(ask(k, level, false, "link", k->secret, "mine", NULL), 0);
        assert_int_not_equal(ask(k, level, false, "unlink", k->secret, NULL, NULL), 0);
        assert_int_not_equal(ask(k, level, false, "read", "/etc/shadow", NULL, NULL), 0);
        assert_int_equal(ask(k, level, false, "write", "mine", NULL, NULL), 0);
        assert_int_equal(ask(k, level, false, "write", "/dev/null", NULL, NULL), 0);
        if (level == ISOLATION_RESTRICTED) {
            assert_int_not_equal(ask(k, level, false, "list", k->dir, NULL, NULL), 0);
        }
        /* Under strict a private /tmp takes it, which nobody else sees. */
        assert_true(ask(k, level, false, "write", k->secret, NULL, NULL) != 0 ||
                    level == ISOLATION_STRICT);
        assert_int_equal(ask(k, level, false, "read", "/dev/urandom", NULL, NULL), 0);
    }
    assert_int_equal(size_of(k->secret), 7);
}

static void test_writable_paths(void **state)
{
    struct kit *k = *state;
    char dir[200], file[240];

    (void)snprintf(dir, sizeof(dir), "%s/extra", k->dir);
    (void)snprintf(file, sizeof(file), "%s/file", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(chmod(dir, 0777), 0);
    FOR_CONFINED(level)
    {
        for (int writable = 0; writable < 2; writable++) {
            const char *words[8];
            struct spawn_path path = {dir, writable != 0};
            struct spawn_plan p =
                kit_plan(k, level, kit_argv(k, "write", file, NULL, NULL, words));
            struct kit_run r;

            p.paths = &path;
            p.npaths = 1;
            kit_run(k, &p, &r);
            assert_string_equal(r.end.setup, "");
            assert_true((strcmp(r.out.ptr, "ok\n") == 0) == (writable != 0));
            kit_run_done(&r);
        }
        assert_int_equal(size_of(file), 1);
        assert_int_equal(unlink(file), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void test_calls(void **state)
{
    static const long nrs[] = {SYS_mount,           SYS_unshare, SYS_bpf,
                               SYS_keyctl,          SYS_chroot,  SYS_userfaultfd,
                               SYS_perf_event_open, SYS_setns};
    char text[24];

    FOR_CONFINED(level)
    {
        for (size_t i = 0; i < sizeof(nrs) / sizeof(nrs[0]); i++) {
            number(text, nrs[i]);
            assert_int_equal(ask(*state, level, true, "call", text, NULL, NULL), EPERM);
        }
        number(text, 435);
        assert_int_equal(ask(*state, level, true, "call", text, NULL, NULL), ENOSYS);
        assert_int_equal(ask(*state, level, true, "memfd", NULL, NULL, NULL), ENOSYS);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_13_pairs),
        cmocka_unit_test(test_rule_13_truncate),
        cmocka_unit_test(test_rule_14_sockets),
        cmocka_unit_test(test_rule_14_rings),
        cmocka_unit_test(test_rule_15_gateway_process),
        cmocka_unit_test(test_rule_15_set_id_files),
        cmocka_unit_test(test_rule_15_site_packages),
        cmocka_unit_test(test_rule_15_two_agents),
        cmocka_unit_test(test_files_outside),
        cmocka_unit_test(test_writable_paths),
        cmocka_unit_test(test_calls),
    };

    return kit_main(argc, argv, "rules 13 to 15", tests,
                    sizeof(tests) / sizeof(tests[0]));
}
