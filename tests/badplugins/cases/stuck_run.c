/* A run that does not come back until the file descriptor of the test says so. */
#define BAD_EXECUTOR
#define BAD_RUN(b, plan, sink) \
    struct pollfd until = {.fd = (plan)->cancel_fd, .events = POLLIN}; \
    (void)(b); \
    (sink)->started((sink)->ctx, (struct sy_str){"", 0}); \
    (void)poll(&until, 1, -1)
#include "skeleton.h"
