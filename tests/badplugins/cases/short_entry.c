/* An entry that ends before its required members. */
#define BAD_ENTRY_SIZE 40
#include "skeleton.h"
