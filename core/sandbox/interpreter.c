/* A name of a Python in, the real program and its folders out. Starts one child at level
 * none through the spawn helper; never runs anything of a tool. */
#include "sandbox/interpreter.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define ANSWER_MAX ((size_t)64 * 1024)
#define PATHS_MAX 128

static const char question[] =
    "import sys,os\n"
    "print('path',os.path.abspath(sys.executable))\n"
    "print('version','.'.join(map(str,sys.version_info[:3])))\n"
    "s=set()\n"
    "for p in [sys.prefix,sys.base_prefix,sys.exec_prefix,sys.base_exec_prefix]+sys.path+"
    "[os.path.dirname(os.path.realpath(sys.executable))]:\n"
    " if p and os.path.isabs(p) and os.path.exists(p) and p not in s and '\\n' not in "
    "p:\n"
    "  s.add(p);print('read',p)\n";

static enum status add_path(struct interpreter *i, struct str path)
{
    char **items;

    if (i->paths.n >= PATHS_MAX) {
        return ST_TOO_LARGE;
    }
    items = mem_realloc(i->paths.items, (i->paths.n + 1) * sizeof(*items));
    if (items == NULL) {
        return ST_NOMEM;
    }
    i->paths.items = items;
    items[i->paths.n] = str_dup(path);
    if (items[i->paths.n] == NULL) {
        return ST_NOMEM;
    }
    i->paths.n++;
    return ST_OK;
}

static enum status take_line(struct interpreter *i, struct str line)
{
    size_t space = str_find_char(line, ' ');
    struct str key, value;

    if (space == SIZE_MAX) {
        return ST_OK; /* noise of a wrapper */
    }
    key = str_n(line.ptr, space);
    value = str_n(line.ptr + space + 1, line.len - space - 1);
    if (value.len == 0) {
        return ST_OK;
    }
    if (str_eq_c(key, "path") && i->path == NULL && value.ptr[0] == '/') {
        i->path = str_dup(value);
        return i->path != NULL ? ST_OK : ST_NOMEM;
    }
    if (str_eq_c(key, "version") && i->version == NULL) {
        i->version = str_dup(value);
        return i->version != NULL ? ST_OK : ST_NOMEM;
    }
    /* "/" would open the whole file system: no interpreter needs it */
    if (str_eq_c(key, "read") && value.ptr[0] == '/' && value.len > 1) {
        return add_path(i, value);
    }
    return ST_OK;
}

enum status interpreter_parse(struct str text, struct interpreter *out, struct error *err)
{
    struct interpreter i = {0};
    struct str line;
    enum status st = ST_OK;

    while (st == ST_OK && str_split(&text, '\n', &line)) {
        st = take_line(&i, line);
    }
    if (st == ST_OK && (i.path == NULL || i.version == NULL)) {
        st = ST_INVALID;
    }
    if (st != ST_OK) {
        interpreter_done(&i);
        return error_set(err, st, "it did not say where it is");
    }
    *out = i;
    return ST_OK;
}

void interpreter_done(struct interpreter *i)
{
    for (size_t k = 0; k < i->paths.n; k++) {
        mem_free(i->paths.items[k]);
    }
    mem_free(i->paths.items);
    mem_free(i->path);
    mem_free(i->version);
    *i = (struct interpreter){0};
}

static struct str path_of(const char *const *env, size_t nenv)
{
    for (size_t i = 0; i < nenv; i++) {
        if (strncmp(env[i], "PATH=", 5) == 0) {
            return str_c(env[i] + 5);
        }
    }
    return STR_LIT("/usr/local/bin:/usr/bin:/bin");
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

/* The program's absolute path in out. */
static enum status look_up(const char *name, const char *const *env, size_t nenv,
                           struct buf *out)
{
    struct str dirs = path_of(env, nenv), dir;

    if (strchr(name, '/') != NULL) {
        buf_add_c(out, name);
        return buf_status(out) == ST_OK && is_program(out->ptr) ? ST_OK : ST_NOT_FOUND;
    }
    while (str_split(&dirs, ':', &dir)) {
        buf_clear(out);
        buf_add_str(out, dir);
        buf_add_char(out, '/');
        buf_add_c(out, name);
        if (dir.len > 0 && dir.ptr[0] == '/' && buf_status(out) == ST_OK &&
            is_program(out->ptr)) {
            return ST_OK;
        }
    }
    return ST_NOT_FOUND;
}

static enum status read_answer(struct child *c, int64_t deadline_ms, struct buf *out)
{
    char block[2048];
    enum status st = ST_OK;
    ssize_t n = 1;

    child_close_stdin(c);
    while (st == ST_OK && n != 0) {
        st = io_wait(child_stdout(c), POLLIN, -1, deadline_ms);
        if (st == ST_OK) {
            n = io_read(child_stdout(c), block, sizeof(block));
            if (n < 0) {
                return ST_IO;
            }
            buf_add(out, block, (size_t)n);
            st = buf_status(out);
        }
    }
    return st;
}

enum status interpreter_query(struct spawn *s, const char *python_bin,
                              const char *const *base_env, size_t nbase_env,
                              int64_t deadline_ms, struct interpreter *out,
                              struct error *err)
{
    const char *argv[] = {NULL, "-I", "-c", question};
    struct spawn_plan plan = {.argv = argv,
                              .nargv = 4,
                              .env = base_env,
                              .nenv = nbase_env,
                              .uid = SPAWN_KEEP_ID,
                              .gid = SPAWN_KEEP_ID,
                              .cpu_seconds = SPAWN_NO_LIMIT,
                              .mem_bytes = SPAWN_NO_LIMIT,
                              .open_files = SPAWN_NO_LIMIT,
                              .file_bytes = SPAWN_NO_LIMIT,
                              .processes = SPAWN_NO_LIMIT,
                              .network = true,
                              .deadline_ms = deadline_ms};
    struct spawn_exit end = {0};
    struct child *child = NULL;
    struct buf path, answer;
    enum status st;

    buf_init(&path, 8192);
    buf_init(&answer, ANSWER_MAX);
    st = look_up(python_bin, base_env, nbase_env, &path);
    if (st != ST_OK) {
        st =
            error_set(err, ST_NOT_FOUND,
                      "runtime.python_bin: no program %s in PATH; install python3 or set "
                      "its path",
                      python_bin);
        goto out;
    }
    argv[0] = path.ptr;
    st = spawn_child(s, &plan, &child, err);
    if (st != ST_OK) {
        goto out;
    }
    st = read_answer(child, deadline_ms, &answer);
    if (child_reap(child, clock_mono_ms() + 2000, &end) != ST_OK && st == ST_OK) {
        st = ST_TIMEOUT;
    }
    if (st != ST_OK || end.exit_code != 0) {
        st = error_set(err, st != ST_OK ? st : ST_IO,
                       "runtime.python_bin: %s does not run as Python (%s)", path.ptr,
                       end.setup[0] != '\0' ? end.setup : status_name(st));
        goto out;
    }
    st = interpreter_parse(buf_str(&answer), out, err);
    if (st != ST_OK) {
        st = error_context(err, "runtime.python_bin: %s", path.ptr);
    }
out:
    buf_done(&answer);
    buf_done(&path);
    return st;
}
