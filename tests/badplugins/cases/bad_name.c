/* A name that would spoil paths and keys. */
#define BAD_NAME "Bad Name/.."
#include "skeleton.h"
