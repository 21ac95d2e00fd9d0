/* The command line. cli_main runs one command and says how the program should end. */
#ifndef SOULACY_CLI_CLI_H
#define SOULACY_CLI_CLI_H

#include "config/config.h"

enum cli_exit {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2 /* used wrongly: a bad command line or a bad configuration */
};

/* argv as main got it. Never exits. */
enum cli_exit cli_main(int argc, char **argv, const struct config_env *env);

#endif
