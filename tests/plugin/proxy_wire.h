/* The packets between the proxy stub and the process behind it: one struct and its
 * descriptors in one SOCK_SEQPACKET message. */
#ifndef SOULACY_TESTS_PROXY_WIRE_H
#define SOULACY_TESTS_PROXY_WIRE_H

#include <stdint.h>

enum { WIRE_MESSAGE = 1, WIRE_STORED = 2, WIRE_SEND = 3, WIRE_SENT = 4 };

struct wire {
    uint32_t what;  /* WIRE_* */
    int32_t status; /* STORED, SENT: sy_status */
    uint32_t outcome;
    uint32_t nfds; /* descriptors with this packet */
    char id[64], conversation[64], sender[64];
    char text[256];
};

/* Both give 0 on success. fds holds up to 2; received ones are the caller's to close. */
int wire_put(int socket, const struct wire *w, const int *fds);
int wire_get(int socket, struct wire *w, int fds[2]);

#endif
