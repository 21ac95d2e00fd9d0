/* The lock that keeps a second gateway out of a state folder. Private to the store. */
#ifndef SOULACY_STORE_LOCKFILE_H
#define SOULACY_STORE_LOCKFILE_H

#include "base/error.h"

/* Take the lock file (made 0600 if absent) and write our process id into it. ST_BUSY
 * with the holder's id when it is taken, be it by this very process. The kernel lets go
 * of it with the last descriptor, so a killed gateway leaves nothing to clean up. */
enum status lockfile_take(const char *path, int *fd, struct error *err) SY_MUST_CHECK;
void lockfile_release(int *fd); /* -1 is fine */

#endif
