/* Plugins: loading them, what they may call, and calling them.
 *
 * The runtime makes one registry, loads each plugin the configuration needs (plugin_load:
 * file check, dlopen, entry check, configuration, create, query), starts all of them last
 * (plugin_start), and stops them first. In between, other modules reach a plugin only
 * through the calls below, and a plugin reaches them only through the service tables the
 * runtime granted. Both ways are checked: state, sizes, UTF-8, must bits, deadlines. A
 * breach by the plugin is one log line "plugin misbehaving: RULE" and is counted; past
 * PLUGIN_MAX_BREACHES the instance is condemned: nothing more is asked of it or taken
 * from it, and the registry's owner stops it.
 *
 * Threads: functions marked [control] are called on the control thread only, the one that
 * made the registry; the others from any thread. Instances live until
 * plugin_registry_free. */
#ifndef SOULACY_PLUGIN_PLUGIN_H
#define SOULACY_PLUGIN_PLUGIN_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"

#include <soulacy/channel.h>
#include <soulacy/executor.h>

#define PLUGIN_MAX_BREACHES 100
#define PLUGIN_MAX_KEYS 128
#define PLUGIN_NAME_MAX 32

struct plugin_registry;
struct plugin_instance;

/* ---- the entry check (pure) ------------------------------------------------------- */

/* What the loader knows before it looks into the file. */
struct plugin_expect {
    uint32_t host_minor;
    uint32_t kind;    /* SY_KIND_*, or 0: either */
    const char *name; /* the name asked for, or NULL: any */
    bool own_dir;     /* the file lies in plugin_dir: it may bear a reserved name */
    const char *const *taken; /* names of the instances there are */
    size_t ntaken;
};

/* Our copy of an entry; what the plugin's table did not hold is zero. */
struct plugin_entry {
    struct sy_plugin p;
    size_t nkeys;
};

/* Check the constant behind `symbol` and copy it to out. err says what is wrong with it.
 * Calls nothing in the plugin. */
enum status plugin_entry_check(const void *symbol, const struct plugin_expect *want,
                               struct plugin_entry *out, struct error *err) SY_MUST_CHECK;

/* ---- registry --------------------------------------------------------------------- */

/* One group of services, granted by the table in host.c: channels get channel, http and
 * fetch, executors get spawn, our own channel-http gets gateway. An id without a row
 * there is given to nobody. Static storage. */
struct plugin_service {
    const char *id;    /* SY_HOST_*_ID */
    const void *table; /* its functions get the instance's ctx: see plugin_upcall_begin */
};

/* The plugin's own part of the configuration, checked against its key table. Values may
 * be borrowed from the configuration or made in the arena, which lives until create() has
 * returned. An unknown key, a wrong type or a missing required key is an error. */
typedef enum status (*plugin_values_fn)(void *ctx, uint32_t kind, const char *name,
                                        const struct sy_cfg_key *keys, size_t nkeys,
                                        struct arena *arena,
                                        const struct sy_cfg_value **out, size_t *nout,
                                        struct error *err);

/* One pointer of each module that serves plugins, kept for it in every instance. */
enum plugin_slot {
    PLUGIN_SLOT_CHANNEL = 0,
    PLUGIN_SLOT_HTTP,
    PLUGIN_SLOT_FETCH,
    PLUGIN_SLOT_GATEWAY,
    PLUGIN_SLOT_SPAWN,
    PLUGIN_SLOTS
};

struct plugin_registry_config {
    struct log *log;                       /* borrowed; NULL: silent */
    const char *plugin_dir;                /* NULL: EXE/../lib/soulacy; copied */
    const struct plugin_service *services; /* borrowed for good */
    size_t nservices;
    void *slots[PLUGIN_SLOTS]; /* what every new instance's slots hold, so that services
                                  work from create() on; a module may set another later */
    plugin_values_fn values;   /* NULL: no plugin gets values, and required keys fail */
    void *values_ctx;
    /* Called on any thread, once, when an instance has been condemned: have the control
     * thread call plugin_stop. May be NULL. */
    void (*condemned)(void *ctx, struct plugin_instance *p);
    void *condemned_ctx;
    int64_t grace_ms; /* how late a call may return before it is a breach; 0 = 1000 */
    int64_t stop_ms;  /* how long plugin_stop waits for calls in flight; 0 = 5000 */
};

enum status plugin_registry_new(const struct plugin_registry_config *cfg,
                                struct plugin_registry **out,
                                struct error *err) SY_MUST_CHECK; /* [control] */
/* [control] Stops and destroys what is left, last loaded first. NULL is fine. */
void plugin_registry_free(struct plugin_registry *r);

/* What the configuration names. */
struct plugin_spec {
    const char *path;   /* absolute, or a bare name: NAME -> plugin_dir/KIND-NAME.so */
    const char *sha256; /* 64 hex digits, or NULL */
    uint32_t kind;      /* SY_KIND_*, or 0: whatever it is */
    const char *name;   /* the plugin's own name must be this; NULL: any */
};

/* [control] Load, check, create and query; nothing is started. *out may be NULL. On
 * failure the error names the file and the reason, and the registry is as before (the
 * file stays mapped). */
enum status plugin_load(struct plugin_registry *r, const struct plugin_spec *spec,
                        struct plugin_instance **out, struct error *err) SY_MUST_CHECK;
/* [control] Once for an instance, after everything was loaded. */
enum status plugin_start(struct plugin_instance *p, struct error *err) SY_MUST_CHECK;
/* [control] Refuse new calls, wait for those in flight, then the plugin's stop(). An
 * instance that keeps a call beyond stop_ms is given up: neither stopped nor destroyed.
 * Harmless on what was never started. */
void plugin_stop(struct plugin_instance *p);

enum plugin_state {
    PLUGIN_CREATING = 0,
    PLUGIN_LOADED,
    PLUGIN_STARTING,
    PLUGIN_STARTED,
    PLUGIN_STOPPING,
    PLUGIN_STOPPED,
    PLUGIN_FAILED /* create, query or start failed, or it was given up */
};
const char *plugin_state_name(enum plugin_state s);

/* The instance of that kind (0: either) and name, or NULL. */
struct plugin_instance *plugin_find(const struct plugin_registry *r, uint32_t kind,
                                    const char *name);
size_t plugin_count(const struct plugin_registry *r);
struct plugin_instance *plugin_at(const struct plugin_registry *r, size_t i);

const char *plugin_name(const struct plugin_instance *p);
const char *plugin_version(const struct plugin_instance *p);
const char *plugin_path(const struct plugin_instance *p);
uint32_t plugin_kind(const struct plugin_instance *p);
bool plugin_is_own(const struct plugin_instance *p); /* its file lies in plugin_dir */
enum plugin_state plugin_state(struct plugin_instance *p);
bool plugin_condemned(struct plugin_instance *p);
uint64_t plugin_breaches(struct plugin_instance *p);
/* SY_HEALTH_*; text gets what the plugin said, NUL-terminated. DOWN when not started. */
int32_t plugin_health(struct plugin_instance *p, char text[256]);

/* ---- for modules behind a service table -------------------------------------------- */

/* Set a slot on the control thread, before the instance starts; the module frees what is
 * behind it after the registry is gone. */
void plugin_slot_set(struct plugin_instance *p, enum plugin_slot slot, void *value);
void *plugin_slot(const struct plugin_instance *p, enum plugin_slot slot);

/* From when on a service function may be called; all end when stop() has returned. */
enum plugin_when {
    PLUGIN_FROM_CREATE,      /* from create() on, any thread */
    PLUGIN_FROM_CREATE_CORE, /* the same, control thread only ([core] functions) */
    PLUGIN_FROM_START        /* from start() on, any thread */
};
/* First thing in each service function: the instance behind ctx, or NULL when the call is
 * a breach (counted and logged here; answer SY_E_INVALID) . `what` is the function's name
 * in that line. Each success needs plugin_upcall_end. */
struct plugin_instance *plugin_upcall_begin(void *ctx, const char *what,
                                            enum plugin_when when) SY_MUST_CHECK;
void plugin_upcall_end(struct plugin_instance *p);

/* Count a breach and log "plugin misbehaving: RULE". */
void plugin_misbehaved(struct plugin_instance *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* True when the span has bytes where it says so, at most max of them, and is UTF-8. Else
 * a breach is counted that names `what`. */
bool plugin_check_text(struct plugin_instance *p, const char *what, struct sy_str s,
                       size_t max);
/* Copy min(size, n) bytes of a struct that begins with uint32_t size into the zeroed *out
 * of n bytes; false (and a breach) when in is NULL or its size is below `required`. */
bool plugin_take_struct(struct plugin_instance *p, const char *what, const void *in,
                        size_t required, void *out, size_t n);
/* deliver() and report(): check the whole array and copy its elements into the arena
 * (spans stay borrowed). ST_INVALID with err set for the plugin; the breach is counted. */
enum status plugin_take_messages(struct plugin_instance *p, const struct sy_message *in,
                                 size_t n, struct arena *a, struct sy_message **out,
                                 struct error *err) SY_MUST_CHECK;
enum status plugin_take_deliveries(struct plugin_instance *p,
                                   const struct sy_delivery *in, size_t n,
                                   struct arena *a, struct sy_delivery **out,
                                   struct error *err) SY_MUST_CHECK;
/* Hand a failure to a plugin: writes what fits its sy_error (NULL is fine) and returns
 * the status as one that may cross (core-only values become SY_E_INTERNAL, ST_NOT_FOUND
 * and ST_TOO_LARGE SY_E_INVALID, ST_CONFLICT SY_E_REFUSED). */
sy_status plugin_give_error(const struct error *err, struct sy_error *out);

/* ---- other calls into a plugin ------------------------------------------------------- */

/* Bracket each call of a function that the plugin gave to a service (a route's handle(),
 * gone() and message(), a gateway call's line(); a fetch's out() needs none, the plugin
 * waits for it itself). False: it may not be called any more, and the memory behind it
 * may be gone.
 *   PLUGIN_CALL_WORK      something new: a request. Not while it is being stopped.
 *   PLUGIN_CALL_FOLLOWS   what follows from earlier work: a last line, gone(). Also while
 *                         stop() runs, which may wait for it. */
enum plugin_call { PLUGIN_CALL_WORK, PLUGIN_CALL_FOLLOWS };
bool plugin_call_begin(struct plugin_instance *p, enum plugin_call why) SY_MUST_CHECK;
void plugin_call_end(struct plugin_instance *p, enum plugin_call why);

/* ---- calls into executors ----------------------------------------------------------- */

uint64_t plugin_executor_enforces(const struct plugin_instance *p);
uint32_t plugin_executor_max_parallel(const struct plugin_instance *p); /* at least 1 */
/* Names of the must bits in `bits`, as in "namespaces, no network". */
void plugin_must_names(uint64_t bits, struct buf *out);

/* [worker] Run to the end. ST_REFUSED before anything is asked of the plugin when the
 * launch has a bit it does not enforce; ST_BUSY when max_parallel runs are in flight (the
 * caller queues); ST_CANCELLED when it is not started. result is filled in on ST_OK and,
 * as far as known, on other values too. */
enum status plugin_executor_run(struct plugin_instance *p, const struct sy_plan *plan,
                                const struct sy_sink *sink, struct sy_result *result,
                                struct error *err) SY_MUST_CHECK;
void plugin_executor_prepare(struct plugin_instance *p, const struct sy_launch *launch);
void plugin_executor_retire(struct plugin_instance *p, uint64_t launch_id);
/* ST_UNSUPPORTED when it has none. out gets one JSON object. */
enum status plugin_executor_check(struct plugin_instance *p, int64_t deadline_ms,
                                  struct buf *out, struct error *err) SY_MUST_CHECK;

/* ---- calls into channels -------------------------------------------------------------- */

bool plugin_channel_can_send(const struct plugin_instance *p);
uint32_t plugin_channel_max_text(const struct plugin_instance *p); /* 0: no limit */
/* [worker] ST_OK: out->outcome is one of SY_SENT_*, transport_id is valid UTF-8. Any
 * other value: SY_SENT_RETRY is in out, err says why. The caller keeps order within a
 * conversation. */
enum status plugin_channel_send(struct plugin_instance *p, const struct sy_outgoing *msg,
                                struct sy_sent *out, struct error *err) SY_MUST_CHECK;
void plugin_channel_typing(struct plugin_instance *p, struct sy_str account,
                           struct sy_str conversation, struct sy_str message_id,
                           bool busy, int64_t deadline_ms);

#endif
