/* A plugin made of plain functions of the test, put into a registry without a file. */
#ifndef SOULACY_TESTS_FAKE_PLUGIN_H
#define SOULACY_TESTS_FAKE_PLUGIN_H

#include "support/test.h"

#include "plugin/internal.h"

/* Only the members a test sets; the rest is made to work. */
struct fake {
    struct test_dir dir;
    char log_path[PATH_MAX];
    struct log *log;
    struct plugin_registry *r;
    struct plugin_instance *p;
};

static inline sy_status fake_create(const struct sy_host *host,
                                    const struct sy_cfg_value *cfg, size_t ncfg,
                                    void **out, struct sy_error *err)
{
    (void)host;
    (void)cfg;
    (void)ncfg;
    (void)out;
    (void)err;
    return SY_OK;
}

static inline void fake_destroy(void *self)
{
    (void)self;
}

static inline const void *fake_query(void *self, const char *id)
{
    (void)self;
    (void)id;
    return NULL;
}

static inline sy_status fake_start(void *self, struct sy_error *err)
{
    (void)self;
    (void)err;
    return SY_OK;
}

static inline void fake_stop(void *self)
{
    (void)self;
}

static inline struct sy_plugin fake_entry(uint32_t kind, const char *name)
{
    struct sy_plugin p = {.size = sizeof p,
                          .kind = kind,
                          .name = name,
                          .version = "1",
                          .create = fake_create,
                          .destroy = fake_destroy,
                          .query = fake_query};
    return p;
}

/* A registry with a log and one loaded instance; services may be NULL. */
static inline void fake_init(struct fake *f, uint32_t kind, const char *name, bool own,
                             const struct plugin_service *services, size_t nservices)
{
    struct error err;
    char path[] = "/nowhere/fake.so";
    const struct plugin_file file = {.fd = -1, .own = own, .path = path};
    const struct plugin_entry entry = {.p = fake_entry(kind, name), .nkeys = 0};
    memset(f, 0, sizeof *f);
    test_dir_make(&f->dir);
    (void)test_path(&f->dir, "log", f->log_path);
    assert_int_equal(log_open(LOG_DEBUG, LOG_CONSOLE, f->log_path, &f->log, &err), ST_OK);
    const struct plugin_registry_config cfg = {.log = f->log,
                                               .plugin_dir = f->dir.path,
                                               .services = services,
                                               .nservices = nservices};
    assert_int_equal(plugin_registry_new(&cfg, &f->r, &err), ST_OK);
    f->p = plugin_instance_new(f->r, &entry, &file, &err);
    assert_non_null(f->p);
    assert_int_equal(plugin_registry_add(f->r, f->p, &err), ST_OK);
    f->p->channel.start = f->p->executor.start = fake_start;
    f->p->channel.stop = f->p->executor.stop = fake_stop;
    f->p->executor.max_parallel = 1;
    plugin_set_state(f->p, PLUGIN_LOADED);
}

static inline void fake_done(struct fake *f)
{
    plugin_registry_free(f->r);
    log_close(f->log);
    test_dir_remove(&f->dir);
}

/* How many log lines contain text. */
static inline size_t fake_logged(const struct fake *f, const char *text)
{
    size_t n = 0;
    char line[65536];
    FILE *in = fopen(f->log_path, "re");
    assert_non_null(in);
    while (fgets(line, sizeof line, in) != NULL) {
        n += strstr(line, text) != NULL ? 1 : 0;
    }
    assert_int_equal(fclose(in), 0);
    return n;
}

#endif
