/* What the commands share. Private to core/cli. */
#ifndef SOULACY_CLI_COMMAND_H
#define SOULACY_CLI_COMMAND_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/cli.h"

struct cli {
    const struct config_env *env;
    const struct command *command;
    struct args args;
    bool json;
    const char *config_path; /* --config, or NULL */
    struct arena *arena;     /* of the command; holds the configuration's problems */
    struct config *cfg;      /* after cli_config; freed at the end unless taken */
};

struct command {
    const char *name;  /* one word or two: "chat", "agent check" */
    const char *words; /* as in the usage line: "FILE..." */
    const char *help;
    size_t min_words, max_words;
    const struct arg_option *options; /* besides the common ones; NULL: none */
    enum cli_exit (*run)(struct cli *c);
    bool hidden_json; /* --json has no meaning for it */
};

/* ---- out.c ------------------------------------------------------------------------ */

bool cli_is_tty(int fd);
/* Text of others (tools, agents, people): control bytes but newline and tab are made
 * visible, so that it cannot drive a terminal. */
void cli_text(struct buf *out, struct str s);
/* The same, each line after prefix. */
void cli_indent(struct buf *out, const char *prefix, struct str s);
/* A colour, or nothing when stdout is no terminal: "bold", "dim", "red", "green", "off". */
const char *cli_colour(const char *name);
/* To stdout; CLI_FAILED when it cannot be written. */
enum cli_exit cli_print(struct cli *c, const struct buf *out);
/* A line to stderr: "soulacy chat: TEXT". Returns CLI_FAILED. */
enum cli_exit cli_fail(const struct cli *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same with the usage line; CLI_USAGE. */
enum cli_exit cli_misuse(const struct cli *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- load.c ----------------------------------------------------------------------- */

/* Reads the configuration into c->cfg. Problems go to stderr, all of them; warnings only
 * when asked for. */
enum cli_exit cli_config(struct cli *c, bool warnings);
/* The configuration for who takes it over. */
struct config *cli_take_config(struct cli *c);

/* ---- the commands ----------------------------------------------------------------- */

enum cli_exit cmd_serve(struct cli *c);
enum cli_exit cmd_init(struct cli *c);
enum cli_exit cmd_chat(struct cli *c);
enum cli_exit cmd_agent_list(struct cli *c);
enum cli_exit cmd_agent_check(struct cli *c);
enum cli_exit cmd_tool_run(struct cli *c);
enum cli_exit cmd_policy_explain(struct cli *c);
enum cli_exit cmd_plugin_list(struct cli *c);
enum cli_exit cmd_plugin_check(struct cli *c);
enum cli_exit cmd_plugin_new(struct cli *c);
enum cli_exit cmd_config_check(struct cli *c);
enum cli_exit cmd_config_show(struct cli *c);
enum cli_exit cmd_sessions(struct cli *c);
enum cli_exit cmd_sessions_show(struct cli *c);
enum cli_exit cmd_sessions_delete(struct cli *c);
enum cli_exit cmd_status(struct cli *c);
enum cli_exit cmd_version(struct cli *c);

#endif
