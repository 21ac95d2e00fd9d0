/* The tables of known keys, and the reader that turns a YAML mapping into a struct by
 * them. Private to core/config. */
#ifndef SOULACY_CONFIG_KEYS_H
#define SOULACY_CONFIG_KEYS_H

#include "config/config.h"

#include <stddef.h>

enum key_type {
    K_STR,      /* char * */
    K_CHOICE,   /* char *, one of choices */
    K_ENUM,     /* unsigned, index into choices */
    K_INT,      /* int64_t */
    K_BOOL,     /* bool */
    K_DURATION, /* int64_t milliseconds */
    K_DOUBLE,   /* double, min and max in thousandths */
    K_SECRET,   /* struct secret */
    K_PATH,     /* char *, absolute; "" stays "" */
    K_LIST,     /* struct str_list */
    K_PATHS,    /* struct str_list of absolute paths */
    K_HEADERS,  /* struct str_list of "Name: value", written as mapping or list */
    K_ENVIRON,  /* struct str_list of "NAME=value", written as mapping or list */
    K_OPT_LIST, /* struct opt_list */
    K_TREE,     /* const struct yaml_node *, any mapping or list */
    K_GROUP     /* nothing: entries below are read by a table of their own */
};

enum {
    KEY_NODE = 1,     /* no member: checked, and kept in the tree for a plugin */
    KEY_NULLABLE = 2, /* a text without value is NULL, not "" */
    KEY_REQUIRED = 4,
    KEY_RESTART = 8, /* a change takes effect at the next start, not at reload */
    KEY_LATER = 16,  /* note says what must be there before it takes effect */
    KEY_FOREIGN = 32 /* field of the wider system: accepted, not built; type ignored */
};

struct key {
    const char *path; /* dotted, below the table's root */
    enum key_type type;
    size_t offset;
    const char *fallback; /* as it would be written; lists with commas; NULL: none */
    int64_t min, max;     /* K_INT, K_DURATION (ms), K_DOUBLE */
    const char *const *choices;             /* ends with NULL */
    const char *(*check)(struct str value); /* NULL when fine, else "must be ..." */
    unsigned flags;
    const char *note;
};

struct key_table {
    const struct key *keys;
    size_t n;
    /* Keys this table does not know are for someone else (a channel plugin): let pass. */
    bool open;
};

extern const struct key_table config_keys;          /* struct config */
extern const struct key_table config_channel_keys;  /* struct config_channel */
extern const struct key_table config_whatsapp_keys; /* the plugin's own, KEY_NODE */
extern const struct key_table config_provider_keys; /* struct config_provider */
extern const struct key_table config_mcp_keys;      /* struct config_mcp_server */
extern const struct key_table config_kb_keys;       /* struct config_kb */
extern const struct key_table config_plugin_keys;   /* struct config_plugin */

/* The groups of config_keys with named entries: "channels" and so on. */
struct key_group {
    const char *path;
    const struct key_table *keys;
    const char *note; /* NULL, or as key.note for every entry */
};
extern const struct key_group config_groups[];
extern const size_t config_ngroups;

/* Is an unknown path someone else's business after all (executor.NAME_*)? */
typedef bool key_foreign_fn(const void *ctx, struct str path);

struct reader {
    struct arena *arena;
    struct problems *probs;
    const char *dir;         /* absolute; relative paths are joined to it */
    const char *home;        /* NULL: `~/` cannot be used */
    const char *prefix;      /* of every path shown: "" or "channels.whatsapp." */
    bool env_names;          /* name the SOULACY_ variable when a value came from one */
    key_foreign_fn *foreign; /* NULL: nothing is */
    const void *foreign_ctx;
    bool nomem;
};

const struct key *key_find(const struct key_table *t, struct str path);
/* The node at a dotted path below map, or NULL; YAML_NULL counts as absent. */
const struct yaml_node *key_node(const struct yaml_node *map, const char *path);
/* Read every key of the table from map (NULL: defaults alone) into *base; unknown keys,
 * wrong types and values out of range become problems. */
void key_read_table(struct reader *r, const struct key_table *t,
                    const struct yaml_node *map, void *base);
/* The nearest of names to name, or NULL when none is near. */
const char *key_nearest(struct str name, const char *const *names, size_t n);
/* A problem with the value at node, named by its path or its SOULACY_ variable. */
void key_problem(struct reader *r, const struct yaml_node *node, const char *path,
                 const char *text);
/* "server.api_key" -> "SOULACY_SERVER_API_KEY"; NULL: out of memory. */
char *key_env_name(struct arena *a, const char *path);

/* One value: node (or NULL: the fallback) to *at, the member; NULL only checks. */
void key_read_value(struct reader *r, const struct key *k, const struct yaml_node *node,
                    struct yaml_pos map_pos, void *at);

/* Absolute text of a path; NULL with a problem, or out of memory (r->nomem). */
char *key_abs_path(struct reader *r, const struct yaml_node *node, const char *path,
                   struct str value);
/* The items of a list value: a sequence of scalars, or a text with commas when it comes
 * from the environment or a default. False when it is neither. */
bool key_list_items(struct arena *a, const struct yaml_node *node, struct str **out,
                    size_t *n, bool *nomem);

#endif
