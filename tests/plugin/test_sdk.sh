#!/usr/bin/env bash
# The SDK as a third party meets it: installed into a folder of its own, the templates
# copied out of it and built by CMake and by a plain compiler with pkg-config, then loaded
# and checked by the installed soulacy-plugin-check.
# usage: test_sdk.sh BUILD_DIR
set -u
build=$1
umask 022
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
sdk="$work/with a space/sdk"
mine=$work/mine

die() {
    echo "test_sdk: $*"
    exit 1
}
quiet() { # run, and show the output only when it fails
    "$@" >"$work/out" 2>&1 || { cat "$work/out"; return 1; }
}

quiet cmake --install "$build" --prefix "$sdk" --component sdk || die "install"
cp -r "$sdk/share/soulacy/plugin-api/template" "$mine" || die "no template in the SDK"

quiet cmake -S "$mine" -B "$work/b" "-DCMAKE_PREFIX_PATH=$sdk" || die "configure"
quiet cmake --build "$work/b" || die "build by CMake"

command -v pkg-config >/dev/null || die "pkg-config is needed"
export PKG_CONFIG_PATH=$sdk/share/pkgconfig
eval "cflags=($(pkg-config --cflags soulacy-plugin-api))" || die "pkg-config"
eval "map=$(pkg-config --variable=mapfile soulacy-plugin-api)" # blanks come escaped
mkdir "$work/plain"
for name in channel_mailbox executor_plain; do
    quiet cc -std=c11 -Wall -Wextra -Wpedantic -Werror -O2 -shared -fPIC \
        -fvisibility=hidden "${cflags[@]}" "-Wl,--version-script=$map" -Wl,-z,defs \
        -Wl,-z,now -Wl,-z,nodelete "$mine/$name.c" -o "$work/plain/${name/_/-}.so" ||
        die "build of $name by cc"
done

for so in "$work"/b/lib/soulacy/*.so "$work"/plain/*.so; do
    exported=$(nm -D --defined-only "$so" | awk '{print $NF}')
    [ "$exported" = soulacy_plugin_v1 ] || die "$so exports $exported"
    quiet "$sdk/bin/soulacy-plugin-check" "$so" || die "check of $so"
done

cat >"$work/config.yaml" <<'YAML'
channels:
  mailbox:
    enabled: true
    keep: 3
YAML
quiet "$sdk/bin/soulacy-plugin-check" "$work/plain/channel-mailbox.so" \
    "$work/config.yaml" || die "check with a configuration"
sed -i 's/keep: 3/keeps: 3/' "$work/config.yaml"
if "$sdk/bin/soulacy-plugin-check" "$work/plain/channel-mailbox.so" \
    "$work/config.yaml" >"$work/out" 2>&1; then
    die "an unknown key was taken"
fi
grep -q "keeps" "$work/out" || { cat "$work/out"; die "the unknown key is not named"; }
sed -i 's/keeps: 3/keep: 0/' "$work/config.yaml"
if "$sdk/bin/soulacy-plugin-check" "$work/plain/channel-mailbox.so" \
    "$work/config.yaml" >"$work/out" 2>&1; then
    die "a value the plugin refuses was taken"
fi
grep -q "create() failed: keep: at least 1 is needed" "$work/out" ||
    { cat "$work/out"; die "the plugin's own reason is not shown"; }

# Another major must be refused by the package, with its version.
sed -i 's/soulacy-plugin-api 1 REQUIRED/soulacy-plugin-api 2 REQUIRED/' \
    "$mine/CMakeLists.txt"
if cmake -S "$mine" -B "$work/b2" "-DCMAKE_PREFIX_PATH=$sdk" >"$work/out" 2>&1; then
    die "version 2 was found"
fi
grep -q "1\.[0-9]*\.0" "$work/out" || die "the refusal does not name the version"
echo "the SDK works"
