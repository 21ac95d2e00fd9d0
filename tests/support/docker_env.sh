#!/usr/bin/env bash
# A Docker engine of one's own, for tests and figures.
#
#   docker_env.sh start DIR     start dockerd below DIR (made if missing); prints its socket
#   docker_env.sh images DIR    build soulacy-test:full and soulacy-test:minimal in it from
#                               this host's Python (minimal: no json, resource, ctypes ...)
#   docker_env.sh kill DIR      SIGKILL the engine, as a crash would
#   docker_env.sh term DIR      SIGTERM the engine and wait; start DIR brings it back
#   docker_env.sh stop DIR      end it and remove DIR
#
# Needs root and Debian's docker.io (dockerd, containerd, runc). Exit 77: cannot be done here.
# Only processes that it started are ended, by the pids that they wrote below DIR.
set -u
verb=${1:-}
dir=${2:-}
if [ -z "$verb" ] || [ "${dir#/}" = "$dir" ]; then
    sed -n '2,13s/^# \{0,1\}//p' "$0"
    exit 2
fi
sock=$dir/docker.sock

api() {
    curl -s --fail-with-body --max-time "${limit:-60}" --unix-socket "$sock" "$@"
}

# The pid in a file, when it is alive and its command line names DIR.
pid_of() {
    local pid
    pid=$(cat "$1" 2> /dev/null) || return 1
    [ -n "$pid" ] && tr '\0' ' ' < "/proc/$pid/cmdline" 2> /dev/null | grep -q -F "$dir" &&
        echo "$pid"
}

wait_gone() {
    local i
    for ((i = 0; i < ${2:-150}; i++)); do
        [ -e "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2> /dev/null ||
            return 0
        sleep 0.1
    done
    return 1
}

start() {
    local i dockerd
    dockerd=$(PATH=$PATH:/usr/sbin command -v dockerd) || {
        echo "dockerd is not installed (apt-get install docker.io)" >&2
        exit 77
    }
    if [ "$(id -u)" -ne 0 ]; then
        echo "an engine needs root" >&2
        exit 77
    fi
    mkdir -p "$dir/data" "$dir/exec"
    if ! pid_of "$dir/docker.pid" > /dev/null; then
        rm -f "$dir/docker.pid"
        # One that ended and was not waited for would pass for alive.
        pid_of "$dir/exec/containerd/containerd.pid" > /dev/null ||
            rm -f "$dir/exec/containerd/containerd.pid"
        PATH=$PATH:/usr/sbin setsid "$dockerd" --data-root "$dir/data" \
            --exec-root "$dir/exec" --pidfile "$dir/docker.pid" -H "unix://$sock" \
            --bridge=none --iptables=false --ip6tables=false \
            ${SOULACY_DOCKERD_OPTIONS:-} < /dev/null >> "$dir/dockerd.log" 2>&1 &
        echo $! > "$dir/started.pid"
    fi
    for ((i = 0; i < 300; i++)); do
        if [ -S "$sock" ] && [ "$(limit=2 api http://engine/_ping)" = OK ]; then
            echo "$sock"
            return 0
        fi
        [ -e "/proc/$(cat "$dir/started.pid" 2> /dev/null)" ] || break
        sleep 0.1
    done
    echo "dockerd does not answer; the end of its log:" >&2
    tail -n 15 "$dir/dockerd.log" >&2
    return 1
}

# dockerd, and with TERM its containerd too; with KILL containerd lives on, as after a crash.
end_engine() {
    local pid containerd
    containerd=$(pid_of "$dir/exec/containerd/containerd.pid")
    pid=$(pid_of "$dir/docker.pid") || pid=$(cat "$dir/started.pid" 2> /dev/null)
    if [ -n "$pid" ] && [ -e "/proc/$pid" ]; then
        kill "-$1" "$pid" 2> /dev/null
        if ! wait_gone "$pid"; then
            kill -KILL "$pid" 2> /dev/null
            wait_gone "$pid"
        fi
    fi
    if [ "$1" = TERM ] && [ -n "$containerd" ] && [ -e "/proc/$containerd" ]; then
        kill -TERM "$containerd" 2> /dev/null
        wait_gone "$containerd" 50 || kill -KILL "$containerd" 2> /dev/null
    fi
    rm -f "$dir/docker.pid" "$dir/started.pid"
}

stop() {
    local id shim
    for id in $(limit=5 api 'http://engine/containers/json?all=1' 2> /dev/null |
        grep -o '"Id":"[0-9a-f]*"' | cut -d'"' -f4); do
        limit=20 api -X DELETE "http://engine/containers/$id?force=1" > /dev/null 2>&1
    done
    end_engine TERM
    # What a killed engine left: shims, then mounts.
    for shim in /proc/[0-9]*; do
        if tr '\0' ' ' < "$shim/cmdline" 2> /dev/null | grep -q "containerd-shim.*$dir/"; then
            kill -KILL "${shim#/proc/}" 2> /dev/null
        fi
    done
    awk -v d="$dir/" 'index($5, d) == 1 {print $5}' /proc/self/mountinfo | sort -r |
        while IFS= read -r mount; do umount -l "$mount" 2> /dev/null; done
    rm -rf "$dir"
}

# Copy a program or library with what it is linked to.
with_libraries() {
    local root=$1 file lib
    shift
    for file in "$@"; do
        cp --parents -L "$file" "$root" 2> /dev/null
        ldd "$file" 2> /dev/null | grep -o '/[^ ]*' | sort -u | while IFS= read -r lib; do
            [ -e "$root$lib" ] || cp --parents -L "$lib" "$root"
        done
    done
}

image() {
    local name=$1 root=$2
    tar -C "$root" --owner=0 --group=0 -cf - . |
        limit=300 api -X POST -H 'Content-Type: application/x-tar' -T - \
            "http://engine/images/create?fromSrc=-&repo=soulacy-test&tag=$name" > \
            "$dir/image-$name.log" || {
        cat "$dir/image-$name.log" >&2
        return 1
    }
}

images() {
    local root=$dir/root python version tool module
    python=$(/usr/bin/python3 -I -c 'import os,sys;print(os.path.realpath(sys.executable))')
    version=$("$python" -I -c 'import sys;print("python%d.%d" % sys.version_info[:2])')
    rm -rf "$root"
    mkdir -p "$root/tmp" "$root/etc" "$root/usr/bin" "$root/usr/lib" "$root/usr/sbin" \
        "$root/proc" "$root/sys" "$root/dev"
    chmod 1777 "$root/tmp"
    ln -s usr/bin "$root/bin"
    ln -s usr/lib "$root/lib"
    ln -s usr/lib64 "$root/lib64"
    mkdir -p "$root/usr/lib64"
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\n' \
        > "$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' > "$root/etc/group"
    with_libraries "$root" "$python" "/usr/lib/$version"/lib-dynload/*.so
    ln -sf "$(basename "$python")" "$root/usr/bin/python3"
    (cd / && tar --exclude=test --exclude=idlelib --exclude=tkinter --exclude=lib2to3 \
        --exclude=config-* --exclude=ensurepip -cf - "usr/lib/$version") |
        tar -C "$root" -xf -
    for tool in sh cat sleep echo true env id ls head; do
        with_libraries "$root" "/usr/bin/$tool"
    done
    image full "$root" || return 1
    # As python3-minimal: the parts that Debian puts into libpython3-stdlib are not there.
    rm -rf "$root/usr/lib/$version/lib-dynload"/*
    for module in json asyncio ctypes decimal _pydecimal email http xml sqlite3 \
        multiprocessing concurrent unittest urllib/request; do
        rm -rf "$root/usr/lib/$version/$module" "$root/usr/lib/$version/$module.py"
    done
    image minimal "$root" || return 1
    rm -rf "$root"
}

case $verb in
    start) start ;;
    images) images ;;
    kill) end_engine KILL ;;
    term) end_engine TERM ;;
    stop) stop ;;
    *) exit 2 ;;
esac
