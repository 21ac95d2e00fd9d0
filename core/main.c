/* argv in, an exit status out: takes the environment away from other eyes, hands the
 * words to a command, and is the only place that ends the program. */
#include "base/json.h"
#include "cli/cli.h"
#include "sandbox/exec_sandbox.h"
#include "sandbox/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Descriptors 0 to 2 must be someone's before any other file is opened. */
static int keep_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) { /* stays open */
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct config_env *env = NULL;
    struct error err = {0};
    enum cli_exit result;

    if (keep_standard_fds() != 0) {
        return CLI_FAILED;
    }
    /* Before the environment is wiped: the command may be given any of it. */
    if (argc >= 2 && strcmp(argv[1], "__exec-sandbox") == 0) {
        return exec_sandbox_main(argc - 2, argv + 2, environ);
    }
    spawn_harden_self();
    json_init();
    if (config_env_take(environ, &env, &err) != ST_OK) {
        (void)fprintf(stderr, "soulacy: %s\n", err.text);
        return CLI_FAILED;
    }
    result = cli_main(argc, argv, env);
    config_env_free(env);
    return (int)result;
}
