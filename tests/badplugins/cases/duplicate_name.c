/* The same name as good.c in another file. */
#define BAD_START(b) (void)(b), (void)BAD_NAME
#include "skeleton.h"
