/* In: a plan's network flag, level and the kernel's Landlock version. Out: a seccomp
 * program: everything is allowed but what reaches other processes, the kernel's rare
 * corners, new namespaces and mounts, and sockets. Answers are errors, not kills, so that
 * a tool sees a clean refusal; another architecture's calls kill. It never looks through
 * pointers: what it cannot see (clone3, openat2 on old Landlock) gets ENOSYS. */
#define _GNU_SOURCE /* syscall, CLONE_NEW*, MSG_FASTOPEN */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "soulacy-spawn: no system call table for this architecture"
#endif

/* Numbers that are the same everywhere and younger than some headers. */
#define NR_IO_URING_SETUP 425u
#define NR_IO_URING_ENTER 426u
#define NR_IO_URING_REGISTER 427u
#define NR_OPEN_TREE 428u
#define NR_MOVE_MOUNT 429u
#define NR_FSOPEN 430u
#define NR_FSCONFIG 431u
#define NR_FSMOUNT 432u
#define NR_FSPICK 433u
#define NR_CLONE3 435u
#define NR_OPENAT2 437u
#define NR_PIDFD_GETFD 438u
#define NR_PROCESS_MADVISE 440u
#define NR_MOUNT_SETATTR 442u
#define NR_QUOTACTL_FD 443u
#define NR_MEMFD_SECRET 447u
#define NR_FCHMODAT2 452u
#define NR_PROCESS_MRELEASE 448u
#define NR_SET_MEMPOLICY_HOME 450u

#define MFD_NOEXEC_SEAL_ 8u
#define NAMESPACE_FLAGS \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
     CLONE_NEWPID | CLONE_NEWNET)

#define ERR(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define ARG_LOW(i) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (i)))

static void emit(struct run *r, uint32_t code, uint32_t k, unsigned jt, unsigned jf)
{
    if (r->nfilter < RUN_MAX_FILTER) {
        r->filter[r->nfilter] = (struct sock_filter){
            (unsigned short)code, (unsigned char)jt, (unsigned char)jf, k};
    }
    r->nfilter++; /* filter_enter refuses what did not fit */
}

static void load(struct run *r, uint32_t offset)
{
    emit(r, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void ret(struct run *r, uint32_t action)
{
    emit(r, BPF_RET | BPF_K, action, 0, 0);
}

/* If the accumulator equals k: action. */
static void if_equal(struct run *r, uint32_t k, uint32_t action)
{
    emit(r, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
    ret(r, action);
}

static void if_any_bit(struct run *r, uint32_t bits, uint32_t action)
{
    emit(r, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    ret(r, action);
}

/* Begin the part for one system call; part_end closes it. The part must end in a return
 * on every path. */
static size_t part(struct run *r, uint32_t nr)
{
    emit(r, BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 0);
    return r->nfilter - 1;
}

static void part_end(struct run *r, size_t begin)
{
    size_t skip = r->nfilter - begin - 1;

    if (skip <= 255 && begin < RUN_MAX_FILTER) {
        r->filter[begin].jf = (unsigned char)skip;
    } else {
        r->nfilter = RUN_MAX_FILTER + 1;
    }
}

static void deny_flags(struct run *r, uint32_t nr, unsigned arg, uint32_t bits,
                       uint32_t act)
{
    size_t begin = part(r, nr);

    load(r, ARG_LOW(arg));
    if_any_bit(r, bits, act);
    ret(r, SECCOMP_RET_ALLOW);
    part_end(r, begin);
}

static void only_value(struct run *r, uint32_t nr, unsigned arg, uint32_t value,
                       uint32_t act)
{
    size_t begin = part(r, nr);

    load(r, ARG_LOW(arg));
    if_equal(r, value, SECCOMP_RET_ALLOW);
    ret(r, act);
    part_end(r, begin);
}

static void add_prologue(struct run *r)
{
    load(r, (uint32_t)offsetof(struct seccomp_data, arch));
    emit(r, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    ret(r, SECCOMP_RET_KILL_PROCESS);
    load(r, (uint32_t)offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
    emit(r, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    ret(r, ERR(ENOSYS));
#endif
}

static const uint32_t denied[] = {
    /* other processes */
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    NR_PIDFD_GETFD,
    SYS_kcmp,
    NR_PROCESS_MADVISE,
    NR_PROCESS_MRELEASE,
    SYS_migrate_pages,
    SYS_move_pages,
    /* rings that make other calls unseen */
    NR_IO_URING_SETUP,
    NR_IO_URING_ENTER,
    NR_IO_URING_REGISTER,
    /* mounts, roots, namespaces */
    SYS_mount,
    SYS_umount2,
    NR_OPEN_TREE,
    NR_MOVE_MOUNT,
    NR_FSOPEN,
    NR_FSCONFIG,
    NR_FSMOUNT,
    NR_FSPICK,
    NR_MOUNT_SETATTR,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_sethostname,
    SYS_setdomainname,
    /* the kernel's machinery */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    NR_QUOTACTL_FD,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_vhangup,
    SYS_nfsservctl,
    SYS_lookup_dcookie,
    NR_MEMFD_SECRET,
    /* memory policy */
    SYS_mbind,
    SYS_set_mempolicy,
    NR_SET_MEMPOLICY_HOME,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
    SYS_create_module,
    SYS_get_kernel_syms,
    SYS_query_module,
#endif
};
/* These outlive their process and reach every process of the same user; with its own
 * IPC namespace the tool may have them. */
static const uint32_t denied_ipc[] = {SYS_shmget,  SYS_shmat,    SYS_shmctl, SYS_semget,
                                      SYS_semop,   SYS_msgget,   SYS_msgsnd, SYS_msgrcv,
                                      SYS_mq_open, SYS_mq_unlink};

static void add_denied(struct run *r)
{
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        if_equal(r, denied[i], ERR(EPERM));
    }
    for (size_t i = 0;
         r->plan.level < LEVEL_STRICT && i < sizeof(denied_ipc) / sizeof(denied_ipc[0]);
         i++) {
        if_equal(r, denied_ipc[i], ERR(EPERM));
    }
    if_equal(r, NR_CLONE3, ERR(ENOSYS)); /* so that libc uses clone, which can be read */
    if_equal(r, SYS_execveat, ERR(ENOSYS));
}

/* Same-user processes outside must not be tuned, nor their limits changed. */
static void add_process_rules(struct run *r)
{
    size_t begin;

    deny_flags(r, SYS_clone, 0, NAMESPACE_FLAGS, ERR(EPERM));
    only_value(r, SYS_personality, 0, 0xffffffffu, ERR(EPERM));
    only_value(r, SYS_prlimit64, 0, 0, ERR(EPERM));
    only_value(r, SYS_sched_setscheduler, 0, 0, ERR(EPERM));
    only_value(r, SYS_sched_setparam, 0, 0, ERR(EPERM));
    only_value(r, SYS_sched_setattr, 0, 0, ERR(EPERM));
    only_value(r, SYS_ioprio_set, 1, 0, ERR(EPERM));
    begin = part(r, SYS_setpriority);
    load(r, ARG_LOW(0));
    emit(r, BPF_JMP | BPF_JEQ | BPF_K, PRIO_PROCESS, 1, 0);
    ret(r, ERR(EPERM));
    load(r, ARG_LOW(1));
    if_equal(r, 0, SECCOMP_RET_ALLOW);
    ret(r, ERR(EPERM));
    part_end(r, begin);
    /* Programs come from the file system, where Landlock sees them. */
    begin = part(r, SYS_memfd_create);
    load(r, ARG_LOW(1));
    if_any_bit(r, MFD_NOEXEC_SEAL_, SECCOMP_RET_ALLOW);
    ret(r, ERR(ENOSYS));
    part_end(r, begin);
    begin = part(r, SYS_ioctl);
    load(r, ARG_LOW(1));
    if_equal(r, TIOCSTI, ERR(EPERM));
    if_equal(r, 0x541Cu /* TIOCLINUX */, ERR(EPERM));
    ret(r, SECCOMP_RET_ALLOW);
    part_end(r, begin);
}

/* Without Landlock's right to truncate, opening read-only with O_TRUNC truncates and asks
 * only for reading. mode is looked at only where flags say that a file is made: elsewhere
 * it is whatever was in the register. */
static void rule_open(struct run *r, uint32_t nr, unsigned flags, unsigned mode)
{
    size_t begin = part(r, nr);

    if (r->landlock_abi < 3) {
        load(r, ARG_LOW(flags));
        emit(r, BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE, 0, 0);
        if_equal(r, O_TRUNC, ERR(EPERM));
    }
    load(r, ARG_LOW(flags));
    emit(r, BPF_JMP | BPF_JSET | BPF_K, O_CREAT | (O_TMPFILE & ~O_DIRECTORY), 1, 0);
    ret(r, SECCOMP_RET_ALLOW);
    load(r, ARG_LOW(mode));
    if_any_bit(r, S_ISUID | S_ISGID, ERR(EPERM));
    ret(r, SECCOMP_RET_ALLOW);
    part_end(r, begin);
}

/* A file with a set-id bit in a writable path would outlive the sandbox and give the
 * user of the tool, which may be the gateway's, to whoever runs it. */
static void add_mode_rules(struct run *r)
{
    const uint32_t bits = S_ISUID | S_ISGID;

    deny_flags(r, SYS_fchmod, 1, bits, ERR(EPERM));
    deny_flags(r, SYS_fchmodat, 2, bits, ERR(EPERM));
    deny_flags(r, NR_FCHMODAT2, 2, bits, ERR(EPERM));
    deny_flags(r, SYS_mknodat, 2, bits, ERR(EPERM));
#ifdef SYS_chmod
    deny_flags(r, SYS_chmod, 1, bits, ERR(EPERM));
    deny_flags(r, SYS_creat, 1, bits, ERR(EPERM));
    deny_flags(r, SYS_mknod, 1, bits, ERR(EPERM));
#endif
    if_equal(r, NR_OPENAT2, ERR(ENOSYS)); /* its mode is behind a pointer */
    rule_open(r, SYS_openat, 2, 3);
#ifdef SYS_open
    rule_open(r, SYS_open, 1, 2);
#endif
}

static void add_socket_rules(struct run *r)
{
    size_t begin = part(r, SYS_socket);

    if (!r->plan.network) {
        ret(r, ERR(EPERM));
    } else {
        load(r, ARG_LOW(0));
        emit(r, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
        emit(r, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
        ret(r, ERR(EPERM));
        load(r, ARG_LOW(1));
        emit(r, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
        emit(r, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0);
        emit(r, BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 1, 0);
        ret(r, ERR(EPERM));
        load(r, ARG_LOW(2));
        if_equal(r, 0, SECCOMP_RET_ALLOW);
        if_equal(r, 6, SECCOMP_RET_ALLOW);
        if_equal(r, 17, SECCOMP_RET_ALLOW);
        ret(r, ERR(EPERM));
    }
    part_end(r, begin);
    /* A DGRAM pair reaches any unix path by sendto. */
    begin = part(r, SYS_socketpair);
    load(r, ARG_LOW(0));
    emit(r, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0);
    ret(r, ERR(EPERM));
    load(r, ARG_LOW(1));
    emit(r, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
    if_equal(r, SOCK_STREAM, SECCOMP_RET_ALLOW);
    if_equal(r, SOCK_SEQPACKET, SECCOMP_RET_ALLOW);
    ret(r, ERR(EPERM));
    part_end(r, begin);
    deny_flags(r, SYS_sendto, 3, MSG_FASTOPEN, ERR(EPERM));
    deny_flags(r, SYS_sendmsg, 2, MSG_FASTOPEN, ERR(EPERM));
    deny_flags(r, SYS_sendmmsg, 3, MSG_FASTOPEN, ERR(EPERM));
}

/* What an older Landlock cannot hold. */
static void add_old_landlock_rules(struct run *r, uint32_t own_pid)
{
    static const uint32_t signals[] = {SYS_kill, SYS_tkill, SYS_tgkill,
                                       SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo};
    size_t begin;

    if (r->landlock_abi < 3) {
        if_equal(r, SYS_truncate, ERR(EPERM));
    }
    if (r->landlock_abi < 6 && r->plan.level < LEVEL_STRICT) {
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
            begin = part(r, signals[i]);
            load(r, ARG_LOW(0));
            if_equal(r, own_pid, SECCOMP_RET_ALLOW);
            if_equal(r, 0, SECCOMP_RET_ALLOW);
            ret(r, ERR(EPERM));
            part_end(r, begin);
        }
        if_equal(r, SYS_pidfd_send_signal, ERR(EPERM));
        /* Signals to any process by way of a descriptor's owner. */
        begin = part(r, SYS_fcntl);
        load(r, ARG_LOW(1));
        if_equal(r, F_SETOWN, ERR(EPERM));
        if_equal(r, 15u /* F_SETOWN_EX */, ERR(EPERM));
        ret(r, SECCOMP_RET_ALLOW);
        part_end(r, begin);
    }
}

void filter_build(struct run *r, uint32_t own_pid)
{
    r->nfilter = 0;
    add_prologue(r);
    add_denied(r);
    add_process_rules(r);
    add_mode_rules(r);
    add_socket_rules(r);
    add_old_landlock_rules(r, own_pid);
    ret(r, SECCOMP_RET_ALLOW);
}

int filter_enter(struct run *r)
{
    struct sock_fprog prog = {(unsigned short)r->nfilter, r->filter};

    if (r->nfilter > RUN_MAX_FILTER) {
        return E2BIG;
    }
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0 ? 0 : errno;
}
