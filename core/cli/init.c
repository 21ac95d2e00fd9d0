/* init: a workspace in a folder. Writes what is missing, config.yaml last, and overwrites
 * nothing. */
#include "cli/init.h"

#include "base/io.h"
#include "base/mem.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUT_MAX ((size_t)64 * 1024)

static const char *const levels[] = {"none", "restricted", "strict"};

static enum status find_dir(struct init *in, struct error *err)
{
    const char *home = config_env_get(in->c->env, "HOME");
    const char *word = in->c->args.nwords > 0 ? in->c->args.words[0] : NULL;
    char cwd[4096];

    if (word == NULL && home == NULL) {
        return error_set(err, ST_INVALID, "HOME is not set: say which folder");
    }
    if (word != NULL && (word[0] == '\0' || strchr(word, '\n') != NULL)) {
        return error_set(err, ST_INVALID, "that is no name for a folder");
    }
    if (word == NULL) {
        in->dir = arena_printf(in->c->arena, "%s/.soulacy", home);
    } else if (word[0] == '/') {
        in->dir = arena_dup(in->c->arena, str_c(word));
    } else if (getcwd(cwd, sizeof(cwd)) == NULL) {
        return error_set_errno(err, ST_IO, errno, "the working directory");
    } else {
        in->dir = arena_printf(in->c->arena, "%s/%s", cwd, word);
    }
    if (in->dir == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    for (size_t n = strlen(in->dir); n > 1 && in->dir[n - 1] == '/'; n--) {
        in->dir[n - 1] = '\0';
    }
    return ST_OK;
}

static enum status find_share(struct init *in, struct error *err)
{
    char *prefix = NULL;
    enum status st = runtime_prefix(&prefix, err);

    if (st == ST_OK) {
        in->share = arena_printf(in->c->arena, "%s/share/soulacy/starter", prefix);
        st = in->share != NULL ? ST_OK : error_set(err, ST_NOMEM, "out of memory");
    }
    mem_free(prefix);
    return st;
}

static enum status make_key(struct init *in, struct error *err)
{
    unsigned char raw[32];
    struct buf key;
    enum status st = io_random(raw, sizeof(raw), err);

    buf_init(&key, sizeof(in->key));
    buf_add_c(&key, "sy_");
    buf_add_hex(&key, raw, sizeof(raw));
    if (st == ST_OK && buf_status(&key) == ST_OK) {
        memcpy(in->key, key.ptr, sizeof(in->key));
    } else if (st == ST_OK) {
        st = error_set(err, ST_NOMEM, "out of memory");
    }
    buf_wipe(&key);
    mem_wipe(raw, sizeof(raw));
    return st;
}

static enum status write_config(const struct init *in, struct error *err)
{
    char *path = init_path(in, "config.yaml");
    struct buf text;
    enum status st;

    buf_init(&text, OUT_MAX);
    st = path != NULL ? init_render(in, &text, err)
                      : error_set(err, ST_NOMEM, "out of memory");
    if (st == ST_OK) {
        st = init_create(path, buf_str(&text), 0600, err);
    }
    buf_wipe(&text);
    return st;
}

/* The first folder on the way to dir that other users cannot enter, or NULL. */
static const char *closed_folder(const struct init *in)
{
    char *path = arena_dup(in->c->arena, str_c(in->dir));
    struct stat sb;

    for (size_t i = 1; path != NULL; i++) {
        char c = path[i];

        if (c == '/' || c == '\0') {
            path[i] = '\0';
            if (stat(path, &sb) == 0 && (sb.st_mode & S_IXOTH) == 0) {
                return path;
            }
            path[i] = c;
        }
        if (c == '\0') {
            break;
        }
    }
    return NULL;
}

static void add_advice(const struct init *in, struct buf *out)
{
    const char *closed = geteuid() == 0 ? closed_folder(in) : NULL;

    if (closed != NULL && in->level != ISOLATION_STRICT) {
        buf_add_c(out,
                  "  Tools of a gateway that is root become the user nobody, who cannot "
                  "enter ");
        cli_text(out, str_c(closed));
        buf_add_c(out, ".\n  A workspace elsewhere can be isolated: soulacy init "
                       "/srv/soulacy\n");
    }
}

static void add_why(const struct init *in, struct buf *out)
{
    if (in->python[0] == '/') {
        buf_addf(out, "  python_bin   %s, since the python3 of PATH fails there: ",
                 in->python);
        cli_text(out, str_c(in->why[in->level]));
        buf_add_char(out, '\n');
    }
    for (int level = ISOLATION_STRICT; level > (int)in->level; level--) {
        buf_addf(out, "  %s does not work here: ", levels[level]);
        cli_text(out, str_c(in->why[level]));
        buf_add_char(out, '\n');
    }
    if (in->level == ISOLATION_NONE) {
        buf_add_c(out,
                  "  WARNING: at isolation none a tool can read everything the gateway's "
                  "user can read,\n  its key included. Run only tools you trust.\n");
    }
    add_advice(in, out);
}

static enum cli_exit report(const struct init *in)
{
    struct buf out;
    enum cli_exit result;

    buf_init(&out, OUT_MAX);
    if (in->c->json) {
        buf_add_char(&out, '{');
        json_add_key_string(&out, "dir", str_c(in->dir));
        json_add_key_bool(&out, "made", true);
        json_add_key_string(&out, "isolation", str_c(levels[in->level]));
        json_add_key_bool(&out, "isolation_proved", in->probed);
        json_add_key_string(&out, "python_bin", str_c(in->python));
        json_add_key_i64(&out, "port", in->port);
        buf_add_c(&out, "}\n");
    } else {
        buf_addf(&out, "workspace %s\n", in->dir);
        buf_addf(&out, "  config.yaml  mode 0600, with a new key; port %lld\n",
                 (long long)in->port);
        buf_add_c(&out, "  agents/      agent `assistant` with three Python tools\n");
        buf_addf(&out, "  isolation    %s%s\n", levels[in->level],
                 in->probed ? ", found to work by running a tool under it"
                            : ", as asked; not tried");
        if (in->probed) {
            add_why(in, &out);
        }
        buf_addf(&out, "next:\n  soulacy serve --config '%s/config.yaml'\n", in->dir);
        buf_addf(&out, "  soulacy chat --config '%s/config.yaml' /tools\n", in->dir);
    }
    result = cli_print(in->c, &out);
    buf_done(&out);
    return result;
}

static enum cli_exit already(const struct init *in)
{
    struct buf out;
    enum cli_exit result;

    if (args_value(&in->c->args, "if-missing") == NULL) {
        return cli_fail(in->c,
                        "%s/config.yaml is there already; nothing was changed. Use "
                        "another folder, or remove it first",
                        in->dir);
    }
    buf_init(&out, OUT_MAX);
    if (in->c->json) {
        buf_add_char(&out, '{');
        json_add_key_string(&out, "dir", str_c(in->dir));
        json_add_key_bool(&out, "made", false);
        buf_add_c(&out, "}\n");
    } else {
        buf_addf(&out, "%s is a workspace already; nothing was changed\n", in->dir);
    }
    result = cli_print(in->c, &out);
    buf_done(&out);
    return result;
}

/* --port and --isolation; false: they were used wrongly. */
static bool read_options(struct init *in, bool *fixed)
{
    const char *port = args_value(&in->c->args, "port");
    const char *level = args_value(&in->c->args, "isolation");

    in->port = 18789;
    in->python = "python3";
    *fixed = level != NULL;
    if (port != NULL && str_to_i64(str_c(port), 1, 65535, &in->port) != ST_OK) {
        (void)cli_misuse(in->c, "--port is a number of 1..65535");
        return false;
    }
    for (int i = ISOLATION_NONE; level != NULL && i <= ISOLATION_STRICT; i++) {
        if (strcmp(level, levels[i]) == 0) {
            in->level = (enum isolation)i;
            level = NULL;
        }
    }
    if (level != NULL) {
        (void)cli_misuse(in->c, "--isolation is none, restricted or strict");
    }
    return level == NULL;
}

enum cli_exit cmd_init(struct cli *c)
{
    struct init in = {.c = c};
    struct error err = {0};
    char *config;
    bool fixed = false;
    enum status st;

    if (!read_options(&in, &fixed)) {
        return CLI_USAGE;
    }
    if (find_dir(&in, &err) != ST_OK) {
        return cli_misuse(c, "%s", err.text);
    }
    config = init_path(&in, "config.yaml");
    if (config == NULL) {
        return cli_fail(c, "out of memory");
    }
    if (init_exists(config)) {
        return already(&in);
    }
    st = find_share(&in, &err);
    if (st == ST_OK) {
        st = make_key(&in, &err);
    }
    if (st == ST_OK) {
        st = init_agents(&in, &err);
    }
    if (st == ST_OK && !fixed) {
        st = init_choose(&in, &err);
    }
    if (st == ST_OK) {
        st = write_config(&in, &err);
    }
    mem_wipe(in.key, sizeof(in.key));
    return st == ST_OK ? report(&in) : cli_fail(c, "%s", err.text);
}
