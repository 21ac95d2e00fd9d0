#define _XOPEN_SOURCE 700 /* realpath */
/* Where a tool's file may live, what kind of file it may be, and which bytes come out. */
#include "support/test.h"

#include "base/hash.h"
#include "tools/source.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

struct world {
    struct test_dir dir;
    char in[PATH_MAX], out[PATH_MAX], file[PATH_MAX]; /* dir/in is allowed */
    char name[8];
    char *dirs[2];
    struct str_list allowed, any;
    struct soul_tool tool;
    struct source src;
    struct error err;
};

static char *under(const char *dir, const char *name, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/%s", dir, name);
    assert_true(n > 0 && n < PATH_MAX);
    return path;
}

static void write_in(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX];
    test_write_file(under(dir, name, path), text);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    char real[PATH_MAX];
    assert_non_null(w);
    test_dir_make(&w->dir);
    assert_non_null(realpath(w->dir.path, real));
    under(real, "in", w->in);
    under(real, "out", w->out);
    assert_int_equal(mkdir(w->in, 0755), 0);
    assert_int_equal(mkdir(w->out, 0755), 0);
    write_in(w->in, "tool.py", "inside\n");
    write_in(w->out, "tool.py", "outside\n");
    w->dirs[0] = w->in;
    w->allowed = (struct str_list){w->dirs, 1};
    memcpy(w->name, "tool", 5);
    w->tool = (struct soul_tool){.name = w->name, .python_file = w->file};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    source_done(&w->src);
    test_dir_remove(&w->dir);
    free(w);
    return 0;
}

static enum status read_path(struct world *w, const char *path,
                             const struct str_list *dirs)
{
    size_t before = test_open_fds();
    enum status st;
    source_done(&w->src);
    w->err = (struct error){0};
    (void)snprintf(w->file, sizeof(w->file), "%s", path);
    st = source_read(&w->tool, dirs, &w->src, &w->err);
    assert_int_equal(test_open_fds(), before);
    if (st != ST_OK) {
        assert_int_equal(w->err.status, st);
        assert_non_null(strstr(w->err.text, "tool tool"));
        assert_null(strstr(w->err.text, w->in)); /* the model need not know where */
        assert_null(w->src.filename);
    }
    return st;
}

static enum status read_below(struct world *w, const char *dir, const char *name)
{
    char path[PATH_MAX];
    return read_path(w, under(dir, name, path), &w->allowed);
}

static void assert_bytes(struct world *w, const char *text)
{
    unsigned char digest[SHA256_LEN];
    char hex[SHA256_HEX];
    struct str part = str_c(text);
    assert_str_is(buf_str(&w->src.text), text);
    assert_int_equal(hash_sha256(&part, 1, digest, NULL), ST_OK);
    hash_hex(digest, hex);
    assert_string_equal(w->src.digest, hex);
}

static void test_plain(void **state)
{
    struct world *w = *state;
    char path[PATH_MAX];
    assert_int_equal(read_below(w, w->in, "tool.py"), ST_OK);
    assert_bytes(w, "inside\n");
    assert_string_equal(w->src.filename, "tool.py");
    assert_string_equal(w->src.folder, w->in);
    /* no list: any place */
    assert_int_equal(read_path(w, under(w->out, "tool.py", path), &w->any), ST_OK);
    assert_bytes(w, "outside\n");
    assert_string_equal(w->src.folder, w->out);
    write_in(w->in, "empty.py", "");
    assert_int_equal(read_below(w, w->in, "empty.py"), ST_OK);
    assert_bytes(w, "");
}

static void test_inline(void **state)
{
    struct world *w = *state;
    char text[] = "def tool(): return '\xC3\xA9'";
    w->tool.python_file = NULL;
    w->tool.inline_src = text;
    assert_int_equal(source_read(&w->tool, &w->allowed, &w->src, NULL), ST_OK);
    assert_bytes(w, text);
    assert_string_equal(w->src.filename, "tool.py");
    assert_null(w->src.folder);
}

static void test_outside(void **state)
{
    struct world *w = *state;
    char sibling[PATH_MAX];
    assert_int_equal(read_below(w, w->out, "tool.py"), ST_REFUSED);
    assert_non_null(strstr(w->err.text, "runtime.allowed_tool_dirs"));
    /* a sibling whose name begins alike */
    under(w->dir.path, "in2", sibling);
    assert_int_equal(mkdir(sibling, 0755), 0);
    write_in(sibling, "tool.py", "outside\n");
    assert_int_equal(read_below(w, sibling, "tool.py"), ST_REFUSED);
    assert_int_equal(read_path(w, w->in, &w->allowed), ST_REFUSED);
}

/* Path checked as text: `..` in every place */
static void test_dotdot(void **state)
{
    struct world *w = *state;
    static const char *const out[] = {
        "../out/tool.py",  "x/../../out/tool.py", "./../out/tool.py",
        "..//out/tool.py", "../in/tool.py",       "../../../../../../etc/hostname"};
    char sub[PATH_MAX];
    assert_int_equal(mkdir(under(w->in, "x", sub), 0755), 0);
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
        assert_int_equal(read_below(w, w->in, out[i]), ST_REFUSED);
    }
    assert_int_equal(read_below(w, w->out, "../in/tool.py"), ST_REFUSED);
    /* it stays inside: the kernel judges the way, not the text */
    assert_int_equal(read_below(w, w->in, "x/../tool.py"), ST_OK);
    assert_int_equal(read_below(w, w->in, ".//tool.py"), ST_OK);
    assert_string_equal(w->src.folder, w->in);
}

static void link_in(struct world *w, const char *target, const char *name)
{
    char path[PATH_MAX];
    assert_int_equal(symlink(target, under(w->in, name, path)), 0);
}

static void test_links(void **state)
{
    struct world *w = *state;
    char target[PATH_MAX];
    link_in(w, "../out/tool.py", "out.py");
    assert_int_equal(read_below(w, w->in, "out.py"), ST_REFUSED);
    link_in(w, under(w->out, "tool.py", target), "abs.py");
    assert_int_equal(read_below(w, w->in, "abs.py"), ST_REFUSED);
    link_in(w, "../out", "folder");
    assert_int_equal(read_below(w, w->in, "folder/tool.py"), ST_REFUSED);
    link_in(w, "out.py", "chain.py");
    assert_int_equal(read_below(w, w->in, "chain.py"), ST_REFUSED);
    link_in(w, "loop.py", "loop.py");
    assert_int_equal(read_below(w, w->in, "loop.py"), ST_REFUSED);
    link_in(w, "/proc/self/root", "root");
    assert_int_equal(read_below(w, w->in, "root/etc/hostname"), ST_REFUSED);
    link_in(w, "tool.py", "same.py"); /* inside: fine, and the real name counts */
    assert_int_equal(read_below(w, w->in, "same.py"), ST_OK);
    assert_string_equal(w->src.filename, "tool.py");
    link_in(w, "nowhere", "dangling.py");
    assert_int_equal(read_below(w, w->in, "dangling.py"), ST_NOT_FOUND);
}

/* An allowed folder may itself be reached by a link, and there may be several. */
static void test_allowed_folders(void **state)
{
    struct world *w = *state;
    char by_link[PATH_MAX], slash[PATH_MAX], missing[PATH_MAX], path[PATH_MAX];
    under(w->dir.path, "link", by_link);
    assert_int_equal(symlink("in", by_link), 0);
    w->dirs[0] = by_link;
    assert_int_equal(read_below(w, by_link, "tool.py"), ST_OK);
    assert_string_equal(w->src.folder, w->in);
    under(w->in, "/", slash); /* "in//" */
    w->dirs[0] = slash;
    assert_int_equal(read_below(w, w->in, "tool.py"), ST_OK);
    w->dirs[0] = under(w->dir.path, "missing", missing);
    w->dirs[1] = w->in;
    w->allowed.n = 2;
    assert_int_equal(read_below(w, w->in, "tool.py"), ST_OK);
    assert_int_equal(read_below(w, w->in, "none.py"), ST_NOT_FOUND);
    assert_int_equal(read_path(w, under(missing, "tool.py", path), &w->allowed),
                     ST_NOT_FOUND);
    memcpy(slash, "/", 2);
    w->dirs[0] = slash;
    assert_int_equal(read_below(w, w->out, "tool.py"), ST_OK);
}

static void test_kinds_of_files(void **state)
{
    struct world *w = *state;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char path[PATH_MAX];
    int fd;
    assert_int_equal(mkfifo(under(w->in, "fifo.py", path), 0600), 0);
    assert_int_equal(read_below(w, w->in, "fifo.py"), ST_REFUSED); /* at once */
    assert_non_null(strstr(w->err.text, "fifo.py is not a regular file"));
    assert_int_equal(read_path(w, path, &w->any), ST_REFUSED);
    assert_int_equal(mkdir(under(w->in, "dir.py", path), 0755), 0);
    assert_int_equal(read_below(w, w->in, "dir.py"), ST_REFUSED);
    assert_int_equal(read_path(w, "/dev/null", &w->any), ST_REFUSED);
    assert_int_equal(read_path(w, "/dev/zero", &w->any), ST_REFUSED);
    assert_int_equal(read_path(w, "/proc/self/environ", &w->any), ST_REFUSED);
    assert_int_equal(read_path(w, "/proc/self/maps", &w->any), ST_REFUSED);
    assert_int_equal(read_below(w, w->in, "none.py"), ST_NOT_FOUND);
    assert_int_equal(read_below(w, w->in, "tool.py/x"), ST_IO);
    assert_int_equal(read_path(w, "", &w->any), ST_NOT_FOUND);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    under(w->in, "socket.py", path);
    if (fd >= 0 && strlen(path) < sizeof(addr.sun_path)) {
        memcpy(addr.sun_path, path, strlen(path));
        assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
        assert_int_equal(read_below(w, w->in, "socket.py"), ST_IO);
    }
    close(fd);
}

static void test_unreadable(void **state)
{
    struct world *w = *state;
    char path[PATH_MAX];
    if (geteuid() == 0) {
        skip(); /* root reads everything */
    }
    assert_int_equal(chmod(under(w->in, "tool.py", path), 0), 0);
    assert_int_equal(read_path(w, path, &w->allowed), ST_REFUSED);
    assert_int_equal(read_path(w, path, &w->any), ST_IO);
    assert_non_null(strstr(w->err.text, "tool.py"));
}

static void fill(const char *dir, const char *name, size_t n, char c)
{
    char path[PATH_MAX];
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, c, n);
    text[n] = '\0';
    test_write_file(under(dir, name, path), text);
    free(text);
}

static void test_size_limit(void **state)
{
    struct world *w = *state;
    fill(w->in, "big.py", TOOL_SOURCE_MAX - 1, '#');
    assert_int_equal(read_below(w, w->in, "big.py"), ST_OK);
    fill(w->in, "big.py", TOOL_SOURCE_MAX, '#');
    assert_int_equal(read_below(w, w->in, "big.py"), ST_OK);
    assert_int_equal(w->src.text.len, TOOL_SOURCE_MAX);
    fill(w->in, "big.py", TOOL_SOURCE_MAX + 1, '#');
    assert_int_equal(read_below(w, w->in, "big.py"), ST_TOO_LARGE);
}

static void test_text_only(void **state)
{
    struct world *w = *state;
    char path[PATH_MAX];
    FILE *f = fopen(under(w->in, "nul.py", path), "we");
    assert_non_null(f);
    assert_int_equal(fwrite("a\0b", 1, 3, f), 3);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(read_below(w, w->in, "nul.py"), ST_INVALID);
    write_in(w->in, "latin.py", "# caf\xE9\n");
    assert_int_equal(read_below(w, w->in, "latin.py"), ST_INVALID);
    write_in(w->in, "cut.py", "# \xC3");
    assert_int_equal(read_below(w, w->in, "cut.py"), ST_INVALID);
}

static void test_hard_names(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {" ",       "a b.py",   "-c",      "--help",
                                        "a\nb.py", "a'b\".py", "$(x).py", "\xC3\xA9.py",
                                        "\xFF.py", "..py",     "...",     "x (deleted)",
                                        "%s%n.py", "\\.py",    "~"};
    char longest[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        write_in(w->in, names[i], "ok");
        assert_int_equal(read_below(w, w->in, names[i]), ST_OK);
        assert_string_equal(w->src.filename, names[i]);
        assert_string_equal(w->src.folder, w->in);
    }
    memset(longest, 'n', 255);
    longest[255] = '\0';
    write_in(w->in, longest, "ok");
    assert_int_equal(read_below(w, w->in, longest), ST_OK);
    assert_int_equal(read_below(w, w->in, "n/../nn"), ST_NOT_FOUND);
}

/* ---- edited while it is read ------------------------------------------------------- */

struct editor {
    struct world *w;
    atomic_bool stop;
    atomic_uint rounds;
};

/* Puts one whole file after the other into place, as editors do. */
static void *edit(void *arg)
{
    struct editor *e = arg;
    char a[PATH_MAX], b[PATH_MAX], target[PATH_MAX];
    under(e->w->out, "a.py", a);
    under(e->w->out, "b.py", b);
    under(e->w->in, "tool.py", target);
    while (!atomic_load(&e->stop)) {
        FILE *f = fopen(a, "we");
        if (f != NULL) {
            (void)fputs("aaaaaaaa", f);
            (void)fclose(f);
            (void)rename(a, target);
        }
        f = fopen(b, "we");
        if (f != NULL) {
            (void)fputs("bbbb", f);
            (void)fclose(f);
            (void)rename(b, target);
        }
        atomic_fetch_add(&e->rounds, 1);
    }
    return NULL;
}

static void test_replaced_while_read(void **state)
{
    struct world *w = *state;
    struct editor e = {.w = w};
    char path[PATH_MAX];
    pthread_t thread;
    under(w->in, "tool.py", path);
    memcpy(w->file, path, strlen(path) + 1);
    assert_int_equal(pthread_create(&thread, NULL, edit, &e), 0);
    for (int i = 0; i < 300 || atomic_load(&e.rounds) < 50; i++) {
        source_done(&w->src);
        assert_int_equal(source_read(&w->tool, &w->allowed, &w->src, &w->err), ST_OK);
        assert_string_equal(w->src.filename, "tool.py");
        assert_string_equal(w->src.folder, w->in);
        switch (w->src.text.ptr[0]) {
        case 'a':
            assert_bytes(w, "aaaaaaaa");
            break;
        case 'b':
            assert_bytes(w, "bbbb");
            break;
        default:
            assert_bytes(w, "inside\n");
        }
    }
    atomic_store(&e.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* what was read stays as it was read */
    source_done(&w->src);
    write_in(w->in, "tool.py", "first");
    assert_int_equal(source_read(&w->tool, &w->allowed, &w->src, &w->err), ST_OK);
    write_in(w->in, "tool.py", "other");
    assert_bytes(w, "first");
}

static bool reads(struct world *w)
{
    struct error err = {0};
    enum status st;
    source_done(&w->src);
    w->src = (struct source){0};
    st = source_read(&w->tool, &w->allowed, &w->src, &err);
    assert_true(st == ST_OK || (st == ST_NOMEM && err.status == ST_NOMEM));
    return st == ST_OK;
}

static void test_out_of_memory(void **state)
{
    struct world *w = *state;
    char text[] = "def tool(): pass", path[PATH_MAX];
    size_t before = test_open_fds();
    under(w->in, "tool.py", path);
    memcpy(w->file, path, strlen(path) + 1);
    TEST_SWEEP(reads(w));
    w->tool.python_file = NULL;
    w->tool.inline_src = text;
    TEST_SWEEP(reads(w));
    assert_int_equal(test_open_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inline, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dotdot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_allowed_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kinds_of_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_size_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hard_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced_while_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
    };
    return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
