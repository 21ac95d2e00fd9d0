/* What the files of this folder share. */
#ifndef SOULACY_PLUGIN_INTERNAL_H
#define SOULACY_PLUGIN_INTERNAL_H

#include "plugin/plugin.h"

#include <pthread.h>

#define PLUGIN_MAGIC 0x736f756c61637931u

struct plugin_instance {
    uint64_t magic;
    /* Set while loading, constant afterwards. */
    struct plugin_entry entry;
    char name[PLUGIN_NAME_MAX + 1];
    char part[PLUGIN_NAME_MAX + 8]; /* "plugin NAME", for the log */
    char version[65];
    char *path;
    bool own;
    void *self;
    struct sy_host host;
    struct sy_channel channel;
    struct sy_executor executor;
    const struct plugin_service *services;
    size_t nservices;
    void *slots[PLUGIN_SLOTS];
    pthread_t control;
    int64_t grace_ms, stop_ms;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t idle;  /* downcalls fell to 0 */
    enum plugin_state state;
    bool stop_done;     /* stop() has returned and nothing of ours is in the plugin */
    bool given_up;      /* a call never came back: destroy() may not be called */
    bool late;          /* called after its end: this memory is kept for good */
    uint32_t downcalls; /* calls of ours into the plugin now */
    uint32_t runs;      /* of these, run() */
    uint32_t follows;   /* calls of PLUGIN_CALL_FOLLOWS now; not in downcalls */
    uint32_t upcalls;   /* calls of the plugin into the core now */
    uint64_t breaches;
    bool condemned;
    int32_t health;
    char health_text[256];
    struct log *log; /* NULL once the registry is gone */
    void (*on_condemned)(void *ctx, struct plugin_instance *p);
    void *condemned_ctx;
};

struct plugin_registry {
    struct plugin_registry_config cfg;
    char *plugin_dir; /* owned */
    pthread_t control;
    struct plugin_instance **items;
    size_t n, cap;
};

/* A file that passed its checks, open. The descriptor is named in /proc/self/fd for
 * dlopen and stays open for good once something was loaded through it. */
struct plugin_file {
    int fd;
    bool own;   /* it lies in plugin_dir */
    char *path; /* absolute, for people; owned */
};

enum status plugin_file_open(const char *plugin_dir, const struct plugin_spec *spec,
                             struct plugin_file *out, struct error *err) SY_MUST_CHECK;
void plugin_file_done(struct plugin_file *f);
/* EXE/../lib/soulacy of the running program; heap. */
enum status plugin_default_dir(char **out, struct error *err) SY_MUST_CHECK;
/* True for the names of this repository's plugins; *kind is theirs. */
bool plugin_reserved_name(const char *name, uint32_t *kind);

struct plugin_instance *plugin_instance_new(const struct plugin_registry *r,
                                            const struct plugin_entry *e,
                                            const struct plugin_file *f,
                                            struct error *err) SY_MUST_CHECK;
/* NULL is fine. Keeps what a late thread of the plugin may still touch. */
void plugin_instance_free(struct plugin_instance *p);
void plugin_set_state(struct plugin_instance *p, enum plugin_state s);
enum status plugin_registry_add(struct plugin_registry *r, struct plugin_instance *p,
                                struct error *err) SY_MUST_CHECK;

/* Fill in the host table of an instance. */
void plugin_host_init(struct plugin_instance *p);

/* Bracket a call into a started plugin. run: it is a run(), of which max_parallel may be
 * in flight. */
enum status plugin_downcall_begin(struct plugin_instance *p, bool run,
                                  struct error *err) SY_MUST_CHECK;
void plugin_downcall_end(struct plugin_instance *p, bool run);
/* A breach when the call came back later than its deadline and the grace. */
void plugin_check_deadline(struct plugin_instance *p, const char *what,
                           int64_t deadline_ms);
/* What a failed call said, made fit for our log. A value that is no known status is a
 * breach. `what`: "run()". */
enum status plugin_take_error(struct plugin_instance *p, const char *what, sy_status st,
                              const struct sy_error *from, struct error *err);
/* An empty sy_error for a call into a plugin. */
struct sy_error plugin_error_slot(void);

#endif
