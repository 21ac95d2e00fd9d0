/* A JSON object and a table of its members in, their values out. Every member that is not
 * in the table is an error: nothing a caller wrote is passed over in silence. */
#include "agent/fields.h"

static const struct field *find(const struct field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(str_c(fields[i].name), str_c(name))) {
            return &fields[i];
        }
    }
    return NULL;
}

static enum status read_text(const cJSON *m, const struct field *f, struct error *err)
{
    struct str s;

    if (!cJSON_IsString(m)) {
        return error_set(err, ST_INVALID, "%s must be a string", f->name);
    }
    s = str_c(m->valuestring);
    if (s.len < (size_t)f->min) {
        return error_set(err, ST_INVALID, "%s must not be empty", f->name);
    }
    if (s.len > (size_t)f->max) {
        return error_set(err, ST_INVALID, "%s is longer than %lld bytes", f->name,
                         (long long)f->max);
    }
    *f->text = s;
    return ST_OK;
}

static enum status read_int(const cJSON *obj, const struct field *f, struct error *err)
{
    int64_t v;

    if (!json_get_i64(obj, f->name, &v)) {
        return error_set(err, ST_INVALID, "%s must be a whole number", f->name);
    }
    if (v < f->min || v > f->max) {
        return error_set(err, ST_INVALID, "%s must be between %lld and %lld", f->name,
                         (long long)f->min, (long long)f->max);
    }
    *f->number = v;
    return ST_OK;
}

static enum status read_object(const cJSON *m, struct str text, const struct field *f,
                               struct error *err)
{
    if (!cJSON_IsObject(m)) {
        return error_set(err, ST_INVALID, "%s must be an object", f->name);
    }
    return json_raw_member(text, f->name, f->text);
}

enum status fields_read(const cJSON *obj, struct str text, const struct field *fields,
                        size_t n, const char **bad, struct error *err)
{
    for (const cJSON *m = obj->child; m != NULL; m = m->next) {
        const struct field *f = find(fields, n, m->string);
        enum status st;

        if (f == NULL) {
            *bad = m->string;
            return error_set(err, ST_INVALID, "unknown member %s", m->string);
        }
        *bad = f->name;
        st = f->type == FIELD_TEXT  ? read_text(m, f, err)
             : f->type == FIELD_INT ? read_int(obj, f, err)
                                    : read_object(m, text, f, err);
        if (st != ST_OK) {
            return st;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (fields[i].required && json_get(obj, fields[i].name) == NULL) {
            *bad = fields[i].name;
            return error_set(err, ST_INVALID, "%s is missing", fields[i].name);
        }
    }
    *bad = NULL;
    return ST_OK;
}
