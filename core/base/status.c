/* Names of the status codes. In: a code. Out: static text. Never fails, also not for a
 * number that is no code at all (a plugin may hand one over). */
#include "base/status.h"

const char *status_name(enum status st)
{
    switch (st) {
    case ST_OK:
        return "ok";
    case ST_INVALID:
        return "invalid";
    case ST_NOMEM:
        return "out of memory";
    case ST_UNSUPPORTED:
        return "unsupported";
    case ST_REFUSED:
        return "refused";
    case ST_TIMEOUT:
        return "timeout";
    case ST_CANCELLED:
        return "cancelled";
    case ST_BUSY:
        return "busy";
    case ST_IO:
        return "i/o error";
    case ST_AUTH:
        return "not authorised";
    case ST_INTERNAL:
        return "internal error";
    case ST_NOT_FOUND:
        return "not found";
    case ST_CONFLICT:
        return "conflict";
    case ST_TOO_LARGE:
        return "too large";
    }
    return "unknown status";
}
