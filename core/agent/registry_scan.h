/* Which files are agents, and when to look again. Private to the registry. */
#ifndef SOULACY_AGENT_REGISTRY_SCAN_H
#define SOULACY_AGENT_REGISTRY_SCAN_H

#include "base/arena.h"
#include "base/error.h"

/* Folders under inotify. A scan names the folders it needs; those that the last scan did
 * not name are dropped. */
struct watcher {
    int fd; /* -1: inotify is not to be had, nothing is noticed */
    struct watch *list;
    size_t n, cap;
};

enum status watcher_open(struct watcher *w, struct error *err) SY_MUST_CHECK;
void watcher_done(struct watcher *w);
/* Take what has happened. True when a look at the files is due: something that may
 * matter happened, or nothing at all did (the caller has its own reasons then). cares is
 * asked about each written file by its bare name. */
bool watcher_drain(struct watcher *w, bool (*cares)(void *ctx, const char *name),
                   void *ctx);
void watcher_begin(struct watcher *w); /* a scan starts */
/* Watch the folder of this file, or the nearest one above it that exists. Failures are
 * dropped: the file is read all the same, only later. */
void watcher_add_folder_of(struct watcher *w, const char *file);
void watcher_end(struct watcher *w); /* the scan is over */

/* DIR/NAME/SOUL.yaml and DIR/NAME.soul.yaml of every folder, sorted by path, each once,
 * in the arena. Names that begin with a dot are passed over (editors keep theirs so).
 * Folders are watched before they are read, so no change is missed. */
enum status scan_agents(const char *const *dirs, size_t ndirs, struct watcher *w,
                        struct arena *a, const char ***files, size_t *n,
                        struct error *err) SY_MUST_CHECK;

#endif
