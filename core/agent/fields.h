/* Members of an operation's arguments: which there are, of what type, how long. */
#ifndef SOULACY_AGENT_FIELDS_H
#define SOULACY_AGENT_FIELDS_H

#include "base/json.h"

enum field_type { FIELD_TEXT, FIELD_INT, FIELD_OBJECT };

struct field {
    const char *name;
    enum field_type type;
    bool required;
    int64_t min, max; /* bytes of text (min: 0 or 1), or the number's range */
    struct str *text; /* where it goes; FIELD_OBJECT: the raw JSON */
    int64_t *number;
};

/* Read obj (parsed from text). On ST_INVALID *bad names the member at fault. */
enum status fields_read(const cJSON *obj, struct str text, const struct field *fields,
                        size_t n, const char **bad, struct error *err) SY_MUST_CHECK;

#endif
