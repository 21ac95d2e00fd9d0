/* In: a plan. Out: what a child under it really could and could not do, against traps
 * this process sets up on loopback and in a folder of its own: a canary file, TCP, UDP,
 * unix and abstract listeners. It never trusts the plan's word and leaves no trap behind. */
#define _GNU_SOURCE /* accept4 family: SOCK_CLOEXEC */
#include "sandbox/probe.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "sandbox/spawn_self.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define OUTPUT_MAX (64 * 1024)
#define NARGS 14

struct traps {
    char dir[128], canary[160], stream[160], dgram[160], abstract[40];
    int tcp, udp, unix_stream, unix_dgram, unix_abstract;
    int tcp_port, udp_port;
};

struct want {
    const char *name;
    /* By level: none, restricted, strict; PROBE_NOT_TRIED: either will do. The last is
     * for levels above none with network. */
    enum probe_answer by_level[3], with_network;
};

#define B PROBE_BLOCKED
#define A PROBE_ALLOWED
#define X PROBE_NOT_TRIED
static const struct want wants[] = {
    {"read_canary", {A, B, B}, B},
    {"write_outside", {X, B, B}, B},
    {"own_work_folder", {A, A, A}, A},
    {"connect_tcp", {A, B, B}, A},
    {"connect_mptcp", {X, B, B}, B},
    {"tcp_fastopen", {X, B, B}, B},
    {"udp", {A, B, B}, A},
    {"unix_path", {A, B, B}, B},
    {"unix_dgram_pair", {A, B, B}, B},
    {"unix_abstract", {A, B, B}, B},
    {"ptrace", {X, B, B}, B},
    {"mount", {X, B, B}, B},
    {"new_namespace", {X, B, B}, B},
    {"raise_limit", {X, B, B}, B},
    {"gain_privileges", {X, B, B}, B},
    {"kill_parent", {X, B, B}, B},
    {"kill_gateway", {X, B, B}, B},
    {"proc_gateway", {X, B, B}, B},
    {"over_cpu", {B, B, B}, B},
    {"over_memory", {B, B, B}, B},
    {"over_file_size", {B, B, B}, B},
    {"over_open_files", {B, B, B}, B},
};
#undef B
#undef A
#undef X
#define NWANTS (sizeof(wants) / sizeof(wants[0]))
_Static_assert(NWANTS <= PROBE_MAX_ITEMS, "the report holds every item");

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* A folder the plan does not show. False: there is none; the canary is not tried. */
static bool make_dir(const struct spawn_plan *plan, struct traps *t)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/run", "/dev/shm"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        bool shown = false;

        for (size_t k = 0; k < plan->npaths; k++) {
            shown = shown || is_below(places[i], plan->paths[k].path);
        }
        (void)snprintf(t->dir, sizeof(t->dir), "%s/soulacy-probe-XXXXXX", places[i]);
        if (!shown && mkdtemp(t->dir) != NULL) {
            return chmod(t->dir, 0777) == 0;
        }
    }
    t->dir[0] = '\0';
    return false;
}

static int listen_inet(int type, int *port)
{
    struct sockaddr_in at;
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memset(&at, 0, sizeof(at));
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0 ||
        (type == SOCK_STREAM && listen(fd, 8) != 0)) {
        io_close(&fd);
        return -1;
    }
    *port = ntohs(at.sin_port);
    return fd;
}

static int listen_unix(int type, const char *name, bool abstract)
{
    struct sockaddr_un at;
    size_t n = strlen(name);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memset(&at, 0, sizeof(at));
    at.sun_family = AF_UNIX;
    if (fd < 0 || n + 2 > sizeof(at.sun_path)) {
        io_close(&fd);
        return -1;
    }
    memcpy(at.sun_path + (abstract ? 1 : 0), name, n);
    if (bind(fd, (const struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1)) != 0 ||
        (type == SOCK_STREAM && listen(fd, 8) != 0) ||
        (!abstract && chmod(name, 0777) != 0)) {
        io_close(&fd);
        return -1;
    }
    return fd;
}

static enum status traps_open(const struct spawn_plan *plan, struct traps *t,
                              struct error *err)
{
    static const char text[] = "canary\n";
    uint64_t id = 0;
    enum status st;

    *t = (struct traps){
        .tcp = -1, .udp = -1, .unix_stream = -1, .unix_dgram = -1, .unix_abstract = -1};
    st = io_random(&id, sizeof(id), err);
    if (st != ST_OK) {
        return st;
    }
    if (make_dir(plan, t)) {
        (void)snprintf(t->canary, sizeof(t->canary), "%s/canary", t->dir);
        (void)snprintf(t->stream, sizeof(t->stream), "%s/stream", t->dir);
        (void)snprintf(t->dgram, sizeof(t->dgram), "%s/dgram", t->dir);
        st = io_write_file(t->canary, str_n(text, sizeof(text) - 1), 0644, err);
        if (st != ST_OK) {
            return st;
        }
        t->unix_stream = listen_unix(SOCK_STREAM, t->stream, false);
        t->unix_dgram = listen_unix(SOCK_DGRAM, t->dgram, false);
    }
    (void)snprintf(t->abstract, sizeof(t->abstract), "soulacy-%016llx",
                   (unsigned long long)id);
    t->unix_abstract = listen_unix(SOCK_STREAM, t->abstract, true);
    t->tcp = listen_inet(SOCK_STREAM, &t->tcp_port);
    t->udp = listen_inet(SOCK_DGRAM, &t->udp_port);
    if (t->tcp < 0 || t->udp < 0 || t->unix_abstract < 0 ||
        (t->dir[0] != '\0' && (t->unix_stream < 0 || t->unix_dgram < 0))) {
        return error_set_errno(err, ST_IO, errno, "probe: a listener");
    }
    return ST_OK;
}

static void traps_close(struct traps *t)
{
    io_close(&t->tcp);
    io_close(&t->udp);
    io_close(&t->unix_stream);
    io_close(&t->unix_dgram);
    io_close(&t->unix_abstract);
    if (t->dir[0] != '\0') {
        (void)unlink(t->canary);
        (void)unlink(t->stream);
        (void)unlink(t->dgram);
        (void)rmdir(t->dir);
    }
}

struct arguments {
    char text[NARGS][192];
    const char *at[NARGS];
    size_t n;
};

static void put(struct arguments *a, const char *text)
{
    (void)snprintf(a->text[a->n], sizeof(a->text[0]), "%s", text);
    a->at[a->n] = a->text[a->n];
    a->n++;
}

static void put_value(struct arguments *a, const char *name, const char *value)
{
    char text[192];

    (void)snprintf(text, sizeof(text), "%s=%s", name, value);
    put(a, text);
}

static void put_number(struct arguments *a, const char *name, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    put_value(a, name, text);
}

static void fill_arguments(const struct spawn_plan *plan, const struct traps *t,
                           struct arguments *a)
{
    a->n = 0;
    put(a, "/soulacy-spawn");
    put(a, "--probe");
    put_value(a, "canary", t->canary);
    put_value(a, "unix", t->stream);
    put_value(a, "dgram", t->dgram);
    put_value(a, "abstract", t->abstract);
    put_number(a, "tcp", (uint64_t)t->tcp_port);
    put_number(a, "udp", (uint64_t)t->udp_port);
    put_number(a, "gateway", (uint64_t)getpid());
    put_number(a, "cpu", plan->cpu_seconds);
    put_number(a, "mem", plan->mem_bytes);
    put_number(a, "files", plan->open_files);
    put_number(a, "fsize", plan->file_bytes);
    put_value(a, "work", plan->work_root != NULL ? "1" : "0");
}

/* Everything the child prints, until its end. */
static enum status collect(struct child *c, int64_t deadline_ms, struct buf *out,
                           struct error *err)
{
    for (;;) {
        char *room = buf_room(out, 4096);
        ssize_t n;

        if (room == NULL) {
            return error_set(err, buf_status(out), "probe: too much output");
        }
        n = io_read(child_stdout(c), room, 4096);
        if (n > 0) {
            out->len += (size_t)n;
            out->ptr[out->len] = '\0';
        } else if (n == 0) {
            return ST_OK;
        } else if (errno != EAGAIN) {
            return error_set_errno(err, ST_IO, errno, "probe: reading");
        } else if (io_wait(child_stdout(c), POLLIN, -1, deadline_ms) != ST_OK) {
            return error_set(err, ST_TIMEOUT, "probe: no end before the deadline");
        }
    }
}

static enum probe_answer answer_of(struct str word)
{
    if (str_eq_c(word, "allowed")) {
        return PROBE_ALLOWED;
    }
    return str_eq_c(word, "blocked") ? PROBE_BLOCKED : PROBE_NOT_TRIED;
}

static void read_answers(struct str text, struct probe_report *out)
{
    struct str line;

    while (str_split(&text, '\n', &line)) {
        struct str name, got;
        cJSON *obj = NULL;

        if (line.len == 0 || json_parse(line, &obj, NULL) != ST_OK) {
            continue;
        }
        if (json_get_str(obj, "name", &name) && json_get_str(obj, "got", &got)) {
            for (size_t i = 0; i < out->nitems; i++) {
                if (str_eq_c(name, out->items[i].name)) {
                    out->items[i].got = answer_of(got);
                }
            }
        }
        cJSON_Delete(obj);
    }
}

static void set_wants(const struct spawn_plan *plan, struct probe_report *out)
{
    bool net = plan->network && plan->isolation != ISOLATION_NONE;

    out->level = plan->isolation;
    out->nitems = NWANTS;
    for (size_t i = 0; i < NWANTS; i++) {
        out->items[i].name = wants[i].name;
        out->items[i].want =
            net ? wants[i].with_network : wants[i].by_level[plan->isolation];
        out->items[i].got = PROBE_NOT_TRIED;
    }
}

static const char *word_of(enum probe_answer a)
{
    static const char *const words[] = {"blocked", "allowed", "not_tried"};

    return words[a];
}

/* Something must have been tried: silence is not a pass. */
static void judge(struct probe_report *out)
{
    size_t tried = 0;

    for (size_t i = 0; i < out->nitems && out->problem[0] == '\0'; i++) {
        const struct probe_item *it = &out->items[i];

        if (it->got == PROBE_NOT_TRIED) {
            continue;
        }
        tried++;
        if (it->want != PROBE_NOT_TRIED && it->want != it->got) {
            (void)snprintf(out->problem, sizeof(out->problem), "%s is %s", it->name,
                           word_of(it->got));
        }
    }
    if (tried < NWANTS / 2 && out->problem[0] == '\0') {
        (void)snprintf(out->problem, sizeof(out->problem),
                       "the probe child did not answer");
    }
    out->ok = out->problem[0] == '\0';
}

static enum status run_child(struct spawn *s, const struct spawn_plan *plan,
                             const struct traps *t, struct probe_report *out,
                             struct error *err)
{
    struct spawn_plan p = *plan;
    struct arguments args;
    struct spawn_exit end;
    struct child *c = NULL;
    struct buf text;
    enum status st, reaped;

    fill_arguments(plan, t, &args);
    p.argv = args.at;
    p.nargv = args.n;
    p.cwd = NULL;
    st = spawn_child_self(s, &p, &c, err);
    if (st != ST_OK) {
        return st;
    }
    child_close_stdin(c);
    buf_init(&text, OUTPUT_MAX);
    st = collect(c, p.deadline_ms, &text, err);
    if (st == ST_OK) {
        read_answers(buf_str(&text), out);
        /* The streams end a moment before the record comes. */
        st = io_wait(child_exit_fd(c), POLLIN, -1, p.deadline_ms);
    }
    reaped = child_reap(c, clock_mono_ms() + 5000, &end);
    buf_done(&text);
    if (st != ST_OK || reaped != ST_OK) {
        return st != ST_OK ? st : error_set(err, reaped, "probe: the child did not go");
    }
    (void)snprintf(out->layers, sizeof(out->layers), "%s", end.layers);
    (void)snprintf(out->problem, sizeof(out->problem), "%s", end.setup);
    return ST_OK;
}

enum status probe_run(struct spawn *s, const struct spawn_plan *plan, int64_t deadline_ms,
                      struct probe_report *out, struct error *err)
{
    int64_t begin_ms = clock_mono_ms();
    struct spawn_plan p = *plan;
    struct traps t;
    enum status st;

    memset(out, 0, sizeof(*out));
    set_wants(plan, out);
    p.deadline_ms = deadline_ms;
    st = traps_open(plan, &t, err);
    if (st == ST_OK) {
        st = run_child(s, &p, &t, out, err);
    }
    traps_close(&t);
    if (st == ST_OK) {
        judge(out);
    }
    out->took_ms = clock_mono_ms() - begin_ms;
    return st;
}

void probe_report_json(const struct probe_report *r, struct buf *out)
{
    static const char *const levels[] = {"none", "restricted", "strict"};

    buf_add_char(out, '{');
    json_add_key_bool(out, "ok", r->ok);
    json_add_key_string(out, "level", str_c(levels[r->level]));
    json_add_key_string(out, "problem", str_c(r->problem));
    json_add_key_i64(out, "took_ms", r->took_ms);
    json_add_key_raw(out, "in_force", str_c(r->layers[0] != '\0' ? r->layers : "null"));
    json_add_key(out, "items");
    buf_add_char(out, '[');
    for (size_t i = 0; i < r->nitems; i++) {
        json_add_sep(out);
        buf_add_char(out, '{');
        json_add_key_string(out, "name", str_c(r->items[i].name));
        json_add_key_string(out, "want", str_c(word_of(r->items[i].want)));
        json_add_key_string(out, "got", str_c(word_of(r->items[i].got)));
        buf_add_char(out, '}');
    }
    buf_add_c(out, "]}");
}
