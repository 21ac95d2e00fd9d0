/* Who is asking, and by which name: addresses, Host, Origin, X-Forwarded-For. Pure. */
#ifndef SOULACY_SERVER_ACCESS_H
#define SOULACY_SERVER_ACCESS_H

#include "base/str.h"

#define NET_ADDR_TEXT 46 /* with the NUL */

/* An IPv6 address, or IPv4 as its v4-mapped form, so that both are one. */
struct net_addr {
    unsigned char b[16];
};

struct net_range {
    struct net_addr addr;
    unsigned bits; /* of 128 */
};

struct sockaddr_storage;

bool net_addr_parse(struct str text, struct net_addr *out);
bool net_addr_from_sockaddr(const struct sockaddr_storage *sa, struct net_addr *out);
bool net_addr_is_loopback(const struct net_addr *a);
bool net_addr_is_any(const struct net_addr *a); /* 0.0.0.0 or :: */
void net_addr_print(const struct net_addr *a, char out[NET_ADDR_TEXT]);
/* What limits count by: the address, of IPv6 its /64. */
struct net_addr net_addr_group(const struct net_addr *a);

/* "10.0.0.0/8", "::1", "192.0.2.7". */
bool net_range_parse(struct str text, struct net_range *out);
bool net_range_has(const struct net_range *ranges, size_t n, const struct net_addr *a);

/* The peer behind trusted proxies: from the right, the first hop that is none of them.
 * lists are the X-Forwarded-For headers in the order they came. A hop that is no address
 * ends the walk: what stands left of it may be anybody's. */
struct net_addr access_forwarded(const struct net_addr *tcp_peer, const struct str *lists,
                                 size_t nlists, const struct net_range *trusted,
                                 size_t ntrusted);

/* The names under which the listener may be asked. */
struct access_names {
    int port;
    bool tls;
    bool loopback_names; /* localhost, 127.0.0.1 and [::1] count as own */
    const char *const *allowed_hosts;
    size_t nallowed_hosts;
    const char *const *allowed_origins;
    size_t nallowed_origins;
};

/* host: the Host header. local: the address this connection came in on, own as well. */
bool access_host_ok(const struct access_names *names, const struct net_addr *local,
                    struct str host);

enum access_origin { ORIGIN_REFUSED = 0, ORIGIN_ABSENT, ORIGIN_OWN, ORIGIN_LISTED };
/* origin.ptr NULL: no header. proxied: the TCP peer is a trusted proxy, which may speak
 * TLS to the browser. */
enum access_origin access_origin_check(const struct access_names *names, struct str host,
                                       struct str origin, bool proxied);

#endif
