#!/usr/bin/env bash
# parity.sh BUILD_DIR: the parity cases on the docker executor, with stock and without, at
# every isolation level, and in an image whose Python is python3-minimal's.
set -u
build=${1:-${SOULACY_BUILD_DIR:?}}
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
env=$top/tests/support/docker_env.sh
dir=$(mktemp -d /tmp/soulacy-docker-XXXXXX)
trap '"$env" stop "$dir"' EXIT
sock=$("$env" start "$dir") || exit $?
"$env" images "$dir" || exit 1
status=0
run() {
    echo "== $*"
    local image=$1 standby=$2 level=$3
    shift 3
    "$build/tests/run_case" --build "$build" --backend docker --isolation "$level" \
        --set "image=soulacy-test:$image" --set "socket=$sock" \
        --set "standby=$standby" "$@" || status=1
}
all=("$top"/tests/parity/cases/*.py)
# What python3-minimal has no module for.
lean=()
for file in "${all[@]}"; do
    case $file in *multiprocessing* | *asyncio*) ;; *) lean+=("$file") ;; esac
done
run full 0 none "${all[@]}"
run full 1 strict "${all[@]}"
run minimal 1 restricted --json no "${lean[@]}"
left=$(curl -s --unix-socket "$sock" 'http://engine/containers/json?all=1')
if [ "$left" != "[]" ]; then
    echo "not ok: containers are left: $left"
    status=1
fi
exit $status
