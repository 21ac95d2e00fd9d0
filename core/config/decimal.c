/* Numbers by their digits. In: JSON numbers as text. Out: comparisons that are exact for
 * any length, which doubles are not above 2^53. Pure; allocates nothing. */
#include "config/jvalue.h"

#include <string.h>

#define EXP_MAX 1000000000

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t parse_exponent(struct str s)
{
    bool negative = s.len != 0 && s.ptr[0] == '-';
    int64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (is_digit(s.ptr[i]) && v < EXP_MAX) {
            v = v * 10 + (s.ptr[i] - '0');
        }
    }
    return negative ? -v : v;
}

void decimal_parse(struct str number, struct decimal *out)
{
    struct decimal d = {.zero = true};
    size_t i = 0;
    if (number.len != 0 && number.ptr[0] == '-') {
        d.negative = true;
        i = 1;
    }
    size_t seen = 0;  /* digits so far */
    size_t whole = 0; /* of them, before the point */
    size_t first = 0; /* which one is the first that is not 0 */
    size_t start = 0; /* where that one stands */
    size_t last = 0;  /* which one is the last that is not 0 */
    bool point = false;
    for (; i < number.len && number.ptr[i] != 'e' && number.ptr[i] != 'E'; i++) {
        if (number.ptr[i] == '.') {
            point = true;
            continue;
        }
        if (number.ptr[i] != '0') {
            if (d.zero) {
                first = seen;
                start = i;
            }
            d.zero = false;
            last = seen;
            d.digits = str_n(number.ptr + start, i - start + 1);
        }
        seen++;
        whole += point ? 0 : 1;
    }
    struct str exponent =
        i < number.len ? str_n(number.ptr + i + 1, number.len - i - 1) : STR_NONE;
    if (d.zero) {
        d.negative = false;
    } else {
        d.n = last - first + 1;
        d.exp = (int64_t)whole - (int64_t)first + parse_exponent(exponent);
    }
    *out = d;
}

/* Digit by digit, the shorter one followed by zeros. */
static int compare_digits(struct str a, struct str b)
{
    size_t i = 0;
    size_t j = 0;
    for (;;) {
        i += i < a.len && a.ptr[i] == '.' ? 1 : 0;
        j += j < b.len && b.ptr[j] == '.' ? 1 : 0;
        if (i >= a.len && j >= b.len) {
            return 0;
        }
        char x = i < a.len ? a.ptr[i++] : '0';
        char y = j < b.len ? b.ptr[j++] : '0';
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
    int sign_a = a->zero ? 0 : a->negative ? -1 : 1;
    int sign_b = b->zero ? 0 : b->negative ? -1 : 1;
    if (sign_a != sign_b) {
        return sign_a < sign_b ? -1 : 1;
    }
    if (sign_a == 0) {
        return 0;
    }
    int size = a->exp != b->exp ? (a->exp < b->exp ? -1 : 1)
                                : compare_digits(a->digits, b->digits);
    return size * sign_a;
}

bool decimal_is_integer(const struct decimal *d)
{
    return d->zero || d->exp >= (int64_t)d->n;
}

bool decimal_is_multiple(const struct decimal *d, const struct decimal *step)
{
    if (d->zero) {
        return true;
    }
    /* d = D * 10^low, step = S * 10^step_low, D and S not ending in 0. */
    int64_t low = d->exp - (int64_t)d->n;
    int64_t step_low = step->exp - (int64_t)step->n;
    if (low < step_low) {
        return false;
    }
    uint64_t divisor = 0;
    for (size_t i = 0; i < step->digits.len; i++) {
        if (step->digits.ptr[i] != '.') {
            divisor = divisor * 10 + (uint64_t)(step->digits.ptr[i] - '0');
        }
    }
    if (divisor == 0) {
        return false; /* a step is never 0 */
    }
    uint64_t rest = 0; /* below 10^18, so that rest * 10 + 9 fits */
    for (size_t i = 0; i < d->digits.len; i++) {
        if (d->digits.ptr[i] != '.') {
            rest = (rest * 10 + (uint64_t)(d->digits.ptr[i] - '0')) % divisor;
        }
    }
    for (int64_t i = low; i > step_low && rest != 0; i--) {
        rest = rest * 10 % divisor;
        if (low - i > 100) {
            return false; /* ten more zeros divide by 2 and 5 alone: done long before */
        }
    }
    return rest == 0;
}

void decimal_canon(const struct decimal *d, struct buf *out)
{
    if (d->zero) {
        buf_add_char(out, '0');
        return;
    }
    buf_add_c(out, d->negative ? "-" : "");
    for (size_t i = 0; i < d->digits.len; i++) {
        if (d->digits.ptr[i] != '.') {
            buf_add_char(out, d->digits.ptr[i]);
        }
    }
    buf_addf(out, "e%lld", (long long)(d->exp - (int64_t)d->n));
}
