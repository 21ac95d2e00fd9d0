/* Crashes as it is loaded. */
#include <stdlib.h>

__attribute__((constructor)) static void crash(void)
{
    abort();
}

#include "skeleton.h"
