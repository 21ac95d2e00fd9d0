/* soulacy/executor.h - carry out a plan exactly, or not at all.
 *
 * An executor decides nothing. The core has gated the call, worked out what it may touch
 * and written the bytes that go in; the executor moves bytes and keeps the constraints.
 *
 * A plan has two halves. The *launch* is what shapes the process (command, environment,
 * limits, isolation, mounts) and nothing of any call: equal launch keys may share stock
 * made before the call. The *call* is one request, one deadline, one cancel descriptor.
 *
 * The bytes: the launch's command reads `preamble` and then one `request` from its
 * standard input, writes one answer on standard output and log text on standard error.
 * Only the core reads the answer: hand over what arrives, as it arrives, until the core
 * says enough.
 *
 * Once it has taken in the preamble, and before it reads the request, the command writes
 * some bytes on standard output of its own accord: it is up. An executor may hold the
 * request back until the first byte, and then knows that a failure before it was one to
 * start; with stock it tells what is ready. The core skips these bytes: an executor that
 * read them ahead of a run may hand them over or not.
 */
#ifndef SOULACY_EXECUTOR_H
#define SOULACY_EXECUTOR_H

#include <soulacy/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SY_EXECUTOR_ID "soulacy.executor/1"
#define SY_HOST_SPAWN_ID "soulacy.host.spawn/1"

/* Must-understand constraints. A member of the launch that restricts the run is in force
 * only under its bit. The core never sends a bit that the executor did not list in
 * `enforces`, so an older executor cannot skip a newer limit in silence; an executor that
 * meets a bit it does not know answers SY_E_REFUSED. */
#define SY_MUST_FS_ROOT (UINT64_C(1) << 0)  /* sees only mounts[] and the interpreter */
#define SY_MUST_NO_NET (UINT64_C(1) << 1)   /* no socket to anywhere */
#define SY_MUST_MEM (UINT64_C(1) << 2)      /* mem_bytes */
#define SY_MUST_PIDS (UINT64_C(1) << 3)     /* max_pids */
#define SY_MUST_CPU_TIME (UINT64_C(1) << 4) /* cpu_ms */
#define SY_MUST_NO_NEW_PRIV (UINT64_C(1) << 5) /* no setuid, no file capabilities */
#define SY_MUST_KILL_TREE (UINT64_C(1) << 6)   /* cancel kills descendants too */
#define SY_MUST_FILES (UINT64_C(1) << 7)       /* max_files */
#define SY_MUST_FILE_SIZE (UINT64_C(1) << 8)   /* file_bytes */
#define SY_MUST_NAMESPACES (UINT64_C(1) << 9) /* own pid, mount, ipc and net namespaces */

/* Isolation levels, in rising order (docs/security.md says what each does). */
enum { SY_ISOLATION_NONE = 0, SY_ISOLATION_RESTRICTED = 1, SY_ISOLATION_STRICT = 2 };

/* A folder or file shown to the run. Frozen layout. */
struct sy_mount {
    struct sy_str source; /* absolute, on the gateway's host */
    struct sy_str target; /* absolute, where the run sees it */
    uint32_t writable;
    uint32_t reserved;
};

/* What shapes the process. Borrowed in prepare() and run(); id and key stay meaningful
 * until retire(id). Fields of limits are 0 where there is none. */
struct sy_launch {
    uint32_t size;
    uint32_t isolation; /* SY_ISOLATION_* */
    uint64_t id;        /* handle for sy_host_spawn.spawn; never 0, never reused */
    struct sy_str key; /* launch key: 64 lower-case hex digits; equal = may share stock */
    uint64_t must;     /* SY_MUST_* */

    /* For executors that build the process themselves (containers, remote hosts): argv[0]
     * is the interpreter, the rest its flags and the bootstrap program, constant text. */
    const struct sy_str *argv;
    size_t nargv;
    const struct sy_mount *mounts;
    size_t nmounts;
    struct sy_str preamble; /* first bytes for stdin: the harness */

    uint64_t mem_bytes;  /* address space of a process */
    uint64_t cpu_ms;     /* CPU time of a process */
    uint64_t file_bytes; /* largest file it may write */
    uint32_t max_files;  /* open descriptors */
    uint32_t max_pids;   /* processes and threads */
    uint32_t network;    /* 1: sockets are allowed */
    uint32_t reserved;
};

/* One call. Borrowed until run() returns. */
struct sy_plan {
    uint32_t size;
    int32_t cancel_fd; /* becomes readable: stop now. Never read from it. */
    const struct sy_launch *launch;
    struct sy_str run_id;  /* for labels and log lines: [a-z0-9]{1,32} */
    struct sy_str request; /* written to stdin after the preamble, then stdin is closed
                              only when the run ends: end of file means cancel */
    int64_t deadline_ms;   /* monotonic; when it passes: kill, SY_E_TIMEOUT */
};

enum { SY_STREAM_ANSWER = 1, SY_STREAM_LOG = 2 };

/* Where the bytes of a run go. Called only from inside run(), one call at a time. */
struct sy_sink {
    uint32_t size;
    uint32_t reserved;
    void *ctx;
    /* stream: SY_STREAM_ANSWER (stdout) or SY_STREAM_LOG (stderr). Non-zero: enough, the
     * core has its answer; the run is to be ended now and no more of the answer given. Log
     * bytes are taken after that too, until run() returns. */
    int32_t (*output)(void *ctx, uint32_t stream, const void *data, size_t len);
    /* Once, when the request is about to be written: the child exists and from here on
     * nothing may be retried elsewhere. layers: what is in force in the child, as one
     * line of JSON, empty when the executor cannot tell. */
    void (*started)(void *ctx, struct sy_str layers);
};

/* How it ended. Memory is the core's. */
struct sy_result {
    uint32_t size;
    int32_t exit_code;     /* -1 when it did not exit by itself */
    int32_t term_signal;   /* 0 when it exited by itself */
    uint32_t oom_killed;   /* 1: killed for memory by the kernel or an engine */
    uint32_t request_sent; /* 1: at least one byte of the request left this host */
    uint32_t from_stock;   /* 1: served by a process made before the call */
    int64_t cpu_ms;        /* -1 unknown */
    int64_t max_rss_bytes; /* -1 unknown */
    int64_t start_ms;      /* time spent getting a process, -1 unknown */
};

struct sy_executor {
    uint32_t size;
    uint32_t max_parallel; /* run() calls at once for one instance; 0 = 1 */
    uint64_t enforces;     /* SY_MUST_* it truly enforces */

    /* [core] Become ready; called at most once: threads and connections may start here.
     * May not block longer than 1 s; what takes longer goes on in the background and shows
     * in health. When it fails, undo what was begun: stop() will not be called, destroy()
     * will. */
    sy_status (*start)(void *self, struct sy_error *err);

    /* [core] After it returns no thread of the plugin calls the core. No run() is in
     * flight. */
    void (*stop)(void *self);

    /* [worker] Run one plan to its end. On return nothing of the run is left. SY_OK: it
     * ran, see out. SY_E_TIMEOUT and SY_E_CANCELLED: killed. SY_E_REFUSED: a constraint
     * cannot be kept, nothing ran, err names it. SY_E_IO: backend unavailable. */
    sy_status (*run)(void *self, const struct sy_plan *plan, const struct sy_sink *sink,
                     struct sy_result *out, struct sy_error *err);

    /* [worker] Optional. This launch will be used: stock may be made for it now. */
    void (*prepare)(void *self, const struct sy_launch *launch);

    /* [any] Optional. The launch is over: drop its stock, forget its id. Runs in flight
     * go on. */
    void (*retire)(void *self, uint64_t launch_id);

    /* [worker] Optional. Check the backend itself for `doctor`: reach it, ask its version,
     * look at images or host keys. One JSON object to out, before deadline_ms. */
    sy_status (*check)(void *self, int64_t deadline_ms, void *out_ctx,
                       void (*out)(void *out_ctx, struct sy_str json),
                       struct sy_error *err);
};

/* ---- soulacy.host.spawn/1: local processes, for executors ----------------------- */

/* A child made by the core. The descriptors are non-blocking and the plugin's until
 * reap(), which closes them: never close them yourself, never keep them. */
struct sy_child {
    uint32_t size;
    int32_t stdin_fd;
    int32_t stdout_fd;
    int32_t stderr_fd;
    int32_t exit_fd; /* readable once the tool has ended or could not be started */
    uint32_t reserved;
    uint64_t id;
};

struct sy_child_exit {
    uint32_t size;
    int32_t exit_code;   /* -1 when it did not exit by itself */
    int32_t term_signal; /* 0 when it exited by itself */
    uint32_t reserved;
    int64_t cpu_ms;
    int64_t max_rss_bytes;
    char setup[240];  /* not empty: it could not be started, and this layer is why */
    char layers[512]; /* one line of JSON: limits and layers in force in the child */
};

struct sy_host_spawn {
    uint32_t size;
    uint32_t reserved;

    /* [any] Start the process of a launch, sandboxed as the core planned it. launch_id
     * comes from a sy_launch that was not retired. Returns when the child was asked for;
     * a failed layer shows at exit_fd. SY_E_IO: the spawn helper is not there. */
    sy_status (*spawn)(void *ctx, uint64_t launch_id, struct sy_child *out,
                       struct sy_error *err);

    /* [any] Kill the child and everything below it. Returns at once; exit_fd tells. */
    void (*kill)(void *ctx, uint64_t child_id);

    /* [any] What is in force in the child, once known: JSON text into text (capacity
     * cap, NUL-terminated). SY_E_BUSY: not told yet. */
    sy_status (*layers)(void *ctx, uint64_t child_id, char *text, size_t cap);

    /* [any] Kill if still alive, wait until nothing is left of its tree, close the
     * descriptors, forget the id. Blocks at most until deadline_ms (SY_E_TIMEOUT: the
     * core goes on by itself). Call it exactly once for each child. */
    sy_status (*reap)(void *ctx, uint64_t child_id, int64_t deadline_ms,
                      struct sy_child_exit *out);
};

#ifdef __cplusplus
}
#endif

#endif
