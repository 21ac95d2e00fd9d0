/* What one text value must look like. Each returns NULL when it is fine, else a static
 * phrase for the message ("must be ..."). Pure. Private to core/config. */
#ifndef SOULACY_CONFIG_CHECKS_H
#define SOULACY_CONFIG_CHECKS_H

#include "base/str.h"

const char *check_line(struct str v);     /* one line without control bytes */
const char *check_host(struct str v);     /* host name or address */
const char *check_url(struct str v);      /* http or https, no userinfo */
const char *check_origin(struct str v);   /* scheme://host[:port] */
const char *check_hostport(struct str v); /* host, host:port or CIDR */
const char *check_proxy(struct str v);    /* address or CIDR */
const char *check_plugin_name(struct str v);
const char *check_user(struct str v);
const char *check_env_name(struct str v); /* and none of ours */
const char *check_env_pair(struct str v); /* NAME=value */
const char *check_header(struct str v);   /* Name: value */
const char *check_sha256(struct str v);
const char *check_ssh_host(struct str v); /* [user@]host[:port] */
const char *check_host_key(struct str v); /* "ssh-ed25519 AAAA..." or SHA256:... */
const char *check_volume(struct str v);   /* host:container[:ro] */
const char *check_agent_id(struct str v);
const char *check_tool_name(struct str v);  /* 1-64 of A-Z a-z 0-9 _ - */
const char *check_identifier(struct str v); /* of Python */
const char *check_entry_name(struct str v); /* of a provider, server, base */

/* The parts of a valid volume. */
void volume_split(struct str v, struct str *host, struct str *container, bool *read_only);

#endif
