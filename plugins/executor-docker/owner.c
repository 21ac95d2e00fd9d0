/* Labels of containers in, whose they are out: this gateway's, a dead one's of this machine,
 * or somebody else's. Comes in: text of the engine. Reads /proc; never signals anybody. */
#include "docker.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct owner {
    char instance[17], machine[40], boot[40], ns[32], pid[16], start[24];
};

static bool next_word(const char **at, char *out, size_t cap)
{
    size_t n = 0;
    while (**at == ' ') {
        (*at)++;
    }
    for (; **at != '\0' && **at != ' '; (*at)++) {
        if (n + 1 >= cap) {
            return false;
        }
        out[n++] = **at;
    }
    out[n] = '\0';
    return n > 0;
}

static bool parse_owner(const char *label, struct owner *o)
{
    return next_word(&label, o->instance, sizeof o->instance) &&
           next_word(&label, o->machine, sizeof o->machine) &&
           next_word(&label, o->boot, sizeof o->boot) &&
           next_word(&label, o->ns, sizeof o->ns) &&
           next_word(&label, o->pid, sizeof o->pid) &&
           next_word(&label, o->start, sizeof o->start) && *label == '\0';
}

static size_t read_small(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, cap - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    size_t len = n > 0 ? (size_t)n : 0;
    out[len] = '\0';
    return len;
}

/* Field 22 of /proc/PID/stat, behind the name, which may hold anything. */
static bool start_time(const char *pid, char *out, size_t cap)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (read_small(path, text, sizeof text) == 0) {
        return false;
    }
    const char *at = strrchr(text, ')');
    bool ok = at != NULL;
    at += ok ? 1 : 0;
    for (int field = 3; ok && field <= 22; field++) {
        ok = next_word(&at, out, cap);
    }
    return ok;
}

/* The first word of a file, or "-". */
static void word_of(const char *path, char *out, size_t cap)
{
    char text[128];
    (void)read_small(path, text, sizeof text);
    const char *word = text[0] > ' ' ? text : "-";
    size_t n = strcspn(word, " \t\n");
    n = n < cap ? n : cap - 1;
    memcpy(out, word, n);
    out[n] = '\0';
}

bool keeper_own_label(const char *instance, char *out, size_t cap)
{
    struct owner o;
    char ns[32];
    word_of("/etc/machine-id", o.machine, sizeof o.machine);
    word_of("/proc/sys/kernel/random/boot_id", o.boot, sizeof o.boot);
    ssize_t n = readlink("/proc/self/ns/pid", ns, sizeof ns - 1);
    ns[n > 0 ? (size_t)n : 0] = '\0';
    if (!start_time("self", o.start, sizeof o.start)) {
        return false;
    }
    int len = snprintf(out, cap, "%s %s %s %s %ld %s", instance, o.machine, o.boot,
                       ns[0] != '\0' ? ns : "-", (long)getpid(), o.start);
    return len > 0 && (size_t)len < cap;
}

enum owner_is keeper_owner(const char *label, const char *own)
{
    struct owner a;
    struct owner b;
    char start[24];
    uint64_t pid = 0;
    if (!parse_owner(label, &a) || !parse_owner(own, &b)) {
        return OWNER_OTHER;
    }
    if (strcmp(a.instance, b.instance) == 0) {
        return OWNER_SELF;
    }
    if (strcmp(a.machine, b.machine) != 0 ||
        !util_number(a.pid, strlen(a.pid), INT32_MAX, &pid)) {
        return OWNER_OTHER;
    }
    if (strcmp(a.boot, b.boot) != 0) {
        /* Of this machine, from before it was started. */
        return strcmp(a.machine, "-") != 0 ? OWNER_DEAD : OWNER_OTHER;
    }
    if (strcmp(a.ns, b.ns) != 0) {
        return OWNER_OTHER; /* its process cannot be seen from here */
    }
    bool alive = start_time(a.pid, start, sizeof start) && strcmp(start, a.start) == 0;
    return alive ? OWNER_OTHER : OWNER_DEAD;
}
