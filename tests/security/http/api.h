/* channel-http, linked in, on a gateway that is played. */
#ifndef TESTS_HTTP_API_H
#define TESTS_HTTP_API_H

#include "server/server.h"

bool api_start(struct server *s);
size_t api_stop(void); /* operations that were never ended */

#endif
