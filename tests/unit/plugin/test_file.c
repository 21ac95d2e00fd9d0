/* In: files and folders with all kinds of owners, modes and types. Out: which of them may
 * be loaded, and that with a digest the checked bytes are the ones in hand. */
#include "support/test.h"

#include "base/hash.h"
#include "base/io.h"
#include "plugin/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

struct fixture {
    struct test_dir dir;
    char plain[PATH_MAX]; /* a file that passes */
    size_t fds;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    test_dir_make(&f->dir);
    test_write_file(test_path(&f->dir, "plain.so", f->plain), "bytes");
    assert_int_equal(chmod(f->plain, 0644), 0);
    f->fds = test_open_fds();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(test_open_fds(), f->fds);
    test_dir_remove(&f->dir);
    free(f);
    return 0;
}

static enum status open_as(const char *plugin_dir, const char *path, const char *sha256,
                           uint32_t kind, struct plugin_file *out, struct error *err)
{
    const struct plugin_spec spec = {.path = path, .sha256 = sha256, .kind = kind};
    memset(err, 0, sizeof *err);
    return plugin_file_open(plugin_dir, &spec, out, err);
}

static void refused(const char *path, const char *sha256, const char *line)
{
    struct plugin_file file = {-1, false, NULL};
    struct error err;
    char want[PATH_MAX + 300];
    assert_true(open_as("/nowhere", path, sha256, 0, &file, &err) != ST_OK);
    (void)snprintf(want, sizeof want, "%s: %s", path, line);
    assert_string_equal(err.text, want);
    assert_int_equal(file.fd, -1);
}

static void a_file_of_our_own_is_opened(void **state)
{
    const struct fixture *f = *state;
    struct plugin_file file;
    struct error err;
    assert_int_equal(open_as("/nowhere", f->plain, NULL, 0, &file, &err), ST_OK);
    assert_string_equal(file.path, f->plain);
    assert_false(file.own);
    plugin_file_done(&file);
    assert_int_equal(open_as(f->dir.path, f->plain, NULL, 0, &file, &err), ST_OK);
    assert_true(file.own);
    plugin_file_done(&file);
}

static void modes_that_let_others_write_are_refused(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(chmod(f->plain, 0664), 0);
    refused(f->plain, NULL, "the file is writable by its group (mode 0664)");
    assert_int_equal(chmod(f->plain, 0646), 0);
    refused(f->plain, NULL, "the file is writable by others (mode 0646)");
    assert_int_equal(chmod(f->plain, 0644), 0);
    assert_int_equal(chmod(f->dir.path, 0775), 0);
    refused(f->plain, NULL, "its folder is writable by its group (mode 0775)");
    assert_int_equal(chmod(f->dir.path, 01777), 0);
    refused(f->plain, NULL, "its folder is writable by others (mode 1777)");
    assert_int_equal(chmod(f->dir.path, 0700), 0);
}

static void files_of_strangers_are_refused(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0) {
        skip(); /* only root can give a file away */
    }
    assert_int_equal(chown(f->plain, 12345, 12345), 0);
    refused(f->plain, NULL, "the file belongs to uid 12345, neither root nor this user");
    assert_int_equal(chown(f->plain, 0, 0), 0);
    assert_int_equal(chown(f->dir.path, 12345, 12345), 0);
    refused(f->plain, NULL,
            "its folder belongs to uid 12345, neither root nor this user");
    assert_int_equal(chown(f->dir.path, 0, 0), 0);
}

static void only_regular_files_count(void **state)
{
    struct fixture *f = *state;
    char path[PATH_MAX];
    const char *line = "is no regular file of 1 byte to 256 MiB";
    assert_int_equal(symlink(f->plain, test_path(&f->dir, "link.so", path)), 0);
    refused(path, NULL, "is a symbolic link: name the file itself");
    assert_int_equal(mkfifo(test_path(&f->dir, "fifo.so", path), 0600), 0);
    refused(path, NULL, line); /* and it does not wait for a writer */
    assert_int_equal(mkdir(test_path(&f->dir, "dir.so", path), 0700), 0);
    refused(path, NULL, line);
    test_write_file(test_path(&f->dir, "empty.so", path), "");
    refused(path, NULL, line);
    refused(test_path(&f->dir, "none.so", path), NULL,
            "cannot be opened: No such file or directory");
    refused("/nowhere/at/all.so", NULL,
            "cannot open its folder: No such file or directory");
    refused("/etc/", NULL, "cannot be opened: No such file or directory");
}

static void sha_of(const char *text, char hex[SHA256_HEX])
{
    unsigned char digest[SHA256_LEN];
    struct error err;
    struct str s = str_c(text);
    assert_int_equal(hash_sha256(&s, 1, digest, &err), ST_OK);
    hash_hex(digest, hex);
}

static void with_a_digest_the_bytes_cannot_change_any_more(void **state)
{
    struct fixture *f = *state;
    struct plugin_file file;
    struct error err;
    char hex[SHA256_HEX], got[16] = "";
    sha_of("bytes", hex);
    assert_int_equal(open_as("/nowhere", f->plain, hex, 0, &file, &err), ST_OK);
    test_write_file(f->plain, "other");
    assert_int_equal(pread(file.fd, got, sizeof got, 0), 5);
    assert_memory_equal(got, "bytes", 5);
    assert_int_equal(pwrite(file.fd, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(fcntl(file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    plugin_file_done(&file);
    test_write_file(f->plain, "bytes");
    for (char *c = hex; *c != '\0'; c++) {
        *c = *c >= 'a' && *c <= 'f' ? (char)(*c - 'a' + 'A') : *c;
    }
    assert_int_equal(open_as("/nowhere", f->plain, hex, 0, &file, &err), ST_OK);
    plugin_file_done(&file);
}

static void a_wrong_digest_is_refused_with_the_right_one(void **state)
{
    struct fixture *f = *state;
    char hex[SHA256_HEX], line[256];
    sha_of("bytes", hex);
    (void)snprintf(line, sizeof line, "sha256 is %s, the configuration says 00", hex);
    refused(f->plain, "00", line);
}

static void bare_names_lie_in_the_plugin_folder(void **state)
{
    struct fixture *f = *state;
    struct plugin_file file;
    struct error err;
    char path[PATH_MAX], line[PATH_MAX + 100];
    test_write_file(test_path(&f->dir, "executor-process.so", path), "x");
    assert_int_equal(open_as(f->dir.path, "process", NULL, 0, &file, &err), ST_OK);
    assert_string_equal(file.path, path);
    assert_true(file.own);
    plugin_file_done(&file);
    test_write_file(test_path(&f->dir, "channel-mail.so", path), "x");
    assert_int_equal(open_as(f->dir.path, "mail", NULL, 0, &file, &err), ST_OK);
    assert_string_equal(file.path, path);
    plugin_file_done(&file);
    assert_int_equal(open_as(f->dir.path, "mail", NULL, SY_KIND_EXECUTOR, &file, &err),
                     ST_IO);
    test_write_file(test_path(&f->dir, "executor-mail.so", path), "x");
    assert_int_equal(open_as(f->dir.path, "mail", NULL, 0, &file, &err), ST_CONFLICT);
    (void)snprintf(line, sizeof line,
                   "plugin 'mail': both a channel and an executor of that name lie in %s",
                   f->dir.path);
    assert_string_equal(err.text, line);
    assert_int_equal(open_as(f->dir.path, "mail", NULL, SY_KIND_EXECUTOR, &file, &err),
                     ST_OK);
    plugin_file_done(&file);
}

static void relative_paths_are_no_names(void **state)
{
    const struct fixture *f = *state;
    struct plugin_file file;
    struct error err;
    static const char *const bad[] = {"../x", "a/b", "x.so",
                                      "A",    "a b", "abcdefghijklmnopqrstuvwxyz0123456"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(open_as(f->dir.path, bad[i], NULL, 0, &file, &err), ST_INVALID);
        assert_non_null(strstr(err.text, "neither an absolute path nor a bare name"));
    }
    char *deep = calloc(1, PATH_MAX + 2);
    assert_non_null(deep);
    memset(deep, '/', PATH_MAX + 1);
    assert_int_equal(open_as(f->dir.path, deep, NULL, 0, &file, &err), ST_INVALID);
    free(deep);
}

static void the_default_folder_is_beside_the_program(void **state)
{
    (void)state;
    struct error err;
    char *dir = NULL;
    char exe[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    assert_int_equal(plugin_default_dir(&dir, &err), ST_OK);
    assert_true(str_ends(str_c(dir), STR_LIT("/lib/soulacy")));
    assert_true(strncmp(dir, exe, strlen(dir) - strlen("/lib/soulacy")) == 0);
    mem_free(dir);
}

static bool opens(const struct fixture *f, const char *hex)
{
    struct plugin_file file;
    struct error err;
    bool ok = open_as(f->dir.path, f->plain, hex, 0, &file, &err) == ST_OK;
    if (ok) {
        plugin_file_done(&file);
    }
    return ok;
}

static void no_memory_is_an_error(void **state)
{
    const struct fixture *f = *state;
    char hex[SHA256_HEX];
    sha_of("bytes", hex);
    TEST_SWEEP(opens(f, hex));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(a_file_of_our_own_is_opened),
        T(modes_that_let_others_write_are_refused),
        T(files_of_strangers_are_refused),
        T(only_regular_files_count),
        T(with_a_digest_the_bytes_cannot_change_any_more),
        T(a_wrong_digest_is_refused_with_the_right_one),
        T(bare_names_lie_in_the_plugin_folder),
        T(relative_paths_are_no_names),
        T(the_default_folder_is_beside_the_program),
        T(no_memory_is_an_error),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
