/* Opens a descriptor at each start and closes none. */
#include <fcntl.h>

#define BAD_START(b) \
    (void)(b); \
    (void)open("/dev/null", O_RDONLY | O_CLOEXEC)
#include "skeleton.h"
