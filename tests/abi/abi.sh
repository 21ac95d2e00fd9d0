#!/usr/bin/env bash
# The public headers against every language that is promised, and against the ABI that was
# stored last. usage: abi.sh SOURCE_DIR [--store]
# Exit 1: a header does not compile, or abidiff finds a change it calls incompatible. Any
# other change is reported: it needs a line in plugin-api/ABI.md, and abi.sh --store after.
set -u
src=$1
here=$src/tests/abi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

compile() { # compiler language standard
    command -v "$1" >/dev/null || return 0
    if ! "$1" -x "$2" "-std=$3" -Wall -Wextra -Wpedantic -Wpadded -Werror \
        -fsyntax-only -I"$src/include" ${4:+"$4"} "$here/layout.c"; then
        echo "layout.c does not compile as $3 with $1"
        bad=1
    fi
}
for std in c11 c17 c2x; do
    compile gcc c $std
    compile clang-14 c $std
done
for std in c++11 c++14 c++17 c++20; do
    compile g++ c++ $std -D_Static_assert=static_assert
    compile clang++-14 c++ $std -D_Static_assert=static_assert
done

if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
    echo "abidw and abidiff are not installed (abigail-tools): no comparison"
    exit "$bad"
fi
gcc -g -O0 -std=c11 -fPIC -shared -fvisibility=hidden -I"$src/include" \
    "$here/anchor.c" -o "$work/anchor.so" || exit 1
abidw --no-show-locs --no-corpus-path --no-comp-dir-path --type-id-style hash \
    --out-file "$work/now.abi" "$work/anchor.so" || exit 1
if [ "${2:-}" = --store ]; then
    cp "$work/now.abi" "$here/soulacy-1.abi"
    echo "stored"
    exit "$bad"
fi
abidiff --no-show-locs "$here/soulacy-1.abi" "$work/now.abi"
status=$?
# abidiff: 1 and 2 are errors of use, 4 a change, 8 an incompatible one.
if [ $((status & 3)) -ne 0 ]; then
    echo "abidiff failed with $status"
    bad=1
elif [ $((status & 8)) -ne 0 ]; then
    echo "incompatible with the stored ABI: that is a new major"
    bad=1
elif [ $((status & 4)) -ne 0 ]; then
    echo "the ABI has changed (that it only grew is what layout.c holds it to):"
    echo "add a line to plugin-api/ABI.md, then run abi.sh SOURCE_DIR --store"
else
    echo "the ABI is as stored"
fi
exit "$bad"
