#!/usr/bin/env bash
# An installed tree works, also after it was moved, and a plugin is built against it by
# CMake and by plain cc with pkg-config. Tests the build in SOULACY_BUILD_DIR, prints PASS:
# and FAIL: lines.
set -u
build=${SOULACY_BUILD_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

check() {
    local name=$1
    shift
    if "$@" > "$work/out" 2>&1; then
        echo "PASS: $name"
    else
        echo "FAIL: $name: $(tail -n 3 "$work/out" | tr '\n' ' ')"
        cat "$work/out"
        status=1
    fi
}

exports_one() {
    [ "$(nm -D --defined-only -- "$1" | awk '{print $NF}')" = soulacy_plugin_v1 ]
}

cmake_plugin() {
    cmake -S "$work/plug in" -B "$work/b" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$work/b" && exports_one "$work/b/lib/soulacy/mine.so"
}

cc_plugin() {
    # pkg-config escapes the spaces of a path, which eval takes off again.
    local cflags mapfile
    export PKG_CONFIG_PATH="$prefix/share/pkgconfig"
    cflags=$(pkg-config --cflags soulacy-plugin-api) || return 1
    mapfile=$(pkg-config --variable=mapfile soulacy-plugin-api) || return 1
    mapfile=${mapfile//\\ / }
    eval "cc -std=c11 -shared -fPIC -fvisibility=hidden $cflags" \
        -o '"$work/cc.so"' '"$work/plug in/mine.c"' '-Wl,--version-script="$mapfile"' \
        -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete &&
        exports_one "$work/cc.so"
}

wrong_major() {
    ! cmake -S "$work/plug in" -B "$work/b2" -DCMAKE_PREFIX_PATH="$prefix" -DMAJOR=2
}

mkdir "$work/plug in"
cat > "$work/plug in/mine.c" << 'C'
#include <soulacy/plugin.h>
const struct sy_plugin soulacy_plugin_v1 = {.size = sizeof(struct sy_plugin)};
C
cat > "$work/plug in/CMakeLists.txt" << 'C'
cmake_minimum_required(VERSION 3.25)
project(mine C)
set(MAJOR 1 CACHE STRING "")
find_package(soulacy-plugin-api ${MAJOR} REQUIRED)
soulacy_add_plugin(mine SOURCES mine.c)
C

check install cmake --install "$build" --prefix "$work/first"
prefix="$work/moved here"
mv "$work/first" "$prefix"
check sdk_cmake cmake_plugin
check sdk_cc cc_plugin
check sdk_wrong_major_refused wrong_major
if [ -e "$build/bin/soulacy" ]; then
    check moved_program_runs "$prefix/bin/soulacy" version
    check helper_installed test -x "$prefix/libexec/soulacy/soulacy-spawn"
    check plugins_installed test -e "$prefix/lib/soulacy/channel-http.so" -a \
        -e "$prefix/lib/soulacy/executor-process.so"
fi
exit "$status"
