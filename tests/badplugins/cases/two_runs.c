/* Allows one run at a time; each waits until it is cancelled. */
#define BAD_EXECUTOR
#define BAD_RUN(b, plan, sink) \
    struct pollfd until = {.fd = (plan)->cancel_fd, .events = POLLIN}; \
    (void)(b); \
    (sink)->started((sink)->ctx, (struct sy_str){"", 0}); \
    (void)poll(&until, 1, 10000)
#include "skeleton.h"
