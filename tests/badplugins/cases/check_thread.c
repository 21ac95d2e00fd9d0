/* Leaves a thread behind that waits for ever. */
#include <pthread.h>
#include <unistd.h>

static void *wait_for_ever(void *arg)
{
    for (;;) {
        (void)pause();
    }
    return arg;
}

#define BAD_START(b) \
    pthread_t t; \
    (void)(b); \
    if (pthread_create(&t, NULL, wait_for_ever, NULL) == 0) { \
        (void)pthread_detach(t); \
    }
#include "skeleton.h"
