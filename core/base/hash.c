/* SHA-256 and its HMAC by OpenSSL. In: bytes in one or more parts. Out: 32 bytes. Never
 * keeps a key, never gives a digest of less than all parts. */
#include "base/hash.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum status hash_sha256(const struct str *parts, size_t n, unsigned char out[SHA256_LEN],
                        struct error *err)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (ctx == NULL) {
        return error_set(err, ST_NOMEM, "out of memory for SHA-256");
    }
    unsigned char digest[EVP_MAX_MD_SIZE];
    bool ok = EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; ok && i < n; i++) {
        ok = parts[i].len == 0 || EVP_DigestUpdate(ctx, parts[i].ptr, parts[i].len) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(ctx, digest, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    if (!ok) {
        return error_set(err, ST_INTERNAL, "SHA-256 failed in OpenSSL");
    }
    for (size_t i = 0; i < SHA256_LEN; i++) {
        out[i] = digest[i];
    }
    return ST_OK;
}

enum status hash_hmac_sha256(struct str key, struct str data,
                             unsigned char out[SHA256_LEN], struct error *err)
{
    if (key.len > INT_MAX) {
        return error_set(err, ST_INVALID, "key too long for HMAC");
    }
    const void *k = key.len != 0 ? key.ptr : "";
    const void *d = data.len != 0 ? data.ptr : "";
    if (HMAC(EVP_sha256(), k, (int)key.len, d, data.len, out, NULL) == NULL) {
        return error_set(err, ST_INTERNAL, "HMAC-SHA-256 failed in OpenSSL");
    }
    return ST_OK;
}

void hash_hex(const unsigned char d[SHA256_LEN], char out[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_LEN; i++) {
        out[2 * i] = digits[d[i] >> 4];
        out[2 * i + 1] = digits[d[i] & 0x0FU];
    }
    out[SHA256_HEX - 1] = '\0';
}
