/* create() fails and says why. */
#define BAD_CREATE_FAILS 1
#include "skeleton.h"
