/* A launch to the JSON that makes its container. Comes in: limits, command, image. Goes
 * out: only members written here, so that nothing of image or plan gets in by itself. Pure. */
#include "spec.h"

#include <cjson/cJSON.h>

#include <inttypes.h>
#include <string.h>

#define MIB ((uint64_t)1024 * 1024)
#define TMP_MAX (1024 * MIB)
#define MEMORY_MIN (32 * MIB) /* engines refuse less than 6; init and shim need some */
#define INIT_ROOM (8 * MIB)   /* the engine's init, page tables, buffers */
#define DATA_MIN (192 * MIB)  /* below it the runtime's own init could not start */

static uint64_t tmp_bytes(const struct sy_launch *l)
{
    /* A file of the largest size fits, so that its own limit is met first. */
    uint64_t want = l->file_bytes + 16 * MIB;
    if (l->file_bytes == 0 || want < SPEC_TMP_MIN) {
        return SPEC_TMP_MIN;
    }
    return l->file_bytes > TMP_MAX ? TMP_MAX : want;
}

uint64_t spec_memory(const struct sy_launch *l)
{
    if (l->mem_bytes == 0) {
        return 0;
    }
    if (l->mem_bytes > (uint64_t)INT64_MAX / 2) {
        return 0;
    }
    /* Where no other limit holds for sure, this one has to: /tmp counts in it then. */
    return l->mem_bytes + (l->mem_bytes < DATA_MIN ? INIT_ROOM : tmp_bytes(l));
}

static uint64_t pids(const struct sy_launch *l)
{
    /* The engine's init takes one. */
    return l->max_pids > 0 ? (uint64_t)l->max_pids + 1 : SPEC_PIDS;
}

static void text(struct bytes *b, const char *s)
{
    bytes_json(b, s, strlen(s));
}

static void pair(struct bytes *b, const char *name, const char *value)
{
    char joined[4096];
    struct bytes one;
    size_t n = strlen(name);
    size_t m = strlen(value);
    bytes_init(&one, sizeof joined);
    if (n + m + 1 < sizeof joined) {
        memcpy(joined, name, n);
        joined[n] = '=';
        memcpy(joined + n + 1, value, m);
        bytes_json(b, joined, n + m + 1);
    } else {
        b->bad = true;
    }
}

/* PATH and LANG stay the image's own; every other variable of it goes: a name without a
 * value takes it away. */
static void add_env(const struct spec_base *base, struct bytes *b)
{
    bytes_text(b, ",\"Env\":[");
    pair(b, "PATH",
         base->image_path != NULL
             ? base->image_path
             : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    bytes_text(b, ",");
    pair(b, "LANG", base->image_lang != NULL ? base->image_lang : "C.UTF-8");
    bytes_text(b, ",\"HOME=/tmp\",\"TMPDIR=/tmp\"");
    for (size_t i = 0; i < base->nimage_env; i++) {
        static const char *const ours[] = {"PATH", "LANG", "HOME", "TMPDIR"};
        bool own = false;
        for (size_t j = 0; j < 4; j++) {
            own = own || strcmp(base->image_env[i], ours[j]) == 0;
        }
        if (!own) {
            bytes_text(b, ",");
            text(b, base->image_env[i]);
        }
    }
    bytes_text(b, "]");
}

static void add_command(const struct sy_launch *l, struct bytes *b)
{
    /* The image's own interpreter: argv[0] is a path of the gateway's host. */
    bytes_text(b, ",\"Entrypoint\":[\"python3\"],\"Cmd\":[");
    for (size_t i = 1; i < l->nargv; i++) {
        bytes_text(b, i > 1 ? "," : "");
        bytes_json(b, l->argv[i].ptr, l->argv[i].len);
    }
    bytes_text(b, "]");
}

static void ulimit(struct bytes *b, const char *name, uint64_t soft, uint64_t hard)
{
    bytes_fmt(b, ",{\"Name\":\"%s\",\"Soft\":%" PRIu64 ",\"Hard\":%" PRIu64 "}", name,
              soft, hard);
}

static void add_ulimits(const struct sy_launch *l, struct bytes *b)
{
    /* 1 and not 0: with 0 a handler behind a pipe would still get the core. */
    bytes_text(b, ",\"Ulimits\":[{\"Name\":\"core\",\"Soft\":1,\"Hard\":1}");
    if (l->max_files > 0) {
        ulimit(b, "nofile", l->max_files, l->max_files);
    }
    if (l->cpu_ms > 0) {
        uint64_t seconds = (l->cpu_ms + 999) / 1000;
        ulimit(b, "cpu", seconds, seconds + 1);
    }
    if (l->file_bytes > 0 && l->file_bytes <= INT64_MAX) {
        ulimit(b, "fsize", l->file_bytes, l->file_bytes);
    }
    /* No engine sets the address space: the harness does, where it can. This one holds
     * for interpreters that cannot. */
    if (l->mem_bytes >= DATA_MIN && l->mem_bytes <= INT64_MAX) {
        ulimit(b, "data", l->mem_bytes, l->mem_bytes);
    }
    bytes_text(b, "]");
}

static void add_host(const struct sy_launch *l, const struct spec_base *base,
                     struct bytes *b)
{
    uint64_t memory = spec_memory(l);
    bytes_text(b, ",\"HostConfig\":{\"NetworkMode\":");
    text(b, base->network);
    bytes_text(b, ",\"ReadonlyRootfs\":true,\"CapDrop\":[\"ALL\"],\"Privileged\":false,"
                  "\"SecurityOpt\":[\"no-new-privileges\"],\"IpcMode\":\"none\","
                  "\"Init\":true,\"AutoRemove\":false,"
                  "\"LogConfig\":{\"Type\":\"none\",\"Config\":{}},"
                  "\"RestartPolicy\":{\"Name\":\"no\"},\"NanoCpus\":1000000000");
    bytes_fmt(b, ",\"PidsLimit\":%" PRIu64, pids(l));
    if (memory > 0) {
        bytes_fmt(b, ",\"Memory\":%" PRIu64 ",\"MemorySwap\":%" PRIu64, memory, memory);
    }
    bytes_fmt(
        b, ",\"Tmpfs\":{\"/tmp\":\"rw,nosuid,nodev,noexec,mode=1777,size=%" PRIu64 "\"",
        tmp_bytes(l));
    /* Of the container alone: locks of multiprocessing need it. */
    bytes_text(b, ",\"/dev/shm\":\"rw,nosuid,nodev,noexec,mode=1777,size=16777216\"}");
    add_ulimits(l, b);
    bytes_text(b, ",\"Binds\":[");
    for (size_t i = 0; i < base->nbinds; i++) {
        bytes_text(b, i > 0 ? "," : "");
        text(b, base->binds[i]);
    }
    bytes_text(b, "]}");
}

sy_status spec_body(const struct sy_launch *l, const struct spec_base *base,
                    struct bytes *out, struct sy_error *err)
{
    if (l->mem_bytes > 0 && (l->must & SY_MUST_MEM) != 0 && l->mem_bytes < MEMORY_MIN) {
        return util_fail(err, SY_E_REFUSED,
                         "a container cannot keep a memory limit under 32 MB; raise "
                         "runtime.sandbox.memory_mb");
    }
    bytes_text(out, "{\"Image\":");
    text(out, base->image_id);
    bytes_text(out,
               ",\"User\":\"65534:65534\",\"WorkingDir\":\"/tmp\","
               "\"Hostname\":\"tool\",\"OpenStdin\":true,\"StdinOnce\":true,"
               "\"AttachStdin\":true,\"AttachStdout\":true,\"AttachStderr\":true,"
               "\"Tty\":false,\"StopSignal\":\"SIGKILL\",\"StopTimeout\":1,"
               "\"Healthcheck\":{\"Test\":[\"NONE\"]},\"Labels\":{\"" SPEC_LABEL "\":");
    text(out, base->owner);
    bytes_text(out, ",\"" SPEC_RUN_LABEL "\":");
    bytes_json(out, l->key.ptr, l->key.len < 16 ? l->key.len : 16);
    bytes_text(out, "}");
    add_command(l, out);
    add_env(base, out);
    add_host(l, base, out);
    bytes_text(out, "}");
    return out->bad ? util_fail(err, SY_E_NOMEM, "out of memory") : SY_OK;
}

/* ---- what the engine made of it ------------------------------------------------------ */

static const cJSON *get(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static bool list_has(const cJSON *list, const char *wanted)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) &&
            strncmp(item->valuestring, wanted, strlen(wanted)) == 0) {
            return true;
        }
    }
    return false;
}

static bool caps_dropped(const cJSON *host)
{
    const cJSON *drop = get(host, "CapDrop");
    /* Podman lists each one by name. */
    return (list_has(drop, "ALL") || list_has(drop, "all") ||
            cJSON_GetArraySize(drop) >= 8) &&
           cJSON_GetArraySize(get(host, "CapAdd")) == 0 &&
           !cJSON_IsTrue(get(host, "Privileged"));
}

static bool has_ulimit(const cJSON *host, const char *name, uint64_t soft)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, get(host, "Ulimits"))
    {
        const cJSON *n = get(item, "Name");
        const cJSON *v = get(item, "Soft");
        /* Podman: RLIMIT_NOFILE. */
        const char *got = cJSON_IsString(n) ? n->valuestring : "";
        got = strncmp(got, "RLIMIT_", 7) == 0 ? got + 7 : got;
        bool same = strlen(got) == strlen(name);
        for (size_t i = 0; same && name[i] != '\0'; i++) {
            same = (got[i] | 0x20) == name[i];
        }
        if (same && cJSON_IsNumber(v) && v->valuedouble <= (double)soft) {
            return true;
        }
    }
    return false;
}

static bool at_most(const cJSON *host, const char *name, uint64_t limit)
{
    const cJSON *v = get(host, name);
    return cJSON_IsNumber(v) && v->valuedouble > 0 && v->valuedouble <= (double)limit;
}

static const char *verify_host(const struct sy_launch *l, const struct spec_base *base,
                               const cJSON *host)
{
    const cJSON *mode = get(host, "NetworkMode");
    uint64_t memory = spec_memory(l);
    if (!cJSON_IsString(mode) || strcmp(mode->valuestring, base->network) != 0) {
        return "network";
    }
    if (!cJSON_IsTrue(get(host, "ReadonlyRootfs"))) {
        return "read-only root";
    }
    if (!caps_dropped(host)) {
        return "dropped capabilities";
    }
    if (!list_has(get(host, "SecurityOpt"), "no-new-privileges")) {
        return "no-new-privileges";
    }
    if (!at_most(host, "PidsLimit", pids(l))) {
        return "process limit";
    }
    if (memory > 0 && !at_most(host, "Memory", memory)) {
        return "memory limit";
    }
    if (l->max_files > 0 && !has_ulimit(host, "nofile", l->max_files)) {
        return "open files limit";
    }
    if (l->cpu_ms > 0 && !has_ulimit(host, "cpu", (l->cpu_ms + 999) / 1000)) {
        return "CPU limit";
    }
    if (l->file_bytes > 0 && !has_ulimit(host, "fsize", l->file_bytes)) {
        return "file size limit";
    }
    return NULL;
}

const char *spec_verify(const struct sy_launch *l, const struct spec_base *base,
                        const char *json, size_t len)
{
    cJSON *root = cJSON_ParseWithLength(json, len);
    const char *missing = verify_host(l, base, get(root, "HostConfig"));
    const cJSON *user = get(get(root, "Config"), "User");
    if (missing == NULL &&
        (!cJSON_IsString(user) || strncmp(user->valuestring, "65534", 5) != 0)) {
        missing = "unprivileged user";
    }
    if (missing == NULL && (size_t)cJSON_GetArraySize(
                               get(get(root, "HostConfig"), "Binds")) != base->nbinds) {
        missing = "list of volumes";
    }
    cJSON_Delete(root);
    return missing;
}
