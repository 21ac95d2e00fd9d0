/* In: any bytes, taken as the NUL-separated arguments of __exec-sandbox. Out: nothing;
 * what is accepted must have a command and names inside the arguments. */
#include "sandbox/exec_sandbox.h"

#include "base/mem.h"

#include <string.h>

#define MAX_ARGS 600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_dup(data, size);
    char **argv = mem_array(MAX_ARGS + 1, sizeof(*argv));
    struct exec_sandbox_args args;
    struct error err;
    int argc = 0;

    if (text != NULL && argv != NULL) {
        for (size_t at = 0; at < size && argc < MAX_ARGS; at += strlen(text + at) + 1) {
            argv[argc++] = text + at;
        }
        if (exec_sandbox_parse(argc, argv, &args, &err) == ST_OK) {
            if (args.command <= argv || args.command >= argv + argc ||
                args.nenv > EXEC_SANDBOX_MAX_ENV) {
                __builtin_trap();
            }
            for (size_t i = 0; i < args.nenv; i++) {
                if (args.env[i][0] == '\0' || strchr(args.env[i], '=') != NULL) {
                    __builtin_trap();
                }
            }
        } else if (err.text[0] == '\0') {
            __builtin_trap();
        }
    }
    mem_free(argv);
    mem_free(text);
    return 0;
}
