/* Has no channel interface. */
#define BAD_QUERY_NULL 1
#include "skeleton.h"
