/* Comes in: addresses and header texts of a stranger, and the listener's own names. Goes
 * out: yes or no. Never resolves a name and never matches by prefix or suffix: a name is
 * in the list or it is refused. */
#include "server/access.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const struct net_addr *a)
{
    return memcmp(a->b, mapped, sizeof mapped) == 0;
}

bool net_addr_parse(struct str text, struct net_addr *out)
{
    char copy[NET_ADDR_TEXT];
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.ptr, 0, text.len)) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    struct net_addr a;
    memcpy(a.b, mapped, sizeof mapped);
    if (inet_pton(AF_INET, copy, a.b + 12) != 1 && inet_pton(AF_INET6, copy, a.b) != 1) {
        return false;
    }
    *out = a;
    return true;
}

bool net_addr_from_sockaddr(const struct sockaddr_storage *sa, struct net_addr *out)
{
    if (sa->ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        memcpy(out->b, mapped, sizeof mapped);
        memcpy(out->b + 12, &in.sin_addr, 4);
        return true;
    }
    if (sa->ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, sa, sizeof in6);
        memcpy(out->b, &in6.sin6_addr, 16);
        return true;
    }
    return false;
}

bool net_addr_is_loopback(const struct net_addr *a)
{
    static const unsigned char one[16] = {[15] = 1};
    return is_v4(a) ? a->b[12] == 127 : memcmp(a->b, one, 16) == 0;
}

bool net_addr_is_any(const struct net_addr *a)
{
    static const unsigned char zero[16] = {0};
    return memcmp(is_v4(a) ? a->b + 12 : a->b, zero, is_v4(a) ? 4 : 16) == 0;
}

void net_addr_print(const struct net_addr *a, char out[NET_ADDR_TEXT])
{
    bool v4 = is_v4(a);
    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, out, NET_ADDR_TEXT)) {
        out[0] = 0;
    }
}

struct net_addr net_addr_group(const struct net_addr *a)
{
    struct net_addr g = *a;
    if (!is_v4(a)) {
        memset(g.b + 8, 0, 8);
    }
    return g;
}

bool net_range_parse(struct str text, struct net_range *out)
{
    size_t slash = str_find_char(text, '/');
    struct str addr = slash == SIZE_MAX ? text : str_n(text.ptr, slash);
    struct net_range r = {.bits = 128};
    if (!net_addr_parse(addr, &r.addr)) {
        return false;
    }
    /* 10.0.0.0/8 counts its bits from the IPv4 part on. */
    bool v4 = is_v4(&r.addr) && str_find_char(addr, ':') == SIZE_MAX;
    if (slash != SIZE_MAX) {
        int64_t bits = 0;
        struct str tail = str_n(text.ptr + slash + 1, text.len - slash - 1);
        if (str_to_i64(tail, 0, v4 ? 32 : 128, &bits) != ST_OK) {
            return false;
        }
        r.bits = (unsigned)bits + (v4 ? 96U : 0U);
    }
    *out = r;
    return true;
}

static bool in_range(const struct net_range *r, const struct net_addr *a)
{
    size_t whole = r->bits / 8;
    if (memcmp(r->addr.b, a->b, whole) != 0) {
        return false;
    }
    unsigned rest = r->bits % 8;
    unsigned mask = (0xff00U >> rest) & 0xffU;
    return rest == 0 || ((unsigned)(r->addr.b[whole] ^ a->b[whole]) & mask) == 0;
}

bool net_range_has(const struct net_range *ranges, size_t n, const struct net_addr *a)
{
    for (size_t i = 0; i < n; i++) {
        if (in_range(&ranges[i], a)) {
            return true;
        }
    }
    return false;
}

/* Cut the last element off a comma list; false when nothing is left. */
static bool take_last(struct str *list, struct str *part)
{
    if (!list->ptr) {
        return false;
    }
    size_t at = list->len;
    while (at > 0 && list->ptr[at - 1] != ',') {
        at--;
    }
    *part = str_trim(str_n(list->ptr + at, list->len - at));
    *list = at > 0 ? str_n(list->ptr, at - 1) : STR_NONE;
    return true;
}

/* "192.0.2.1", "192.0.2.1:443", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443". */
static bool parse_hop(struct str hop, struct net_addr *out)
{
    if (hop.len > 0 && hop.ptr[0] == '[') {
        size_t close = str_find_char(hop, ']');
        return close != SIZE_MAX && net_addr_parse(str_n(hop.ptr + 1, close - 1), out);
    }
    if (net_addr_parse(hop, out)) {
        return true;
    }
    size_t colon = str_find_char(hop, ':');
    return colon != SIZE_MAX && net_addr_parse(str_n(hop.ptr, colon), out);
}

struct net_addr access_forwarded(const struct net_addr *tcp_peer, const struct str *lists,
                                 size_t nlists, const struct net_range *trusted,
                                 size_t ntrusted)
{
    struct net_addr peer = *tcp_peer;
    for (size_t i = nlists; i > 0; i--) {
        struct str list = lists[i - 1];
        struct str part;
        while (take_last(&list, &part)) {
            if (!net_range_has(trusted, ntrusted, &peer) || !parse_hop(part, &peer)) {
                return peer;
            }
        }
    }
    return peer;
}

/* Split "name:port" or "[v6]:port"; port -1 when there is none. */
static bool split_host(struct str host, struct str *name, int64_t *port)
{
    size_t end = 0;
    if (host.len > 0 && host.ptr[0] == '[') {
        end = str_find_char(host, ']');
        if (end == SIZE_MAX) {
            return false;
        }
        end++;
    } else {
        end = str_find_char(host, ':');
        end = end == SIZE_MAX ? host.len : end;
    }
    *name = str_n(host.ptr, end);
    *port = -1;
    if (end == host.len) {
        return end > 0;
    }
    struct str digits = str_n(host.ptr + end + 1, host.len - end - 1);
    return end > 0 && host.ptr[end] == ':' && digits.len <= 5 &&
           str_to_i64(digits, 1, 65535, port) == ST_OK;
}

static int64_t default_port(bool tls)
{
    return tls ? 443 : 80;
}

static bool is_own_name(const struct access_names *names, const struct net_addr *local,
                        struct str name)
{
    if (names->loopback_names &&
        (str_eq_nocase(name, STR_LIT("localhost")) || str_eq_c(name, "127.0.0.1") ||
         str_eq_c(name, "[::1]"))) {
        return true;
    }
    struct str bare = name;
    if (name.len > 2 && name.ptr[0] == '[') {
        bare = str_n(name.ptr + 1, name.len - 2);
    }
    struct net_addr a;
    return net_addr_parse(bare, &a) && memcmp(a.b, local->b, sizeof a.b) == 0;
}

bool access_host_ok(const struct access_names *names, const struct net_addr *local,
                    struct str host)
{
    struct str name;
    int64_t port = -1;
    if (!split_host(host, &name, &port)) {
        return false;
    }
    bool own_port =
        port == names->port || (port == -1 && names->port == default_port(names->tls));
    if (own_port && is_own_name(names, local, name)) {
        return true;
    }
    for (size_t i = 0; i < names->nallowed_hosts; i++) {
        struct str entry = str_c(names->allowed_hosts[i]);
        struct str entry_name;
        int64_t entry_port = -1;
        if (!split_host(entry, &entry_name, &entry_port) ||
            !str_eq_nocase(entry_name, name)) {
            continue;
        }
        /* An entry without a port stands for the default port and for ours. */
        if (entry_port == port ||
            (entry_port == -1 && (port == names->port || port == 80 || port == 443))) {
            return true;
        }
    }
    return false;
}

/* scheme://authority with the scheme's port written out or not, the same origin? */
static bool same_origin(struct str authority, struct str host, bool tls)
{
    struct str a_name;
    struct str b_name;
    int64_t a_port = -1;
    int64_t b_port = -1;
    if (!split_host(authority, &a_name, &a_port) || !split_host(host, &b_name, &b_port)) {
        return false;
    }
    a_port = a_port == -1 ? default_port(tls) : a_port;
    b_port = b_port == -1 ? default_port(tls) : b_port;
    return a_port == b_port && str_eq_nocase(a_name, b_name);
}

enum access_origin access_origin_check(const struct access_names *names, struct str host,
                                       struct str origin, bool proxied)
{
    if (!origin.ptr) {
        return ORIGIN_ABSENT;
    }
    for (size_t i = 0; i < names->nallowed_origins; i++) {
        if (str_eq_nocase(origin, str_c(names->allowed_origins[i])) &&
            !str_eq_nocase(origin, STR_LIT("null"))) {
            return ORIGIN_LISTED;
        }
    }
    const struct {
        struct str scheme;
        bool tls;
    } schemes[] = {{STR_LIT("http://"), false}, {STR_LIT("https://"), true}};
    for (size_t i = 0; i < 2; i++) {
        struct str scheme = schemes[i].scheme;
        if (!str_starts(origin, scheme) || (schemes[i].tls != names->tls && !proxied)) {
            continue;
        }
        struct str authority = str_n(origin.ptr + scheme.len, origin.len - scheme.len);
        if (same_origin(authority, host, schemes[i].tls)) {
            return ORIGIN_OWN;
        }
    }
    return ORIGIN_REFUSED;
}
