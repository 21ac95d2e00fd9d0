/* The parts behind the gate, wired as the runtime wires them: helper, launches, one
 * executor plugin, jobs pool, exec. For tests and figures. */
#ifndef SOULACY_TESTS_RIG_H
#define SOULACY_TESTS_RIG_H

#include "exec/exec.h"
#include "support/fake_plan.h"

struct rig_options {
    const char *build_dir; /* where bin, lib and libexec are */
    const char *backend;   /* executor plugin's name */
    const char *python;    /* absolute */
    enum isolation isolation;
    bool quiet;   /* no log on stderr */
    bool no_json; /* as where python3-minimal lacks json and _json */
    /* What the configuration says to the plugin, each "key=value"; lists by commas. */
    const char *const *settings;
    size_t nsettings;
};

struct rig {
    struct rig_options opt;
    struct log *log;
    struct spawn *spawn;
    struct launches *launches;
    struct plugin_registry *plugins;
    struct plugin_service service;
    struct pool *jobs;
    struct exec *exec;
    char mark[64];       /* SOULACY_TEST_MARK=..., in every child's environment */
    char work_root[256]; /* "" at ISOLATION_NONE */
    const char *argv[5];
    char bootstrap[256];
    const char *env[5];
};

/* Single-threaded so far: the helper starts here. */
bool rig_open(struct rig *r, const struct rig_options *opt, struct error *err);
void rig_close(struct rig *r);
/* A plan of this rig: python, environment, isolation. Then change it, fake_plan_key. */
void rig_plan(const struct rig *r, struct plan *p);
/* Wait until every run is torn down; false after five seconds. */
bool rig_settle(struct rig *r);
/* Processes that carry the rig's mark. */
size_t rig_leftovers(const struct rig *r);

#endif
