/* executor.docker_volumes: what of the host a container may see. */
#ifndef SOULACY_DOCKER_VOLUMES_H
#define SOULACY_DOCKER_VOLUMES_H

#include "util.h"

/* One `host:container[:ro]`, checked: the host path resolved, nothing that leads out of
 * the container. bind gets "REAL:CONTAINER:ro|rw". SY_E_INVALID: err names key, value and
 * remedy. socket: the engine's, which no container may see. */
sy_status volume_check(struct sy_str spec, const char *socket, struct bytes *bind,
                       struct sy_error *err);

/* Pure part: is a resolved path one that may never be mounted? NULL: it may; else why
 * not. sockets: real paths of engine sockets. */
const char *volume_refused(const char *real, const char *const *sockets, size_t n);

#endif
