#!/usr/bin/env bash
# From a bare Debian 12 or Ubuntu 24.04 to an agent that runs sandboxed Python tools.
#
#   bash config/quickstart.sh                  build, start, show, stop
#   bash config/quickstart.sh --keep           leave the gateway running, print URL and key
#   bash config/quickstart.sh --workspace DIR  (build/workspace) made when it is not there
#   bash config/quickstart.sh --no-install     never calls apt
#
# Needs root, or a user with sudo, only when packages are missing. Run it as often as you
# like: what is there is kept. Exit status 0: every stage did what it should.
set -u
shopt -s inherit_errexit
export LC_ALL=C.UTF-8

if [ "${BASH_VERSINFO[0]}" -lt 5 ]; then
    echo "quickstart: bash 5 or newer is needed" >&2
    exit 2
fi

tree=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
workspace=$tree/build/workspace
keep=no
install=yes
usage() {
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
while [ $# -gt 0 ]; do
    case $1 in
        --keep) keep=yes ;;
        --no-install) install=no ;;
        --workspace)
            if [ $# -lt 2 ] || [ -z "$2" ]; then
                echo "quickstart: --workspace needs a folder" >&2
                exit 2
            fi
            case $2 in /*) workspace=$2 ;; *) workspace=$PWD/$2 ;; esac
            shift
            ;;
        --help | -h)
            usage
            exit 0
            ;;
        *)
            echo "quickstart: no option $1" >&2
            usage >&2
            exit 2
            ;;
    esac
    shift
done

gateway=  # pid of the gateway this script started
follower= # pid of the tail that reads its log
stop() {
    if [ -n "$follower" ]; then
        kill "$follower" 2> /dev/null
        follower=
    fi
    if [ -n "$gateway" ]; then
        kill -TERM "$gateway" 2> /dev/null
        wait "$gateway"
        gateway_status=$?
        gateway=
    fi
}
trap stop EXIT
trap 'exit 130' INT TERM

fail() {
    echo "quickstart: $*" >&2
    exit 1
}

stage_started=
stage() {
    stage_started=${EPOCHREALTIME/[.,]/}
    printf '\n== %s\n' "$*"
}

took() {
    local us=$((${EPOCHREALTIME/[.,]/} - stage_started))
    printf '   (%d.%03d s)\n' $((us / 1000000)) $((us / 1000 % 1000))
}

# ---- packages --------------------------------------------------------------------------

# The [build] list of tests/packages.txt, without what is installed.
missing_packages() {
    local wanted package state
    wanted=$(awk '/^\[/ {on = $0 == "[build]"; next} on && !/^#/ && NF {print $1}' \
        "$tree/tests/packages.txt")
    declare -A have=()
    while IFS=' ' read -r package state; do
        if [ "$state" = installed ]; then
            have[${package%%:*}]=1
        fi
    done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2> /dev/null)
    for package in $wanted; do
        if [ -z "${have[$package]:-}" ]; then
            echo "$package"
        fi
    done
}

apt_get() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo > /dev/null; then
            return 1
        fi
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"
}

install_packages() {
    local packages
    if ! command -v dpkg-query > /dev/null; then
        echo "   no dpkg here: what tests/packages.txt lists must be there already"
        return 0
    fi
    mapfile -t packages < <(missing_packages)
    if [ ${#packages[@]} -eq 0 ]; then
        echo "   nothing is missing"
        return 0
    fi
    echo "   missing: ${packages[*]}"
    if [ "$install" = no ]; then
        fail "install them, or run without --no-install"
    fi
    if ! apt_get update > "$logs/apt.log" 2>&1 ||
        ! apt_get install --no-install-recommends "${packages[@]}" >> "$logs/apt.log" 2>&1; then
        tail -n 15 "$logs/apt.log" >&2
        fail "apt could not install them (log: $logs/apt.log). As root: apt-get install ${packages[*]}"
    fi
}

# ---- build -----------------------------------------------------------------------------

# The release preset; a compiler newer than the tested ones may warn, which is no error here.
build() {
    local options=(-DSOULACY_WERROR=OFF)
    if ! pkg-config --exists cmocka; then
        options+=(-DSOULACY_TESTS=OFF)
    fi
    if ! { (cd "$tree" && cmake --preset release "${options[@]}") &&
        cmake --build "$tree/build/release" --target program; } > "$logs/build.log" 2>&1; then
        tail -n 30 "$logs/build.log" >&2
        fail "the build failed (log: $logs/build.log)"
    fi
    tail -n 1 "$logs/build.log" | sed 's/^/   /'
}

# ---- workspace and port ----------------------------------------------------------------

port_is_taken() {
    (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null
}

free_port() {
    local port
    for ((port = 18789; port < 18889; port++)); do
        if ! port_is_taken "$port"; then
            echo "$port"
            return 0
        fi
    done
    return 1
}

make_workspace() {
    local port
    if [ -e "$workspace/config.yaml" ]; then
        echo "   $workspace is there and is kept"
        return 0
    fi
    port=$(free_port) || fail "no port of 18789..18888 is free"
    "$soulacy" init "$workspace" --port "$port" --if-missing | sed '/^next:/,$d; s/^/   /'
    [ "${PIPESTATUS[0]}" -eq 0 ] || fail "no workspace was made"
}

setting() {
    "$soulacy" config show --config "$config" | sed -n "s/^$1: \"\{0,1\}\([^\" ]*\).*/\1/p"
}

# ---- the gateway -----------------------------------------------------------------------

# Waits for the line of the log that says where it listens; the log is followed, not polled.
start() {
    local line log=$workspace/gateway.log
    : > "$log" || fail "$log cannot be written"
    "$soulacy" serve --config "$config" > "$log" 2>&1 < /dev/null &
    gateway=$!
    exec {lines}< <(exec tail -n +1 -s 0.1 -f --pid="$gateway" "$log" 2> /dev/null)
    follower=$!
    url=
    while IFS= read -r -t 30 -u "$lines" line; do
        case $line in
            *" listens on "*)
                url=${line##* listens on }
                break
                ;;
        esac
    done
    kill "$follower" 2> /dev/null
    follower=
    exec {lines}<&-
    if [ -z "$url" ]; then
        tail -n 15 "$log" >&2
        fail "the gateway did not start (log: $log)"
    fi
}

# GET /readyz without any tool but bash; prints the status code.
readyz() {
    local reply authority=${url#*://}
    exec 3<> "/dev/tcp/${authority%:*}/${authority##*:}" || return 1
    printf 'GET /readyz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$authority" >&3
    IFS=' ' read -r -t 10 _ reply _ <&3
    exec 3>&-
    echo "$reply"
}

# chat WHAT TEXT PATTERN: sends the text as a chat over HTTP with the key, prints every stage
# of it, and wants the pattern in them.
failed=0
chat() {
    local out
    stage "$1"
    echo "   POST $url/api/v1/chat  $2"
    if ! out=$("$soulacy" chat --config "$config" --verbose "$2" 2>&1); then
        failed=1
        printf '%s\n' "$out" | sed 's/^/   /'
        echo "   FAILED: the chat was not answered"
        return
    fi
    printf '%s\n' "$out" | sed 's/^/   /'
    if ! grep -q -- "$3" <<< "$out"; then
        failed=1
        echo "   FAILED: $3 was expected"
    fi
    took
}

# ---- all of it -------------------------------------------------------------------------

logs=$tree/build/logs
mkdir -p "$logs" || exit 1
soulacy=$tree/build/release/bin/soulacy
config=$workspace/config.yaml

stage "packages"
install_packages
took
stage "build (release)"
build
took
stage "workspace"
make_workspace
took

port=$(setting server.port)
[ -n "$port" ] || fail "$config is not accepted: $soulacy config check --config '$config'"
isolation=$(setting runtime.sandbox.isolation)

running=no
if port_is_taken "$port"; then
    if "$soulacy" status --config "$config" > /dev/null 2>&1; then
        running=yes
        url=http://127.0.0.1:$port
    else
        port=$(free_port) || fail "no port of 18789..18888 is free"
        export SOULACY_SERVER_PORT=$port
        echo "   the port of config.yaml is taken; this run uses $port"
    fi
fi

stage "gateway"
if [ "$running" = yes ]; then
    echo "   one runs in this workspace already; it is used and left alone"
else
    start
fi
code=$(readyz) || fail "$url/readyz does not answer"
[ "$code" = 200 ] || fail "$url/readyz answers $code"
echo "   $url/readyz answers 200${gateway:+, pid $gateway}"
took

chat "tool from a file beside its data: a CSV is added up" \
    '/tool sales_total column=revenue by=region' '"totals"'
chat "tool written inside SOUL.yaml" \
    '/tool text_stats text="the gate decides, the sandbox holds"' '"words": 6'
chat "a tool that tries to read the gateway's key" '/tool find_gateway_key' '"key_found"'
case $isolation in
    none)
        echo "   At isolation none this is how it is: a tool can read what the gateway's user"
        echo "   can read. restricted or strict hides it, where the system allows."
        ;;
    *)
        if grep -q 'key_found": false' <<< "$("$soulacy" chat --config "$config" \
            '/tool find_gateway_key')"; then
            echo "   At isolation $isolation it saw nothing of it."
        else
            failed=1
            echo "   FAILED: at isolation $isolation it must not see it"
        fi
        ;;
esac
chat "a tool that this agent was not given" '/tool shell_exec command=id' 'deny by row'

stage "what the gateway says of itself"
"$soulacy" status --config "$config" | sed 's/^/   /'

if [ "$keep" = yes ] || [ "$running" = yes ]; then
    stage "left running${gateway:+: stop it with kill $gateway}"
    echo "   URL  $url"
    echo "   key  $(sed -n 's/^ *api_key: *\([^ ]*\).*/\1/p' "$config" | head -n 1)"
    echo "   talk ${SOULACY_SERVER_PORT:+SOULACY_SERVER_PORT=$port }'$soulacy' chat --config '$config'"
    disown "$gateway" 2> /dev/null
    gateway=
else
    stage "stop"
    pid=$gateway
    stop
    echo "   pid $pid ended with $gateway_status"
    [ "$gateway_status" -eq 0 ] || failed=1
    took
fi
if [ "$failed" -ne 0 ]; then
    fail "not every stage did what it should (log: $workspace/gateway.log)"
fi
printf '\nAll stages did what they should. Next: README.md, docs/.\n'
