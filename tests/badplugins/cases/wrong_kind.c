/* An executor where a channel is asked for. */
#define BAD_EXECUTOR
#include "skeleton.h"
