#!/usr/bin/env bash
# run.sh: quick
# The command line without a gateway: exit statuses, messages, what init writes, tool run,
# policy explain, checks.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# ---- words and options ----------------------------------------------------------------
expect cli.help 0 'tool run' "$soulacy" --help
expect cli.nothing_given 2 'tool run' "$soulacy"
expect cli.version 0 '^plugin ABI 1\.' "$soulacy" version
expect cli.version_json 0 '"abi_major":1' "$soulacy" version --json
expect cli.nearest_command 2 'did you mean .soulacy chat.' "$soulacy" caht
expect cli.no_near_command 2 'soulacy --help' "$soulacy" frobnicate
expect cli.group_alone 2 'soulacy agent check FILE' "$soulacy" agent
expect cli.nearest_option 2 'did you mean --agent' "$soulacy" chat --agnet x hi
expect cli.option_without_value 2 'needs a value' "$soulacy" chat --agent
expect cli.option_twice 2 'twice' "$soulacy" chat --agent a --agent b hi
expect cli.word_too_many 2 'quotes' "$soulacy" chat hello there
expect cli.missing_word 2 'usage: soulacy agent check' "$soulacy" agent check
expect cli.command_help 0 '^usage: soulacy tool run' "$soulacy" tool run --help
for name in serve init chat 'agent list' 'agent check' 'tool run' 'policy explain' \
    'plugin list' 'plugin check' 'plugin new' 'config check' 'config show' sessions \
    'sessions show' 'sessions delete' status version; do
    # shellcheck disable=SC2086
    expect "cli.help_of.${name// /_}" 0 '^usage: ' "$soulacy" $name --help
done

# ---- init -------------------------------------------------------------------------------
mode() {
    [ "$(stat -c %a "$1")" = "$2" ]
}

(umask 077 && "$soulacy" init "$work/ws one") > "$work/init.out" 2>&1
check cli.init_done test -f "ws one/config.yaml"
check cli.init_config_mode mode "ws one/config.yaml" 600
check cli.init_tools_readable mode "ws one/agents/assistant" 755
check cli.init_csv_readable mode "ws one/agents/assistant/sales.csv" 644
check cli.init_key grep -qE '^  api_key: sy_[0-9a-f]{64}$' "ws one/config.yaml"
check cli.init_says_level grep -qE 'isolation +(strict|restricted|none), found to work' init.out
check cli.init_no_key_shown bash -c '! grep -q sy_ "$1"' _ init.out
before=$(find "ws one" -type f -exec sha256sum {} + | sort)
expect cli.init_never_overwrites 1 'nothing was changed' "$soulacy" init "ws one"
expect cli.init_if_missing 0 'nothing was changed' "$soulacy" init "ws one" --if-missing
after=$(find "ws one" -type f -exec sha256sum {} + | sort)
check cli.init_changed_nothing test "$before" = "$after"
expect cli.init_wrong_port 2 '1..65535' "$soulacy" init other --port 70000
expect cli.init_wrong_level 2 'none, restricted or strict' "$soulacy" init other --isolation high
check cli.init_wrong_writes_nothing test ! -e other
expect cli.init_completes_half 0 'workspace' bash -c \
    'mkdir -p half/agents/assistant && echo mine > half/agents/assistant/sales.csv &&
     "$1" init half --isolation none && grep -qx mine half/agents/assistant/sales.csv' _ "$soulacy"
expect cli.init_home 0 "$HOME/.soulacy" "$soulacy" init --isolation none
check cli.init_two_keys bash -c \
    '[ "$(cat "ws one/config.yaml" half/config.yaml | grep -c "api_key: sy_")" = 2 ] &&
     ! diff <(grep api_key: "ws one/config.yaml") <(grep api_key: half/config.yaml) > /dev/null'
expect cli.config_of_home 0 "$HOME/.soulacy/config.yaml" "$soulacy" config check
expect cli.starter_agent_fits 0 ': ok' "$soulacy" agent check "ws one/agents/assistant/SOUL.yaml"

# ---- tool run, at each level that works here --------------------------------------------
ws="$work/ws one/config.yaml"
run() {
    "$soulacy" tool run --config "$ws" "$@"
}
best=$(sed -n 's/^    isolation: //p' "$ws")
for level in none restricted strict; do
    sed -i "s/^    isolation: .*/    isolation: $level/" "$ws"
    if [ "$level" != none ] && ! run text_stats '{"text":"a"}' > "$work/out" 2>&1; then
        # It may fail closed, and it must be the one that init did not choose.
        if [ "$best" = "$level" ] || [ "$best" = strict ]; then
            fail "cli.tool_run.$level" "$(tail -n 1 "$work/out")"
        else
            echo "SKIP: cli.tool_run.$level: $(tail -n 1 "$work/out")"
        fi
        continue
    fi
    expect "cli.tool_run.$level.file" 0 '"totals": \{"total": [0-9]+\}' \
        run sales_total '{"column":"units"}'
    expect "cli.tool_run.$level.inline" 0 '"words": 2' run text_stats '{"text":"one two"}'
    expect "cli.tool_run.$level.layers" 0 "^  isolation $level" run --verbose text_stats \
        '{"text":"x"}'
    if [ "$level" = none ]; then
        found=true
    else
        found=false
    fi
    expect "cli.tool_run.$level.key" 0 "\"key_found\": $found" run find_gateway_key \
        "{\"path\":\"$ws\"}"
done
sed -i "s/^    isolation: .*/    isolation: $best/" "$ws"
run sales_total '{"column":"units","by":"region"}' > result.out 2> log.out
check cli.tool_run_result_alone grep -qx '{"column": "units", .*}' result.out
check cli.tool_run_log_on_stderr grep -q 'matching rows' log.out
expect cli.tool_run_stdin 0 '"words": 3' bash -c \
    'echo "{\"text\":\"a b c\"}" | "$1" tool run --config "$2" text_stats -' _ "$soulacy" "$ws"
expect cli.tool_run_json 0 '"verdict":"allow"' run --json text_stats '{"text":"x"}'
expect cli.tool_run_error 1 'ValueError: no row matches' run sales_total \
    '{"column":"units","region":"moon"}'
expect cli.tool_run_error_json 1 '"ok":false' run --json sales_total \
    '{"column":"units","region":"moon"}'
expect cli.tool_run_bad_argument 1 'column' run sales_total '{"column":"price"}'
expect cli.tool_run_missing_argument 1 'column' run sales_total
expect cli.tool_run_not_json 2 'arguments' run text_stats '{"text":'
expect cli.tool_run_not_object 2 'JSON object' run text_stats '[1]'
expect cli.tool_run_duplicate_key 2 'arguments' run text_stats '{"text":"a","text":"b"}'
expect cli.tool_run_unknown_tool 1 'no_such_tool' run no_such_tool
expect cli.tool_run_unknown_agent 1 'there is assistant' run --agent nobody text_stats
expect cli.tool_run_builtin_denied 1 'denied' run read_file '{"path":"/etc/passwd"}'

# ---- policy explain ------------------------------------------------------------------------
explain() {
    "$soulacy" policy explain --config "$ws" --agent assistant "$@"
}
expect cli.policy_allow 0 ': allow' explain --channel http --tool sales_total
expect cli.policy_row 0 '^row 7, allow' explain --channel http --tool sales_total
expect cli.policy_builtin 0 ': deny' explain --channel http --tool read_file
expect cli.policy_system_on_bot 0 ': deny' explain --channel whatsapp --tool shell_exec
expect cli.policy_unknown_tool 0 '^row 1' explain --channel http --tool nothing
expect cli.policy_bad_args 0 ': deny' explain --channel http --tool sales_total --args '{"column":1}'
expect cli.policy_good_args 0 ': allow' explain --channel http --tool sales_total \
    --args '{"column":"units"}'
expect cli.policy_json 0 '"verdict":"allow"' explain --channel http --tool sales_total --json
expect cli.policy_unknown_channel 1 'no channel' explain --channel pigeon --tool sales_total
expect cli.policy_missing_option 2 'needed' explain --channel http
expect cli.policy_unknown_agent 1 'there is assistant' "$soulacy" policy explain \
    --config "$ws" --agent x --channel http --tool y

# ---- configuration and agents ----------------------------------------------------------------
expect cli.config_check_ok 0 ' 0 errors' "$soulacy" config check --config "$ws"
expect cli.config_show_hides_key 0 '!sy_[0-9a-f]' "$soulacy" config show --config "$ws"
expect cli.config_show_origin 0 'server.api_key: "\(set\)" # file' "$soulacy" config show \
    --config "$ws"
expect cli.config_show_json 0 '^\{.*"server.port"' "$soulacy" config show --config "$ws" --json
mkdir bad && cat > bad/config.yaml << 'Y'
server:
  prot: 1
runtime:
  tool_timeout: 5
  sandbox:
    isolation: high
Y
expect cli.config_all_at_once 2 'config.yaml:6:' "$soulacy" config check --config bad/config.yaml
expect cli.config_nearest_key 2 'config.yaml:2:3: .*port' "$soulacy" config check \
    --config bad/config.yaml
expect cli.config_bad_stops_serve 2 'config.yaml:4:' "$soulacy" serve --config bad/config.yaml
expect cli.config_bad_json 2 '"ok":false' "$soulacy" config check --json --config bad/config.yaml
expect cli.config_missing 2 'nothere' "$soulacy" config check --config nothere.yaml
expect cli.config_defaults 0 'no config.yaml' env HOME="$work/nohome" "$soulacy" config check
expect cli.env_override 0 'server.port: 4242 # environment' env SOULACY_SERVER_PORT=4242 \
    "$soulacy" config show --config "$ws"
expect cli.agent_list 0 '^assistant +3 tools' "$soulacy" agent list --config "$ws"
expect cli.agent_list_json 0 '"id":"assistant"' "$soulacy" agent list --config "$ws" --json
mkdir -p "ws one/agents/broken" && printf 'id: broken\ntoools: []\n' > \
    "ws one/agents/broken/SOUL.yaml"
expect cli.agent_list_broken 1 'toools' "$soulacy" agent list --config "$ws"
expect cli.agent_check_broken 1 'SOUL.yaml:2:1: error' "$soulacy" agent check \
    "ws one/agents/broken/SOUL.yaml"
expect cli.agent_check_json 1 '"line":2' "$soulacy" agent check --json \
    "ws one/agents/broken/SOUL.yaml"
cat > lost.soul.yaml << 'Y'
id: lost
tools:
  - name: lost
    description: its file is not there
    python_file: lost.py
Y
expect cli.agent_check_lost_file 1 'lost' "$soulacy" agent check lost.soul.yaml
rm -r "ws one/agents/broken"

# ---- plugins ---------------------------------------------------------------------------------
expect cli.plugin_list 0 '^executor +process' "$soulacy" plugin list --config "$ws"
expect cli.plugin_check 0 '^channel +http' "$soulacy" plugin check --config "$ws" \
    "$build/lib/soulacy/channel-http.so"
expect cli.plugin_check_text_file 1 '.' "$soulacy" plugin check "$ws"
expect cli.plugin_check_nothing 1 'no such file' "$soulacy" plugin check nothing.so
expect cli.plugin_new 0 'channel-box made' "$soulacy" plugin new box
check cli.plugin_new_named grep -q '"box"' channel-box/channel_box.c
expect cli.plugin_new_twice 1 'overwritten' "$soulacy" plugin new box
expect cli.plugin_new_reserved 2 "gateway's own" "$soulacy" plugin new http
expect cli.plugin_new_bad_name 2 'lower-case' "$soulacy" plugin new ../box

# ---- no gateway, and other ends of the rope ------------------------------------------------
expect cli.no_gateway 1 'no gateway at http://127.0.0.1:1: connection refused.*soulacy serve' \
    "$soulacy" status --config "$ws" --url http://127.0.0.1:1
expect cli.url_not_http 2 'http://' "$soulacy" status --url ftp://x
expect cli.url_with_user 2 'user info' "$soulacy" status --url http://me:pw@127.0.0.1:1
expect cli.url_with_path 2 'without a path' "$soulacy" status --url http://127.0.0.1:1/api
expect cli.output_full 1 'cannot be written' bash -c '"$1" version > /dev/full' _ "$soulacy"
exec_sandbox() {
    "$soulacy" __exec-sandbox "$@"
}
expect cli.exec_sandbox 0 '^256$' exec_sandbox --cpu=30 --mem=512 --nofile=256 --fsize=64 -- \
    /bin/sh -c 'ulimit -n'
expect cli.exec_sandbox_bad 2 '.' exec_sandbox --cpu=x -- /bin/true
expect cli.exec_sandbox_not_there 127 '.' exec_sandbox -- /nothing
expect cli.exec_sandbox_env 0 '^gives$' env A_API_KEY=gives B_API_KEY=not "$soulacy" \
    __exec-sandbox --env=A_API_KEY -- /bin/sh -c 'echo $A_API_KEY$B_API_KEY'
exit "$status"
