#define _GNU_SOURCE
#include "helper/run.h"
#include <errno.h>
int landlock_version(void)
{
    return 0;
}
int landlock_build(struct run *r)
{
    (void)run_fail(r, "landlock", ENOSYS);
    return -1;
}
int landlock_enter(int ruleset_fd)
{
    (void)ruleset_fd;
    return ENOSYS;
}
void filter_build(struct run *r, uint32_t own_pid)
{
    (void)r;
    (void)own_pid;
}
int filter_enter(struct run *r)
{
    (void)r;
    return ENOSYS;
}
int ns_start(struct run *r)
{
    (void)run_fail(r, "namespaces", ENOSYS);
    return -1;
}
int probe_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return 0;
}
