#!/usr/bin/env bash
# run.sh: timeout=1800
# config/quickstart.sh from a fresh clone: as root and as a user who is not, from a path
# with spaces, twice, with a taken port, with --keep, and with a package missing.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if ! command -v git > /dev/null || ! git -C "$top" rev-parse --git-dir > /dev/null 2>&1; then
    echo "SKIP: quickstart.sh: needs git and a clone"
    exit 77
fi

clone="$work/a clone with spaces"
git clone -q "$top" "$clone" || exit 1
# What was not committed yet is tested too.
(cd "$top" && git diff --binary HEAD) > "$work/uncommitted"
if [ -s "$work/uncommitted" ]; then
    git -C "$clone" apply --whitespace=nowarn "$work/uncommitted" || exit 1
fi

# As whom: root gives the clone to nobody for the second half.
as_nobody() {
    setpriv --reuid=65534 --regid=65534 --clear-groups env -i HOME="$work/nobody" USER=nobody \
        PATH="${1:+$1:}/usr/bin:/bin" LC_ALL=C.UTF-8 bash "${@:2}"
}
no_process_of() {
    ! pgrep -f -- "$1/bin/soulacy serve" > "$work/left"
}
check_stages() {
    local name=$1 out=$2 part
    for part in '== packages' '== build' '== workspace' 'readyz answers 200' \
        'speaker .* on channel http' 'verdict   allow by row 7' 'isolation ' 'limits    cpu_seconds 30' \
        'layers    .*rlimits' 'log       read [0-9]* matching rows' '"totals"' '"words": 6' \
        '"key_found"' 'deny by row' 'times     [0-9]* ms' 'ended with 0' 'All stages did'; do
        if ! grep -q -- "$part" "$out"; then
            fail "$name.stages" "no '$part'"
            sed 's/^/    | /' "$out"
            return
        fi
    done
    pass "$name.stages"
}

echo "# first run, builds"
bash "$clone/config/quickstart.sh" --no-install > first.out 2>&1
check quickstart.first_run test $? -eq 0
tail -n 4 first.out
check_stages quickstart first.out
check quickstart.stops_it no_process_of "$clone/build/release"
check quickstart.key_not_shown bash -c '! grep -q "sy_[0-9a-f]" first.out'
check quickstart.config_mode test "$(stat -c %a "$clone/build/workspace/config.yaml")" = 600
check quickstart.clone_stays_clean bash -c \
    '[ -z "$(git -C "$1" status --porcelain --untracked-files=all | grep "^??")" ]' _ "$clone"

began=$(date +%s%N)
bash "$clone/config/quickstart.sh" > second.out 2>&1
ended=$?
ms=$((($(date +%s%N) - began) / 1000000))
check quickstart.second_run test "$ended" -eq 0
echo "# second run: $ms ms"
check quickstart.second_run_under_10s test "$ms" -lt 10000
check quickstart.keeps_workspace grep -q 'is there and is kept' second.out

# From another folder, with the port of its config.yaml taken by somebody else.
port=$(sed -n 's/^  port: //p' "$clone/build/workspace/config.yaml")
/usr/bin/python3 -c '
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("up", flush=True)
while True:
    c, _ = s.accept()
    c.close()
' "$port" > taken 2>&1 &
squatter=$!
timeout 10 bash -c 'tail -n +1 -f taken | grep -q -m 1 .' || true
(cd / && bash "$clone/config/quickstart.sh" --no-install) > taken.out 2>&1
check quickstart.port_taken test $? -eq 0
check quickstart.port_taken_told grep -q 'port of config.yaml is taken' taken.out
kill "$squatter"
wait "$squatter" 2> /dev/null

# --keep, then a run beside it, then stopping it by the pid that was printed.
bash "$clone/config/quickstart.sh" --no-install --keep > keep.out 2>&1
check quickstart.keep test $? -eq 0
check quickstart.keep_prints_key grep -qE '^   key  sy_[0-9a-f]{64}$' keep.out
kept=$(sed -n 's/.*stop it with kill \([0-9]*\)$/\1/p' keep.out)
check quickstart.keep_runs kill -0 "${kept:-0}"
bash "$clone/config/quickstart.sh" --no-install > beside.out 2>&1
check quickstart.beside_a_running_one test $? -eq 0
check quickstart.leaves_it_running kill -0 "${kept:-0}"
if [ -n "$kept" ]; then
    kill -TERM "$kept"
    check quickstart.kept_one_stops gone "$kept"
fi
expect quickstart.bad_option 2 'no option' bash "$clone/config/quickstart.sh" --frob

# A missing package: apt is asked for exactly that one.
mkdir fake
cat > fake/dpkg-query << 'S'
#!/bin/bash
/usr/bin/dpkg-query "$@" | grep -v '^libyaml-dev'
S
cat > fake/apt-get << 'S'
#!/bin/bash
echo "apt-get $*" >> "$FAKE_LOG"
S
cat > fake/sudo << 'S'
#!/bin/bash
echo "sudo $*" >> "$FAKE_LOG"
exec "$@"
S
chmod 755 fake fake/*
if [ "$(id -u)" -eq 0 ]; then
    env PATH="$work/fake:$PATH" FAKE_LOG="$work/apt.log" \
        bash "$clone/config/quickstart.sh" > apt.out 2>&1
    check quickstart.root_asks_apt grep -qE '^apt-get .*install .*libyaml-dev' apt.log
    check quickstart.root_without_sudo bash -c '! grep -q ^sudo apt.log'
    check quickstart.only_what_is_missing bash -c '! grep -q libcjson apt.log'

    mkdir nobody
    chown -R nobody: "$clone" nobody
    rm -rf "$clone/build/workspace"
    as_nobody "" "$clone/config/quickstart.sh" --no-install > nobody.out 2>&1
    check quickstart.as_user test $? -eq 0
    check_stages quickstart.as_user nobody.out
    install -m 666 /dev/null sudo.log
    as_nobody "$work/fake" -c 'FAKE_LOG=$1 exec bash "$2"' _ "$work/sudo.log" \
        "$clone/config/quickstart.sh" > sudo.out 2>&1
    check quickstart.user_asks_sudo grep -qE '^sudo env .*apt-get .*install .*libyaml-dev' sudo.log
    # sudo is not there at all.
    mkdir bare
    ln -s "$work/fake/dpkg-query" bare/dpkg-query
    for tool in bash env sed awk grep dirname id tail cat mkdir; do
        ln -s "$(command -v "$tool")" "bare/$tool"
    done
    setpriv --reuid=65534 --regid=65534 --clear-groups env -i HOME="$work/nobody" \
        PATH="$work/bare" /bin/bash "$clone/config/quickstart.sh" > bare.out 2>&1
    check quickstart.no_sudo_says_what_to_do grep -q 'As root: apt-get install libyaml-dev' bare.out
else
    echo "SKIP: quickstart.as_user: this is not root, so the run above was one"
fi
exit "$status"
