/* Forms of single values. In: text. Out: NULL or a phrase. Pure. Never resolves a name,
 * never opens a path: what needs more than the text is checked elsewhere. */
#include "config/checks.h"

#include <arpa/inet.h>
#include <string.h>

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool all_of(struct str v, const char *extra)
{
    for (size_t i = 0; i < v.len; i++) {
        char c = v.ptr[i];
        if (!is_alpha(c) && !is_digit(c) && (c == '\0' || strchr(extra, c) == NULL)) {
            return false;
        }
    }
    return v.len != 0;
}

static struct str from(struct str v, size_t i)
{
    return str_n(v.ptr + i, v.len - i);
}

const char *check_line(struct str v)
{
    for (size_t i = 0; i < v.len; i++) {
        unsigned char c = (unsigned char)v.ptr[i];
        if (c < 0x20 || c == 0x7f) {
            return "must be one line without control characters";
        }
    }
    return NULL;
}

static bool is_address(struct str v)
{
    char text[INET6_ADDRSTRLEN + 1];
    unsigned char bytes[16];
    if (v.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, v.ptr, v.len);
    text[v.len] = '\0';
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

static bool is_cidr(struct str v)
{
    size_t slash = str_find_char(v, '/');
    int64_t bits = 0;
    if (slash == SIZE_MAX) {
        return false;
    }
    struct str address = str_n(v.ptr, slash);
    int64_t max = str_find_char(address, ':') != SIZE_MAX ? 128 : 32;
    return is_address(address) && str_to_i64(from(v, slash + 1), 0, max, &bits) == ST_OK;
}

static bool is_host(struct str v)
{
    return (all_of(v, ".-_") && v.len <= 253 && v.ptr[0] != '-') || is_address(v);
}

/* host, [v6], each with an optional :port. */
static bool is_host_port(struct str v)
{
    int64_t port = 0;
    if (is_host(v)) {
        return true;
    }
    if (v.len != 0 && v.ptr[0] == '[') {
        size_t end = str_find_char(v, ']');
        if (end == SIZE_MAX || !is_address(str_n(v.ptr + 1, end - 1))) {
            return false;
        }
        struct str rest = from(v, end + 1);
        return rest.len == 0 || (rest.ptr[0] == ':' &&
                                 str_to_i64(from(rest, 1), 1, 65535, &port) == ST_OK);
    }
    size_t colon = str_find_char(v, ':');
    return colon != SIZE_MAX && is_host(str_n(v.ptr, colon)) &&
           str_to_i64(from(v, colon + 1), 1, 65535, &port) == ST_OK;
}

const char *check_host(struct str v)
{
    return is_host(v) ? NULL : "must be a host name or an address, without port";
}

static size_t scheme_len(struct str v)
{
    return str_starts(v, STR_LIT("https://"))  ? 8
           : str_starts(v, STR_LIT("http://")) ? 7
                                               : 0;
}

const char *check_url(struct str v)
{
    size_t at = scheme_len(v);
    if (at == 0) {
        return "must be an http:// or https:// URL";
    }
    struct str rest = from(v, at);
    size_t end = 0;
    while (end < rest.len && strchr("/?#", rest.ptr[end]) == NULL) {
        end++;
    }
    struct str authority = str_n(rest.ptr, end);
    if (str_find_char(authority, '@') != SIZE_MAX) {
        return "must be a URL without user name and password";
    }
    for (size_t i = 0; i < v.len; i++) {
        if ((unsigned char)v.ptr[i] <= 0x20 || v.ptr[i] == 0x7f) {
            return "must be a URL without spaces";
        }
    }
    return is_host_port(authority) ? NULL : "must be a URL with a host name";
}

const char *check_origin(struct str v)
{
    size_t at = scheme_len(v);
    bool fine = at != 0 && is_host_port(from(v, at));
    return fine ? NULL
                : "must be an origin such as https://console.example.com (no path, no *)";
}

const char *check_hostport(struct str v)
{
    bool fine = is_host_port(v) || is_cidr(v);
    return fine ? NULL : "must be a host, host:port or address range such as 10.0.0.0/8";
}

const char *check_proxy(struct str v)
{
    bool fine = is_address(v) || is_cidr(v);
    return fine ? NULL : "must be an address or a range such as 10.0.0.0/8";
}

const char *check_plugin_name(struct str v)
{
    bool fine = v.len != 0 && v.len <= 32 && v.ptr[0] >= 'a' && v.ptr[0] <= 'z';
    for (size_t i = 0; fine && i < v.len; i++) {
        char c = v.ptr[i];
        fine = (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
    }
    return fine ? NULL : "must be a plugin's name: lower-case letters, digits, '-'";
}

const char *check_user(struct str v)
{
    bool fine = all_of(v, "_-.") && v.len <= 32 && v.ptr[0] != '-';
    return fine ? NULL : "must be a user name";
}

static bool is_env_name(struct str v)
{
    return all_of(v, "_") && v.len <= 256 && !is_digit(v.ptr[0]);
}

const char *check_env_name(struct str v)
{
    if (!is_env_name(v)) {
        return "must be the name of an environment variable";
    }
    if (str_starts(v, STR_LIT("SOULACY_"))) {
        return "may not name SOULACY_ variables: they hold the gateway's own settings";
    }
    return NULL;
}

const char *check_env_pair(struct str v)
{
    size_t eq = str_find_char(v, '=');
    if (eq == SIZE_MAX) {
        return "must be NAME=value";
    }
    return check_env_name(str_n(v.ptr, eq));
}

const char *check_header(struct str v)
{
    size_t colon = str_find_char(v, ':');
    if (colon == SIZE_MAX || !all_of(str_n(v.ptr, colon), "!#$%&'*+-.^_`|~")) {
        return "must be a header such as \"Name: value\"";
    }
    return check_line(v);
}

const char *check_sha256(struct str v)
{
    bool fine = v.len == 64;
    for (size_t i = 0; fine && i < v.len; i++) {
        char c = v.ptr[i];
        fine = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    }
    return fine ? NULL : "must be 64 hexadecimal digits";
}

const char *check_ssh_host(struct str v)
{
    size_t at = str_find_char(v, '@');
    bool fine = true;
    if (at != SIZE_MAX) {
        fine = check_user(str_n(v.ptr, at)) == NULL;
        v = from(v, at + 1);
    }
    return fine && is_host_port(v) ? NULL : "must be a host, or user@host:port";
}

const char *check_host_key(struct str v)
{
    bool print = str_starts(v, STR_LIT("SHA256:"));
    bool fine = print ? all_of(from(v, 7), "+/=") && v.len >= 7 + 43
                      : all_of(v, "-+/=@. ") && str_find_char(v, ' ') != SIZE_MAX;
    return fine ? NULL
                : "must be \"TYPE BASE64\" as in known_hosts, or SHA256:FINGERPRINT";
}

void volume_split(struct str v, struct str *host, struct str *container, bool *read_only)
{
    *read_only = str_ends(v, STR_LIT(":ro"));
    if (*read_only) {
        v.len -= 3;
    }
    size_t colon = str_find_char(v, ':');
    *host = str_n(v.ptr, colon == SIZE_MAX ? v.len : colon);
    *container = colon == SIZE_MAX ? STR_NONE : from(v, colon + 1);
}

static bool has_dotdot(struct str v)
{
    struct str part;
    while (str_split(&v, '/', &part)) {
        if (str_eq_c(part, "..")) {
            return true;
        }
    }
    return false;
}

const char *check_volume(struct str v)
{
    struct str host;
    struct str container;
    bool read_only;
    volume_split(v, &host, &container, &read_only);
    if (str_find_char(host, '/') == SIZE_MAX || container.len == 0 ||
        container.ptr[0] != '/' || str_find_char(container, ':') != SIZE_MAX) {
        return "must be host:container or host:container:ro, both of them paths";
    }
    if (has_dotdot(host) || has_dotdot(container)) {
        return "must be paths without ..";
    }
    while (container.len > 1 && container.ptr[container.len - 1] == '/') {
        container.len--;
    }
    static const char *const never[] = {"/proc", "/sys", "/dev"};
    if (container.len == 1) {
        return "may not be mounted over / of the container";
    }
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        struct str dir = str_c(never[i]);
        if (str_starts(container, dir) &&
            (container.len == dir.len || container.ptr[dir.len] == '/')) {
            return "may not be mounted over /proc, /sys or /dev of the container";
        }
    }
    return check_line(v);
}

const char *check_agent_id(struct str v)
{
    bool fine = all_of(v, "-_.") && v.len <= 64 && v.ptr[0] != '.' && v.ptr[0] != '-';
    return fine ? NULL
                : "must be 1 to 64 letters, digits and -_. and begin with no . or -";
}

const char *check_tool_name(struct str v)
{
    bool fine = all_of(v, "_-") && v.len <= 64;
    return fine ? NULL : "must be 1 to 64 letters, digits, _ and -";
}

const char *check_identifier(struct str v)
{
    static const char *const keywords[] = {
        "False",  "None",   "True",    "and",      "as",       "assert", "async",
        "await",  "break",  "class",   "continue", "def",      "del",    "elif",
        "else",   "except", "finally", "for",      "from",     "global", "if",
        "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
        "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};
    bool fine = all_of(v, "_") && v.len <= 128 && !is_digit(v.ptr[0]);
    for (size_t i = 0; fine && i < sizeof(keywords) / sizeof(keywords[0]); i++) {
        fine = !str_eq_c(v, keywords[i]);
    }
    return fine ? NULL
                : "must be the name of a Python function (a tool whose name is none "
                  "needs `function:`)";
}

const char *check_entry_name(struct str v)
{
    bool fine = all_of(v, "_-") && v.len <= 64;
    return fine ? NULL : "must be 1 to 64 letters, digits, _ and -";
}
