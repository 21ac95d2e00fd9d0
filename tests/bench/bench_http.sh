#!/bin/bash
# Comes in: the build folder (or SOULACY_BUILD_DIR) and how many seconds one turn takes.
# Goes out: one line of JSON for http_rps: /healthz of the gateway's listener against the
# same answer by a bare libwebsockets server, wrk with 64 kept-alive connections, turn by
# turn, medians. Exit 77 without wrk. Ends only what it started.
set -euo pipefail
build=${1:-${SOULACY_BUILD_DIR:?build folder}}
seconds=${2:-2}
turns=${3:-5}
command -v wrk >/dev/null || { echo "wrk is not installed" >&2; exit 77; }
dir=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap cleanup EXIT

# Each program reads stdin until it ends; a fifo that stays open keeps it running.
mkfifo "$dir/hold"
exec 9<>"$dir/hold"

start() { # name, command...
    local name=$1
    shift
    "$@" <"$dir/hold" >"$dir/$name.out" 2>"$dir/$name.err" &
    pids+=($!)
}
port_of() {
    local i
    for ((i = 0; i < 500; i++)); do
        if grep -q '^PORT ' "$dir/$1.out"; then
            awk '/^PORT /{print $2}' "$dir/$1.out"
            return
        fi
        sleep 0.01
    done
    echo "$1 did not start: $(cat "$dir/$1.err")" >&2
    exit 1
}
rate() {
    wrk -t1 -c64 -d"${seconds}s" "http://127.0.0.1:$1/healthz" |
        awk '/Requests\/sec/{print $2}'
}
median() { sort -n | awk '{a[NR]=$1} END{print a[int((NR+1)/2)]}'; }

start bare "$build/bench/bare_lws"
start ours "$build/tests/httpd" rate=0 key=sy_bench_key_of_the_listener
bare=$(port_of bare)
ours=$(port_of ours)
rate "$bare" >/dev/null
rate "$ours" >/dev/null
for ((turn = 0; turn < turns; turn++)); do
    rate "$bare" >>"$dir/bare.rates"
    rate "$ours" >>"$dir/ours.rates"
done
b=$(median <"$dir/bare.rates")
o=$(median <"$dir/ours.rates")
awk -v o="$o" -v b="$b" 'BEGIN {
    v = 0; ok = "false"
    if (b > 0) v = o / b
    if (v >= 0.8) ok = "true"
    printf "{\"name\":\"http_rps\",\"value\":%.3f,\"target\":0.8,\"ok\":%s,", v, ok
    printf "\"ours\":%.0f,\"bare\":%.0f}\n", o, b
}'
