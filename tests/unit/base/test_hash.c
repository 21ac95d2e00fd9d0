/* SHA-256 by FIPS 180-2's examples, HMAC by RFC 4231's. */
#include "support/test.h"

#include "base/hash.h"

static void sha256_vectors(void **state)
{
    (void)state;
    unsigned char d[SHA256_LEN];
    char hex[SHA256_HEX];
    struct str parts[] = {STR_LIT("a"), STR_NONE, STR_LIT("bc")};
    assert_int_equal(hash_sha256(parts, 3, d, NULL), ST_OK);
    hash_hex(d, hex);
    assert_string_equal(
        hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(hash_sha256(NULL, 0, d, NULL), ST_OK);
    hash_hex(d, hex);
    assert_string_equal(
        hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void hmac_vectors(void **state)
{
    (void)state;
    unsigned char d[SHA256_LEN];
    char hex[SHA256_HEX];
    struct str key = STR_LIT("Jefe");
    struct str data = STR_LIT("what do ya want for nothing?");
    assert_int_equal(hash_hmac_sha256(key, data, d, NULL), ST_OK);
    hash_hex(d, hex);
    assert_string_equal(
        hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    assert_int_equal(hash_hmac_sha256(STR_NONE, STR_NONE, d, NULL), ST_OK);
    hash_hex(d, hex);
    assert_string_equal(
        hex, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
    struct error e;
    key = str_n("", (size_t)INT_MAX + 1);
    assert_int_equal(hash_hmac_sha256(key, data, d, &e), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_vectors),
        cmocka_unit_test(hmac_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
