#!/usr/bin/env bash
# The figures: one JSON object a line (name, value, target, ok). Ratios are against a
# baseline measured in the same run. Exit 1 when a figure misses its target.
#
#   bash tests/bench/run.sh [--short] [BUILD_DIR]
#
# BUILD_DIR is a release build with tests; by default $SOULACY_BUILD_DIR or build/release.
# run.sh: timeout=900
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
short=()
if [ "${1:-}" = --short ]; then
    short=(--short)
    shift
fi
build=${1:-${SOULACY_BUILD_DIR:-build/release}}
if [ ! -x "$build/bin/soulacy" ]; then
    echo "bench: no build at $build; run: cmake --preset release && cmake --build --preset release" >&2
    exit 2
fi
status=0
"$build/bench/bench_spawn" "$build/libexec/soulacy/soulacy-spawn" || status=1
/usr/bin/python3 tests/bench/figures.py "$build" "${short[@]}" || status=1
bash tests/bench/bench_http.sh "$build" || status=1
exit $status
