/* Passes itself off as one of our own, from another folder. */
#define BAD_NAME "http"
#include "skeleton.h"
