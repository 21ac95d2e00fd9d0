/* Needs a core that does not exist yet. */
#define BAD_MIN_MINOR 7
#include "skeleton.h"
