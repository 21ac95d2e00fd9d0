#!/usr/bin/env bash
# soulacy-plugin-check against plugins that each break one rule: it must say which.
# usage: check.sh BUILD_DIR
set -u
build=$1
check=$build/bin/soulacy-plugin-check
bad=0

chmod 0755 "$build/tests/badplugins" "$build"/tests/badplugins/*.so || exit 1

expect() { # case, status, line
    out=$("$check" "$build/tests/badplugins/$1.so" 2>&1)
    status=$?
    if [ "$status" -ne "$2" ] || ! grep -qF -- "$3" <<<"$out"; then
        printf '%s: status %s, wanted %s and "%s":\n%s\n' "$1" "$status" "$2" "$3" "$out"
        bad=1
    fi
}

expect good 0 "ok   lives 100 times and leaves nothing"
expect check_keeps_text 1 \
    "FAIL memory that was lent for send() was used after it had returned (in send())"
expect check_leaks_fd 1 "FAIL left 1 descriptors open after destroy()"
expect check_umask 1 "FAIL changed the umask"
expect check_two_symbols 1 "FAIL exports a_helper: "
expect check_no_reason 1 "FAIL create() failed (i/o error) and gave no reason"
expect check_thread 1 "FAIL left 1 threads behind after destroy()"
expect check_open_request 1 "FAIL left 4 requests without end() when stop() had returned"
expect check_loses_child 1 "FAIL left 4 children without reap() when stop() had returned"
expect deliver_late 1 "FAIL plugin misbehaving: deliver: called after stop() had returned"
expect deliver_binary 1 "FAIL plugin misbehaving: deliver: item 0: sender is not UTF-8"
expect crash 1 "FAIL it crashed (in create() or query())"
expect no_symbol 1 "FAIL does not export soulacy_plugin_v1"
expect newer_minor 1 "needs a core with ABI 1.7, this one has 1.0"

"$check" /nowhere/x.so >/dev/null 2>&1
[ $? -eq 2 ] || { echo "a file that is not there is no wrong usage"; bad=1; }
"$check" >/dev/null 2>&1
[ $? -eq 2 ] || { echo "no argument is no wrong usage"; bad=1; }
exit "$bad"
