/* soulacy/plugin.h - the contract between the gateway core and a plugin.
 *
 * A plugin is a shared object that exports one constant: soulacy_plugin_v1. The core
 * loads it because the configuration names it, checks that constant before it calls
 * anything in it, makes one instance, and reaches the plugin only through the tables
 * below. The plugin reaches the core only through struct sy_host; the core exports no
 * symbol.
 *
 * Thread words. Each function carries one:
 *   [core]    called on the core's control thread, never two at a time for one instance
 *   [worker]  called on a worker thread of the core; it may block until the deadline it
 *             was given. One call at a time for one instance, unless the interface says
 *             otherwise (sy_executor.max_parallel, sy_route.max_parallel)
 *   [any]     may be called from any thread, from create() until stop() (or destroy(),
 *             where an interface has no stop) has returned; never blocks on the network
 *
 * Lifetimes:
 *   borrowed  valid until the call it came with returns: copy what you keep
 *   No allocation crosses this border. Each side frees what it allocated. Results go
 *   through a callback or into the caller's memory. Handles are opaque; each comes back
 *   through the function named at its type.
 *
 * Units: times are int64_t milliseconds; `_ms` deadlines are CLOCK_MONOTONIC, `sent_ms`
 * and `at_ms` are Unix time. Sizes are bytes. Text is UTF-8.
 *
 * Growth: every struct that may grow begins with `size`, which the side that fills the
 * struct sets to its own sizeof. The reader copies min(size, sizeof) into a zeroed local
 * and treats what is missing as zero. A member behind minor 0 is read only under SY_HAS.
 * In a struct that is handed over to be filled in (sy_error, sy_sent, sy_result, sy_child
 * and the like) the owner of the memory sets size, and the other side writes no further.
 * Structs without `size` (spans, array elements) are frozen. In an array of structs that
 * have one, all elements bear the same size, and that is the distance from one to the
 * next. What may never happen inside major 1: reorder, resize, give an id or bit a second
 * meaning.
 *
 * Process-wide state belongs to the core: a plugin does not touch signals, umask, working
 * directory, environment, locale or stdio, does not fork or exec, and does not call exit.
 */
#ifndef SOULACY_PLUGIN_H
#define SOULACY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SY_ABI_MAJOR 1u /* also in the entry symbol's name */
#define SY_ABI_MINOR 0u /* grows when something is appended */

#if defined(__GNUC__)
#define SY_EXPORT __attribute__((visibility("default")))
#else
#define SY_EXPORT
#endif

/* True when *p, as the other side filled it in, is long enough to hold field. */
#define SY_HAS(p, type, field) \
    ((p)->size >= offsetof(type, field) + sizeof(((type *)0)->field))

/* ---- plain values -------------------------------------------------------------- */

/* A span of bytes, UTF-8 where it is text. Borrowed. In spans that the core hands out a
 * NUL follows the last byte; a plugin need not add one. ptr may be NULL when len is 0. */
struct sy_str {
    const char *ptr;
    size_t len;
};

/* Results. The values are frozen; new ones may be added, so treat an unknown negative
 * value as SY_E_INTERNAL. */
enum {
    SY_OK = 0,
    SY_E_INVALID = -1, /* the caller broke this contract */
    SY_E_NOMEM = -2,
    SY_E_UNSUPPORTED = -3, /* understood, cannot be done here */
    SY_E_REFUSED = -4,     /* a constraint cannot be enforced: nothing was run */
    SY_E_TIMEOUT = -5,
    SY_E_CANCELLED = -6,
    SY_E_BUSY = -7, /* back-pressure: keep the item and try later */
    SY_E_IO = -8,
    SY_E_AUTH = -9,
    SY_E_INTERNAL = -10
};
typedef int32_t sy_status;

/* Why a call failed. The memory is the caller's, filled in by the callee and only when it
 * fails. One line for an operator, no secrets, NUL-terminated. The core never passes NULL
 * for it; a plugin may. */
struct sy_error {
    uint32_t size;
    int32_t os_errno; /* 0 when no system call was at fault */
    char text[240];
};

/* ---- configuration -------------------------------------------------------------- */

/* Types of a plugin's configuration keys. */
enum {
    SY_CFG_STR = 1,      /* text in s */
    SY_CFG_INT = 2,      /* whole number in i */
    SY_CFG_BOOL = 3,     /* 0 or 1 in i */
    SY_CFG_SECRET = 4,   /* text in s; never printed by the core, not to be logged */
    SY_CFG_DURATION = 5, /* milliseconds in i; written 30s, 5m, 1h, 250ms */
    SY_CFG_LIST = 6,     /* list and nlist: texts */
    SY_CFG_JSON = 7 /* a mapping or sequence of any shape, as strict JSON text in s */
};

/* One key of a plugin, as data. The core parses the plugin's part of config.yaml, refuses
 * unknown keys, missing required ones and wrong types, fills in the fallback, and prints
 * the reference from this table. Static storage; frozen layout. */
struct sy_cfg_key {
    const char *name; /* lower-case letters, digits, '_' */
    uint32_t type;    /* SY_CFG_* */
    uint32_t required;
    const char *fallback; /* as it would be written in the file, or NULL: value absent */
    const char *help;     /* one sentence */
};

/* One value, given to create(). Borrowed; a key without value and fallback is absent.
 * Frozen layout. */
struct sy_cfg_value {
    struct sy_str key;
    uint32_t type;
    uint32_t reserved;
    int64_t i;
    struct sy_str s;
    const struct sy_str *list;
    size_t nlist;
};

/* ---- what the core offers ------------------------------------------------------- */

enum { SY_LOG_DEBUG = 0, SY_LOG_INFO = 1, SY_LOG_WARN = 2, SY_LOG_ERROR = 3 };

/* States a plugin may report of itself; shown in /readyz, `status` and `doctor`. */
enum { SY_HEALTH_OK = 0, SY_HEALTH_DEGRADED = 1, SY_HEALTH_DOWN = 2 };

/* Handed to create(); outlives the instance. Once stop() has returned nothing here or in
 * a service may be called any more, not from destroy() either; an instance that was never
 * started may call until destroy() has returned. */
struct sy_host {
    uint32_t size;
    uint32_t abi_minor; /* of the running core */
    void *ctx;          /* the core's; pass it back, never look inside */

    /* [any] Write one line to the core's log under this instance's name. Control bytes
     * are made visible, text over 4096 bytes is cut. */
    void (*log)(void *ctx, int32_t level, struct sy_str line);

    /* [core] A group of core services, or NULL when this core lacks it or this kind of
     * plugin is not granted it. The id carries its revision and never changes meaning:
     *   SY_HOST_CHANNEL_ID, SY_HOST_HTTP_ID, SY_HOST_FETCH_ID   channels
     *   SY_HOST_SPAWN_ID                                        executors
     *   SY_HOST_GATEWAY_ID                                      channel-http only
     * Static storage; every function of it takes this same ctx. */
    const void *(*service)(void *ctx, const char *id);

    /* [any] Say how this instance is. text: one line, what to do when not OK. */
    void (*health)(void *ctx, int32_t state, struct sy_str text);

    /* [any] CLOCK_MONOTONIC in milliseconds, the clock of every deadline here. */
    int64_t (*now_ms)(void *ctx);
};

/* ---- the entry ------------------------------------------------------------------ */

enum { SY_KIND_CHANNEL = 1, SY_KIND_EXECUTOR = 2 };

struct sy_plugin {
    uint32_t size;
    uint32_t abi_minor;      /* minor this file was built against: SY_ABI_MINOR */
    uint32_t min_host_minor; /* oldest core it can run under */
    uint32_t kind;           /* SY_KIND_* */
    const char *name;        /* [a-z][a-z0-9-]{0,31}, unique among the loaded ones */
    const char *version;     /* free text, shown to operators; at most 64 bytes */
    const struct sy_cfg_key *keys; /* ends with name == NULL; NULL: takes no keys */

    /* [core] Make an instance. No thread, no network, no blocking. cfg is borrowed, host
     * is not. On failure *out stays as it was and err says which key or which part. */
    sy_status (*create)(const struct sy_host *host, const struct sy_cfg_value *cfg,
                        size_t ncfg, void **out, struct sy_error *err);

    /* [core] Accepts NULL and an instance that was never started. After it returns
     * nothing of the instance runs. The file stays mapped for good. */
    void (*destroy)(void *self);

    /* [core] The plugin's side of an interface (SY_CHANNEL_ID, SY_EXECUTOR_ID), or NULL.
     * The core asks once, after create(), and keeps a copy of the table; what is behind it
     * stays as it is until destroy(). It may differ between instances. */
    const void *(*query)(void *self, const char *id);
};

/* The one exported symbol. A file that also speaks a later major exports both. */
extern SY_EXPORT const struct sy_plugin soulacy_plugin_v1;

#ifdef __cplusplus
}
#endif

#endif
