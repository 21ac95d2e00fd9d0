/* Calls a function of the core, which exports none. */
void log_line(void *log, int level, const char *part, const char *fmt, ...);

#define BAD_START(b) log_line(0, 0, "bad", "%p", (void *)(b))
#include "skeleton.h"
