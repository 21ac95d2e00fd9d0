/* The attached stream of a container, taken apart. Pure. */
#ifndef SOULACY_DOCKER_FRAMES_H
#define SOULACY_DOCKER_FRAMES_H

#include <stddef.h>
#include <stdint.h>

/* Engines send at most 32 KiB; a length over this is not theirs. */
#define FRAMES_MAX ((uint32_t)16 * 1024 * 1024)

enum frames_step { FRAMES_OK, FRAMES_STOP, FRAMES_BAD };

struct frames {
    unsigned char head[8];
    size_t nhead;
    uint32_t left; /* of the present frame */
};

/* stream: 1 stdout, 2 stderr. Non-zero: stop. */
typedef int (*frames_fn)(void *ctx, int stream, const char *data, size_t len);

/* Hand over what is whole or not, as it comes. FRAMES_BAD: no such stream or length. */
enum frames_step frames_feed(struct frames *f, const char *data, size_t len, frames_fn fn,
                             void *ctx);

#endif
