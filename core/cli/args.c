/* Arguments in, words and options out. Knows no command; prints nothing. Pure. */
#include "cli/args.h"

#include "base/str.h"

#include <string.h>

#define NEAR 3 /* edits */

const char *args_nearest(const char *word, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t least = NEAR + 1;

    for (size_t i = 0; i < n; i++) {
        size_t d = str_distance(str_c(word), str_c(names[i]));

        /* Half of a short word is no likeness. */
        if (d < least && d * 2 <= strlen(names[i]) + 1) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

static enum status unknown(const struct arg_option *options, const char *arg,
                           struct error *err)
{
    const char *names[ARGS_MAX_OPTIONS];
    const char *near;
    char name[64] = "";
    size_t n = 0;

    for (; options[n].name != NULL; n++) {
        names[n] = options[n].name;
    }
    for (size_t i = 0; i + 1 < sizeof(name) && arg[i + 2] != '\0' && arg[i + 2] != '=';
         i++) {
        name[i] = arg[i + 2];
        name[i + 1] = '\0';
    }
    near = args_nearest(name, names, n);
    return error_set(err, ST_INVALID, "no option --%s%s%s%s", name,
                     near != NULL ? "; did you mean --" : "", near != NULL ? near : "",
                     near != NULL ? "?" : "");
}

/* The option that arg ("--name" or "--name=value") names, its index in *at. */
static const struct arg_option *find(const struct arg_option *options, const char *arg,
                                     size_t *at, const char **value)
{
    for (size_t i = 0; options[i].name != NULL; i++) {
        size_t n = strlen(options[i].name);

        if (strncmp(arg + 2, options[i].name, n) == 0 &&
            (arg[2 + n] == '\0' || arg[2 + n] == '=')) {
            *at = i;
            *value = arg[2 + n] == '=' ? arg + 3 + n : NULL;
            return &options[i];
        }
    }
    return NULL;
}

static enum status take_option(const struct arg_option *options, int argc, char **argv,
                               int *i, struct args *out, struct error *err)
{
    const char *value = NULL;
    size_t at = 0;
    const struct arg_option *o = find(options, argv[*i], &at, &value);

    if (o == NULL) {
        return unknown(options, argv[*i], err);
    }
    if (o->value == NULL) {
        if (value != NULL) {
            return error_set(err, ST_INVALID, "--%s takes no value", o->name);
        }
        value = "";
    } else if (value == NULL) {
        if (*i + 1 >= argc) {
            return error_set(err, ST_INVALID, "--%s needs a value: --%s %s", o->name,
                             o->name, o->value);
        }
        value = argv[++*i];
    }
    if (out->values[at] != NULL && o->value != NULL) {
        return error_set(err, ST_INVALID, "--%s was given twice", o->name);
    }
    out->values[at] = value;
    return ST_OK;
}

enum status args_parse(int argc, char **argv, const struct arg_option *options,
                       struct args *out, struct error *err)
{
    bool only_words = false;
    enum status st = ST_OK;

    *out = (struct args){.options = options};
    for (int i = 0; st == ST_OK && i < argc; i++) {
        const char *arg = argv[i];

        if (!only_words && strcmp(arg, "--") == 0) {
            only_words = true;
        } else if (!only_words && strcmp(arg, "-h") == 0) {
            char help[] = "--help";
            char *one[] = {help};
            int zero = 0;

            st = take_option(options, 1, one, &zero, out, err);
        } else if (!only_words && arg[0] == '-' && arg[1] == '-') {
            st = take_option(options, argc, argv, &i, out, err);
        } else if (!only_words && arg[0] == '-' && arg[1] != '\0') {
            st = error_set(err, ST_INVALID, "no option %s; options begin with --", arg);
        } else if (out->nwords == ARGS_MAX_WORDS) {
            st = error_set(err, ST_INVALID, "more than %d words", ARGS_MAX_WORDS);
        } else {
            out->words[out->nwords++] = arg;
        }
    }
    return st;
}

const char *args_value(const struct args *a, const char *name)
{
    for (size_t i = 0; a->options[i].name != NULL; i++) {
        if (strcmp(a->options[i].name, name) == 0) {
            return a->values[i];
        }
    }
    return NULL; /* not an option of this command */
}
