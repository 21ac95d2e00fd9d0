/* The only way to cmocka: its four headers in their order, and a few helpers. All are
 * inline, so that a test links nothing but the modules it tests. Assert on the test's
 * main thread only. */
#ifndef SOULACY_TESTS_TEST_H
#define SOULACY_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A view against a C string, with both in the message. */
#define assert_str_is(view, text) test_assert_str((view), (text), __FILE__, __LINE__)

static inline void test_assert_str(struct str s, const char *text, const char *file,
                                   int line)
{
    if (!str_eq_c(s, text)) {
        print_error("is \"%.*s\", not \"%s\"\n", STR_ARG(s), text);
        _fail(file, line);
    }
}

/* Fail allocation 1, 2, 3 ... of the expression until it is true, which must happen, and
 * not at the first: what is swept has to allocate. Leak checkers watch the failures. */
#define TEST_SWEEP(expression) \
    do { \
        bool sweep_ok_ = false; \
        uint64_t sweep_n_ = 0; \
        while (!sweep_ok_ && ++sweep_n_ < 10000) { \
            mem_fail_after(sweep_n_); \
            sweep_ok_ = (expression); \
            mem_fail_after(0); \
        } \
        assert_true(sweep_ok_); \
        assert_true(sweep_n_ > 1); \
    } while (0)

/* A folder of this test's own under TMPDIR; test_dir_remove takes it away. */
struct test_dir {
    char path[512];
};

static inline void test_dir_make(struct test_dir *d)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(d->path, sizeof(d->path), "%s/soulacy-test-XXXXXX",
                     base != NULL && base[0] == '/' ? base : "/tmp");
    assert_true(n > 0 && (size_t)n < sizeof(d->path));
    assert_non_null(mkdtemp(d->path));
}

/* PATH/NAME in out, which is returned. */
static inline const char *test_path(const struct test_dir *d, const char *name,
                                    char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/%s", d->path, name);
    assert_true(n > 0 && n < PATH_MAX);
    return out;
}

static inline void test_remove_tree(const char *path)
{
    struct stat sb;
    if (lstat(path, &sb) != 0) {
        return;
    }
    if (!S_ISDIR(sb.st_mode)) {
        unlink(path);
        return;
    }
    DIR *dir = opendir(path);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL;
         e = readdir(dir)) {
        char *child = NULL;
        size_t len = strlen(path) + strlen(e->d_name) + 2;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        child = malloc(len);
        if (child != NULL) {
            snprintf(child, len, "%s/%s", path, e->d_name);
            test_remove_tree(child);
            free(child);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(path);
}

static inline void test_dir_remove(const struct test_dir *d)
{
    test_remove_tree(d->path);
}

/* Write a file of the test's own; the whole of text. */
static inline void test_write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

/* Open descriptors of this process: equal before and after means that none leaked. */
static inline size_t test_open_fds(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

#endif
