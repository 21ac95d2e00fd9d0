/* One value of a key. In: a scalar, list or mapping and the key's row of the table. Out:
 * the typed member, or a problem that names the key. Pure. Never repeats the value in a
 * message: it may be a secret in the wrong place. */
#include "config/keys.h"

#include "config/soul.h"

#include <stdlib.h>
#include <string.h>

static void wrong_type(struct reader *r, const struct key *k, const struct yaml_node *n,
                       const char *must)
{
    static const char *const kinds[] = {"nothing", "text", "a list", "a mapping"};
    char *text = arena_printf(r->arena, "must be %s, not %s", must, kinds[n->kind]);
    key_problem(r, n, k->path, text != NULL ? text : "wrong type");
}

/* Quotes make a value text, unless a variable was put into it. */
static bool is_plain(const struct yaml_node *n)
{
    return n->kind == YAML_SCALAR && (!n->quoted || n->expanded);
}

static bool parse_bool(struct str s, bool *out)
{
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "on"};
    static const char *const no[] = {"false", "False", "FALSE", "no", "off"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (str_eq_c(s, yes[i]) || str_eq_c(s, no[i])) {
            *out = str_eq_c(s, yes[i]);
            return true;
        }
    }
    return false;
}

/* The unit that s begins with, in ms; 0: none. */
static int64_t unit_ms(struct str s, size_t *len)
{
    *len = 1;
    if (str_starts(s, STR_LIT("ms"))) {
        *len = 2;
        return 1;
    }
    switch (s.len != 0 ? s.ptr[0] : '\0') {
    case 's':
        return 1000;
    case 'm':
        return INT64_C(60) * 1000;
    case 'h':
        return INT64_C(3600) * 1000;
    default:
        return 0;
    }
}

static enum status parse_duration(struct str s, int64_t *ms)
{
    int64_t sum = 0;
    if (s.len == 0) {
        return ST_INVALID;
    }
    while (s.len != 0) {
        size_t digits = 0;
        while (digits < s.len && s.ptr[digits] >= '0' && s.ptr[digits] <= '9') {
            digits++;
        }
        int64_t number = 0;
        size_t unit_len = 0;
        struct str unit = str_n(s.ptr + digits, s.len - digits);
        int64_t factor = unit_ms(unit, &unit_len);
        /* 1e9 hours still fit in 63 bits of milliseconds. */
        if (factor == 0 ||
            str_to_i64(str_n(s.ptr, digits), 0, 1000000000, &number) != ST_OK) {
            return ST_INVALID;
        }
        if (sum > INT64_MAX / 4) {
            return ST_INVALID;
        }
        sum += number * factor;
        s = str_n(unit.ptr + unit_len, unit.len - unit_len);
    }
    *ms = sum;
    return ST_OK;
}

static const char *duration_text(struct reader *r, int64_t ms)
{
    char *text;
    if (ms % 3600000 == 0) {
        text = arena_printf(r->arena, "%lldh", (long long)(ms / 3600000));
    } else if (ms % 60000 == 0) {
        text = arena_printf(r->arena, "%lldm", (long long)(ms / 60000));
    } else if (ms % 1000 == 0) {
        text = arena_printf(r->arena, "%llds", (long long)(ms / 1000));
    } else {
        text = arena_printf(r->arena, "%lldms", (long long)ms);
    }
    return text != NULL ? text : "?";
}

static void out_of_range(struct reader *r, const struct key *k, const struct yaml_node *n,
                         const char *min, const char *max)
{
    char *text = arena_printf(r->arena, "must be between %s and %s", min, max);
    key_problem(r, n, k->path, text != NULL ? text : "out of range");
}

static void read_int(struct reader *r, const struct key *k, const struct yaml_node *n,
                     int64_t *out)
{
    int64_t v = 0;
    struct str s = n->text;
    if (n->kind != YAML_SCALAR) {
        wrong_type(r, k, n, "a whole number");
        return;
    }
    if (!is_plain(n)) {
        key_problem(r, n, k->path, "must be a whole number: write it without quotes");
        return;
    }
    bool odd = s.len > 1 && s.ptr[0] == '0';
    if (odd || str_to_i64(s, INT64_MIN, INT64_MAX, &v) != ST_OK) {
        key_problem(r, n, k->path, "must be a whole number in decimal digits");
        return;
    }
    if (v < k->min || v > k->max) {
        char *min = arena_printf(r->arena, "%lld", (long long)k->min);
        char *max = arena_printf(r->arena, "%lld", (long long)k->max);
        out_of_range(r, k, n, min != NULL ? min : "?", max != NULL ? max : "?");
        return;
    }
    *out = v;
}

static void read_bool(struct reader *r, const struct key *k, const struct yaml_node *n,
                      bool *out)
{
    if (n->kind != YAML_SCALAR) {
        wrong_type(r, k, n, "true or false");
    } else if (!is_plain(n)) {
        key_problem(r, n, k->path, "must be true or false: write it without quotes");
    } else if (!parse_bool(n->text, out)) {
        key_problem(r, n, k->path, "must be true or false");
    }
}

static void read_duration(struct reader *r, const struct key *k,
                          const struct yaml_node *n, int64_t *out)
{
    int64_t v = 0;
    if (n->kind != YAML_SCALAR) {
        wrong_type(r, k, n, "a duration such as 120s");
        return;
    }
    if (parse_duration(n->text, &v) != ST_OK) {
        int64_t bare = 0;
        bool number = str_to_i64(n->text, 0, INT64_MAX, &bare) == ST_OK;
        key_problem(
            r, n, k->path,
            number ? "needs a unit: ms, s, m or h, as in 120s"
                   : "must be a duration such as 120s, 5m or 1h (units ms, s, m, h)");
        return;
    }
    if (v < k->min || v > k->max) {
        out_of_range(r, k, n, duration_text(r, k->min), duration_text(r, k->max));
        return;
    }
    *out = v;
}

static void read_double(struct reader *r, const struct key *k, const struct yaml_node *n,
                        double *out)
{
    if (n->kind != YAML_SCALAR) {
        wrong_type(r, k, n, "a number");
        return;
    }
    bool digits = n->text.len != 0 && n->text.len < 32;
    for (size_t i = 0; digits && i < n->text.len; i++) {
        char c = n->text.ptr[i];
        digits = (c >= '0' && c <= '9') || c == '.' || (c == '-' && i == 0);
    }
    char *end = NULL;
    double v = digits ? strtod(n->text.ptr, &end) : 0;
    if (!digits || !is_plain(n) || end != n->text.ptr + n->text.len) {
        key_problem(r, n, k->path, "must be a number such as 0.7");
        return;
    }
    if (v * 1000.0 < (double)k->min || v * 1000.0 > (double)k->max) {
        char *text = arena_printf(r->arena, "must be between %g and %g",
                                  (double)k->min / 1000.0, (double)k->max / 1000.0);
        key_problem(r, n, k->path, text != NULL ? text : "out of range");
        return;
    }
    *out = v;
}

static void read_text(struct reader *r, const struct key *k, const struct yaml_node *n,
                      char **out)
{
    if (n->kind != YAML_SCALAR) {
        wrong_type(r, k, n, "text");
        return;
    }
    const char *bad = k->check != NULL && n->text.len != 0 ? k->check(n->text) : NULL;
    if (n->text.len == 0 && (k->flags & KEY_REQUIRED) != 0) {
        bad = "must not be empty";
    }
    if (bad != NULL) {
        key_problem(r, n, k->path, bad);
        return;
    }
    char *copy = k->type == K_PATH ? key_abs_path(r, n, k->path, n->text)
                                   : arena_dup(r->arena, n->text);
    if (copy == NULL) {
        r->nomem = r->nomem || k->type != K_PATH;
        return;
    }
    *out = copy;
}

/* The index in choices, or SIZE_MAX with a problem. */
static size_t read_choice(struct reader *r, const struct key *k,
                          const struct yaml_node *n)
{
    if (n->kind != YAML_SCALAR) {
        wrong_type(r, k, n, "text");
        return SIZE_MAX;
    }
    size_t count = 0;
    for (; k->choices[count] != NULL; count++) {
        if (str_eq_c(n->text, k->choices[count])) {
            return count;
        }
    }
    struct buf text;
    buf_init(&text, 1024);
    buf_add_c(&text, "must be ");
    for (size_t i = 0; i < count; i++) {
        const char *sep = i == 0 ? "" : i + 1 == count ? " or " : ", ";
        buf_addf(&text, "%s%s", sep, k->choices[i][0] != '\0' ? k->choices[i] : "\"\"");
    }
    const char *near = key_nearest(n->text, k->choices, count);
    if (near != NULL && near[0] != '\0') {
        buf_addf(&text, " (did you mean %s?)", near);
    }
    key_problem(r, n, k->path, text.ptr);
    buf_done(&text);
    return SIZE_MAX;
}

bool key_list_items(struct arena *a, const struct yaml_node *node, struct str **out,
                    size_t *n, bool *nomem)
{
    size_t count = 0;
    bool commas = node->kind == YAML_SCALAR && node->origin != YAML_FROM_FILE;
    if (node->kind != YAML_SEQ && !commas) {
        return false;
    }
    for (const struct yaml_node *i = node->first; i != NULL; i = i->next) {
        if (i->kind != YAML_SCALAR) {
            return false;
        }
        count++;
    }
    for (size_t i = 0; commas && i < node->text.len; i++) {
        count += node->text.ptr[i] == ',' ? 1 : 0;
    }
    struct str *items = arena_array(a, count + 1, sizeof(*items));
    if (items == NULL) {
        *nomem = true;
        return true;
    }
    size_t used = 0;
    for (const struct yaml_node *i = node->first; i != NULL; i = i->next) {
        items[used++] = i->text;
    }
    struct str rest = node->text;
    struct str part;
    while (commas && str_split(&rest, ',', &part)) {
        part = str_trim(part);
        if (part.len != 0) {
            items[used++] = part;
        }
    }
    *out = items;
    *n = used;
    return true;
}

static void read_list(struct reader *r, const struct key *k, const struct yaml_node *n,
                      struct str_list *out)
{
    struct str *items = NULL;
    size_t count = 0;
    if (!key_list_items(r->arena, n, &items, &count, &r->nomem)) {
        wrong_type(r, k, n, "a list of texts");
        return;
    }
    char **copies = arena_array(r->arena, count + 1, sizeof(*copies));
    if (r->nomem || copies == NULL) {
        r->nomem = true;
        return;
    }
    bool bad = false;
    const struct yaml_node *at = n->first != NULL ? n->first : n;
    for (size_t i = 0; i < count; i++, at = n->first != NULL ? at->next : n) {
        const char *why = items[i].len == 0  ? "an empty text in the list"
                          : k->check != NULL ? k->check(items[i])
                                             : NULL;
        if (why != NULL) {
            key_problem(r, at, k->path, why);
            bad = true;
            continue;
        }
        copies[i] = k->type == K_PATHS ? key_abs_path(r, at, k->path, items[i])
                                       : arena_dup(r->arena, items[i]);
        if (copies[i] == NULL) {
            r->nomem = r->nomem || k->type != K_PATHS;
            bad = true;
        }
    }
    if (!bad) {
        *out = (struct str_list){copies, count};
    }
}

/* A mapping as "Name: value" or "NAME=value" texts. */
static void read_pairs(struct reader *r, const struct key *k, const struct yaml_node *n,
                       struct str_list *out)
{
    if (n->kind != YAML_MAP) {
        read_list(r, k, n, out);
        return;
    }
    size_t count = 0;
    for (const struct yaml_node *i = n->first; i != NULL; i = i->next) {
        count++;
    }
    char **copies = arena_array(r->arena, count + 1, sizeof(*copies));
    if (copies == NULL) {
        r->nomem = true;
        return;
    }
    bool bad = false;
    size_t used = 0;
    const char *sep = k->type == K_HEADERS ? ": " : "=";
    for (const struct yaml_node *i = n->first; i != NULL; i = i->next) {
        if (i->kind != YAML_SCALAR && i->kind != YAML_NULL) {
            wrong_type(r, k, i, "a mapping of names to texts");
            bad = true;
            continue;
        }
        struct str value = i->kind == YAML_NULL ? STR_NONE : i->text;
        char *pair =
            arena_printf(r->arena, "%.*s%s%.*s", STR_ARG(i->key), sep, STR_ARG(value));
        if (pair == NULL) {
            r->nomem = true;
            return;
        }
        const char *why = k->check != NULL ? k->check(str_c(pair)) : NULL;
        if (why != NULL) {
            key_problem(r, i, k->path, why);
            bad = true;
        }
        copies[used++] = pair;
    }
    if (!bad) {
        *out = (struct str_list){copies, used};
    }
}

static void read_opt_list(struct reader *r, const struct key *k,
                          const struct yaml_node *n, struct opt_list *out)
{
    struct opt_list v = {.present = true};
    size_t errors = r->probs->nerrors;
    read_list(r, k, n, &v.list);
    if (r->nomem || r->probs->nerrors != errors) {
        return;
    }
    for (size_t i = 0; i < v.list.n; i++) {
        v.all = v.all || strcmp(v.list.items[i], "*") == 0;
    }
    if (v.all && v.list.n != 1) {
        key_problem(r, n, k->path, "\"*\" stands for everything: it must be alone");
        return;
    }
    *out = v;
}

static void read_secret(struct reader *r, const struct key *k, const struct yaml_node *n,
                        struct secret *out)
{
    if (n->kind != YAML_SCALAR) {
        wrong_type(r, k, n, "text");
        return;
    }
    const char *bad = k->check != NULL && n->text.len != 0 ? k->check(n->text) : NULL;
    if (bad != NULL) {
        key_problem(r, n, k->path, bad);
        return;
    }
    if (n->text.len != 0 && secret_set(out, n->text) != ST_OK) {
        r->nomem = true;
    }
}

/* Room for any member, when a value is only checked. */
union any_value {
    char *text;
    unsigned choice;
    int64_t number;
    bool flag;
    double real;
    struct str_list list;
    struct opt_list opt;
    struct secret secret;
    const struct yaml_node *node;
};

static void read_tree(struct reader *r, const struct key *k, const struct yaml_node *n,
                      const struct yaml_node **out)
{
    if (n->kind == YAML_MAP || n->kind == YAML_SEQ) {
        *out = n;
    } else {
        wrong_type(r, k, n, "a mapping or a list");
    }
}

static void read_member(struct reader *r, const struct key *k, const struct yaml_node *n,
                        void *at)
{
    size_t choice;
    switch (k->type) {
    case K_STR:
    case K_PATH:
        read_text(r, k, n, at);
        return;
    case K_CHOICE:
        choice = read_choice(r, k, n);
        if (choice != SIZE_MAX) {
            read_text(r, k, n, at);
        }
        return;
    case K_ENUM:
        choice = read_choice(r, k, n);
        if (choice != SIZE_MAX) {
            unsigned index = (unsigned)choice;
            memcpy(at, &index, sizeof(index));
        }
        return;
    case K_INT:
        read_int(r, k, n, at);
        return;
    case K_BOOL:
        read_bool(r, k, n, at);
        return;
    case K_DURATION:
        read_duration(r, k, n, at);
        return;
    case K_DOUBLE:
        read_double(r, k, n, at);
        return;
    case K_SECRET:
        read_secret(r, k, n, at);
        return;
    case K_LIST:
    case K_PATHS:
        read_list(r, k, n, at);
        return;
    case K_HEADERS:
    case K_ENVIRON:
        read_pairs(r, k, n, at);
        return;
    case K_OPT_LIST:
        read_opt_list(r, k, n, at);
        return;
    case K_TREE:
        read_tree(r, k, n, at);
        return;
    case K_GROUP:
        return;
    }
}

void key_read_value(struct reader *r, const struct key *k, const struct yaml_node *node,
                    struct yaml_pos map_pos, void *at)
{
    union any_value scratch = {0};
    struct yaml_node fallback = {
        .kind = YAML_SCALAR, .text = str_c(k->fallback), .origin = YAML_FROM_DEFAULT};
    fallback.pos = map_pos;
    if (node != NULL && (k->flags & KEY_LATER) != 0) {
        problem_add(r->probs, true, node->key_pos, "%s%s: accepted; %s", r->prefix,
                    k->path, k->note);
    }
    if (node == NULL && (k->flags & KEY_REQUIRED) != 0) {
        key_problem(r, &fallback, k->path, "is required");
    }
    bool text = k->type == K_STR || k->type == K_PATH || k->type == K_CHOICE;
    if (text && at != NULL && k->fallback == NULL) {
        char *empty =
            (k->flags & KEY_NULLABLE) != 0 ? NULL : arena_dup(r->arena, STR_NONE);
        r->nomem = r->nomem || (empty == NULL && (k->flags & KEY_NULLABLE) == 0);
        memcpy(at, &empty, sizeof(empty));
    }
    size_t errors = r->probs->nerrors;
    if (node != NULL) {
        read_member(r, k, node, at != NULL ? at : &scratch);
    }
    if (k->fallback != NULL && at != NULL &&
        (node == NULL || r->probs->nerrors != errors)) {
        read_member(r, k, &fallback, at);
    }
    if (at == NULL && k->type == K_SECRET) {
        secret_done(&scratch.secret);
    }
}
