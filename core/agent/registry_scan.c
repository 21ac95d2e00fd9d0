/* Agent files by folder, and inotify over their folders. In: agent folders. Out: paths in
 * order, and word that it is time to look again. Never reads an agent, never fails because
 * a folder is missing or cannot be watched. */
#include "agent/registry_scan.h"

#include "base/io.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define FILES_MAX 4096
#define WATCHES_MAX 4096
/* IN_CLOSE_WRITE rather than IN_MODIFY: a file is read when its writer is done with it. */
#define MASK \
    (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

struct watch {
    int wd;
    bool used; /* by the scan that runs */
};

enum status watcher_open(struct watcher *w, struct error *err)
{
    *w = (struct watcher){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    return w->fd >= 0 ? ST_OK : error_set_errno(err, ST_IO, errno, "inotify");
}

void watcher_done(struct watcher *w)
{
    io_close(&w->fd);
    mem_free(w->list);
    *w = (struct watcher){.fd = -1};
}

static bool event_matters(const struct inotify_event *e,
                          bool (*cares)(void *ctx, const char *name), void *ctx)
{
    if ((e->mask & IN_IGNORED) != 0) {
        return false;
    }
    /* Only plain writes come in floods (logs, caches), so only they are looked at. */
    bool just_written = (e->mask & IN_CLOSE_WRITE) != 0 && e->len != 0;
    return !just_written || cares(ctx, e->name);
}

bool watcher_drain(struct watcher *w, bool (*cares)(void *ctx, const char *name),
                   void *ctx)
{
    bool any = false;
    bool matters = false;
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t n = w->fd >= 0 ? io_read(w->fd, bytes, sizeof(bytes)) : 0;
    while (n > 0) {
        size_t at = 0;
        while (at < (size_t)n) {
            const struct inotify_event *e = (const void *)(bytes + at);
            matters = event_matters(e, cares, ctx) || matters;
            at += sizeof(*e) + e->len;
        }
        any = true;
        n = io_read(w->fd, bytes, sizeof(bytes));
    }
    return matters || !any;
}

void watcher_begin(struct watcher *w)
{
    for (size_t i = 0; i < w->n; i++) {
        w->list[i].used = false;
    }
}

/* false: the folder cannot be watched. */
static bool add_one(struct watcher *w, const char *folder)
{
    if (w->n == w->cap) {
        size_t cap = w->cap == 0 ? 16 : w->cap * 2;
        struct watch *more =
            cap <= WATCHES_MAX ? mem_realloc(w->list, cap * sizeof(*more)) : NULL;
        if (more == NULL) {
            return false;
        }
        w->list = more;
        w->cap = cap;
    }
    /* The kernel gives the same number for a folder that is watched already. */
    int wd = inotify_add_watch(w->fd, folder, MASK);
    if (wd < 0) {
        return false;
    }
    for (size_t i = 0; i < w->n; i++) {
        if (w->list[i].wd == wd) {
            w->list[i].used = true;
            return true;
        }
    }
    w->list[w->n++] = (struct watch){.wd = wd, .used = true};
    return true;
}

/* This folder, or the nearest one above it that exists. */
static void watcher_add(struct watcher *w, const char *folder)
{
    if (w->fd < 0) {
        return;
    }
    char *path = mem_strdup(folder);
    char *slash = path;
    while (path != NULL && slash != NULL && !add_one(w, path)) {
        slash = strrchr(path, '/');
        if (slash == path) {
            slash = path[1] != '\0' ? path + 1 : NULL; /* "/" itself is the last try */
        }
        if (slash != NULL) {
            *slash = '\0';
        }
    }
    mem_free(path);
}

void watcher_add_folder_of(struct watcher *w, const char *file)
{
    const char *slash = strrchr(file, '/');
    char *folder =
        slash == NULL || slash == file ? NULL : mem_dup(file, (size_t)(slash - file));
    if (folder != NULL) {
        watcher_add(w, folder);
        mem_free(folder);
    }
}

void watcher_end(struct watcher *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (w->list[i].used) {
            w->list[kept++] = w->list[i];
        } else {
            inotify_rm_watch(w->fd, w->list[i].wd); /* may be gone already */
        }
    }
    w->n = kept;
}

struct found {
    struct found *next;
    const char *path;
};

struct listing {
    struct watcher *w;
    struct arena *a;
    struct found *first;
    size_t n;
};

static enum status add_found(struct listing *l, const char *path, struct error *err)
{
    struct found *f = path != NULL ? arena_alloc(l->a, sizeof(*f)) : NULL;
    if (f == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for agent files");
    }
    if (l->n == FILES_MAX) {
        return error_set(err, ST_TOO_LARGE, "over %d agent files", FILES_MAX);
    }
    *f = (struct found){.next = l->first, .path = path};
    l->first = f;
    l->n++;
    return ST_OK;
}

/* One name of an agent folder: a file of ours, a folder with a SOUL.yaml, or nothing. */
static enum status look_at(struct listing *l, const char *dir, const char *name,
                           struct error *err)
{
    struct stat sb;
    if (name[0] == '.') {
        return ST_OK;
    }
    char *path = arena_printf(l->a, "%s/%s", dir, name);
    if (path == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for agent files");
    }
    if (stat(path, &sb) != 0) {
        return ST_OK;
    }
    if (!S_ISDIR(sb.st_mode)) {
        return str_ends(str_c(name), STR_LIT(".soul.yaml")) ? add_found(l, path, err)
                                                            : ST_OK;
    }
    watcher_add(l->w, path);
    path = arena_printf(l->a, "%s/SOUL.yaml", path);
    if (path == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for agent files");
    }
    return stat(path, &sb) == 0 ? add_found(l, path, err) : ST_OK;
}

static enum status list_dir(struct listing *l, const char *dir, struct error *err)
{
    watcher_add(l->w, dir);
    DIR *d = opendir(dir);
    if (d == NULL) {
        return ST_OK;
    }
    enum status st = ST_OK;
    /* glibc's readdir is safe for streams that are not shared. */
    /* cppcheck-suppress readdirCalled */
    for (const struct dirent *e = readdir(d); e != NULL && st == ST_OK; e = readdir(d)) {
        st = look_at(l, dir, e->d_name, err);
    }
    closedir(d);
    return st;
}

static int by_path(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

enum status scan_agents(const char *const *dirs, size_t ndirs, struct watcher *w,
                        struct arena *a, const char ***files, size_t *n,
                        struct error *err)
{
    struct listing l = {.w = w, .a = a};
    enum status st = ST_OK;
    for (size_t i = 0; i < ndirs && st == ST_OK; i++) {
        st = list_dir(&l, dirs[i], err);
    }
    if (st != ST_OK) {
        return st;
    }
    const char **all = arena_array(a, l.n, sizeof(*all));
    if (all == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for agent files");
    }
    size_t count = 0;
    for (const struct found *f = l.first; f != NULL; f = f->next) {
        all[count++] = f->path;
    }
    qsort(all, count, sizeof(*all), by_path);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        /* An agent folder listed twice. */
        if (kept == 0 || strcmp(all[kept - 1], all[i]) != 0) {
            all[kept++] = all[i];
        }
    }
    *files = all;
    *n = kept;
    return ST_OK;
}
