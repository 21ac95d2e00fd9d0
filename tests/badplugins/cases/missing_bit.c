/* Enforces nothing but the end of the tree, and would run whatever it gets. */
#define BAD_EXECUTOR
#include "skeleton.h"
