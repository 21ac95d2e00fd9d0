/* Volumes. Comes in: the configuration's texts. Goes out: binds with resolved host paths,
 * or a refusal. It never lets through what leads out of a container: an engine's socket, a
 * folder above one, the root, or the kernel's file systems. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "volumes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool within(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const char *volume_refused(const char *real, const char *const *sockets, size_t n)
{
    static const char *const kernel[] = {"/proc", "/sys", "/dev"};
    if (strcmp(real, "/") == 0) {
        return "is the root of the host; mount the folder that the tools need";
    }
    for (size_t i = 0; i < sizeof kernel / sizeof kernel[0]; i++) {
        if (within(real, kernel[i])) {
            return "is in /proc, /sys or /dev, which no container may see";
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (within(sockets[i], real)) {
            return "is or holds a container engine's socket, which gives away the host";
        }
    }
    return NULL;
}

/* The real paths of what is there of the known sockets. Frees: each item. */
static size_t find_sockets(const char *socket, char *out[8])
{
    const char *const known[] = {socket,
                                 "/var/run/docker.sock",
                                 "/run/docker.sock",
                                 "/run/podman/podman.sock",
                                 "/run/containerd/containerd.sock",
                                 "/run/crio/crio.sock"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char *real = realpath(known[i], NULL);
        /* Not there yet is no reason to mount the folder it will be in. */
        char *path = real != NULL ? real : util_copy(known[i], strlen(known[i]));
        if (path != NULL) {
            out[n++] = path;
        }
    }
    return n;
}

static sy_status bad(struct sy_str spec, const char *why, struct sy_error *err)
{
    return util_fail(err, SY_E_INVALID, "executor.docker_volumes: \"%.*s\" %s",
                     (int)(spec.len < 80 ? spec.len : 80), spec.ptr, why);
}

static bool plain_path(const char *p, size_t n)
{
    if (n == 0 || p[0] != '/') {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f || p[i] == ':') {
            return false;
        }
        if (p[i] == '/' && i + 2 < n && p[i + 1] == '.' && p[i + 2] == '.' &&
            (i + 3 == n || p[i + 3] == '/')) {
            return false;
        }
    }
    return true;
}

/* Where the container has what it is made of. */
static bool taken_target(const char *p, size_t n)
{
    static const char *const taken[] = {"/proc", "/sys", "/dev"};
    char *text = util_copy(p, n);
    while (text != NULL && n > 1 && text[n - 1] == '/') {
        text[--n] = '\0';
    }
    bool hit = text == NULL || strcmp(text, "/") == 0 || strcmp(text, "/tmp") == 0;
    for (size_t i = 0; i < 3 && !hit; i++) {
        hit = within(text, taken[i]);
    }
    free(text);
    return hit;
}

static sy_status check_host(struct sy_str spec, const char *real, const char *socket,
                            struct sy_error *err)
{
    char *sockets[8];
    struct stat sb;
    if (!plain_path(real, strlen(real))) {
        return bad(spec, "resolves to a path with a colon or control character", err);
    }
    if (stat(real, &sb) != 0 || !(S_ISDIR(sb.st_mode) || S_ISREG(sb.st_mode))) {
        return bad(spec, "is neither a folder nor a file", err);
    }
    size_t n = find_sockets(socket, sockets);
    const char *why = volume_refused(real, (const char *const *)sockets, n);
    for (size_t i = 0; i < n; i++) {
        free(sockets[i]);
    }
    return why != NULL ? bad(spec, why, err) : SY_OK;
}

sy_status volume_check(struct sy_str spec, const char *socket, struct bytes *bind,
                       struct sy_error *err)
{
    const char *colon = spec.len > 0 ? memchr(spec.ptr, ':', spec.len) : NULL;
    if (colon == NULL) {
        return bad(spec, "is not host:container or host:container:ro", err);
    }
    size_t nhost = (size_t)(colon - spec.ptr);
    const char *target = colon + 1;
    size_t ntarget = spec.len - nhost - 1;
    bool read_only = ntarget > 3 && memcmp(target + ntarget - 3, ":ro", 3) == 0;
    if (read_only || (ntarget > 3 && memcmp(target + ntarget - 3, ":rw", 3) == 0)) {
        ntarget -= 3;
    }
    if (!plain_path(spec.ptr, nhost) || !plain_path(target, ntarget)) {
        return bad(spec, "needs two absolute paths without .. (host:container[:ro])",
                   err);
    }
    if (taken_target(target, ntarget)) {
        return bad(spec, "would hide the container's own /, /tmp, /proc, /sys or /dev",
                   err);
    }
    char *host = util_copy(spec.ptr, nhost);
    char *real = host != NULL ? realpath(host, NULL) : NULL;
    sy_status st = real != NULL
                       ? check_host(spec, real, socket, err)
                       : bad(spec, "names nothing on this host; make it first", err);
    if (st == SY_OK) {
        bytes_text(bind, real);
        bytes_text(bind, ":");
        bytes_add(bind, target, ntarget);
        bytes_text(bind, read_only ? ":ro" : ":rw");
        st = bind->bad ? util_fail(err, SY_E_NOMEM, "out of memory") : SY_OK;
    }
    free(real);
    free(host);
    return st;
}
