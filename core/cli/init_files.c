/* Files and folders of a new workspace. Never overwrites anything. */
#include "base/io.h"
#include "cli/init.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1024 * 1024)

static const char *const agent_files[] = {"SOUL.yaml", "sales.py", "sales.csv",
                                          "find_key.py"};

char *init_path(const struct init *in, const char *name)
{
    return arena_printf(in->c->arena, "%s/%s", in->dir, name);
}

bool init_exists(const char *path)
{
    struct stat sb;

    return lstat(path, &sb) == 0;
}

enum status init_create(const char *path, struct str text, unsigned mode,
                        struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    enum status st;

    if (fd < 0) {
        return errno == EEXIST
                   ? error_set(err, ST_CONFLICT, "%s is there already", path)
                   : error_set_errno(err, ST_IO, errno, "%s cannot be written", path);
    }
    st = io_write_all(fd, text, -1, INT64_MAX, err);
    /* The umask must not take away what tools of another user need to read. */
    if (st == ST_OK && (fchmod(fd, (mode_t)mode) != 0 || fsync(fd) != 0)) {
        st = error_set_errno(err, ST_IO, errno, "%s", path);
    }
    io_close(&fd);
    if (st != ST_OK) {
        (void)unlink(path);
    }
    return st;
}

/* A folder that is there keeps its mode. */
static enum status make_folder(const char *path, mode_t mode, struct error *err)
{
    enum status st;

    if (init_exists(path)) {
        return ST_OK;
    }
    st = io_mkdirs(path, 0755, err);
    if (st == ST_OK && chmod(path, mode) != 0) {
        st = error_set_errno(err, ST_IO, errno, "%s", path);
    }
    return st;
}

static enum status copy_file(const struct init *in, const char *name, struct error *err)
{
    char *from = arena_printf(in->c->arena, "%s/assistant/%s", in->share, name);
    char *to = arena_printf(in->c->arena, "%s/agents/assistant/%s", in->dir, name);
    struct buf text;
    enum status st;

    if (from == NULL || to == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    if (init_exists(to)) {
        return ST_OK;
    }
    buf_init(&text, FILE_MAX);
    st = io_read_file(from, FILE_MAX, &text, err);
    if (st == ST_OK) {
        st = init_create(to, buf_str(&text), 0644, err);
    }
    buf_done(&text);
    return st;
}

enum status init_agents(const struct init *in, struct error *err)
{
    static const struct {
        const char *name;
        mode_t mode;
    } folders[] = {{"", 0755},
                   {"/agents", 0755},
                   {"/agents/assistant", 0755},
                   {"/files", 0755},
                   {"/state", 0711}};
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < sizeof(folders) / sizeof(folders[0]); i++) {
        char *path = arena_printf(in->c->arena, "%s%s", in->dir, folders[i].name);

        st = path != NULL ? make_folder(path, folders[i].mode, err)
                          : error_set(err, ST_NOMEM, "out of memory");
    }
    for (size_t i = 0; st == ST_OK && i < sizeof(agent_files) / sizeof(agent_files[0]);
         i++) {
        st = copy_file(in, agent_files[i], err);
    }
    return st;
}

/* ---- config.yaml ------------------------------------------------------------------------ */

static const char *level_name(enum isolation level)
{
    return level == ISOLATION_STRICT       ? "strict"
           : level == ISOLATION_RESTRICTED ? "restricted"
                                           : "none";
}

static void add_word(const struct init *in, struct str word, struct buf *out)
{
    if (str_eq_c(word, "PORT")) {
        buf_addf(out, "%lld", (long long)in->port);
    } else if (str_eq_c(word, "API_KEY")) {
        buf_add_c(out, in->key);
    } else if (str_eq_c(word, "PYTHON")) {
        buf_add_c(out, in->python);
    } else if (str_eq_c(word, "ISOLATION")) {
        buf_add_c(out, level_name(in->level));
    } else {
        buf_addf(out, "@%.*s@", STR_ARG(word));
    }
}

enum status init_render(const struct init *in, struct buf *out, struct error *err)
{
    char *from = arena_printf(in->c->arena, "%s/config.yaml", in->share);
    struct buf text;
    struct str rest, part;
    bool word = false;
    enum status st;

    buf_init(&text, FILE_MAX);
    st = from != NULL ? io_read_file(from, FILE_MAX, &text, err)
                      : error_set(err, ST_NOMEM, "out of memory");
    rest = buf_str(&text);
    while (st == ST_OK && str_split(&rest, '@', &part)) {
        if (word) {
            add_word(in, part, out);
        } else {
            buf_add_str(out, part);
        }
        word = !word;
    }
    if (st == ST_OK && buf_status(out) != ST_OK) {
        st = error_set(err, ST_NOMEM, "out of memory for config.yaml");
    }
    buf_done(&text);
    return st;
}
