/* Plans for tests of what comes behind plan_build. Comes in: fields. Goes out: what the
 * accessors of plan.h return. Never built into the program. */
#include "support/fake_plan.h"

#include "base/buf.h"
#include "base/hash.h"

#include <inttypes.h>

void fake_plan_init(struct plan *p, const char *backend, const char *const *argv,
                    size_t nargv)
{
    *p = (struct plan){
        .launch = {.backend = backend,
                   .network = true,
                   .argv = argv,
                   .nargv = nargv,
                   .uid = SPAWN_KEEP_ID,
                   .gid = SPAWN_KEEP_ID,
                   .cpu_seconds = SPAWN_NO_LIMIT,
                   .mem_bytes = SPAWN_NO_LIMIT,
                   .open_files = SPAWN_NO_LIMIT,
                   .file_bytes = SPAWN_NO_LIMIT,
                   .processes = SPAWN_NO_LIMIT},
        .call = {.run_id = "r1",
                 .agent_id = "agent",
                 .tool_name = "tool",
                 .filename = "/srv/agents/tool.py",
                 .function = "tool",
                 .args = {"{}", 2},
                 .timeout_ms = 20000,
                 .max_output_bytes = (size_t)256 * 1024},
    };
    fake_plan_key(p);
}

void fake_plan_key(struct plan *p)
{
    const struct launch_spec *l = &p->launch;
    unsigned char digest[SHA256_LEN];
    struct buf b;
    buf_init(&b, (size_t)64 * 1024);
    buf_addf(&b, "%s %d %d %d %" PRIx64 " %u %u", l->backend, (int)l->isolation,
             l->limits_must_hold ? 1 : 0, l->network ? 1 : 0, l->must, l->uid, l->gid);
    buf_addf(&b, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
             l->cpu_seconds, l->mem_bytes, l->open_files, l->file_bytes, l->processes);
    for (size_t i = 0; i < l->nargv; i++) {
        buf_addf(&b, "\na%s", l->argv[i]);
    }
    for (size_t i = 0; i < l->nenv; i++) {
        buf_addf(&b, "\ne%s", l->env[i]);
    }
    struct str text = buf_str(&b);
    if (hash_sha256(&text, 1, digest, NULL) == ST_OK) {
        hash_hex(digest, p->launch.key);
    }
    buf_done(&b);
}

const struct launch_spec *plan_launch(const struct plan *p)
{
    return &p->launch;
}

const struct plan_call *plan_call(const struct plan *p)
{
    return &p->call;
}
