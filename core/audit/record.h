/* One line of the audit file and its place in the chain. Pure. Private to the audit.
 *
 * {"seq":N,"at":"...", ... ,"prev":"<hash of record N-1>","hash":"<64 hex>"}
 * hash = SHA-256(prev as 64 hex, then the line's bytes before ,"hash":). The first
 * record's prev is 64 zeros. */
#ifndef SOULACY_AUDIT_RECORD_H
#define SOULACY_AUDIT_RECORD_H

#include "audit/audit.h"
#include "base/buf.h"
#include "base/hash.h"

#define RECORD_MAX_BYTES ((size_t)64 * 1024) /* of a line with its newline */
#define RECORD_FIRST_PREV \
    "0000000000000000000000000000000000000000000000000000000000000000"

/* Where a record goes. */
struct record_place {
    uint64_t seq;
    int64_t at_unix_ms;
    const char *prev;     /* 64 hex */
    const char *args_hex; /* keyed hash of the arguments; NULL: none */
    uint64_t count;       /* denials that this record stands for; 0: left out */
};

/* Append the line with its newline; hash gets its hash. */
enum status record_write(struct buf *out, const struct audit_record *r,
                         const struct record_place *place, char hash[SHA256_HEX],
                         struct error *err) SY_MUST_CHECK;

/* What a line (without its newline) says of itself. */
struct record_line {
    uint64_t seq;
    char prev[SHA256_HEX], hash[SHA256_HEX];
};

/* Read a line and check that its hash fits its bytes. ST_INVALID with the reason. */
enum status record_read(struct str line, struct record_line *out,
                        struct error *err) SY_MUST_CHECK;

#endif
