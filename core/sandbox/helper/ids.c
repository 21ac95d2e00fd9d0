/* In: a plan's uid and gid. Out: the process's. By raw system calls: the library's own
 * tell every thread they know of, which a process that shares memory must not.
 * It never leaves a saved id behind after ids_drop. */
#define _GNU_SOURCE /* syscall */
#include "sandbox/helper/run.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

bool ids_change(const struct run *r)
{
    return r->plan.uid != WIRE_KEEP_ID;
}

/* Capabilities go with the uid of a root gateway, but a service may have been given some
 * as ambient ones. */
static bool caps_clear(struct run *r)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];

    memset(none, 0, sizeof(none));
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 &&
        errno != EINVAL) {
        return run_fail(r, "capabilities", errno);
    }
    if (syscall(SYS_capset, &head, none) != 0) {
        return run_fail(r, "capabilities", errno);
    }
    return true;
}

bool ids_drop(struct run *r)
{
    uint32_t uid = r->plan.uid, gid = r->plan.gid;

    if (ids_change(r) && !r->inside) {
        bool same = geteuid() == uid && getegid() == gid;

        /* Only root may shed groups; for the same unprivileged user they are its own. */
        if (!(same && uid != 0) && syscall(SYS_setgroups, 0, NULL) != 0) {
            return run_fail(r, "groups", errno);
        }
        if (syscall(SYS_setresgid, gid, gid, gid) != 0) {
            return run_fail(r, "gid", errno);
        }
        if (syscall(SYS_setresuid, uid, uid, uid) != 0) {
            return run_fail(r, "uid", errno);
        }
    }
    if (r->plan.level == LEVEL_NONE) {
        return true;
    }
    if (!r->inside && (getuid() == 0 || geteuid() == 0)) {
        return run_fail(r, "uid: a root gateway must become another user", EPERM);
    }
    return caps_clear(r);
}

int ids_borrow(const struct run *r)
{
    if (!ids_change(r) || geteuid() != 0) {
        return 0;
    }
    if (syscall(SYS_setgroups, 0, NULL) != 0 ||
        syscall(SYS_setresgid, -1, r->plan.gid, -1) != 0 ||
        syscall(SYS_setresuid, -1, r->plan.uid, -1) != 0) {
        return errno;
    }
    return 0;
}

void ids_return(const struct run *r)
{
    if (ids_change(r) && getuid() == 0) {
        if (syscall(SYS_setresuid, -1, 0, -1) != 0 ||
            syscall(SYS_setresgid, -1, 0, -1) != 0) {
            _exit(1); /* cannot happen: the saved ids are still root's */
        }
    }
}
