/* In: the public headers. Out: nothing at run time; a build that fails when a member of a
 * public struct has moved, changed its size or was put in the middle (x86-64, LP64). A
 * member appended at the end needs a line here, a new total and a line in ABI.md; any
 * other change is a new major. */
#include <soulacy/channel.h>
#include <soulacy/executor.h>

#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "size of " #type)
#define AT(type, member, at, bytes) \
    _Static_assert(offsetof(struct type, member) == (at) && \
                       sizeof(((struct type *)0)->member) == (bytes), \
                   #type "." #member)
#define VALUE(name, number) _Static_assert((name) == (number), #name)

#if defined(__x86_64__) && defined(__LP64__)

SIZE(sy_str, 16);
AT(sy_str, ptr, 0, 8);
AT(sy_str, len, 8, 8);

SIZE(sy_error, 248);
AT(sy_error, size, 0, 4);
AT(sy_error, os_errno, 4, 4);
AT(sy_error, text, 8, 240);

SIZE(sy_cfg_key, 32);
AT(sy_cfg_key, name, 0, 8);
AT(sy_cfg_key, type, 8, 4);
AT(sy_cfg_key, required, 12, 4);
AT(sy_cfg_key, fallback, 16, 8);
AT(sy_cfg_key, help, 24, 8);

SIZE(sy_cfg_value, 64);
AT(sy_cfg_value, key, 0, 16);
AT(sy_cfg_value, type, 16, 4);
AT(sy_cfg_value, reserved, 20, 4);
AT(sy_cfg_value, i, 24, 8);
AT(sy_cfg_value, s, 32, 16);
AT(sy_cfg_value, list, 48, 8);
AT(sy_cfg_value, nlist, 56, 8);

SIZE(sy_host, 48);
AT(sy_host, size, 0, 4);
AT(sy_host, abi_minor, 4, 4);
AT(sy_host, ctx, 8, 8);
AT(sy_host, log, 16, 8);
AT(sy_host, service, 24, 8);
AT(sy_host, health, 32, 8);
AT(sy_host, now_ms, 40, 8);

SIZE(sy_plugin, 64);
AT(sy_plugin, size, 0, 4);
AT(sy_plugin, abi_minor, 4, 4);
AT(sy_plugin, min_host_minor, 8, 4);
AT(sy_plugin, kind, 12, 4);
AT(sy_plugin, name, 16, 8);
AT(sy_plugin, version, 24, 8);
AT(sy_plugin, keys, 32, 8);
AT(sy_plugin, create, 40, 8);
AT(sy_plugin, destroy, 48, 8);
AT(sy_plugin, query, 56, 8);

SIZE(sy_attachment, 64);
AT(sy_attachment, fd, 0, 4);
AT(sy_attachment, kind, 4, 4);
AT(sy_attachment, bytes, 8, 8);
AT(sy_attachment, mime, 16, 16);
AT(sy_attachment, name, 32, 16);
AT(sy_attachment, caption, 48, 16);

SIZE(sy_message, 176);
AT(sy_message, size, 0, 4);
AT(sy_message, chat, 4, 4);
AT(sy_message, sent_ms, 8, 8);
AT(sy_message, id, 16, 16);
AT(sy_message, account, 32, 16);
AT(sy_message, conversation, 48, 16);
AT(sy_message, sender, 64, 16);
AT(sy_message, sender_name, 80, 16);
AT(sy_message, sender_ids, 96, 8);
AT(sy_message, nsender_ids, 104, 8);
AT(sy_message, agent, 112, 16);
AT(sy_message, reply_to, 128, 16);
AT(sy_message, text, 144, 16);
AT(sy_message, attachments, 160, 8);
AT(sy_message, nattachments, 168, 8);

SIZE(sy_delivery, 80);
AT(sy_delivery, size, 0, 4);
AT(sy_delivery, state, 4, 4);
AT(sy_delivery, at_ms, 8, 8);
AT(sy_delivery, transport_id, 16, 16);
AT(sy_delivery, reference, 32, 16);
AT(sy_delivery, account, 48, 16);
AT(sy_delivery, reason, 64, 16);

SIZE(sy_host_channel, 24);
AT(sy_host_channel, size, 0, 4);
AT(sy_host_channel, reserved, 4, 4);
AT(sy_host_channel, deliver, 8, 8);
AT(sy_host_channel, report, 16, 8);

SIZE(sy_outgoing, 112);
AT(sy_outgoing, size, 0, 4);
AT(sy_outgoing, cancel_fd, 4, 4);
AT(sy_outgoing, id, 8, 16);
AT(sy_outgoing, account, 24, 16);
AT(sy_outgoing, conversation, 40, 16);
AT(sy_outgoing, reply_to, 56, 16);
AT(sy_outgoing, text, 72, 16);
AT(sy_outgoing, attachments, 88, 8);
AT(sy_outgoing, nattachments, 96, 8);
AT(sy_outgoing, deadline_ms, 104, 8);

SIZE(sy_sent, 528);
AT(sy_sent, size, 0, 4);
AT(sy_sent, outcome, 4, 4);
AT(sy_sent, retry_after_ms, 8, 8);
AT(sy_sent, transport_id, 16, 512);

SIZE(sy_channel, 40);
AT(sy_channel, size, 0, 4);
AT(sy_channel, max_text_chars, 4, 4);
AT(sy_channel, start, 8, 8);
AT(sy_channel, stop, 16, 8);
AT(sy_channel, send, 24, 8);
AT(sy_channel, typing, 32, 8);

SIZE(sy_pair, 32);
AT(sy_pair, name, 0, 16);
AT(sy_pair, value, 16, 16);

SIZE(sy_request, 120);
AT(sy_request, size, 0, 4);
AT(sy_request, authenticated, 4, 4);
AT(sy_request, http, 8, 8);
AT(sy_request, method, 16, 16);
AT(sy_request, path, 32, 16);
AT(sy_request, query, 48, 16);
AT(sy_request, body, 64, 16);
AT(sy_request, peer, 80, 16);
AT(sy_request, request_id, 96, 16);
AT(sy_request, local, 112, 4);
AT(sy_request, reserved, 116, 4);

SIZE(sy_route, 72);
AT(sy_route, size, 0, 4);
AT(sy_route, auth, 4, 4);
AT(sy_route, method, 8, 8);
AT(sy_route, path, 16, 8);
AT(sy_route, flags, 24, 4);
AT(sy_route, max_parallel, 28, 4);
AT(sy_route, max_body, 32, 8);
AT(sy_route, ctx, 40, 8);
AT(sy_route, handle, 48, 8);
AT(sy_route, gone, 56, 8);
AT(sy_route, message, 64, 8);

SIZE(sy_host_http, 56);
AT(sy_host_http, size, 0, 4);
AT(sy_host_http, reserved, 4, 4);
AT(sy_host_http, add_route, 8, 8);
AT(sy_host_http, header, 16, 8);
AT(sy_host_http, query, 24, 8);
AT(sy_host_http, begin, 32, 8);
AT(sy_host_http, write, 40, 8);
AT(sy_host_http, end, 48, 8);

SIZE(sy_fetch, 112);
AT(sy_fetch, size, 0, 4);
AT(sy_fetch, cancel_fd, 4, 4);
AT(sy_fetch, method, 8, 8);
AT(sy_fetch, url, 16, 16);
AT(sy_fetch, allowed_hosts, 32, 8);
AT(sy_fetch, nallowed_hosts, 40, 8);
AT(sy_fetch, headers, 48, 8);
AT(sy_fetch, nheaders, 56, 8);
AT(sy_fetch, bearer, 64, 16);
AT(sy_fetch, body, 80, 16);
AT(sy_fetch, max_body, 96, 8);
AT(sy_fetch, deadline_ms, 104, 8);

SIZE(sy_fetched, 24);
AT(sy_fetched, size, 0, 4);
AT(sy_fetched, status, 4, 4);
AT(sy_fetched, sent, 8, 4);
AT(sy_fetched, reserved, 12, 4);
AT(sy_fetched, retry_after_ms, 16, 8);

SIZE(sy_host_fetch, 16);
AT(sy_host_fetch, size, 0, 4);
AT(sy_host_fetch, reserved, 4, 4);
AT(sy_host_fetch, fetch, 8, 8);

SIZE(sy_gateway_call, 104);
AT(sy_gateway_call, size, 0, 4);
AT(sy_gateway_call, local, 4, 4);
AT(sy_gateway_call, op, 8, 16);
AT(sy_gateway_call, args, 24, 16);
AT(sy_gateway_call, peer, 40, 16);
AT(sy_gateway_call, request_id, 56, 16);
AT(sy_gateway_call, deadline_ms, 72, 8);
AT(sy_gateway_call, events, 80, 4);
AT(sy_gateway_call, reserved, 84, 4);
AT(sy_gateway_call, ctx, 88, 8);
AT(sy_gateway_call, line, 96, 8);

SIZE(sy_host_gateway, 24);
AT(sy_host_gateway, size, 0, 4);
AT(sy_host_gateway, reserved, 4, 4);
AT(sy_host_gateway, call, 8, 8);
AT(sy_host_gateway, cancel, 16, 8);

SIZE(sy_mount, 40);
AT(sy_mount, source, 0, 16);
AT(sy_mount, target, 16, 16);
AT(sy_mount, writable, 32, 4);
AT(sy_mount, reserved, 36, 4);

SIZE(sy_launch, 128);
AT(sy_launch, size, 0, 4);
AT(sy_launch, isolation, 4, 4);
AT(sy_launch, id, 8, 8);
AT(sy_launch, key, 16, 16);
AT(sy_launch, must, 32, 8);
AT(sy_launch, argv, 40, 8);
AT(sy_launch, nargv, 48, 8);
AT(sy_launch, mounts, 56, 8);
AT(sy_launch, nmounts, 64, 8);
AT(sy_launch, preamble, 72, 16);
AT(sy_launch, mem_bytes, 88, 8);
AT(sy_launch, cpu_ms, 96, 8);
AT(sy_launch, file_bytes, 104, 8);
AT(sy_launch, max_files, 112, 4);
AT(sy_launch, max_pids, 116, 4);
AT(sy_launch, network, 120, 4);
AT(sy_launch, reserved, 124, 4);

SIZE(sy_plan, 56);
AT(sy_plan, size, 0, 4);
AT(sy_plan, cancel_fd, 4, 4);
AT(sy_plan, launch, 8, 8);
AT(sy_plan, run_id, 16, 16);
AT(sy_plan, request, 32, 16);
AT(sy_plan, deadline_ms, 48, 8);

SIZE(sy_sink, 32);
AT(sy_sink, size, 0, 4);
AT(sy_sink, reserved, 4, 4);
AT(sy_sink, ctx, 8, 8);
AT(sy_sink, output, 16, 8);
AT(sy_sink, started, 24, 8);

SIZE(sy_result, 48);
AT(sy_result, size, 0, 4);
AT(sy_result, exit_code, 4, 4);
AT(sy_result, term_signal, 8, 4);
AT(sy_result, oom_killed, 12, 4);
AT(sy_result, request_sent, 16, 4);
AT(sy_result, from_stock, 20, 4);
AT(sy_result, cpu_ms, 24, 8);
AT(sy_result, max_rss_bytes, 32, 8);
AT(sy_result, start_ms, 40, 8);

SIZE(sy_executor, 64);
AT(sy_executor, size, 0, 4);
AT(sy_executor, max_parallel, 4, 4);
AT(sy_executor, enforces, 8, 8);
AT(sy_executor, start, 16, 8);
AT(sy_executor, stop, 24, 8);
AT(sy_executor, run, 32, 8);
AT(sy_executor, prepare, 40, 8);
AT(sy_executor, retire, 48, 8);
AT(sy_executor, check, 56, 8);

SIZE(sy_child, 32);
AT(sy_child, size, 0, 4);
AT(sy_child, stdin_fd, 4, 4);
AT(sy_child, stdout_fd, 8, 4);
AT(sy_child, stderr_fd, 12, 4);
AT(sy_child, exit_fd, 16, 4);
AT(sy_child, reserved, 20, 4);
AT(sy_child, id, 24, 8);

SIZE(sy_child_exit, 784);
AT(sy_child_exit, size, 0, 4);
AT(sy_child_exit, exit_code, 4, 4);
AT(sy_child_exit, term_signal, 8, 4);
AT(sy_child_exit, reserved, 12, 4);
AT(sy_child_exit, cpu_ms, 16, 8);
AT(sy_child_exit, max_rss_bytes, 24, 8);
AT(sy_child_exit, setup, 32, 240);
AT(sy_child_exit, layers, 272, 512);

SIZE(sy_host_spawn, 40);
AT(sy_host_spawn, size, 0, 4);
AT(sy_host_spawn, reserved, 4, 4);
AT(sy_host_spawn, spawn, 8, 8);
AT(sy_host_spawn, kill, 16, 8);
AT(sy_host_spawn, layers, 24, 8);
AT(sy_host_spawn, reap, 32, 8);

#endif

/* Numbers that cross the border. */
VALUE(SY_OK, 0);
VALUE(SY_E_INVALID, -1);
VALUE(SY_E_NOMEM, -2);
VALUE(SY_E_UNSUPPORTED, -3);
VALUE(SY_E_REFUSED, -4);
VALUE(SY_E_TIMEOUT, -5);
VALUE(SY_E_CANCELLED, -6);
VALUE(SY_E_BUSY, -7);
VALUE(SY_E_IO, -8);
VALUE(SY_E_AUTH, -9);
VALUE(SY_E_INTERNAL, -10);
VALUE(SY_CFG_STR, 1);
VALUE(SY_CFG_INT, 2);
VALUE(SY_CFG_BOOL, 3);
VALUE(SY_CFG_SECRET, 4);
VALUE(SY_CFG_DURATION, 5);
VALUE(SY_CFG_LIST, 6);
VALUE(SY_CFG_JSON, 7);
VALUE(SY_LOG_DEBUG, 0);
VALUE(SY_LOG_INFO, 1);
VALUE(SY_LOG_WARN, 2);
VALUE(SY_LOG_ERROR, 3);
VALUE(SY_HEALTH_OK, 0);
VALUE(SY_HEALTH_DEGRADED, 1);
VALUE(SY_HEALTH_DOWN, 2);
VALUE(SY_KIND_CHANNEL, 1);
VALUE(SY_KIND_EXECUTOR, 2);
VALUE(SY_CHAT_DIRECT, 0);
VALUE(SY_CHAT_GROUP, 1);
VALUE(SY_MEDIA_FILE, 0);
VALUE(SY_MEDIA_IMAGE, 1);
VALUE(SY_MEDIA_AUDIO, 2);
VALUE(SY_MEDIA_VIDEO, 3);
VALUE(SY_DELIVERY_SENT, 1);
VALUE(SY_DELIVERY_DELIVERED, 2);
VALUE(SY_DELIVERY_READ, 3);
VALUE(SY_DELIVERY_FAILED, 4);
VALUE(SY_SENT, 1);
VALUE(SY_SENT_RETRY, 2);
VALUE(SY_SENT_NEVER, 3);
VALUE(SY_SENT_UNKNOWN, 4);
VALUE(SY_AUTH_KEY, 1);
VALUE(SY_AUTH_PLUGIN, 2);
VALUE(SY_AUTH_NONE, 3);
VALUE(SY_LINE_EVENT, 1);
VALUE(SY_LINE_RESULT, 2);
VALUE(SY_LINE_ERROR, 3);
VALUE(SY_ROUTE_WEBSOCKET, 1u << 0);
VALUE(SY_ROUTE_PREFIX, 1u << 1);
VALUE(SY_ISOLATION_NONE, 0);
VALUE(SY_ISOLATION_RESTRICTED, 1);
VALUE(SY_ISOLATION_STRICT, 2);
VALUE(SY_STREAM_ANSWER, 1);
VALUE(SY_STREAM_LOG, 2);
VALUE(SY_MUST_FS_ROOT, UINT64_C(1) << 0);
VALUE(SY_MUST_NO_NET, UINT64_C(1) << 1);
VALUE(SY_MUST_MEM, UINT64_C(1) << 2);
VALUE(SY_MUST_PIDS, UINT64_C(1) << 3);
VALUE(SY_MUST_CPU_TIME, UINT64_C(1) << 4);
VALUE(SY_MUST_NO_NEW_PRIV, UINT64_C(1) << 5);
VALUE(SY_MUST_KILL_TREE, UINT64_C(1) << 6);
VALUE(SY_MUST_FILES, UINT64_C(1) << 7);
VALUE(SY_MUST_FILE_SIZE, UINT64_C(1) << 8);
VALUE(SY_MUST_NAMESPACES, UINT64_C(1) << 9);

/* A translation unit needs one declaration. */
extern const struct sy_plugin soulacy_plugin_v1;
