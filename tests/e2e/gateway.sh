#!/usr/bin/env bash
# run.sh: quick timeout=600
# The running gateway by its command line and over HTTP: chat, sessions, status, keys,
# reload, draining, and what is left when it is killed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

request() { # METHOD PATH [BODY] [curl options]; prints the body, then the status
    local method=$1 path=$2 body=${3:-}
    shift 2
    [ $# -gt 0 ] && shift
    curl -s --max-time 30 --noproxy '*' -X "$method" ${body:+--data-binary "$body"} \
        -H 'Content-Type: application/json' -w '\n%{http_code}\n' "$@" "$url$path"
}
with_key() {
    request "$1" "$2" "${3:-}" -H "Authorization: Bearer $key"
}
# An agent of our own beside the starter's; its tools tell by a FIFO that they run.
shared=$work/shared
mkdir -m 777 "$shared"
mkfifo -m 666 "$shared/up"
agent() {
    mkdir -p "$1/agents/worker"
    cat > "$1/agents/worker/SOUL.yaml" << Y
id: worker
builtins: []
tools:
  - name: nap
    description: says that it is up, sleeps, answers
    parameters: {type: object, properties: {seconds: {type: number}}, required: [seconds]}
    inline: |
      import time
      def nap(seconds):
          with open("$shared/up", "w") as f:
              f.write("up\n")
          time.sleep(seconds)
          return "slept"
  - name: daemon
    description: leaves a daemon behind, then sleeps
    parameters: {type: object, properties: {mark: {type: string}}, required: [mark]}
    inline: |
      import os, sys, time
      def daemon(mark):
          if os.fork() == 0:
              os.setsid()
              if os.fork() == 0:
                  os.execv(sys.executable, [sys.executable, "-c",
                      "import time; open('$shared/up', 'w').write('up\\\\n'); time.sleep(600)",
                      mark])
              os._exit(0)
          os.wait()
          time.sleep(600)
Y
    sed -i "s|^    network: false|    network: false\n    write_paths: [$shared]|" \
        "$1/config.yaml"
}
chat() {
    "$soulacy" chat --config "$config" "$@"
}

workspace ws || fail init "$(tail -n 1 init.log)"
agent ws
level=$(sed -n 's/^    isolation: //p' ws/config.yaml)
start ws || exit 1

# ---- golden paths -----------------------------------------------------------------------
expect gateway.readyz 0 '"ready":true' request GET /readyz
expect gateway.healthz 0 '^200$' request GET /healthz
expect gateway.status 0 "^gateway at $url, soulacy" "$soulacy" status --config "$config"
expect gateway.status_json 0 '"backend":"process"' "$soulacy" status --config "$config" --json
expect gateway.chat 0 '"totals": \{"total"' chat --agent assistant \
    '/tool sales_total column=units'
expect gateway.chat_shows_call 0 '^tool sales_total \{"column":"units"\}' chat --agent assistant \
    '/tool sales_total column=units'
expect gateway.chat_plain_text 0 'no language model' chat --agent assistant hello
expect gateway.chat_tools 0 '^- text_stats' chat /tools
expect gateway.chat_default_agent 0 '"words": 1' chat '/tool text_stats text=x'
expect gateway.chat_stages 0 "^  isolation $level" chat --verbose '/tool text_stats text=x'
expect gateway.chat_speaker 0 '^  speaker   ann on channel http .local' chat --verbose \
    --user ann hello
expect gateway.chat_json 0 '"tool_calls":\[\{' chat --json '/tool text_stats text=x'
expect gateway.chat_stdin 0 '"words": 1' bash -c \
    'echo "/tool text_stats text=x" | "$1" chat --config "$2"' _ "$soulacy" "$config"
expect gateway.chat_no_text 2 'no text' chat
expect gateway.chat_denied 0 'deny by row' chat '/tool shell_exec command=id'
expect gateway.chat_unknown_agent 1 'no agent of that id' chat --agent nobody hi
expect gateway.chat_key_not_found "$([ "$level" = none ] && echo 1 || echo 0)" \
    '"key_found": false' chat '/tool find_gateway_key'
expect gateway.terminal_bytes_shown 0 '!'$'\033' chat '/tool text_stats text="'$'\033''[2Jx"'

expect gateway.session_kept 0 . chat --session s1 'first'
expect gateway.sessions_listed 0 ' s1$' "$soulacy" sessions --config "$config"
id=$("$soulacy" sessions --config "$config" | awk '$NF == "s1" {print $1}')
expect gateway.session_shown 0 '^  first$' "$soulacy" sessions show "$id" --config "$config"
expect gateway.session_deleted 0 deleted "$soulacy" sessions delete "$id" --config "$config"
expect gateway.session_gone 1 '404' "$soulacy" sessions show "$id" --config "$config"
expect gateway.session_odd_id 1 '4[0-9][0-9]' "$soulacy" sessions show '../status' \
    --config "$config"

# ---- keys ---------------------------------------------------------------------------------
expect gateway.no_key_401 0 '^401$' request GET /api/v1/agents
expect gateway.wrong_key_told 1 'another key' env SOULACY_SERVER_API_KEY=sy_wrong \
    "$soulacy" status --config "$config"
expect gateway.no_key_told 1 'no server.api_key' env HOME="$work/nohome" "$soulacy" status
check gateway.key_not_in_log bash -c '! grep -q "$1" "$2"' _ "$key" "$log"
check gateway.key_not_in_argv bash -c '! tr "\0" " " < /proc/$1/cmdline | grep -q sy_' _ "$gateway"
# Another program on loopback gets a request, and no key.
/usr/bin/python3 - "$work/port" "$work/seen" << 'P' &
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
s.settimeout(20)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(s.getsockname()[1]))
import os
os.rename(sys.argv[1] + ".new", sys.argv[1])
c, _ = s.accept()
data = b""
while b"\r\n\r\n" not in data:
    data += c.recv(65536)
with open(sys.argv[2], "wb") as f:
    f.write(data)
c.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
c.close()
P
other=$!
until [ -e port ] || ! kill -0 "$other" 2> /dev/null; do
    read -r -t 0.05 _ < <(exec tail -s 0.05 --pid="$other" -f /dev/null) || true
done
expect gateway.other_origin_and_redirect 1 'answers 302 and not as a soulacy gateway' \
    "$soulacy" status --config "$config" --url "http://127.0.0.1:$(cat port)"
wait "$other"
check gateway.key_only_to_own_origin bash -c \
    'grep -q "^GET /api/v1/status" seen && ! grep -qi authorization seen && ! grep -q sy_ seen'
expect gateway.proxy_ignored 0 'gateway at' env http_proxy=http://127.0.0.1:1 \
    ALL_PROXY=http://127.0.0.1:1 "$soulacy" status --config "$config"
check gateway.serve_never_maps_curl bash -c '! grep -q libcurl /proc/$1/maps' _ "$gateway"

# ---- agents that change ---------------------------------------------------------------------
cp ws/agents/assistant/SOUL.yaml good.yaml
printf 'id: assistant\ntools: {not: a list}\n' > ws/agents/assistant/SOUL.yaml
check gateway.broken_soul_logged log_line "SOUL.yaml: line 2"
expect gateway.broken_soul_keeps_last_good 0 '"words": 1' chat '/tool text_stats text=x'
expect gateway.broken_soul_shown 0 '"problem":"line 2: tools' with_key GET /api/v1/agents
sed 's/^description: .*/description: changed/' good.yaml > ws/agents/assistant/SOUL.yaml
check gateway.good_edit_logged log_line "assistant"
expect gateway.good_edit_in_force 0 '"description":"changed"' with_key GET /api/v1/agents
# A tool more is authority more: it waits for SIGHUP.
python_tool='  - name: fresh\n    description: new\n    inline: |\n      def fresh():\n          return "fresh"\n'
sed "s/^# Built-in tools: none.*/#/; s/^tools:\$/tools:\n$python_tool/" good.yaml \
    > ws/agents/assistant/SOUL.yaml
check gateway.growth_waits log_line "waits"
expect gateway.growth_not_in_force 0 '!^fresh$' chat '/tool fresh'
kill -HUP "$gateway"
check gateway.sighup_logged log_line "SIGHUP"
expect gateway.sighup_takes_it 0 '^  result    fresh' chat '/tool fresh'
printf 'server:\n  prot: 1\n' > broken.yaml
cp "$config" kept.yaml
cp broken.yaml "$config"
kill -HUP "$gateway"
check gateway.sighup_bad_config log_line "is not accepted, the old one stays"
cp kept.yaml "$config"
expect gateway.after_bad_config 0 '"words": 1' chat '/tool text_stats text=x'

# ---- draining: what was begun is answered --------------------------------------------------
chat --agent worker '/tool nap seconds=1' > nap.out 2>&1 &
napping=$!
read -r -t 20 _ < shared/up
stop TERM
wait "$napping"
check gateway.sigterm_exit_0 test "$gateway_status" -eq 0
check gateway.sigterm_drains grep -q 'slept' nap.out
expect gateway.stopped_refuses 1 'connection refused' "$soulacy" status --config "$config" \
    --url "$url"

# ---- SIGKILL leaves nothing -----------------------------------------------------------------
kill_leaves_nothing() {
    local mark=soulacy-e2e-$RANDOM$RANDOM pids pid
    start ws || return
    chat --agent worker "/tool daemon mark=$mark" > daemon.out 2>&1 &
    local asking=$!
    if ! read -r -t 20 _ < shared/up; then
        fail "gateway.sigkill.$1" "the tool did not start: $(tail -n 2 daemon.out)"
        return
    fi
    pids=$(pgrep -f "$mark" | grep -v "^$asking\$")
    stop KILL
    wait "$asking"
    for pid in $pids; do
        if ! gone "$pid"; then
            fail "gateway.sigkill.$1" "pid $pid is left: $(tr '\0' ' ' < "/proc/$pid/cmdline")"
            kill -KILL "$pid"
            return
        fi
    done
    if [ -z "$pids" ]; then
        fail "gateway.sigkill.$1" "the daemon was not seen"
    elif pgrep -f "$mark" > left.out; then
        fail "gateway.sigkill.$1" "left: $(cat left.out)"
    else
        pass "gateway.sigkill.$1"
    fi
}
kill_leaves_nothing "$level"
if [ "$level" != none ]; then
    sed -i 's/^    isolation: .*/    isolation: none/' ws/config.yaml
    kill_leaves_nothing none
fi
start ws && pass gateway.starts_after_sigkill

# ---- a second one, and a taken port ------------------------------------------------------------
expect gateway.second_on_same_state 1 'state' env SOULACY_SERVER_PORT=0 "$soulacy" serve \
    --config "$config"
workspace ws2
expect gateway.port_taken 1 'port|address|bind|use' env "SOULACY_SERVER_PORT=${url##*:}" \
    "$soulacy" serve --config ws2/config.yaml
stop TERM

# ---- without a key --------------------------------------------------------------------------------
sed -i '/^  api_key:/d' ws2/config.yaml
start ws2
expect gateway.keyless_loopback_works 0 '"words": 1' chat '/tool text_stats text=x'
check gateway.keyless_loopback_no_warning bash -c '! grep -q unauthenticated "$1"' _ "$log"
stop TERM
sed -i 's/^  host: .*/  host: 0.0.0.0/' ws2/config.yaml
start ws2
check gateway.keyless_open_warned log_line "unauthenticated"
stop TERM
exit "$status"
