/* SHA-256 and HMAC-SHA256 over OpenSSL. */
#ifndef SOULACY_BASE_HASH_H
#define SOULACY_BASE_HASH_H

#include "base/error.h"
#include "base/str.h"

#define SHA256_LEN 32
#define SHA256_HEX 65 /* with the NUL */

enum status hash_sha256(const struct str *parts, size_t n, unsigned char out[SHA256_LEN],
                        struct error *err) SY_MUST_CHECK;
enum status hash_hmac_sha256(struct str key, struct str data,
                             unsigned char out[SHA256_LEN],
                             struct error *err) SY_MUST_CHECK;
void hash_hex(const unsigned char d[SHA256_LEN], char out[SHA256_HEX]);

#endif
