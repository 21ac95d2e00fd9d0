/* Frames of an attached stream: type, three zeros, length (big endian), payload. Comes in:
 * bytes, split anywhere. Goes out: pieces of stdout and stderr. Pure. */
#include "frames.h"

#include <string.h>

static enum frames_step check_head(struct frames *f)
{
    f->left = (uint32_t)f->head[4] << 24 | (uint32_t)f->head[5] << 16 |
              (uint32_t)f->head[6] << 8 | (uint32_t)f->head[7];
    /* 0 is stdin, which engines echo nowhere; 3 is an error of the engine's own. */
    if (f->head[0] < 1 || f->head[0] > 2 || f->head[1] != 0 || f->head[2] != 0 ||
        f->head[3] != 0 || f->left > FRAMES_MAX) {
        return FRAMES_BAD;
    }
    return FRAMES_OK;
}

enum frames_step frames_feed(struct frames *f, const char *data, size_t len, frames_fn fn,
                             void *ctx)
{
    size_t i = 0;
    while (i < len) {
        if (f->nhead < sizeof f->head) {
            size_t n = sizeof f->head - f->nhead;
            n = n < len - i ? n : len - i;
            memcpy(f->head + f->nhead, data + i, n);
            f->nhead += n;
            i += n;
            if (f->nhead == sizeof f->head) {
                if (check_head(f) != FRAMES_OK) {
                    return FRAMES_BAD;
                }
                if (f->left == 0) {
                    f->nhead = 0;
                }
            }
            continue;
        }
        size_t n = f->left < len - i ? f->left : len - i;
        int stop = fn(ctx, f->head[0], data + i, n);
        f->left -= (uint32_t)n;
        i += n;
        if (f->left == 0) {
            f->nhead = 0;
        }
        if (stop != 0) {
            return FRAMES_STOP;
        }
    }
    return FRAMES_OK;
}
