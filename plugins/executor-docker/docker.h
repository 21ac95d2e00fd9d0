/* What the files of executor-docker share. */
#ifndef SOULACY_DOCKER_H
#define SOULACY_DOCKER_H

#include "engine.h"
#include "frames.h"
#include "spec.h"
#include "volumes.h"

#include <pthread.h>

#define STOCK_MAX 64
#define WANTS_MAX 32
#define TRASH_MAX 256
#define LIVE_MAX 256
#define PARALLEL 16
#define NAME_MAX_LEN 64
#define KEY_LEN 64

#define STEP_FAST_MS 5000    /* requests an engine answers at once */
#define STEP_CREATE_MS 15000 /* under load these take longer */
#define STEP_START_MS 30000
#define STEP_UP_MS 30000 /* start to the interpreter's first byte */
#define STEP_DELETE_MS 15000

/* A started container whose interpreter has taken the preamble and said that it is up. It
 * serves one call. */
struct box {
    char name[NAME_MAX_LEN];
    uint64_t number; /* in d->live while it may exist */
    char key[KEY_LEN + 1];
    unsigned epoch;
    bool made; /* the engine has said so */
    int attach_fd, wait_fd;
    struct frames frames;
    struct http_reader wait;
    struct bytes early; /* log text before the call */
    bool up;
    int64_t made_ms;
};

/* A launch that was used or announced: what stock is made from. Owned copies. */
struct want {
    struct sy_launch launch;
    struct sy_str *argv;
    char *key, *preamble;
    int64_t used_ms;
};

/* A container that has to go. box may be NULL: then only its name is known. */
struct trash {
    struct box *box;
    char name[NAME_MAX_LEN];
    uint64_t number; /* 0: another gateway's */
    bool sure;       /* it exists: 404 means that it is gone */
    int64_t since_ms, next_ms, pause_ms;
};

enum engine_state { ENGINE_NEW, ENGINE_DOWN, ENGINE_UP };

struct docker {
    const struct sy_host *host;
    struct sy_executor table; /* enforces depends on the configuration */
    /* Configuration: constant after create(). */
    char *image, *network, *socket;
    char **volumes;
    size_t nvolumes;
    size_t standby, max_idle;
    struct engine engine;
    char instance[17];
    char owner[320];

    pthread_mutex_t connecting; /* one at a time asks the engine who it is */
    pthread_mutex_t lock;       /* guards the rest; held over no request */
    enum engine_state state;
    unsigned api, epoch;
    char version[48];
    char why[240]; /* when down */
    int64_t retry_ms, pause_ms;
    char image_id[96]; /* pinned once found; "" before */
    char *image_path, *image_lang;
    char **image_env;
    size_t nimage_env;
    uint64_t next_number;
    uint64_t live[LIVE_MAX];
    size_t nlive;
    struct box *stock[STOCK_MAX]; /* oldest first */
    size_t nstock;
    struct want *wants[WANTS_MAX];
    size_t nwants;
    struct trash trash[TRASH_MAX];
    size_t ntrash;
    int64_t refill_ms, refill_pause_ms;
    bool suspect; /* ask the engine whether it is still there */
    bool stopping;

    int wake_fd; /* eventfd: the keeper has something to do */
    pthread_t keeper;
    bool started;
};

/* ---- box.c: one container ---- */

/* create, attach, wait, start, preamble, up. SY_E_REFUSED: the engine does not keep a
 * constraint. Nothing of it is left on failure, or it is in the trash. */
sy_status box_make(struct docker *d, const struct sy_launch *l, const struct span *s,
                   struct box **out, struct sy_error *err);
/* Close its connections, then kill and delete the container; what fails is left to the
 * keeper. Frees the box. */
void box_end(struct docker *d, struct box *b);
/* DELETE. SY_OK: gone, or going. */
sy_status box_delete(struct docker *d, const char *name, int64_t limit_ms,
                     bool *was_there);
/* Exit code and whether memory ran out, once the attached stream is at its end.
 * SY_E_IO: the engine is gone. */
sy_status box_exit(struct docker *d, struct box *b, int *code, bool *oom,
                   struct sy_error *err);
void box_free(struct box *b);
/* "/v1.41" and path into out. */
void docker_path(struct docker *d, char *out, size_t cap, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- stock.c: what is ready and what is wanted ---- */

/* Remember the launch, so that the keeper makes stock for it. */
void stock_want(struct docker *d, const struct sy_launch *l);
void stock_retire(struct docker *d, uint64_t launch_id);
/* A live box for the launch, or NULL. */
struct box *stock_take(struct docker *d, const struct sy_launch *l);
/* Drop what is dead, idle for long, over max_idle or of an engine before this one. */
void stock_tidy(struct docker *d);
/* A copy of a launch for which stock is to be made now, or NULL. Free: want_free. */
struct want *stock_next(struct docker *d);
void stock_put(struct docker *d, struct box *b);
void stock_clear(struct docker *d);
void want_free(struct want *w);
void trash_box(struct docker *d, struct box *b);
void trash_name(struct docker *d, const char *name, uint64_t number, bool sure);
void live_remove(struct docker *d, uint64_t number);
bool live_has(const struct docker *d, uint64_t number);

/* ---- keeper.c: the engine's state, the janitor ---- */

/* The engine is there and the image is known, or err says what to do. */
sy_status keeper_ready(struct docker *d, const struct span *s, struct sy_error *err);
/* As keeper_ready, and asks in any case. */
sy_status keeper_ask(struct docker *d, const struct span *s, struct sy_error *err);
void keeper_wake(struct docker *d);
/* A request failed: see whether the engine is gone. */
void keeper_suspect(struct docker *d);
sy_status keeper_start(struct docker *d, struct sy_error *err);
void keeper_stop(struct docker *d);

enum owner_is { OWNER_SELF, OWNER_DEAD, OWNER_OTHER };
/* Whose container it is, from its label. OTHER: alive, or not to be judged from here. */
enum owner_is keeper_owner(const char *label, const char *own);
/* This process as a label's text. */
bool keeper_own_label(const char *instance, char *out, size_t cap);

/* ---- run.c ---- */
sy_status docker_run(void *self, const struct sy_plan *plan, const struct sy_sink *sink,
                     struct sy_result *out, struct sy_error *err);

#endif
