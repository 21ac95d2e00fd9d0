#define _GNU_SOURCE /* MAP_ANONYMOUS */
/* In: what one call into the plugin borrows. Out: copies of it in pages that cannot be
 * touched once the call is over, so that a kept pointer ends the check with a line that
 * names the call. */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOAN_BYTES ((size_t)256 * 1024)

/* The last revoked loans stay where they are, so that their addresses are not given out
 * again while a plugin may still hold them. */
#define REVOKED 64

/* What a signal handler may look at: it gets no argument of ours. Filled in by the thread
 * that calls the plugin; a plugin's own thread may fault at any time. */
static struct {
    const char *volatile now; /* the call that runs */
    struct {
        const char *volatile what;
        char *volatile base;
        volatile size_t size;
    } revoked[REVOKED];
    size_t next;
} watch;

static void put(const char *s)
{
    ssize_t ignored = write(STDOUT_FILENO, s, strlen(s));
    (void)ignored;
}

/* The call for which the memory at this address was lent; NULL when it was not. */
static const char *lent_for(const char *at)
{
    for (size_t i = 0; i < REVOKED; i++) {
        const char *base = watch.revoked[i].base;
        if (base != NULL && at >= base && at < base + watch.revoked[i].size) {
            return watch.revoked[i].what;
        }
    }
    return NULL;
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *what = number == SIGSEGV ? lent_for(info->si_addr) : NULL;
    put("FAIL ");
    if (what != NULL) {
        put("memory that was lent for ");
        put(what);
        put(" was used after it had returned");
    } else {
        put("it crashed");
    }
    put(" (in ");
    put(watch.now != NULL ? watch.now : "no call");
    put(")\n");
    _exit(1);
}

void loan_watch(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = on_crash;
    a.sa_flags = SA_SIGINFO;
    (void)sigemptyset(&a.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        (void)sigaction(fatal[i], &a, NULL);
    }
}

void loan_note(const char *what)
{
    watch.now = what;
}

void loan_open(struct loan *l)
{
    l->size = LOAN_BYTES;
    l->used = 0;
    l->base =
        mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (l->base == MAP_FAILED) {
        put("FAIL out of memory\n");
        _exit(1);
    }
}

void *loan_copy(struct loan *l, const void *data, size_t n)
{
    size_t at = (l->used + 15) / 16 * 16;
    if (at > l->size || n > l->size - at) {
        put("FAIL a loan is larger than expected\n");
        _exit(1);
    }
    if (n > 0) {
        memcpy(l->base + at, data, n);
    }
    l->used = at + n;
    return l->base + at;
}

struct sy_str loan_text(struct loan *l, const char *text)
{
    size_t n = strlen(text);
    return (struct sy_str){loan_copy(l, text, n + 1), n};
}

void loan_revoke(struct loan *l, const char *what)
{
    size_t i = watch.next++ % REVOKED;
    if (watch.revoked[i].base != NULL) {
        char *old = watch.revoked[i].base;
        watch.revoked[i].base = NULL;
        (void)munmap(old, watch.revoked[i].size);
    }
    (void)mprotect(l->base, l->size, PROT_NONE);
    watch.revoked[i].what = what;
    watch.revoked[i].size = l->size;
    watch.revoked[i].base = l->base;
    l->base = NULL;
}

void loan_close(struct loan *l)
{
    if (l->base != NULL) {
        (void)munmap(l->base, l->size);
        l->base = NULL;
    }
}
