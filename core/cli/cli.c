/* The table of commands: finds the one that argv names, checks its words and options,
 * runs it. Prints help. Decides nothing else. */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/version.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#define ARENA_MAX ((size_t)16 * 1024 * 1024)
#define NCOMMON 3

static const struct arg_option common[NCOMMON] = {
    {"config", "FILE", "this config.yaml, not the one that is looked for"},
    {"json", NULL, "print JSON"},
    {"help", NULL, "what you are reading"},
};

static const struct arg_option init_options[] = {
    {"port", "N", "server.port of the new config.yaml"},
    {"isolation", "LEVEL",
     "none, restricted or strict instead of the strongest that works"},
    {"if-missing", NULL, "exit 0 when DIR is a workspace already"},
    {NULL, NULL, NULL}};
static const struct arg_option chat_options[] = {
    {"agent", "ID", "the agent; else the only one, or `assistant`"},
    {"session", "ID", "go on with this session"},
    {"user", "NAME", "who speaks; else the login name"},
    {"url", "URL", "the gateway; else host and port of the configuration"},
    {"verbose", NULL, "every stage: who spoke, verdicts, sandbox, log, times"},
    {NULL, NULL, NULL}};
static const struct arg_option url_options[] = {
    {"url", "URL", "the gateway; else host and port of the configuration"},
    {NULL, NULL, NULL}};
static const struct arg_option tool_options[] = {
    {"agent", "ID", "the agent; else the only one, or `assistant`"},
    {"verbose", NULL, "verdict, sandbox, log and times too"},
    {NULL, NULL, NULL}};
static const struct arg_option policy_options[] = {
    {"agent", "ID", "the agent"},
    {"channel", "NAME", "http, webhook, whatsapp, ..."},
    {"tool", "NAME", "the tool"},
    {"args", "JSON", "judge a call with these arguments, not only the offer"},
    {NULL, NULL, NULL}};
static const struct arg_option plugin_options[] = {
    {"kind", "KIND", "channel or executor (channel)"},
    {"dir", "DIR", "where the new folder is made (.)"},
    {NULL, NULL, NULL}};

static const struct command commands[] = {
    {"serve", "", "run the gateway in the foreground; SIGTERM drains, SIGHUP reloads", 0,
     0, NULL, cmd_serve, true},
    {"init", "[DIR] [--port N] [--isolation LEVEL] [--if-missing]",
     "make a workspace in DIR (~/.soulacy): config.yaml with a new key, an agent, state",
     0, 1, init_options, cmd_init, false},
    {"chat", "[--agent ID] [--session ID] [--verbose] [--url URL] [TEXT]",
     "send one message, or talk, to the running gateway", 0, 1, chat_options, cmd_chat,
     false},
    {"agent list", "", "agents of the configuration, and what is wrong with their files",
     0, 0, NULL, cmd_agent_list, false},
    {"agent check", "FILE...", "check SOUL.yaml files as the gateway would", 1,
     ARGS_MAX_WORDS, NULL, cmd_agent_check, false},
    {"tool run", "[--agent ID] [--verbose] NAME [JSON]",
     "one tool call through gate and executor; no gateway, no model", 1, 2, tool_options,
     cmd_tool_run, false},
    {"policy explain", "--agent ID --channel NAME --tool NAME [--args JSON]",
     "may this agent use this tool on this channel, and by which row", 0, 0,
     policy_options, cmd_policy_explain, false},
    {"plugin list", "", "plugins there are, and which of them the configuration uses", 0,
     0, NULL, cmd_plugin_list, false},
    {"plugin check", "FILE.so", "load a plugin as the gateway would", 1, 1, NULL,
     cmd_plugin_check, false},
    {"plugin new", "[--kind KIND] [--dir DIR] NAME",
     "a folder with a plugin to start from", 1, 1, plugin_options, cmd_plugin_new, true},
    {"config check", "", "what is wrong in the configuration, and what has no effect yet",
     0, 0, NULL, cmd_config_check, false},
    {"config show", "", "every key, its value and where it came from", 0, 0, NULL,
     cmd_config_show, false},
    {"sessions", "[--url URL]", "sessions of the running gateway", 0, 0, url_options,
     cmd_sessions, false},
    {"sessions show", "[--url URL] ID", "the history of one", 1, 1, url_options,
     cmd_sessions_show, false},
    {"sessions delete", "[--url URL] ID", "delete one", 1, 1, url_options,
     cmd_sessions_delete, false},
    {"status", "[--url URL]", "what the running gateway says of itself", 0, 0,
     url_options, cmd_status, false},
    {"version", "", "versions of the program and of its plugin interface", 0, 0, NULL,
     cmd_version, false},
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- help --------------------------------------------------------------------------- */

static void print_overview(FILE *to)
{
    (void)fputs(
        "soulacy " SOULACY_VERSION ": a self-hosted gateway that runs AI agents\n\n", to);
    for (size_t i = 0; i < NCOMMANDS; i++) {
        (void)fprintf(to, "  %-16s %s\n", commands[i].name, commands[i].help);
    }
    (void)fputs("\nEach takes --config FILE, --json and --help. Exit status: 0 done, 1 "
                "failed, 2 used wrongly.\n",
                to);
}

static void print_options(const struct arg_option *o, size_t n)
{
    char left[64];

    for (size_t i = 0; i < n && o[i].name != NULL; i++) {
        (void)snprintf(left, sizeof(left), "--%s%s%s", o[i].name,
                       o[i].value != NULL ? " " : "",
                       o[i].value != NULL ? o[i].value : "");
        (void)printf("  %-20s %s\n", left, o[i].help);
    }
}

static void print_help(const struct command *c)
{
    (void)printf("usage: soulacy %s%s%s\n%s\n\n", c->name, c->words[0] != '\0' ? " " : "",
                 c->words, c->help);
    if (c->options != NULL) {
        print_options(c->options, ARGS_MAX_OPTIONS);
    }
    print_options(common, NCOMMON);
}

/* ---- finding the command --------------------------------------------------------------- */

/* How many of the words (0..2) the command's name takes up. */
static size_t match(const struct command *c, int argc, char **argv)
{
    const char *space = strchr(c->name, ' ');
    size_t n = space != NULL ? (size_t)(space - c->name) : strlen(c->name);

    if (argc < 1 || strlen(argv[0]) != n || strncmp(argv[0], c->name, n) != 0) {
        return 0;
    }
    if (space == NULL) {
        return 1;
    }
    return argc >= 2 && strcmp(argv[1], space + 1) == 0 ? 2 : 0;
}

static const struct command *find(int argc, char **argv, size_t *used)
{
    const struct command *best = NULL;

    *used = 0;
    for (size_t i = 0; i < NCOMMANDS; i++) {
        size_t n = match(&commands[i], argc, argv);

        if (n > *used) {
            *used = n;
            best = &commands[i];
        }
    }
    return best;
}

/* True when commands begin with this word: "agent". Lists them when told to. */
static bool is_group(const char *word, FILE *list)
{
    size_t n = strlen(word);
    bool found = false;

    for (size_t i = 0; i < NCOMMANDS; i++) {
        if (strncmp(commands[i].name, word, n) == 0 && commands[i].name[n] == ' ') {
            found = true;
            if (list != NULL) {
                (void)fprintf(list, "  soulacy %s %s\n", commands[i].name,
                              commands[i].words);
            }
        }
    }
    return found;
}

static enum cli_exit no_command(int argc, char **argv)
{
    const struct cli none = {0};
    const char *names[NCOMMANDS];
    const char *near;
    char two[64];

    for (size_t i = 0; i < NCOMMANDS; i++) {
        names[i] = commands[i].name;
    }
    if (is_group(argv[0], NULL)) {
        (void)cli_fail(&none, "%s needs to know what to do:", argv[0]);
        (void)is_group(argv[0], stderr);
        return CLI_USAGE;
    }
    near = args_nearest(argv[0], names, NCOMMANDS);
    if (near == NULL && argc > 1) {
        (void)snprintf(two, sizeof(two), "%.30s %.30s", argv[0], argv[1]);
        near = args_nearest(two, names, NCOMMANDS);
    }
    if (near != NULL) {
        (void)cli_fail(&none, "no command %s; did you mean `soulacy %s`?", argv[0], near);
    } else {
        (void)cli_fail(&none, "no command %s; `soulacy --help` lists them", argv[0]);
    }
    return CLI_USAGE;
}

/* ---- running it ------------------------------------------------------------------------ */

/* The command's options with the common ones behind them. */
static void join_options(const struct command *c, struct arg_option out[ARGS_MAX_OPTIONS])
{
    size_t n = 0;

    for (; c->options != NULL && c->options[n].name != NULL; n++) {
        out[n] = c->options[n];
    }
    memcpy(out + n, common, sizeof(common));
    out[n + NCOMMON] = (struct arg_option){NULL, NULL, NULL};
}

static enum cli_exit run(struct cli *c)
{
    enum cli_exit result;

    c->arena = arena_new(ARENA_MAX);
    if (c->arena == NULL) {
        return cli_fail(c, "out of memory");
    }
    result = c->command->run(c);
    config_free(c->cfg);
    arena_free(c->arena);
    return result;
}

static enum cli_exit run_command(const struct command *command, int argc, char **argv,
                                 const struct config_env *env)
{
    struct arg_option options[ARGS_MAX_OPTIONS + 1];
    struct cli c = {.env = env, .command = command};
    struct error err = {0};

    join_options(command, options);
    if (args_parse(argc, argv, options, &c.args, &err) != ST_OK) {
        return cli_misuse(&c, "%s", err.text);
    }
    if (args_value(&c.args, "help") != NULL) {
        print_help(command);
        return CLI_DONE;
    }
    c.json = args_value(&c.args, "json") != NULL;
    c.config_path = args_value(&c.args, "config");
    if (c.json && command->hidden_json) {
        return cli_misuse(&c, "it has no JSON to print");
    }
    if (c.args.nwords < command->min_words) {
        return cli_misuse(&c, "something is missing");
    }
    if (c.args.nwords > command->max_words) {
        return cli_misuse(&c, "one word too many: %s%s", c.args.words[command->max_words],
                          strchr(command->words, 'T') != NULL &&
                                  strcmp(command->name, "chat") == 0
                              ? " (put a text with spaces in quotes)"
                              : "");
    }
    return run(&c);
}

enum cli_exit cli_main(int argc, char **argv, const struct config_env *env)
{
    const struct command *command;
    size_t used = 0;

    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_overview(stdout);
        return CLI_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)puts("soulacy " SOULACY_VERSION);
        return CLI_DONE;
    }
    command = find(argc - 1, argv + 1, &used);
    if (command == NULL && argc > 2 && strcmp(argv[2], "--help") == 0 &&
        is_group(argv[1], stdout)) {
        return CLI_DONE;
    }
    return command != NULL
               ? run_command(command, argc - 1 - (int)used, argv + 1 + used, env)
               : no_command(argc - 1, argv + 1);
}
