/* In: a run. Out: the one line that says what is in force, or the one that says which
 * layer could not be set up and why. It never decides anything. */
#include "sandbox/helper/run.h"

#include <stdio.h>
#include <string.h>

static const char *run_level_name(enum level level)
{
    static const char *const names[] = {"none", "restricted", "strict"};

    return names[level];
}

bool run_fail(struct run *r, const char *layer, int err)
{
    if (r->setup[0] == '\0') {
        (void)snprintf(r->setup, sizeof(r->setup), "%s: %s: %s",
                       run_level_name(r->plan.level), layer, strerror(err));
    }
    return false;
}

bool run_fail_path(struct run *r, const char *layer, const char *path, int err)
{
    if (r->setup[0] == '\0') {
        (void)snprintf(r->setup, sizeof(r->setup), "%s: %s: %.150s: %s",
                       run_level_name(r->plan.level), layer, path, strerror(err));
    }
    return false;
}

struct text {
    char *at;
    size_t left;
};

static void put(struct text *t, const char *name, const char *sep, long long number)
{
    int n;

    if (number >= 0) {
        n = snprintf(t->at, t->left, "%s%s%lld", name, sep, number);
    } else {
        n = snprintf(t->at, t->left, "%s", name);
    }
    if (n > 0 && (size_t)n < t->left) {
        t->at += n;
        t->left -= (size_t)n;
    }
}

static void put_limits(struct text *t, const struct run *r)
{
    const struct hplan *p = &r->plan;
    const struct {
        enum limit_id id;
        const char *name;
        uint64_t value;
    } rows[] = {{LIMIT_CPU, "\"cpu_seconds\"", p->cpu_seconds},
                {LIMIT_AS, "\"mem_bytes\"", p->mem_bytes},
                {LIMIT_NOFILE, "\"open_files\"", p->open_files},
                {LIMIT_FSIZE, "\"file_bytes\"", p->file_bytes},
                {LIMIT_NPROC, "\"processes\"", p->processes}};
    const char *comma = "";

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (limit_wanted(p, rows[i].id) && (r->limits_failed & (1u << rows[i].id)) == 0) {
            put(t, comma, "", -1);
            put(t, rows[i].name, ":", (long long)(rows[i].value & INT64_MAX));
            comma = ",";
        }
    }
}

void run_describe(struct run *r)
{
    struct text t = {r->layers, sizeof(r->layers)};

    put(&t, "{\"isolation\":\"", "", -1);
    put(&t, run_level_name(r->plan.level), "", -1);
    put(&t, "\",\"limits\":{", "", -1);
    put_limits(&t, r);
    put(&t, "},\"layers\":[\"session\",\"descriptors\",\"environment\",\"rlimits\"", "",
        -1);
    if (ids_change(r)) {
        put(&t, ",\"uid", ":", (long long)r->plan.uid);
        put(&t, "\"", "", -1);
    }
    if (r->plan.level >= LEVEL_RESTRICTED) {
        put(&t, ",\"no_new_privs\",\"landlock", ":", r->landlock_abi);
        put(&t, "\",\"seccomp\"", "", -1);
        put(&t, r->plan.network ? ",\"sockets:inet\"" : ",\"sockets:none\"", "", -1);
    }
    if (r->plan.level == LEVEL_STRICT) {
        put(&t, ",\"user\",\"pid\",\"mount\",\"ipc\",\"uts\",\"cgroup\"", "", -1);
        put(&t, r->plan.network ? "" : ",\"net\"", "", -1);
        put(&t, ",\"root\",\"proc\"", "", -1);
    }
    if (r->work[0] != '\0') {
        put(&t, ",\"work\"", "", -1);
    }
    put(&t, "]}", "", -1);
}
