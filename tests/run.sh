#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test.
#
#   bash tests/run.sh               what CI runs: about half an hour on two cores
#   bash tests/run.sh --quick       one build, unit tests, text checks, the short end-to-end
#   bash tests/run.sh --long        as CI, with hours of fuzzing and the long tests in full
#   --no-install                    never calls apt
#
# Packages are listed in tests/packages.txt. Logs go to build/logs/. The last line is
# "N passed, N failed, N skipped" over all stages; the exit status is 0 only with 0 failed.
#
# Scripts in tests/e2e and tests/security that are executable are run with SOULACY_BUILD_DIR
# (the build to test), SOULACY_SOURCE_DIR and, with --long, SOULACY_LONG=1. They print
# "PASS: name", "FAIL: name: reason" or "SKIP: name: reason" lines, or nothing, and exit
# with 0 when nothing failed, 77 when all of it was skipped. A line "# run.sh: quick" puts a
# script into --quick too, "# run.sh: timeout=SECONDS" gives it longer than five minutes.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
top=$PWD

mode=normal
install=yes
for word in "$@"; do
    case $word in
        --quick) mode=quick ;;
        --long) mode=long ;;
        --no-install) install=no ;;
        *)
            sed -n '2,8s/^# \{0,1\}//p' "$0"
            exit 2
            ;;
    esac
done

logs=$top/build/logs
mkdir -p "$logs"
rm -f "$logs"/*
results=$logs/results.tsv # verdict, name, reason; one line for each thing that counts
: > "$results"
jobs=$(nproc)
started=$SECONDS

# The system's own interpreter, since a shim in front of it may be another version.
python=/usr/bin/python3
[ -x "$python" ] || python=python3

# The sanitizers of gcc 12 and clang 14 do not know the wide address randomisation of newer
# kernels and crash at start now and then.
fixed_layout=()
if setarch -R true 2> /dev/null; then
    fixed_layout=(setarch -R)
fi

# ---- results ------------------------------------------------------------------------

record() {
    printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >> "$results"
}

count() {
    awk -F '\t' -v v="$1" -v from="${2:-0}" \
        'NR > from && $1 == v {n++} END {print n + 0}' "$results"
}

lines() {
    wc -l < "$results"
}

# stage NAME FUNCTION ARGS...: the function records results and writes its log to stdout.
# One that records nothing counts as one by its exit status.
stage() {
    local name=$1 log="$logs/$1.log" before began status
    shift
    before=$(lines)
    began=$SECONDS
    printf '%-22s ' "$name"
    "$@" > "$log" 2>&1 < /dev/null
    status=$?
    if [ "$(lines)" -eq "$before" ]; then
        if [ "$status" -eq 0 ]; then
            record PASS "$name"
        else
            record FAIL "$name" "ended with $status"
        fi
    elif [ "$status" -ne 0 ] && [ "$(count FAIL "$before")" -eq 0 ]; then
        record FAIL "$name" "ended with $status"
    fi
    printf '%4d passed %4d failed %4d skipped  %4d s\n' "$(count PASS "$before")" \
        "$(count FAIL "$before")" "$(count SKIP "$before")" $((SECONDS - began))
    if [ "$(count FAIL "$before")" -gt 0 ]; then
        awk -F '\t' -v from="$before" \
            'NR > from && $1 == "FAIL" {print "    FAIL: " $2 ": " $3}' "$results"
        echo "    ---- end of build/logs/$name.log"
        tail -n 60 "$log" | sed 's/^/    | /'
        return 1
    fi
}

# ---- stages -------------------------------------------------------------------------

missing_packages() {
    local package
    grep -v '^[#[]' tests/packages.txt | while IFS= read -r package; do
        if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" != \
            installed ]; then
            echo "$package"
        fi
    done
}

apt() {
    local as_root=() try
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo > /dev/null; then
            echo "not root and no sudo: install the packages of tests/packages.txt by hand"
            return 1
        fi
        as_root=(sudo)
    fi
    for try in 1 2 3; do
        if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
            -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"; then
            return 0
        fi
        echo "apt-get $1 failed (try $try)"
    done
    return 1
}

stage_install() {
    local packages=()
    mapfile -t packages < <(missing_packages)
    if [ ${#packages[@]} -eq 0 ]; then
        echo "nothing is missing"
        return 0
    fi
    echo "missing: ${packages[*]}"
    apt update && apt install --no-install-recommends "${packages[@]}"
}

# Configure and build one preset; a warning fails it even if it is no error.
stage_build() {
    local preset=$1 warnings
    cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs" || return 1
    warnings=$(grep -c -E 'warning:|^CMake Warning' "$logs/build-$preset.log")
    if [ "$warnings" -gt 0 ]; then
        echo "$warnings warnings"
        return 1
    fi
}

# stage_ctest STAGE PRESET ctest options: every test is one result.
stage_ctest() {
    local name=$1 preset=$2 xml="$logs/$1.xml" status
    shift 2
    "${fixed_layout[@]}" ctest --test-dir "build/$preset" -j "$jobs" \
        --output-on-failure --no-tests=error \
        --test-output-size-passed 65536 --output-junit "$xml" "$@"
    status=$?
    if [ ! -s "$xml" ]; then
        echo "ctest left no results"
        return 1
    fi
    "$python" -B tests/runner/count.py "$xml" "$name" >> "$results" || return 1
    return "$status"
}

stage_valgrind() {
    "$python" -B tests/runner/valgrind.py "build/$1" "$jobs" "$logs/valgrind.log" \
        >> "$results"
}

stage_coverage() {
    find build/coverage -name '*.gcda' -delete
    stage_ctest coverage coverage -L '^unit$' || [ -s "$logs/coverage.xml" ] ||
        record FAIL coverage "no unit test was run"
    "$python" -B tests/runner/coverage.py build/coverage "$logs/coverage.log" >> "$results"
}

# script PREFIX FILE BUILD: one test script, by its lines or else by its exit status.
script() {
    local prefix=$1 file=$2 build=$3 name log seconds status runner=bash
    name=$prefix:$(basename "$file")
    log=$logs/$prefix-$(basename "$file").log
    case $file in *.py) runner="$python -B" ;; esac
    seconds=$(sed -n 's/^# run\.sh:.*timeout=\([0-9]*\).*/\1/p' "$file" | head -n 1)
    [ "$mode" = long ] && seconds=$((${seconds:-300} * 20))
    echo "== $file"
    # Two words when it is Python.
    # shellcheck disable=SC2086
    SOULACY_BUILD_DIR=$top/build/$build SOULACY_SOURCE_DIR=$top \
        SOULACY_LONG=$([ "$mode" = long ] && echo 1) \
        timeout --kill-after=10 "${seconds:-300}" $runner "$file" > "$log" 2>&1 < /dev/null
    status=$?
    cat "$log"
    awk -v OFS='\t' -v name="$name" '
        /^(PASS|FAIL|SKIP): / {
            verdict = substr($0, 1, 4); rest = substr($0, 7)
            at = index(rest, ": ")
            reason = at ? substr(rest, at + 2) : (verdict == "SKIP" ? "no reason given" : "")
            what = at ? substr(rest, 1, at - 1) : rest
            gsub(/\t/, " ", reason)
            if (verdict == "PASS") { reason = "" }
            print verdict, name "/" what, reason
        }' "$log" > "$log.tsv"
    cat "$log.tsv" >> "$results"
    if [ "$status" -eq 124 ]; then
        record FAIL "$name" "still running after ${seconds:-300} s"
    elif [ "$status" -eq 77 ] && ! [ -s "$log.tsv" ]; then
        record SKIP "$name" "$(tail -n 1 "$log")"
    elif [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && ! grep -q '^FAIL' "$log.tsv"; then
        record FAIL "$name" "ended with $status"
    elif [ "$status" -eq 0 ] && ! [ -s "$log.tsv" ]; then
        record PASS "$name"
    fi
    rm -f "$log.tsv"
}

# stage_scripts FOLDER BUILD [quick]
stage_scripts() {
    local folder=$1 build=$2 only=${3:-} file
    for file in tests/"$folder"/*.sh tests/"$folder"/*.py; do
        [ -x "$file" ] || continue
        if [ "$only" = quick ] && ! grep -q '^# run\.sh:.*quick' "$file"; then
            continue
        fi
        script "$folder" "$file" "$build"
    done
}

has_scripts() {
    local folder=$1 only=${2:-} file
    for file in tests/"$folder"/*.sh tests/"$folder"/*.py; do
        if [ -x "$file" ] && { [ -z "$only" ] || grep -q "^# run\.sh:.*$only" "$file"; }; then
            return 0
        fi
    done
    return 1
}

# A figure is counted, not judged: one that misses its target on a busy machine is listed
# with its value, but does not fail the run. One that cannot be measured does.
stage_bench() {
    local log=$logs/bench-run.sh.log status
    SOULACY_BUILD_DIR=$top/build/release timeout --kill-after=10 900 \
        bash tests/bench/run.sh > "$log" 2>&1 < /dev/null
    status=$?
    cat "$log"
    sed -n 's/^{"name": *"\([^"]*\)", *"value": *\([^,]*\), *"target": *\([^,]*\), *"ok": *\([a-z]*\).*/\1 \2 \3 \4/p' \
        "$log" | while read -r name value target ok; do
        if [ "$ok" = true ]; then
            record PASS "bench:$name"
        else
            record SKIP "bench:$name" "measured $value, target $target"
        fi
    done
    if [ "$status" -ne 0 ] && ! grep -q '"ok": *false' "$log"; then
        record FAIL bench "ended with $status"
    fi
}

stage_installed() {
    script installed tests/runner/install.sh release
}

stage_fuzz() {
    local list=build/fuzz/fuzz-targets.txt targets each name program corpus found
    targets=$(grep -c . "$list")
    if [ "$targets" -eq 0 ]; then
        record SKIP fuzz "no fuzz target is built"
        return 0
    fi
    if [ "$mode" = long ]; then
        each=${SOULACY_FUZZ_SECONDS:-3600}
    else
        # All of them together have five minutes, on all cores.
        each=$((300 * jobs / targets))
        [ "$each" -le 20 ] || each=20
    fi
    # One process for each core; what libFuzzer grows stays out of the tree.
    while IFS='|' read -r name program corpus; do
        [ -n "$name" ] || continue
        found=build/fuzz/corpus/$name
        mkdir -p "$found"
        (
            timeout --kill-after=10 $((each + 60)) \
                "${fixed_layout[@]}" "build/fuzz/$program" \
                -max_total_time="$each" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
                -print_final_stats=1 -artifact_prefix="$logs/$name-" "$found" "$corpus"
            echo $? > "$logs/fuzz-$name.status"
        ) > "$logs/fuzz-$name.log" 2>&1 < /dev/null &
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
            wait -n
        done
    done < "$list"
    wait
    while IFS='|' read -r name program corpus; do
        [ -n "$name" ] || continue
        if [ "$(cat "$logs/fuzz-$name.status")" = 0 ]; then
            record PASS "fuzz:$name"
        else
            record FAIL "fuzz:$name" "see build/logs/fuzz-$name.log"
            tail -n 40 "$logs/fuzz-$name.log"
        fi
        rm -f "$logs/fuzz-$name.status"
    done < "$list"
}

# Builds and tests leave nothing in the source tree but build/.
stage_untracked() {
    git status --porcelain > "$logs/status-after"
    diff "$logs/status-before" "$logs/status-after"
}

# ---- what runs ----------------------------------------------------------------------

build_and() {
    local preset=$1
    shift
    if stage "build-$preset" stage_build "$preset"; then
        "$@"
    else
        record FAIL "$preset" "not built, so nothing of it was run"
    fi
}

quick() {
    stage unit stage_ctest unit debug -L '^unit$'
    stage lint stage_ctest lint debug -L '^lint$' -E '^lint\.(tidy|cppcheck)$'
    if has_scripts e2e quick; then
        stage e2e stage_scripts e2e debug quick
    fi
}

debug_tests() {
    stage debug stage_ctest debug debug
    stage valgrind stage_valgrind debug
}

clang_tests() {
    stage debug-clang stage_ctest debug-clang debug-clang -LE '^lint$'
}

asan_tests() {
    stage asan stage_ctest asan asan
}

tsan_tests() {
    stage tsan stage_ctest tsan tsan -L '^unit$' -LE '^no-tsan$'
}

coverage_tests() {
    stage coverage stage_coverage
}

release_tests() {
    stage installed stage_installed
    local folder
    for folder in e2e security; do
        if has_scripts "$folder"; then
            stage "$folder" stage_scripts "$folder" release
        fi
    done
    if [ -e tests/bench/run.sh ]; then
        stage bench stage_bench
        sed 's/^/    /' "$logs/bench-run.sh.log"
    fi
}

fuzz_tests() {
    stage fuzz stage_fuzz
}

summary() {
    local total
    echo
    if [ "$(count SKIP)" -gt 0 ]; then
        echo "Skipped:"
        awk -F '\t' '$1 == "SKIP" {print "SKIP: " $2 ": " $3}' "$results"
        echo
    fi
    if [ "$(count FAIL)" -gt 0 ]; then
        echo "Failed:"
        awk -F '\t' '$1 == "FAIL" {print "FAIL: " $2 ": " $3}' "$results"
        echo
    fi
    total=$((SECONDS - started))
    printf '%s run, %d min %d s, logs in build/logs/\n' "$mode" $((total / 60)) $((total % 60))
    echo "$(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
    [ "$(count FAIL)" -eq 0 ]
}

if [ "$install" = yes ] && ! stage install stage_install; then
    summary
    exit 1
fi
if command -v ccache > /dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
fi
git status --porcelain > "$logs/status-before" 2> /dev/null

if [ "$mode" = quick ]; then
    build_and debug quick
else
    build_and debug debug_tests
    build_and debug-clang clang_tests
    build_and asan asan_tests
    build_and tsan tsan_tests
    build_and coverage coverage_tests
    build_and release release_tests
    build_and fuzz fuzz_tests
fi
if git rev-parse --git-dir > /dev/null 2>&1; then
    stage untracked stage_untracked
fi
summary
