/* The snapshot of the environment, seen from inside core/config. */
#ifndef SOULACY_CONFIG_ENV_H
#define SOULACY_CONFIG_ENV_H

#include "config/config.h"

struct env_entry {
    char *pair; /* NAME=value, which name and value show parts of */
    struct str name;
    struct str value; /* NUL-terminated */
    char *initial;    /* the value in the initial environment block, or NULL */
};

size_t config_env_count(const struct config_env *e);
const struct env_entry *config_env_at(const struct config_env *e, size_t i);
/* Erase the value of name in the initial environment block (config_env_take). */
void config_env_hide(const struct config_env *e, const char *name);

/* A deep copy of the tree with ${NAME} replaced; aliases become copies of their own.
 * Unset variables and bad syntax are problems; *out is then set too, such values being
 * absent in it. */
enum status config_expand(const struct yaml_node *from, struct arena *a,
                          const struct config_env *env, struct problems *probs,
                          struct yaml_node **out) SY_MUST_CHECK;
/* Put every SOULACY_ variable into the tree; unknown ones are problems. */
enum status config_override(struct yaml_node *root, struct arena *a,
                            const struct config_env *env,
                            struct problems *probs) SY_MUST_CHECK;
/* The node at a dotted path, made with its parents when absent; NULL without *nomem when
 * a parent is no mapping. */
struct yaml_node *config_node_make(struct yaml_node *root, struct arena *a,
                                   struct str path, bool *nomem);
/* True when name (as in executor.NAME_key) belongs to an executor plugin of someone
 * else: it is the configured backend or an allowed one, and none of ours. */
bool config_foreign_executor(const struct yaml_node *root, struct str key);
/* Checks and defaults that need more than one key; ST_OK also with problems. real:
 * look at paths behind links too (realpath). */
enum status config_check(struct config *c, const struct config_env *env,
                         struct problems *probs, bool real) SY_MUST_CHECK;

#endif
