/* Its table ends before stop(). */
#define BAD_TABLE_SIZE(type) 16
#include "skeleton.h"
