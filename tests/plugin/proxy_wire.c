/* In: packets and descriptors. Out: the same on the other side of a socket. */
#include "plugin/proxy_wire.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr align;
};

int wire_put(int socket, const struct wire *w, const int *fds)
{
    struct wire copy = *w;
    union control c;
    struct iovec v = {.iov_base = &copy, .iov_len = sizeof copy};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    memset(&c, 0, sizeof c);
    if (w->nfds > 0) {
        m.msg_control = c.bytes;
        m.msg_controllen = CMSG_SPACE(w->nfds * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(w->nfds * sizeof(int));
        memcpy(CMSG_DATA(h), fds, w->nfds * sizeof(int));
    }
    return sendmsg(socket, &m, MSG_NOSIGNAL) == (ssize_t)sizeof copy ? 0 : -1;
}

int wire_get(int socket, struct wire *w, int fds[2])
{
    union control c;
    struct iovec v = {.iov_base = w, .iov_len = sizeof *w};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = c.bytes,
                       .msg_controllen = sizeof c.bytes};
    fds[0] = fds[1] = -1;
    if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *w || w->nfds > 2) {
        return -1;
    }
    const struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (w->nfds > 0 && h != NULL && h->cmsg_type == SCM_RIGHTS) {
        memcpy(fds, CMSG_DATA(h), w->nfds * sizeof(int));
    }
    return 0;
}
