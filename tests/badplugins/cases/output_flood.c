/* Goes on giving answer bytes after the core has said enough. */
#define BAD_EXECUTOR
#define BAD_RUN(b, plan, sink) \
    (void)(b); \
    (void)(plan); \
    for (int i = 0; i < 1000; i++) { \
        (void)(sink)->output((sink)->ctx, SY_STREAM_ANSWER, "aaaaaaaa", 8); \
    }
#include "skeleton.h"
