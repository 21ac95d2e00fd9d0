/* plugin new: a name in, a folder with a plugin to start from out, made from the SDK's
 * template. Overwrites nothing. */
#include "base/io.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/init.h"
#include "plugin/plugin.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)1024 * 1024)

/* What the template of a kind is called, and so what is replaced in it. */
struct template
{
    const char *kind, *name;
    const char *other; /* the line of CMakeLists.txt that belongs to the other kind */
};

static const struct template templates[] = {
    {"channel", "mailbox", "soulacy_add_plugin(executor-"},
    {"executor", "plain", "soulacy_add_plugin(channel-"},
};

/* Names that the gateway keeps for its own plugins. */
static const char *const reserved[] = {"process", "pool", "docker",
                                       "ssh",     "http", "whatsapp"};

static bool good_name(const char *s)
{
    size_t n = 0;

    for (; s[n] != '\0'; n++) {
        bool lower = s[n] >= 'a' && s[n] <= 'z';

        if (!lower && (n == 0 || !((s[n] >= '0' && s[n] <= '9') || s[n] == '-'))) {
            return false;
        }
    }
    return n > 0 && n <= PLUGIN_NAME_MAX;
}

/* The name as a part of a C file's name. */
static void add_file_name(const struct template *t, const char *name, struct buf *out)
{
    buf_addf(out, "%s_", t->kind);
    for (; *name != '\0'; name++) {
        buf_add_char(out, *name == '-' ? '_' : *name);
    }
}

/* Puts the new name where the template's stands as a name; identifiers stay. */
static void add_renamed(const struct template *t, const char *name, struct str text,
                        struct buf *out)
{
    struct buf from[4];
    size_t i;

    for (i = 0; i < 4; i++) {
        buf_init(&from[i], 128);
    }
    buf_addf(&from[0], "%s-%s", t->kind, t->name);
    buf_addf(&from[1], "\"%s\"", t->name);
    buf_addf(&from[2], "/channels/%s", t->name);
    buf_addf(&from[3], "%s_%s", t->kind, t->name);
    while (text.len > 0) {
        for (i = 0; i < 4 && !str_starts(text, buf_str(&from[i])); i++) {
        }
        if (i == 0) {
            buf_addf(out, "%s-%s", t->kind, name);
        } else if (i == 1) {
            buf_addf(out, "\"%s\"", name);
        } else if (i == 2) {
            buf_addf(out, "/channels/%s", name);
        } else if (i == 3) {
            add_file_name(t, name, out);
        } else {
            buf_add_char(out, text.ptr[0]);
        }
        text = str_n(text.ptr + (i < 4 ? from[i].len : 1),
                     text.len - (i < 4 ? from[i].len : 1));
    }
    for (i = 0; i < 4; i++) {
        buf_done(&from[i]);
    }
}

/* The text without the lines that begin with `other`. */
static void add_lines(struct str text, const char *other, struct buf *out)
{
    struct str line;

    while (str_split(&text, '\n', &line)) {
        if (!str_starts(line, str_c(other))) {
            buf_add_str(out, line);
            buf_add_c(out, text.ptr != NULL || text.len > 0 ? "\n" : "");
        }
    }
}

static enum status copy(const struct template *t, const char *name, const char *from,
                        const char *to, struct error *err)
{
    struct buf text, kept, out;
    enum status st;

    buf_init(&text, FILE_MAX);
    buf_init(&kept, FILE_MAX);
    buf_init(&out, FILE_MAX);
    st = io_read_file(from, FILE_MAX, &text, err);
    if (st == ST_NOT_FOUND || st == ST_IO) {
        st =
            error_set(err, ST_NOT_FOUND, "the SDK's template is not installed: %s", from);
    }
    if (st == ST_OK) {
        add_lines(buf_str(&text), t->other, &kept);
        add_renamed(t, name, buf_str(&kept), &out);
        st = buf_status(&kept) == ST_OK && buf_status(&out) == ST_OK
                 ? init_create(to, buf_str(&out), 0644, err)
                 : error_set(err, ST_NOMEM, "out of memory");
    }
    buf_done(&out);
    buf_done(&kept);
    buf_done(&text);
    return st;
}

static enum status copy_all(struct cli *c, const struct template *t, const char *share,
                            const char *to, struct error *err)
{
    const char *name = c->args.words[0];
    const char *cmake_in = arena_printf(c->arena, "%s/CMakeLists.txt", share);
    const char *cmake = arena_printf(c->arena, "%s/CMakeLists.txt", to);
    const char *source_in = arena_printf(c->arena, "%s/%s_%s.c", share, t->kind, t->name);
    const char *source;
    struct buf file;
    enum status st;

    buf_init(&file, 256);
    add_file_name(t, name, &file);
    source = arena_printf(c->arena, "%s/%s.c", to, file.ptr);
    buf_done(&file);
    if (cmake_in == NULL || cmake == NULL || source_in == NULL || source == NULL) {
        return error_set(err, ST_NOMEM, "out of memory");
    }
    if (mkdir(to, 0777) != 0) {
        return error_set(
            err, ST_CONFLICT,
            "%s cannot be made (is it there already? nothing is overwritten)", to);
    }
    st = copy(t, name, cmake_in, cmake, err);
    return st == ST_OK ? copy(t, name, source_in, source, err) : st;
}

/* NULL: --kind is neither. */
static const struct template *find_template(struct cli *c)
{
    const char *kind = args_value(&c->args, "kind");

    for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++) {
        if (strcmp(kind != NULL ? kind : "channel", templates[i].kind) == 0) {
            return &templates[i];
        }
    }
    return NULL;
}

static bool is_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strcmp(reserved[i], name) == 0) {
            return true;
        }
    }
    return false;
}

enum cli_exit cmd_plugin_new(struct cli *c)
{
    const char *name = c->args.words[0];
    const char *dir = args_value(&c->args, "dir");
    const struct template *t = find_template(c);
    const char *share, *to;
    struct error err = {0};
    char *prefix = NULL;

    if (t == NULL) {
        return cli_misuse(c, "--kind is channel or executor");
    }
    if (!good_name(name) || is_reserved(name)) {
        return cli_misuse(c,
                          "%s: a plugin's name is a lower-case letter, then letters, "
                          "digits and -, at most %d, and none of the gateway's own",
                          name, PLUGIN_NAME_MAX);
    }
    if (runtime_prefix(&prefix, &err) != ST_OK) {
        return cli_fail(c, "%s", err.text);
    }
    share = arena_printf(c->arena, "%s/share/soulacy/plugin-api/template", prefix);
    to = arena_printf(c->arena, "%s/%s-%s", dir != NULL ? dir : ".", t->kind, name);
    mem_free(prefix);
    if (share == NULL || to == NULL) {
        return cli_fail(c, "out of memory");
    }
    if (copy_all(c, t, share, to, &err) != ST_OK) {
        return cli_fail(c, "%s", err.text);
    }
    (void)printf("%s made. Its CMakeLists.txt tells how to build it; then:\n"
                 "  soulacy plugin check %s/build/lib/soulacy/%s-%s.so\n",
                 to, to, t->kind, name);
    return CLI_DONE;
}
