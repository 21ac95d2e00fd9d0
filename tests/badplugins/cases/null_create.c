/* Cannot be created. */
#define BAD_CREATE NULL
#include "skeleton.h"
