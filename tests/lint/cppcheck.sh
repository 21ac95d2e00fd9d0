#!/usr/bin/env bash
# cppcheck over core and plugins. usage: cppcheck.sh BUILD_DIR (keeps its results there)
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v cppcheck > /dev/null; then
    echo "cppcheck is not installed"
    exit 77
fi
build=$1
mkdir -p "$build/cppcheck"
folders=()
for folder in core plugins; do
    if [ -n "$(find "$folder" -name '*.c' -print -quit)" ]; then
        folders+=("$folder")
    fi
done
[ ${#folders[@]} -gt 0 ] || { echo "nothing to check"; exit 0; }
exec cppcheck --quiet --enable=warning,portability,performance --inline-suppr \
    --error-exitcode=1 --suppressions-list=tests/lint/cppcheck.supp --std=c11 \
    --library=posix --library=gnu -j 2 --cppcheck-build-dir="$build/cppcheck" \
    -D_POSIX_C_SOURCE=200809L -D__linux__ -D__x86_64__ -D__LP64__ \
    -I core -I include -I "$build/generated" "${folders[@]}"
