/* Nothing is wrong with it: the second plugin of that name is what is refused. */
#include "skeleton.h"
