/* Sends as if there were no deadline. */
#define BAD_SEND(b, msg) \
    struct pollfd until = {.fd = (msg)->cancel_fd, .events = POLLIN}; \
    (void)(b); \
    (void)poll(&until, 1, 10000)
#include "skeleton.h"
