#define _GNU_SOURCE /* accept4 */
/* Comes in: server.host and server.port. Goes out: listening sockets and connections,
 * bounded in all and for each address. Never spins when descriptors run out: one kept
 * aside lets the waiting client be told by a close instead of by silence. */
#include "base/clock.h"
#include "base/io.h"
#include "server/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 256
#define DYING_MAX 64       /* below the spare room of fd_limit_per_thread */
#define TURNED_AWAY_MAX 64 /* at one tick, while no descriptor is left */

static int open_one(const struct addrinfo *ai, int port, const char **what)
{
    struct sockaddr_storage sa;
    memset(&sa, 0, sizeof sa);
    memcpy(&sa, ai->ai_addr, ai->ai_addrlen);
    if (port != 0 && sa.ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, &sa, sizeof in);
        in.sin_port = htons((uint16_t)port);
        memcpy(&sa, &in, sizeof in);
    } else if (port != 0 && sa.ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, &sa, sizeof in6);
        in6.sin6_port = htons((uint16_t)port);
        memcpy(&sa, &in6, sizeof in6);
    }
    *what = "socket";
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (ai->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    *what = "bind";
    if (bind(fd, (const struct sockaddr *)&sa, ai->ai_addrlen) == 0) {
        *what = "listen";
        if (listen(fd, BACKLOG) == 0) {
            return fd;
        }
    }
    int saved = errno;
    io_close(&fd);
    errno = saved;
    return -1;
}

static enum status resolve(const struct config *cfg, struct addrinfo **out,
                           struct error *err)
{
    char port[16];
    const char *host = cfg->server.host;
    bool any = !host || host[0] == 0;
    (void)snprintf(port, sizeof port, "%lld", (long long)cfg->server.port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    /* A number first: asking for a name loads the resolver's libraries. */
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST;
    int rc = getaddrinfo(any ? NULL : host, port, &hints, out);
    if (rc == EAI_NONAME && !any) {
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
        rc = getaddrinfo(host, port, &hints, out);
    }
    if (rc != 0) {
        return error_set(err, ST_IO, "server.host %s: %s", any ? "\"\"" : host,
                         gai_strerror(rc));
    }
    return ST_OK;
}

/* What getsockname says, not what the configuration's text says. */
static bool note_address(struct server *s, int fd)
{
    struct sockaddr_storage sa;
    struct net_addr addr;
    socklen_t len = sizeof sa;
    memset(&sa, 0, sizeof sa);
    if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0 ||
        !net_addr_from_sockaddr(&sa, &addr)) {
        return false;
    }
    if (s->nfds == 0) {
        struct sockaddr_in in;
        memcpy(&in, &sa, sizeof in); /* the port is at the same place in both */
        s->port = ntohs(in.sin_port);
        net_addr_print(&addr, s->address);
        s->loopback_only = true;
    }
    bool loopback = net_addr_is_loopback(&addr);
    s->loopback_only = s->loopback_only && loopback;
    s->names.loopback_names =
        s->names.loopback_names || loopback || net_addr_is_any(&addr);
    return true;
}

enum status listen_open(struct server *s, struct error *err)
{
    const struct config *cfg = s->cfg;
    struct addrinfo *list = NULL;
    const char *what = "bind";
    int why = 0;
    enum status st = resolve(cfg, &list, err);
    if (st != ST_OK) {
        return st;
    }
    for (const struct addrinfo *ai = list; ai && s->nfds < SERVER_LISTENERS_MAX;
         ai = ai->ai_next) {
        int fd = open_one(ai, s->port, &what);
        if (fd >= 0 && !note_address(s, fd)) {
            io_close(&fd);
        }
        if (fd >= 0) {
            s->fds[s->nfds++] = fd;
            continue;
        }
        why = errno;
        /* A host without IPv6 (or without IPv4) still serves the other one. */
        if (why != EADDRNOTAVAIL && why != EAFNOSUPPORT) {
            break;
        }
        why = s->nfds > 0 ? 0 : why;
    }
    freeaddrinfo(list);
    if (s->nfds == 0 || (why != 0 && why != EADDRNOTAVAIL && why != EAFNOSUPPORT)) {
        return error_set_errno(err, ST_IO, why, "cannot listen on %s port %lld: %s",
                               cfg->server.host ? cfg->server.host : "",
                               (long long)cfg->server.port, what);
    }
    s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s->names.port = s->port;
    return ST_OK;
}

void listen_close(struct server *s)
{
    for (size_t i = 0; i < SERVER_LISTENERS_MAX; i++) {
        if (s->listeners[i]) {
            /* libwebsockets owns the descriptor once it took it. */
            lws_set_timeout(s->listeners[i], PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
            s->listeners[i] = NULL;
            s->fds[i] = -1;
        }
        io_close(&s->fds[i]);
    }
}

static void set_accepting(struct server *s, bool on)
{
    s->accept_paused = !on;
    for (size_t i = 0; i < SERVER_LISTENERS_MAX; i++) {
        if (s->listeners[i]) {
            lws_rx_flow_control(s->listeners[i], on ? 1 : 0);
        }
    }
}

void listen_resume(struct server *s)
{
    if (s->accept_paused) {
        if (s->spare_fd < 0) {
            s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        set_accepting(s, true);
    }
}

/* No descriptor is left: take clients with the spare one and close them, so that they do
 * not wait for nothing, then rest until the next tick. */
static void out_of_descriptors(struct server *s, int listener)
{
    int64_t now = clock_mono_ms();
    if (s->emfile_logged_ms == 0 || now - s->emfile_logged_ms > 60000) {
        s->emfile_logged_ms = now;
        log_line(s->log, LOG_WARN, "server",
                 "out of file descriptors: connections are turned away");
    }
    int fd = 0;
    for (int i = 0; i < TURNED_AWAY_MAX && fd >= 0; i++) {
        io_close(&s->spare_fd);
        /* cppcheck-suppress nullPointer ; the peer's address is not asked for */
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        int taken = fd;
        io_close(&taken);
        s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    set_accepting(s, false);
    server_need_tick(s);
}

static size_t count_of(const struct server *s, const struct net_addr *peer)
{
    struct net_addr group = net_addr_group(peer);
    size_t n = 0;
    for (const struct conn *c = s->conns; c; c = c->next) {
        struct net_addr other = net_addr_group(&c->tcp_peer);
        n += memcmp(other.b, group.b, sizeof group.b) == 0;
    }
    return n;
}

/* Room for one more: an idle connection gives way to a new one. */
static bool make_room(struct server *s, const struct net_addr *peer)
{
    bool many = s->nconns >= s->max_peer_conns && !net_addr_is_loopback(peer) &&
                !net_range_has(s->trusted, s->ntrusted, peer) &&
                count_of(s, peer) >= s->max_peer_conns;
    if (many) {
        return false;
    }
    if (s->nconns - s->ndying < s->max_conns) {
        return true;
    }
    struct conn *idle = NULL;
    for (struct conn *c = s->conns; c; c = c->next) {
        bool rests = c->phase == PH_HEAD && c->fresh && !c->dead && !c->closing;
        if (rests && (!idle || c->deadline_ms < idle->deadline_ms)) {
            idle = c;
        }
    }
    if (idle) {
        conn_kill(idle);
    }
    return idle != NULL;
}

static void turn_away(int *fd)
{
    static const char text[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        "Content-Length: 68\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
        "{\"error\":{\"code\":\"busy\",\"message\":\"too many connections are open\"}}\n";
    (void)send(*fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    io_close(fd);
}

static void adopt(struct server *s, int fd, const struct net_addr *peer)
{
    struct sockaddr_storage sa;
    struct net_addr local;
    socklen_t len = sizeof sa;
    memset(&sa, 0, sizeof sa);
    if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0 ||
        !net_addr_from_sockaddr(&sa, &local)) {
        io_close(&fd);
        return;
    }
    struct conn *c = conn_new(s, peer, &local);
    if (!c) {
        turn_away(&fd);
        return;
    }
    lws_adopt_desc_t desc;
    memset(&desc, 0, sizeof desc);
    desc.vh = s->vhost;
    desc.type = s->names.tls ? LWS_ADOPT_SOCKET | LWS_ADOPT_ALLOW_SSL : LWS_ADOPT_SOCKET;
    desc.fd.sockfd = fd;
    desc.opaque = c;
    /* On failure the descriptor is closed; c is gone too if a callback had seen it. */
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&desc);
    if (!wsi) {
        for (struct conn *other = s->conns; other; other = other->next) {
            if (other == c) {
                conn_closed(c);
                break;
            }
        }
        return;
    }
    server_need_tick(s);
}

void listen_accept(struct server *s, int listener)
{
    /* Bounded, so that a flood of connections leaves time for the requests. Those that
     * gave way are closed when we return; until then the next ones wait in the backlog. */
    for (int i = 0; i < 64 && s->ndying < DYING_MAX; i++) {
        struct sockaddr_storage sa;
        struct net_addr peer;
        socklen_t len = sizeof sa;
        memset(&sa, 0, sizeof sa);
        int fd =
            accept4(listener, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                errno == ENOMEM) {
                out_of_descriptors(s, listener);
            }
            return;
        }
        if (!net_addr_from_sockaddr(&sa, &peer)) {
            io_close(&fd);
        } else if (!make_room(s, &peer)) {
            metric_add(s->metrics, METRIC_HTTP_REJECTED, 1);
            turn_away(&fd);
        } else {
            int on = 1;
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            adopt(s, fd, &peer);
        }
    }
}
