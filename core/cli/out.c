/* Text of the commands to stdout and stderr. Lets no control byte of others through to a
 * terminal, and colours nothing but a terminal. */
#include "base/io.h"
#include "base/utf8.h"
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool cli_is_tty(int fd)
{
    return isatty(fd) == 1;
}

static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

void cli_text(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        /* C1 controls are C2 80..9F in UTF-8. */
        if (is_control(c)) {
            buf_addf(out, "\\x%02x", c);
        } else if (c == 0xc2 && i + 1 < s.len &&
                   ((unsigned char)s.ptr[i + 1] & 0xe0) == 0x80) {
            buf_addf(out, "\\x%02x", (unsigned char)s.ptr[++i]);
        } else {
            buf_add_char(out, s.ptr[i]);
        }
    }
}

void cli_indent(struct buf *out, const char *prefix, struct str s)
{
    struct str line;

    while (s.len > 0 && s.ptr[s.len - 1] == '\n') {
        s.len--;
    }
    while (str_split(&s, '\n', &line)) {
        buf_add_c(out, prefix);
        cli_text(out, line);
        buf_add_char(out, '\n');
    }
}

const char *cli_colour(const char *name)
{
    static const struct {
        const char *name, *code;
    } codes[] = {{"bold", "\033[1m"},
                 {"dim", "\033[2m"},
                 {"red", "\033[31m"},
                 {"green", "\033[32m"},
                 {"off", "\033[0m"}};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (strcmp(codes[i].name, name) == 0 && cli_is_tty(STDOUT_FILENO)) {
            return codes[i].code;
        }
    }
    return "";
}

enum cli_exit cli_print(struct cli *c, const struct buf *out)
{
    if (buf_status(out) != ST_OK) {
        return cli_fail(c, "out of memory for the output");
    }
    if (fwrite(out->ptr, 1, out->len, stdout) != out->len || fflush(stdout) != 0) {
        return cli_fail(c, "the output cannot be written");
    }
    return CLI_DONE;
}

__attribute__((format(printf, 2, 0))) static void complain(const struct cli *c,
                                                           const char *fmt, va_list args)
{
    struct buf raw, text;
    char line[2048];

    (void)vsnprintf(line, sizeof(line), fmt, args);
    buf_init(&raw, 4096);
    buf_addf(&raw, "soulacy%s%s: %s\n", c->command != NULL ? " " : "",
             c->command != NULL ? c->command->name : "", line);
    buf_init(&text, (size_t)16 * 1024);
    cli_text(&text, buf_str(&raw));
    (void)fputs(text.ptr, stderr);
    buf_done(&text);
    buf_done(&raw);
}

enum cli_exit cli_fail(const struct cli *c, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    complain(c, fmt, args);
    va_end(args);
    return CLI_FAILED;
}

enum cli_exit cli_misuse(const struct cli *c, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    complain(c, fmt, args);
    va_end(args);
    if (c->command != NULL) {
        (void)fprintf(stderr, "usage: soulacy %s%s%s  (--help tells more)\n",
                      c->command->name, c->command->words[0] != '\0' ? " " : "",
                      c->command->words);
    }
    return CLI_USAGE;
}
