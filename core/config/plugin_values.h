/* A plugin's own part of config.yaml as the typed values its create() gets.
 *
 *   channels.NAME        of a channel, without the keys that are the core's
 *   executor.NAME_*      of an executor, without the prefix; executor.workers and
 *                        executor.max_idle too, when the plugin's table has them
 *   plugins_config.NAME  of either, for what is nobody else's
 *
 * SOULACY_ overrides are in it already. */
#ifndef SOULACY_CONFIG_PLUGIN_VALUES_H
#define SOULACY_CONFIG_PLUGIN_VALUES_H

#include "config/config.h"

#include <soulacy/plugin.h>

/* kind: SY_KIND_*. keys ends with name == NULL; NULL: the plugin takes no keys. Values
 * live in the arena (which then holds secrets: keep it no longer than create() runs). A
 * key that the table lacks, a wrong type and a missing required key are problems, and
 * ST_INVALID; a fallback that does not parse is ST_INTERNAL's business of the plugin and
 * a problem too. *out has one value for each key that has one. */
enum status config_plugin_values(const struct config *c, const char *plugin_name,
                                 uint32_t kind, const struct sy_cfg_key *keys,
                                 struct arena *a, struct problems *probs,
                                 struct sy_cfg_value **out, size_t *n) SY_MUST_CHECK;

#endif
