/* executor "docker": each call in a container of its own, through the engine's HTTP API on
 * its unix socket. Comes in: plans of the core. Goes out: bytes and an end. What a
 * container may do is a positive list (spec.c); nothing of a plan is weakened, and no
 * program of the host is started. */
#include "docker.h"

#include <cjson/cJSON.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define ENFORCES \
    (SY_MUST_FS_ROOT | SY_MUST_MEM | SY_MUST_PIDS | SY_MUST_CPU_TIME | \
     SY_MUST_NO_NEW_PRIV | SY_MUST_KILL_TREE | SY_MUST_FILES | SY_MUST_FILE_SIZE)

static const struct sy_cfg_key docker_keys[] = {
    {"image", SY_CFG_STR, 0, "python:3.12-slim",
     "Image that tools run in; needs python3 on its PATH and has to be pulled before."},
    {"network", SY_CFG_STR, 0, "none",
     "The containers' network: none, bridge, host or the name of one; none is isolated."},
    {"volumes", SY_CFG_LIST, 0, NULL,
     "What of the host a container sees, each as host:container or host:container:ro."},
    {"socket", SY_CFG_STR, 0, "/var/run/docker.sock",
     "Unix socket of the engine; podman's compatible one works too."},
    {"standby", SY_CFG_INT, 0, "1",
     "Started containers kept ready for each kind of launch; 0 starts one at each call."},
    {"max_idle", SY_CFG_INT, 0, "16", "Most containers kept ready over all kinds."},
    {NULL, 0, 0, NULL, NULL},
};

/* ---- configuration ------------------------------------------------------------------- */

static bool plain_chars(const char *s, const char *more)
{
    if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
          (*s >= '0' && *s <= '9'))) {
        return false;
    }
    for (; *s != '\0'; s++) {
        bool word = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                    (*s >= '0' && *s <= '9');
        if (!word && strchr(more, *s) == NULL) {
            return false;
        }
    }
    return true;
}

static sy_status check_texts(const struct docker *d, struct sy_error *err)
{
    if (d->image == NULL || strlen(d->image) > 255 || !plain_chars(d->image, "._-/:@") ||
        strstr(d->image, "..") != NULL || strstr(d->image, "//") != NULL) {
        return util_fail(err, SY_E_INVALID,
                         "executor.docker_image: \"%.80s\" is no image name; write "
                         "name:tag or name@sha256:...",
                         d->image != NULL ? d->image : "");
    }
    /* No colon: "container:ID" would share another container's network. */
    if (d->network == NULL || strlen(d->network) > 128 ||
        !plain_chars(d->network, "._-")) {
        return util_fail(err, SY_E_INVALID,
                         "executor.docker_network: \"%.80s\" is refused; write none, "
                         "bridge, host or the name of a network",
                         d->network != NULL ? d->network : "");
    }
    if (d->socket == NULL || d->socket[0] != '/' || strlen(d->socket) > 107) {
        return util_fail(
            err, SY_E_INVALID,
            "executor.docker_socket: \"%.80s\" is not an absolute path of at "
            "most 107 bytes",
            d->socket != NULL ? d->socket : "");
    }
    return SY_OK;
}

static sy_status check_volumes(const struct docker *d, struct sy_error *err)
{
    sy_status st = SY_OK;
    for (size_t i = 0; st == SY_OK && i < d->nvolumes; i++) {
        struct bytes bind;
        bytes_init(&bind, 16384);
        st = volume_check((struct sy_str){d->volumes[i], strlen(d->volumes[i])},
                          d->socket, &bind, err);
        bytes_done(&bind);
    }
    return st;
}

static sy_status take_list(struct docker *d, const struct sy_cfg_value *v)
{
    d->volumes = calloc(v->nlist + 1, sizeof *d->volumes);
    if (d->volumes == NULL) {
        return SY_E_NOMEM;
    }
    for (size_t i = 0; i < v->nlist; i++) {
        d->volumes[i] = util_copy(v->list[i].ptr, v->list[i].len);
        if (d->volumes[i] == NULL) {
            return SY_E_NOMEM;
        }
        d->nvolumes++;
    }
    return SY_OK;
}

static bool is_key(const struct sy_cfg_value *v, const char *name)
{
    return v->key.len == strlen(name) && memcmp(v->key.ptr, name, v->key.len) == 0;
}

static sy_status take_value(struct docker *d, const struct sy_cfg_value *v,
                            struct sy_error *err)
{
    char **text = is_key(v, "image")     ? &d->image
                  : is_key(v, "network") ? &d->network
                  : is_key(v, "socket")  ? &d->socket
                                         : NULL;
    if (text != NULL) {
        free(*text);
        *text = util_copy(v->s.ptr, v->s.len);
        return *text != NULL ? SY_OK : util_fail(err, SY_E_NOMEM, "out of memory");
    }
    if (is_key(v, "volumes") && d->volumes == NULL) {
        return take_list(d, v) == SY_OK ? SY_OK
                                        : util_fail(err, SY_E_NOMEM, "out of memory");
    }
    if (is_key(v, "standby") || is_key(v, "max_idle")) {
        if (v->i < 0 || v->i > STOCK_MAX) {
            return util_fail(err, SY_E_INVALID, "executor.%s must be 0 to %d",
                             is_key(v, "standby") ? "docker_standby" : "max_idle",
                             STOCK_MAX);
        }
        *(is_key(v, "standby") ? &d->standby : &d->max_idle) = (size_t)v->i;
    }
    return SY_OK;
}

/* ---- create and destroy ---------------------------------------------------------------- */

static void docker_free(struct docker *d)
{
    for (size_t i = 0; i < d->nwants; i++) {
        want_free(d->wants[i]);
    }
    for (size_t i = 0; i < d->nstock; i++) {
        box_free(d->stock[i]);
    }
    for (size_t i = 0; i < d->ntrash; i++) {
        box_free(d->trash[i].box);
    }
    for (size_t i = 0; i < d->nvolumes; i++) {
        free(d->volumes[i]);
    }
    for (size_t i = 0; i < d->nimage_env; i++) {
        free(d->image_env[i]);
    }
    free(d->image_env);
    free(d->image_path);
    free(d->image_lang);
    free(d->volumes);
    free(d->image);
    free(d->network);
    free(d->socket);
    if (d->wake_fd >= 0) {
        (void)close(d->wake_fd);
    }
    (void)pthread_mutex_destroy(&d->lock);
    (void)pthread_mutex_destroy(&d->connecting);
    free(d);
}

static sy_status make_identity(struct docker *d, struct sy_error *err)
{
    unsigned char id[8];
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->wake_fd < 0 || getrandom(id, sizeof id, 0) != (ssize_t)sizeof id) {
        return util_fail(err, SY_E_IO, "no event descriptor or no random numbers");
    }
    for (size_t i = 0; i < sizeof id; i++) {
        (void)snprintf(d->instance + 2 * i, 3, "%02x", id[i]);
    }
    if (!keeper_own_label(d->instance, d->owner, sizeof d->owner)) {
        return util_fail(err, SY_E_IO, "/proc/self cannot be read");
    }
    return SY_OK;
}

static sy_status docker_start(void *self, struct sy_error *err)
{
    return keeper_start(self, err);
}

static void docker_stop(void *self)
{
    keeper_stop(self);
}

static void docker_prepare(void *self, const struct sy_launch *launch)
{
    stock_want(self, launch);
}

static void docker_retire(void *self, uint64_t launch_id)
{
    stock_retire(self, launch_id);
}

static void write_check(struct docker *d, struct bytes *b)
{
    (void)pthread_mutex_lock(&d->lock);
    bytes_text(b, "{\"engine\":");
    bytes_json(b, d->version, strlen(d->version));
    bytes_fmt(b, ",\"api\":\"1.%u\",\"socket\":", d->api);
    bytes_json(b, d->socket, strlen(d->socket));
    bytes_text(b, ",\"image\":");
    bytes_json(b, d->image, strlen(d->image));
    bytes_text(b, ",\"digest\":");
    bytes_json(b, d->image_id, strlen(d->image_id));
    bytes_text(b, ",\"network\":");
    bytes_json(b, d->network, strlen(d->network));
    bytes_fmt(b,
              ",\"volumes\":%zu,\"standby\":%zu,\"ready\":%zu,\"layers\":[\"namespaces\","
              "\"read-only root\",\"no capabilities\",\"no-new-privileges\",\"seccomp of "
              "the engine\",\"cgroup memory, cpu, pids\",\"uid 65534\"%s]}",
              d->nvolumes, d->standby, d->nstock,
              strcmp(d->network, "none") == 0 ? ",\"no network\"" : "");
    (void)pthread_mutex_unlock(&d->lock);
}

static sy_status docker_check(void *self, int64_t deadline_ms, void *out_ctx,
                              void (*out)(void *out_ctx, struct sy_str json),
                              struct sy_error *err)
{
    struct docker *d = self;
    const struct span s = {.cancel_fd = -1, .deadline_ms = deadline_ms};
    struct bytes b;
    sy_status st = keeper_ask(d, &s, err);
    if (st != SY_OK) {
        return st;
    }
    bytes_init(&b, 65536);
    write_check(d, &b);
    if (b.bad) {
        st = util_fail(err, SY_E_NOMEM, "out of memory");
    } else {
        out(out_ctx, (struct sy_str){b.p, b.n});
    }
    bytes_done(&b);
    return st;
}

static void fill_table(struct docker *d)
{
    bool shared = strcmp(d->network, "host") == 0;
    d->table = (struct sy_executor){
        .size = sizeof d->table,
        .max_parallel = PARALLEL,
        .enforces = ENFORCES | (shared ? 0 : SY_MUST_NAMESPACES) |
                    (strcmp(d->network, "none") == 0 ? SY_MUST_NO_NET : 0),
        .start = docker_start,
        .stop = docker_stop,
        .run = docker_run,
        .prepare = docker_prepare,
        .retire = docker_retire,
        .check = docker_check,
    };
}

static sy_status docker_create(const struct sy_host *host, const struct sy_cfg_value *cfg,
                               size_t ncfg, void **out, struct sy_error *err)
{
    struct docker *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return util_fail(err, SY_E_NOMEM, "out of memory");
    }
    d->wake_fd = -1;
    d->host = host;
    d->standby = 1;
    d->max_idle = 16;
    if (pthread_mutex_init(&d->lock, NULL) != 0) {
        free(d);
        return util_fail(err, SY_E_NOMEM, "out of memory");
    }
    if (pthread_mutex_init(&d->connecting, NULL) != 0) {
        (void)pthread_mutex_destroy(&d->lock);
        free(d);
        return util_fail(err, SY_E_NOMEM, "out of memory");
    }
    sy_status st = SY_OK;
    for (size_t i = 0; st == SY_OK && i < ncfg; i++) {
        st = take_value(d, &cfg[i], err);
    }
    if (st == SY_OK) {
        st = check_texts(d, err);
    }
    if (st == SY_OK) {
        st = check_volumes(d, err);
    }
    if (st == SY_OK) {
        st = make_identity(d, err);
    }
    if (st != SY_OK) {
        docker_free(d);
        return st;
    }
    d->engine = (struct engine){.host = host, .socket = d->socket};
    fill_table(d);
    *out = d;
    return SY_OK;
}

static void docker_destroy(void *self)
{
    if (self != NULL) {
        docker_free(self);
    }
}

static const void *docker_query(void *self, const char *id)
{
    const struct docker *d = self;
    return strcmp(id, SY_EXECUTOR_ID) == 0 ? &d->table : NULL;
}

SY_EXPORT const struct sy_plugin soulacy_plugin_v1 = {
    .size = sizeof soulacy_plugin_v1,
    .abi_minor = SY_ABI_MINOR,
    .min_host_minor = 0,
    .kind = SY_KIND_EXECUTOR,
    .name = "docker",
    .version = "0.1.0",
    .keys = docker_keys,
    .create = docker_create,
    .destroy = docker_destroy,
    .query = docker_query,
};
