/* JSON Schema (the part that can be enforced) compiled once, checked often. Keywords:
 * type (one or a list), required, properties, additionalProperties (bool or schema),
 * enum, const, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf,
 * minLength, maxLength (code points), pattern (pcre2, UTF, match and depth limit),
 * items, minItems, maxItems, uniqueItems, minProperties, maxProperties, $ref into the
 * same document (#, #/definitions/.., #/$defs/..), anyOf, oneOf, allOf, not.
 * Annotations (title, description, default, examples, format, $schema, $id, $comment,
 * deprecated, readOnly, writeOnly) are accepted and not enforced. In strict mode any
 * other keyword is an error; otherwise it is remembered and ignored. Pure. */
#ifndef SOULACY_CONFIG_JSONSCHEMA_H
#define SOULACY_CONFIG_JSONSCHEMA_H

#include "base/error.h"
#include "base/json.h"

struct schema;

enum schema_mode { SCHEMA_STRICT, SCHEMA_LENIENT };

/* text: strict JSON. The root must describe an object. */
enum status schema_compile(struct str text, enum schema_mode mode, struct schema **out,
                           struct error *err) SY_MUST_CHECK;
void schema_free(struct schema *s);
/* Check args (strict JSON text of one object). ST_OK, or ST_INVALID with a line for the
 * model: "arguments.path: must be a string". Immutable: any thread. */
enum status schema_check(const struct schema *s, struct str args,
                         struct error *err) SY_MUST_CHECK;
/* The text it was compiled from, minified. Lives as long as s. */
struct str schema_text(const struct schema *s);

#endif
