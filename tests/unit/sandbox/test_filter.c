/* In: filter.c and landlock.c of the helper, as they are. Out: the seccomp program's
 * answer to single calls, by a small interpreter: also for Landlock versions that this
 * machine does not have. */
#define _GNU_SOURCE /* CLONE_NEW*, MSG_FASTOPEN, SYS_* */
#include "support/test.h"

#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <linux/audit.h>
#include <linux/seccomp.h>

#define OWN_PID 4242

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static uint32_t run_program(const struct run *r, const struct seccomp_data *d)
{
    uint32_t a = 0;

    for (size_t pc = 0; pc < r->nfilter; pc++) {
        const struct sock_filter *f = &r->filter[pc];

        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(f->k + 4 <= sizeof(*d));
            memcpy(&a, (const char *)d + f->k, sizeof(a));
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += a == f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += a >= f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            pc += (a & f->k) != 0 ? f->jt : f->jf;
            break;
        case BPF_RET | BPF_K:
            return f->k;
        default:
            fail();
        }
    }
    fail();
    return 0;
}

static struct run *make(enum level level, bool network, int abi)
{
    struct run *r = mem_zalloc(sizeof(*r));

    assert_non_null(r);
    r->plan.level = level;
    r->plan.network = network;
    r->landlock_abi = abi;
    filter_build(r, OWN_PID);
    assert_true(r->nfilter <= RUN_MAX_FILTER);
    return r;
}

/* 0: allowed; otherwise the errno. */
static int answer(const struct run *r, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
                  uint64_t a3)
{
    struct seccomp_data d = {(int)nr, ARCH, 0, {a0, a1, a2, a3, 0, 0}};
    uint32_t act = run_program(r, &d);

    if (act == SECCOMP_RET_ALLOW) {
        return 0;
    }
    assert_int_equal(act & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
    return (int)(act & SECCOMP_RET_DATA);
}

static void test_another_architecture_is_killed(void **state)
{
    struct run *r = make(LEVEL_RESTRICTED, false, 7);
    struct seccomp_data d = {SYS_read, AUDIT_ARCH_I386, 0, {0}};

    (void)state;
    assert_int_equal(run_program(r, &d), SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
    assert_int_equal(answer(r, 0x40000000 + SYS_read, 0, 0, 0, 0), ENOSYS);
    assert_int_equal(answer(r, 0x3fffffff, 0, 0, 0, 0), 0);
#endif
    mem_free(r);
}

static void test_everyday_calls_pass(void **state)
{
    static const long nrs[] = {
        SYS_read,    SYS_write,  SYS_mmap,   SYS_exit_group, SYS_execve, SYS_wait4,
        SYS_futex,   SYS_getpid, SYS_openat, SYS_clone,      SYS_kill,   SYS_ioctl,
        SYS_sendmsg, SYS_sendto, SYS_fcntl,  SYS_fchmod,     SYS_pipe2,  SYS_prlimit64};

    (void)state;
    for (int level = LEVEL_RESTRICTED; level <= LEVEL_STRICT; level++) {
        for (int abi = 1; abi <= 9; abi++) {
            struct run *r = make((enum level)level, abi % 2 == 0, abi);

            for (size_t i = 0; i < sizeof(nrs) / sizeof(nrs[0]); i++) {
                assert_int_equal(answer(r, nrs[i], 0, 0, 0, 0), 0);
            }
            mem_free(r);
        }
    }
}

static void test_denied_calls(void **state)
{
    static const long nrs[] = {SYS_ptrace,
                               SYS_mount,
                               SYS_unshare,
                               SYS_setns,
                               SYS_bpf,
                               SYS_keyctl,
                               SYS_process_vm_readv,
                               SYS_pivot_root,
                               SYS_chroot,
                               SYS_reboot,
                               425 /* io_uring_setup */,
                               438 /* pidfd_getfd */,
                               SYS_userfaultfd,
                               SYS_perf_event_open,
                               SYS_open_by_handle_at,
                               SYS_add_key};
    struct run *r = make(LEVEL_RESTRICTED, true, 7);
    struct run *strict = make(LEVEL_STRICT, true, 7);

    (void)state;
    for (size_t i = 0; i < sizeof(nrs) / sizeof(nrs[0]); i++) {
        assert_int_equal(answer(r, nrs[i], 0, 0, 0, 0), EPERM);
        assert_int_equal(answer(strict, nrs[i], 0, 0, 0, 0), EPERM);
    }
    assert_int_equal(answer(r, 435 /* clone3 */, 0, 0, 0, 0), ENOSYS);
    assert_int_equal(answer(r, SYS_execveat, 0, 0, 0, 0), ENOSYS);
    assert_int_equal(answer(r, 437 /* openat2 */, 0, 0, 0, 0), ENOSYS);
    assert_int_equal(answer(r, SYS_shmget, 0, 0, 0, 0), EPERM);
    assert_int_equal(answer(strict, SYS_shmget, 0, 0, 0, 0), 0);
    mem_free(r);
    mem_free(strict);
}

static void test_arguments(void **state)
{
    struct run *r = make(LEVEL_RESTRICTED, true, 7);

    (void)state;
    assert_int_equal(answer(r, SYS_clone, CLONE_VM | SIGCHLD, 0, 0, 0), 0);
    assert_int_equal(answer(r, SYS_clone, CLONE_NEWUSER, 0, 0, 0), EPERM);
    assert_int_equal(answer(r, SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0), EPERM);
    assert_int_equal(answer(r, SYS_prlimit64, 1, 0, 0, 0), EPERM);
    assert_int_equal(answer(r, SYS_personality, 0xffffffff, 0, 0, 0), 0);
    assert_int_equal(answer(r, SYS_personality, 0x40000, 0, 0, 0), EPERM);
    assert_int_equal(answer(r, SYS_memfd_create, 0, 1, 0, 0), ENOSYS);
    assert_int_equal(answer(r, SYS_memfd_create, 0, 8 | 1, 0, 0), 0);
    assert_int_equal(answer(r, SYS_ioctl, 0, 0x5412 /* TIOCSTI */, 0, 0), EPERM);
    assert_int_equal(answer(r, SYS_ioctl, 0, 0x541C /* TIOCLINUX */, 0, 0), EPERM);
    assert_int_equal(answer(r, SYS_setpriority, 0, 0, 5, 0), 0);
    assert_int_equal(answer(r, SYS_setpriority, 0, 77, 5, 0), EPERM);
    assert_int_equal(answer(r, SYS_setpriority, 2, 0, 5, 0), EPERM);
    assert_int_equal(answer(r, SYS_sendto, 0, 0, 0, MSG_FASTOPEN), EPERM);
    assert_int_equal(answer(r, SYS_sendmsg, 0, 0, MSG_FASTOPEN | MSG_NOSIGNAL, 0), EPERM);
    assert_int_equal(answer(r, SYS_sendmmsg, 0, 0, 0, MSG_FASTOPEN), EPERM);
    mem_free(r);
}

static void test_set_id_bits(void **state)
{
    (void)state;
    for (int abi = 1; abi <= 9; abi++) {
        struct run *r = make(LEVEL_RESTRICTED, false, abi);

        assert_int_equal(answer(r, SYS_fchmod, 3, 0755, 0, 0), 0);
        assert_int_equal(answer(r, SYS_fchmod, 3, 04755, 0, 0), EPERM);
        assert_int_equal(answer(r, SYS_fchmodat, 3, 0, 02755, 0), EPERM);
        assert_int_equal(answer(r, 452 /* fchmodat2 */, 3, 0, 02755, 0), EPERM);
        assert_int_equal(answer(r, SYS_mknodat, 3, 0, 0104755, 0), EPERM);
        assert_int_equal(answer(r, SYS_openat, 3, 0, O_CREAT | O_WRONLY, 04755), EPERM);
        assert_int_equal(answer(r, SYS_openat, 3, 0, O_CREAT | O_WRONLY, 0755), 0);
        assert_int_equal(answer(r, SYS_openat, 3, 0, O_TMPFILE | O_RDWR, 06755), EPERM);
        /* A mode that is not one. */
        assert_int_equal(answer(r, SYS_openat, 3, 0, O_RDONLY, 0xffff), 0);
        assert_int_equal(answer(r, SYS_openat, 3, 0, O_RDONLY | O_DIRECTORY, 0xffff), 0);
        mem_free(r);
    }
}

/* security-rules 13, for kernels without Landlock's right to truncate. */
static void test_truncate_on_old_landlock(void **state)
{
    (void)state;
    for (int abi = 1; abi <= 4; abi++) {
        struct run *r = make(LEVEL_RESTRICTED, false, abi);
        int want = abi < 3 ? EPERM : 0;

        assert_int_equal(answer(r, SYS_truncate, 0, 0, 0, 0), want);
        assert_int_equal(answer(r, SYS_openat, 0, 0, O_RDONLY | O_TRUNC, 0), want);
        assert_int_equal(answer(r, SYS_openat, 0, 0, O_WRONLY | O_TRUNC, 0), 0);
        assert_int_equal(answer(r, SYS_openat, 0, 0, O_RDONLY, 0), 0);
#ifdef SYS_open
        assert_int_equal(answer(r, SYS_open, 0, O_RDONLY | O_TRUNC, 0, 0), want);
#endif
        mem_free(r);
    }
}

/* ... and for those that do not scope signals: only to itself. */
static void test_signals_on_old_landlock(void **state)
{
    (void)state;
    for (int abi = 4; abi <= 7; abi++) {
        struct run *r = make(LEVEL_RESTRICTED, false, abi);
        struct run *strict = make(LEVEL_STRICT, false, abi);
        int want = abi < 6 ? EPERM : 0;

        assert_int_equal(answer(r, SYS_kill, 1, 9, 0, 0), want);
        assert_int_equal(answer(r, SYS_kill, (uint64_t)-1, 9, 0, 0), want);
        assert_int_equal(answer(r, SYS_kill, OWN_PID, 9, 0, 0), 0);
        assert_int_equal(answer(r, SYS_kill, 0, 9, 0, 0), 0);
        assert_int_equal(answer(r, SYS_tgkill, OWN_PID, 5, 6, 0), 0);
        assert_int_equal(answer(r, SYS_tgkill, 1, 1, 6, 0), want);
        assert_int_equal(answer(r, SYS_pidfd_send_signal, 5, 9, 0, 0), want);
        assert_int_equal(answer(r, SYS_fcntl, 5, F_SETOWN, 1, 0), want);
        assert_int_equal(answer(strict, SYS_kill, 1, 9, 0, 0), 0);
        mem_free(r);
        mem_free(strict);
    }
}

/* Below the minimum there is no sandbox, and it says so. */
static void test_minimum_landlock(void **state)
{
    (void)state;
    for (int level = LEVEL_RESTRICTED; level <= LEVEL_STRICT; level++) {
        struct run *r = make((enum level)level, false, WIRE_MIN_LANDLOCK - 1);

        r->exec_path = "/bin/true";
        assert_int_equal(landlock_build(r), -1);
        assert_non_null(strstr(r->setup, ": landlock: Operation not supported"));
        mem_free(r);
    }
}

/* The rules of each version that this kernel takes can be built. */
static void test_each_landlock_version(void **state)
{
    (void)state;
    for (int abi = WIRE_MIN_LANDLOCK; abi <= landlock_version() && abi <= 9; abi++) {
        struct run *r = make(LEVEL_RESTRICTED, abi % 2 == 0, abi);
        int fd;

        r->exec_path = "/bin/true";
        fd = landlock_build(r);
        assert_string_equal(r->setup, "");
        assert_true(fd >= 0);
        assert_int_equal(close(fd), 0);
        mem_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_architecture_is_killed),
        cmocka_unit_test(test_everyday_calls_pass),
        cmocka_unit_test(test_denied_calls),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_set_id_bits),
        cmocka_unit_test(test_truncate_on_old_landlock),
        cmocka_unit_test(test_signals_on_old_landlock),
        cmocka_unit_test(test_minimum_landlock),
        cmocka_unit_test(test_each_landlock_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
