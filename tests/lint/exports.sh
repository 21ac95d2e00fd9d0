#!/usr/bin/env bash
# A plugin exports soulacy_plugin_v1 and nothing else; the program exports nothing.
# usage: exports.sh BUILD_DIR. Symbols with a version (stdout@GLIBC_2.2.5) are the linker's
# copies of variables of the C library and no exports of ours.
set -u
build=$1
bad=0
checked=0

# Some other map or flag would show here.
exports() {
    nm -D --defined-only -- "$1" | awk '$NF !~ /@/ {print $NF}'
}

for plugin in "$build"/lib/soulacy/*.so; do
    [ -e "$plugin" ] || continue
    checked=$((checked + 1))
    found=$(exports "$plugin")
    if [ "$found" != soulacy_plugin_v1 ]; then
        echo "$(basename "$plugin") exports: $(echo "$found" | tr '\n' ' ')"
        bad=1
    fi
done
if [ -e "$build/bin/soulacy" ]; then
    checked=$((checked + 1))
    found=$(exports "$build/bin/soulacy")
    if [ -n "$found" ]; then
        echo "soulacy exports: $(echo "$found" | tr '\n' ' ')"
        bad=1
    fi
fi
echo "$checked files checked"
if [ "$checked" -eq 0 ]; then
    echo "nothing is built"
    exit 77
fi
exit "$bad"
