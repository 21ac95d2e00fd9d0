/* Exports a helper of its own beside its entry. */
#include "skeleton.h"

SY_EXPORT int a_helper(void);

int a_helper(void)
{
    return 1;
}
