/* What a container is made of: a positive list, from the plan. Pure. */
#ifndef SOULACY_DOCKER_SPEC_H
#define SOULACY_DOCKER_SPEC_H

#include "util.h"

/* What does not come from the launch. */
struct spec_base {
    const char *image_id;   /* sha256:... */
    const char *image_path; /* the image's own PATH and LANG, or NULL */
    const char *image_lang;
    const char *const *image_env; /* names of the image's variables, taken away */
    size_t nimage_env;
    const char *network; /* NetworkMode */
    const char *const *binds;
    size_t nbinds;
    const char *owner; /* label: who may delete it */
};

#define SPEC_LABEL "soulacy.owner"
#define SPEC_RUN_LABEL "soulacy.launch"
#define SPEC_TMP_MIN ((uint64_t)64 * 1024 * 1024)
#define SPEC_PIDS 512 /* where the plan has no limit: no fork bomb eats the host */

/* The body of POST /containers/create. SY_E_REFUSED: a limit that no container can keep. */
sy_status spec_body(const struct sy_launch *l, const struct spec_base *base,
                    struct bytes *out, struct sy_error *err);

/* Compare what an engine says it made (GET /containers/ID/json) with the launch: NULL when
 * all of it holds, else the name of what does not. An old engine skips in silence what it
 * does not know. */
const char *spec_verify(const struct sy_launch *l, const struct spec_base *base,
                        const char *json, size_t len);

/* Memory of the whole container, 0: no limit. The address space of a process, which the
 * plan means, is limited by the harness and by the data ulimit; this is behind them. */
uint64_t spec_memory(const struct sy_launch *l);

#endif
