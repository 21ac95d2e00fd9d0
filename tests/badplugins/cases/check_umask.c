/* Changes what belongs to the whole process. */
#include <sys/stat.h>

#define BAD_START(b) \
    (void)(b); \
    (void)umask(0)
#include "skeleton.h"
