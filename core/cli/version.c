/* version: what this program is, and which plugins fit it. */
#include "base/version.h"

#include "cli/command.h"

#include <soulacy/plugin.h>

enum cli_exit cmd_version(struct cli *c)
{
    struct buf out;
    enum cli_exit result;

    buf_init(&out, 1024);
    if (c->json) {
        buf_add_char(&out, '{');
        json_add_key_string(&out, "version", str_c(SOULACY_VERSION));
        json_add_key_i64(&out, "abi_major", SY_ABI_MAJOR);
        json_add_key_i64(&out, "abi_minor", SY_ABI_MINOR);
        buf_add_c(&out, "}\n");
    } else {
        buf_addf(&out, "soulacy %s\nplugin ABI %u.%u\n", SOULACY_VERSION, SY_ABI_MAJOR,
                 SY_ABI_MINOR);
    }
    result = cli_print(c, &out);
    buf_done(&out);
    return result;
}
