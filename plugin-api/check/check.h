/* What the files of soulacy-plugin-check share. The tool loads a plugin with the core's
 * own loader, behind services of its own that fail on demand, and lends it memory that
 * cannot be touched after the call it was lent for. */
#ifndef SOULACY_PLUGIN_CHECK_H
#define SOULACY_PLUGIN_CHECK_H

#include "base/io.h"
#include "config/config.h"
#include "plugin/plugin.h"

#include <pthread.h>

#define CHECK_ROUTES 64
#define CHECK_HANDLES 256
#define CHECK_CHILDREN 64

/* Bytes that every preamble and request to an executor hold, and the answer of the
 * stand-in child. */
#define CHECK_PREAMBLE "# check\n"
#define CHECK_REQUEST "SYCHECK-REQUEST\n"
#define CHECK_ANSWER "SYCHECK-ANSWER\n"

struct check_route {
    struct sy_route route;
    char method[16], path[256];
};

/* Memory that is lent for one call: see loan.c. */
struct loan {
    char *base;
    size_t size, used;
};

struct sy_http {
    struct check *check;
    const struct check_route *route;
    bool begun, ended;
    struct loan loan; /* what the request's spans point to, until end() */
};

struct check_child {
    struct check *check;
    uint64_t id;                        /* 0: free */
    int stdin_fd, stdout_fd, stderr_fd; /* the child's ends */
    struct sy_child ours;               /* the plugin's ends */
    struct event ended, killed;
    pthread_t thread;
};

struct check {
    const char *plugin_path;
    const struct config *cfg;
    struct log *log;
    const char *log_path;
    size_t log_seen; /* bytes of the log looked at */
    size_t failures; /* lines of FAIL printed */
    char last_line[512];

    pthread_mutex_t lock; /* guards all below */
    uint64_t upcalls;
    uint64_t fail_every; /* each k-th upcall fails; 0: none */
    struct check_route routes[CHECK_ROUTES];
    size_t nroutes;
    struct sy_http handles[CHECK_HANDLES];
    size_t nhandles;
    struct check_child children[CHECK_CHILDREN];
    uint64_t next_child;
    pthread_cond_t changed;
};

/* Print "FAIL text" and count it; the same text twice in a row is printed once. */
void check_fail(struct check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- process.c: what belongs to the whole process ---- */

struct check_process {
    size_t fds, threads;
    mode_t mask;
    char cwd[4096];
    void *handlers[65]; /* of each signal */
};
void check_process_take(struct check_process *p);
/* Complain about what differs from before; leaks: fds and threads too. */
void check_process_compare(struct check *c, const struct check_process *before,
                           bool leaks);

/* ---- loan.c: memory that is lent for one call ---- */

/* Room for what one call borrows. Ends the program when there is none. */
void loan_open(struct loan *l);
void *loan_copy(struct loan *l, const void *data, size_t n);
struct sy_str loan_text(struct loan *l, const char *text);
/* The call is over: touching it ends the program with a line that names `what`. */
void loan_revoke(struct loan *l, const char *what);
/* Give back what was not revoked. */
void loan_close(struct loan *l);
/* Have a touch of a revoked loan, or any crash, end in a line and exit status 1. */
void loan_watch(void);
/* What the plugin is asked for now, for the line of a crash. */
void loan_note(const char *what);

/* ---- symbols.c ---- */

/* Exactly soulacy_plugin_v1 may be exported (and entries of later majors). */
void check_symbols(struct check *c);

/* ---- services.c, http.c, spawn.c ---- */

/* Count an upcall; true: this one is to fail. */
bool check_fails(struct check *c);
/* The instance's check behind ctx, or NULL; give it back with plugin_upcall_end. */
struct plugin_instance *check_enter(void *ctx, const char *what, enum plugin_when when,
                                    struct check **c);
/* One way out of a service function: fills err. */
sy_status check_refuse(struct sy_error *err, sy_status st);
const struct plugin_service *check_services(size_t *n);
extern const struct sy_host_http check_http_service;
extern const struct sy_host_spawn check_spawn_service;
/* One request to each route; the plugin's handlers run on the caller's thread. */
void check_http_requests(struct check *c);
/* After stop(): each handle must have been ended, each child reaped. */
void check_http_done(struct check *c);
void check_spawn_done(struct check *c);

/* ---- cycle.c ---- */

/* Load, start, use, stop, destroy. quiet: failures of the plugin's functions are expected
 * and only their form is looked at. False: it could not be loaded at all. */
bool check_cycle(struct check *c, bool quiet);

#endif
