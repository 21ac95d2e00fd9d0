/* The embedded harness and the constant bootstrap. Nothing comes in; texts go out. What
 * the harness does stands in harness.py; here nothing is read, written or decided. */
#include "exec/exec.h"
#include "exec/harness_text.h"

struct str exec_preamble(void)
{
    return str_n((const char *)harness_text, harness_text_len);
}

struct str exec_harness(void)
{
    return str_n((const char *)harness_text + harness_text_head,
                 harness_text_len - harness_text_head);
}

const char *exec_bootstrap(void)
{
    /* Works unchanged as one word of sh, bash, dash, zsh, ksh, fish and tcsh when it is
     * put in single quotes, which it does not contain. */
    return "import sys;b=sys.stdin.buffer;exec(b.read(int(b.readline())))";
}
