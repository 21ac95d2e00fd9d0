# What the end-to-end tests share: a folder of their own, checks that print PASS: and FAIL:
# lines, a gateway to start and stop, and waiting for a line of its log. Sourced.
set -u
export LC_ALL=C.UTF-8
build=${SOULACY_BUILD_DIR:?}
soulacy=$build/bin/soulacy
top=${SOULACY_SOURCE_DIR:?}
if [ ! -x "$soulacy" ]; then
    echo "SKIP: $(basename "$0"): the program is not built"
    exit 77
fi

work=$(mktemp -d) || exit 1
chmod 755 "$work"
mkdir -p "$work/home"
for name in $(compgen -e | grep '^SOULACY_'); do
    unset "$name"
done
export HOME=$work/home USER=tester
cd "$work" || exit 1

status=0
gateway= # pid
cleanup() {
    if [ -n "$gateway" ]; then
        kill -KILL "$gateway" 2> /dev/null
        wait "$gateway" 2> /dev/null
    fi
    rm -rf "$work"
}
trap cleanup EXIT

pass() {
    echo "PASS: $1"
}

fail() {
    echo "FAIL: $1: $2"
    status=1
}

# check NAME COMMAND...: its output is shown when it fails.
check() {
    local name=$1
    shift
    if "$@" > "$work/out" 2>&1; then
        pass "$name"
    else
        fail "$name" "$(tail -n 3 "$work/out" | tr '\n' ' ')"
        sed 's/^/    | /' "$work/out"
    fi
}

# expect NAME EXIT PATTERN COMMAND...: exit status, and a pattern in stdout and stderr
# together; a pattern that begins with ! must not be there.
expect() {
    local name=$1 want=$2 pattern=$3 got
    shift 3
    "$@" > "$work/out" 2>&1 < /dev/null
    got=$?
    if [ "$got" -ne "$want" ]; then
        fail "$name" "exit status $got, not $want"
    elif [ "${pattern#!}" != "$pattern" ]; then
        if grep -qE -- "${pattern#!}" "$work/out"; then
            fail "$name" "${pattern#!} is in the output"
        else
            pass "$name"
            return
        fi
    elif ! grep -qE -- "$pattern" "$work/out"; then
        fail "$name" "no $pattern in the output"
    else
        pass "$name"
        return
    fi
    sed 's/^/    | /' "$work/out"
}

# workspace DIR [init options]: with a port that the system picks at each start.
workspace() {
    local dir=$1
    shift
    "$soulacy" init "$dir" "$@" > "$work/init.log" 2>&1 || return 1
    sed -i 's/^  port: .*/  port: 0/' "$dir/config.yaml"
}

# A line of the gateway's log that contains the text; follows the log for up to 15 s.
log_line() {
    local text=$1 line follower lines
    exec {lines}< <(exec tail -n +1 -s 0.1 -f --pid="${gateway:-$$}" "$log" 2> /dev/null)
    follower=$!
    found=
    while IFS= read -r -t 15 -u "$lines" line; do
        case $line in
            *"$text"*)
                found=$line
                break
                ;;
        esac
    done
    kill "$follower" 2> /dev/null
    exec {lines}<&-
    [ -n "$found" ]
}

# start DIR: sets gateway, log, url and SOULACY_SERVER_PORT for the commands that follow.
start() {
    config=$1/config.yaml
    log=$1/gateway.log
    unset SOULACY_SERVER_PORT
    : > "$log"
    "$soulacy" serve --config "$config" > "$log" 2>&1 < /dev/null &
    gateway=$!
    if ! log_line " listens on "; then
        fail start "$(tail -n 3 "$log" | tr '\n' ' ')"
        return 1
    fi
    url=${found##* listens on }
    key=$(sed -n 's/^  api_key: //p' "$config")
    export SOULACY_SERVER_PORT=${url##*:}
}

# stop SIGNAL: sets gateway_status.
stop() {
    kill "-$1" "$gateway"
    wait "$gateway" 2> /dev/null
    gateway_status=$?
    gateway=
    unset SOULACY_SERVER_PORT
}

# Waits up to 10 s for the end of a process that is no child of this shell.
gone() {
    timeout 10 tail -s 0.1 --pid="$1" -f /dev/null
}
