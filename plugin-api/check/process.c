/* In: the process before and after the plugin was used. Out: a complaint for each thing
 * that belongs to the whole process and has changed, and for what was left behind. */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static size_t entries(const char *path)
{
    size_t n = 0;
    DIR *d = opendir(path);
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return n;
}

void check_process_take(struct check_process *p)
{
    memset(p, 0, sizeof *p);
    p->fds = entries("/proc/self/fd");
    p->threads = entries("/proc/self/task");
    p->mask = umask(022);
    (void)umask(p->mask);
    if (getcwd(p->cwd, sizeof p->cwd) == NULL) {
        p->cwd[0] = '\0';
    }
    for (int i = 1; i < 65; i++) {
        struct sigaction a;
        if (sigaction(i, NULL, &a) == 0) {
            memcpy(&p->handlers[i], &a.sa_handler, sizeof a.sa_handler);
        }
    }
}

void check_process_compare(struct check *c, const struct check_process *before,
                           bool leaks)
{
    struct check_process now;
    struct timespec moment = {0, 10000000};
    check_process_take(&now);
    /* A thread that was joined may stand in /proc for a moment yet. */
    for (int i = 0; leaks && now.threads > before->threads && i < 100; i++) {
        (void)nanosleep(&moment, NULL);
        check_process_take(&now);
    }
    if (now.mask != before->mask) {
        check_fail(c, "changed the umask");
    }
    if (strcmp(now.cwd, before->cwd) != 0) {
        check_fail(c, "changed the working directory");
    }
    for (int i = 1; i < 65; i++) {
        if (now.handlers[i] != before->handlers[i]) {
            check_fail(c, "changed what signal %d does", i);
        }
    }
    if (leaks && now.fds > before->fds) {
        check_fail(c, "left %zu descriptors open after destroy()", now.fds - before->fds);
    }
    if (leaks && now.threads > before->threads) {
        check_fail(c, "left %zu threads behind after destroy()",
                   now.threads - before->threads);
    }
}
