#define _GNU_SOURCE /* pipe2 */
/* In: spawn calls of an executor. Out: stand-ins for children, each a thread behind three
 * pipes that answers a request as a tool would. Nothing is ever executed. */
#include "check.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIFE_MS 20000

/* Reads until the request has come, the plugin's end is closed, or it is killed. Says that
 * it is up once the preamble is there, as the harness does. */
static bool await_request(struct check_child *k, int64_t until)
{
    struct buf b;
    bool asked = false;
    bool up = false;
    char block[4096];
    buf_init(&b, (size_t)1024 * 1024);
    while (!asked && io_wait(k->stdin_fd, POLLIN, k->killed.fd, until) == ST_OK) {
        ssize_t n = io_read(k->stdin_fd, block, sizeof block);
        if (n <= 0) {
            break;
        }
        buf_add(&b, block, (size_t)n);
        if (!up && str_find(buf_str(&b), STR_LIT(CHECK_PREAMBLE)) != SIZE_MAX) {
            up = true;
            if (io_write_all(k->stdout_fd, STR_LIT("UP\n"), k->killed.fd, until, NULL) !=
                ST_OK) {
                break;
            }
        }
        asked = str_find(buf_str(&b), STR_LIT(CHECK_REQUEST)) != SIZE_MAX;
    }
    buf_done(&b);
    return asked;
}

static void *child_main(void *arg)
{
    struct check_child *k = arg;
    int64_t until = clock_mono_ms() + LIFE_MS;
    if (await_request(k, until)) {
        enum status st = io_write_all(k->stderr_fd, STR_LIT("a line of log\n"),
                                      k->killed.fd, until, NULL);
        if (st == ST_OK) {
            st = io_write_all(k->stdout_fd, STR_LIT(CHECK_ANSWER), k->killed.fd, until,
                              NULL);
        }
        (void)st; /* a plugin that does not read is seen elsewhere */
    }
    io_close(&k->stdout_fd);
    io_close(&k->stderr_fd);
    event_fire(&k->ended);
    return NULL;
}

static bool open_pipes(struct check_child *k, struct error *err)
{
    k->stdin_fd = k->stdout_fd = k->stderr_fd = -1;
    k->ours.stdin_fd = k->ours.stdout_fd = k->ours.stderr_fd = -1;
    k->ended.fd = k->killed.fd = -1;
    return io_pipe(&k->stdin_fd, &k->ours.stdin_fd, err) == ST_OK &&
           io_pipe(&k->ours.stdout_fd, &k->stdout_fd, err) == ST_OK &&
           io_pipe(&k->ours.stderr_fd, &k->stderr_fd, err) == ST_OK &&
           io_nonblock(k->ours.stdin_fd, err) == ST_OK &&
           io_nonblock(k->ours.stdout_fd, err) == ST_OK &&
           io_nonblock(k->ours.stderr_fd, err) == ST_OK &&
           event_init(&k->ended, err) == ST_OK && event_init(&k->killed, err) == ST_OK;
}

static void close_all(struct check_child *k)
{
    io_close(&k->stdin_fd);
    io_close(&k->stdout_fd);
    io_close(&k->stderr_fd);
    io_close(&k->ours.stdin_fd);
    io_close(&k->ours.stdout_fd);
    io_close(&k->ours.stderr_fd);
    event_done(&k->ended);
    event_done(&k->killed);
}

static struct check_child *find(struct check *c, uint64_t id)
{
    for (size_t i = 0; i < CHECK_CHILDREN; i++) {
        if (c->children[i].id == id) {
            return &c->children[i];
        }
    }
    return NULL;
}

static sy_status spawn(void *ctx, uint64_t launch_id, struct sy_child *out,
                       struct sy_error *err)
{
    struct check *c = NULL;
    struct error why;
    struct plugin_instance *p = check_enter(ctx, "spawn", PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return check_refuse(err, SY_E_INVALID);
    }
    bool ok = launch_id == 1 && out != NULL;
    if (!ok) {
        plugin_misbehaved(p, "spawn: launch %llu is not one of the core's, or no memory",
                          (unsigned long long)launch_id);
    }
    plugin_upcall_end(p);
    if (!ok || check_fails(c)) {
        return check_refuse(err, ok ? SY_E_IO : SY_E_INVALID);
    }
    (void)pthread_mutex_lock(&c->lock);
    struct check_child *k = find(c, 0);
    bool made = k != NULL && open_pipes(k, &why);
    if (made) {
        k->check = c;
        k->ours.size = sizeof k->ours;
        k->ours.exit_fd = k->ended.fd;
        made = pthread_create(&k->thread, NULL, child_main, k) == 0;
    }
    if (made) {
        k->id = k->ours.id = ++c->next_child;
        *out = k->ours;
    } else if (k != NULL) {
        close_all(k);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return made ? SY_OK : check_refuse(err, SY_E_NOMEM);
}

static void kill_child(void *ctx, uint64_t child_id)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, "kill", PLUGIN_FROM_START, &c);
    if (p == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&c->lock);
    struct check_child *k = child_id != 0 ? find(c, child_id) : NULL;
    if (k != NULL) {
        event_fire(&k->killed);
    }
    (void)pthread_mutex_unlock(&c->lock);
    if (k == NULL) {
        plugin_misbehaved(p, "kill: no such child, or it was reaped");
    }
    plugin_upcall_end(p);
}

static sy_status layers(void *ctx, uint64_t child_id, char *text, size_t cap)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, "layers", PLUGIN_FROM_START, &c);
    (void)child_id;
    if (p == NULL) {
        return SY_E_INVALID;
    }
    (void)snprintf(text, cap, "{}");
    plugin_upcall_end(p);
    return check_fails(c) ? SY_E_BUSY : SY_OK;
}

static void end_child(struct check_child *k)
{
    event_fire(&k->killed);
    (void)pthread_join(k->thread, NULL);
    close_all(k);
}

static sy_status reap(void *ctx, uint64_t child_id, int64_t deadline_ms,
                      struct sy_child_exit *out)
{
    struct check *c = NULL;
    struct plugin_instance *p = check_enter(ctx, "reap", PLUGIN_FROM_START, &c);
    (void)deadline_ms;
    if (p == NULL) {
        return SY_E_INVALID;
    }
    (void)pthread_mutex_lock(&c->lock);
    struct check_child *k = child_id != 0 ? find(c, child_id) : NULL;
    (void)pthread_mutex_unlock(&c->lock);
    if (k == NULL) {
        plugin_misbehaved(p, "reap: no such child, or it was reaped before");
        plugin_upcall_end(p);
        return SY_E_INVALID;
    }
    end_child(k);
    (void)pthread_mutex_lock(&c->lock);
    k->id = 0;
    (void)pthread_mutex_unlock(&c->lock);
    struct sy_child_exit e;
    memset(&e, 0, sizeof e);
    e.size = out->size < sizeof e ? out->size : (uint32_t)sizeof e;
    e.cpu_ms = e.max_rss_bytes = -1;
    memcpy(out, &e, e.size);
    plugin_upcall_end(p);
    return check_fails(c) ? SY_E_TIMEOUT : SY_OK;
}

const struct sy_host_spawn check_spawn_service = {.size = sizeof check_spawn_service,
                                                  .spawn = spawn,
                                                  .kill = kill_child,
                                                  .layers = layers,
                                                  .reap = reap};

void check_spawn_done(struct check *c)
{
    size_t left = 0;
    for (size_t i = 0; i < CHECK_CHILDREN; i++) {
        if (c->children[i].id != 0) {
            end_child(&c->children[i]);
            c->children[i].id = 0;
            left++;
        }
    }
    if (left > 0) {
        check_fail(c, "left %zu children without reap() when stop() had returned", left);
    }
}
