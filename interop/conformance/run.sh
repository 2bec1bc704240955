#!/bin/sh
# Runs the official conformance suite against the server of this folder, for both revisions that it serves: as it is, behind
# the gateway, and behind the gateway without any sealing of its own. The suite and its Node go into interop/.env, which git
# ignores; what is there already is left alone, also without network.
#
#   interop/conformance/run.sh            # one line for each set; fails if anything required fails
#
# HANDFAST names the program where it is built already.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
env=$(dirname -- "$here")/.env/conformance
package=@modelcontextprotocol/conformance
wanted="$package@0.2.0-alpha.12 node@22"
mkdir -p "$env"

# Two test runs may come here at once. Who comes second waits.
if command -v flock >/dev/null 2>&1; then
    exec 9>"$env/lock"
    flock 9
fi

missing() {
    echo "interop/conformance/run.sh: $1" >&2
    exit 1
}

# --- the suite ---------------------------------------------------------------------------------------

node=$env/node_modules/.bin/node
if [ ! -e "$env/stamp" ] || [ "$(cat "$env/stamp")" != "$wanted" ] || ! "$node" -v >/dev/null 2>&1; then
    command -v npm >/dev/null 2>&1 ||
        missing "npm is missing, and the suite is not installed yet; on Debian: apt-get install npm"
    echo "conformance: installing the suite" >&2
    rm -rf "$env/stamp" "$env/node_modules"
    # Two words, each with its version.
    # shellcheck disable=SC2086
    npm install --prefix "$env" --no-save --no-package-lock --no-audit --no-fund --loglevel=error $wanted >&2 ||
        missing "the suite could not be installed; npm says why above"
    echo "$wanted" >"$env/stamp"
fi

# --- the servers -------------------------------------------------------------------------------------

command -v cargo >/dev/null 2>&1 || missing "cargo is missing; rust-toolchain.toml says which, rustup installs it"
cd "$here" # so that rust-toolchain.toml is found whatever the directory we were called from
target=${CARGO_TARGET_DIR:-$env/target}
cargo build --quiet --locked --target-dir "$target"
if [ -z "${HANDFAST:-}" ]; then
    cd "$here/../.."
    cargo build --quiet --locked --package handfast-cli
    HANDFAST=$(CDPATH='' cd -- "${CARGO_TARGET_DIR:-target}/debug" && pwd)/handfast
fi

processes=
running=
scratch=$(mktemp -d)
# shellcheck disable=SC2329 # the trap below calls it
stop() {
    for process in $running $processes; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    running=
    processes=
    rm -rf "$scratch"
}
# An interrupt ends the script, and its end stops the servers.
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME COMMAND...: starts it, and waits until it has said where it listens, which is then in `url`
start() {
    name=$1
    shift
    : >"$env/$name.out"
    "$@" >"$env/$name.out" 2>"$env/$name.err" 9>&- &
    process=$!
    processes="$process $processes"
    url=
    tries=0
    while [ -z "$url" ]; do
        kill -0 "$process" 2>/dev/null || missing "$name did not start; $env/$name.err says why"
        [ "$tries" -lt 100 ] || missing "$name says nothing after ten seconds"
        tries=$((tries + 1))
        sleep 0.1
        url=$(sed -n 's/^listening on //p' "$env/$name.out")
    done
}

# front NAME URL: a gateway in front of the server at URL. The suite has no tokens: all who call are one.
front() {
    start "$1" "$HANDFAST" gateway --bearer --upstream "$2" --listen 127.0.0.1:0 \
        --store "sqlite:$scratch/$1.db" --audit "$scratch/$1.audit"
}

start server "$target/debug/conformance-server"
server=$url
front gateway "$server"
gateway=$url
start unsealed "$target/debug/conformance-server" --unsealed
unsealed=$url
front gateway-unsealed "$unsealed"
guarded=$url

# --- what the suite says -----------------------------------------------------------------------------

# Reads what the suite says at its end, and tells it in one line: what decides, what does not, and what failed.
# Fails if nothing required was run: silence is no success.
told() {
    awk -v set="$1" -v warnings="$2" '
        /=== SUMMARY ===/ { summary = 1; next }
        !summary { next }
        /^(✓|✗) / { name = $2; sub(/:$/, "", name); names[++count] = name; bad[name] = $1 == "✗"; checks[name] = $3 }
        /^  (✓|✗) / { optional[$2] = 1 }
        END {
            for (i = 1; i <= count; i++) {
                name = names[i]
                if (name in optional) {
                    others++
                    if (bad[name]) { others_failed++; other_names = other_names " " name }
                } else {
                    required++
                    passed += checks[name]
                    if (bad[name]) { failed++; failed_names = failed_names " " name }
                }
            }
            line = sprintf("%s: %d of %d required scenarios pass (%d checks", set, required - failed, required, passed)
            line = line sprintf(", warnings: %d); not required: %d of %d pass", warnings, others - others_failed, others)
            if (failed) line = line "; FAILED:" failed_names
            if (others_failed) line = line "; failed, not required:" other_names
            print line
            exit (failed > 0 || required == 0)
        }'
}

# suite LOG ARGUMENT...: runs it. In the background, because an interrupt is heard while the shell waits, and not while it runs
# something.
suite() {
    into=$1
    shift
    "$node" "$env/node_modules/$package/dist/index.js" server "$@" >"$into" 2>&1 9>&- &
    running=$!
    status=0
    wait "$running" || status=$?
    running=
    return "$status"
}

outcome=0
# both NAME URL WORDS: both revisions, told in these words
both() {
    for revision in 2026-07-28 2025-11-25; do
        results=$env/results/$1-$revision
        log=$env/$1-$revision.log
        rm -rf "$results"
        # Its exit status counts as well: it knows best what it requires.
        suite "$log" --url "$2" --requirements "$revision" -o "$results" || outcome=1
        warnings=$(find "$results" -name checks.json -exec cat {} + 2>/dev/null | grep -c '"status": "WARNING"' || true)
        told "$revision$3" "$warnings" <"$log" || outcome=1
    done
}
both server "$server" ""
both gateway "$gateway" ", behind the gateway"
both gateway-unsealed "$guarded" ", not sealed, behind the gateway"

# --- who refuses a state that was tampered with ------------------------------------------------------

# The server without sealing says which states it was shown. First it is shown one without the gateway: if the suite sees
# nothing there, that it saw nothing above means nothing.
tampered=input-required-result-tampered-state
seen() {
    grep -c "^state: .*TAMPERED" "$env/unsealed.err" || true
}
behind=$(seen)
bare=passes
suite "$env/$tampered.log" --url "$unsealed" --scenario "$tampered" -o "$env/results/$tampered" || bare=fails
after=$(seen)
echo "$tampered: not sealed, $bare, the server was shown $((after - behind)); behind the gateway it was shown $behind"
[ "$bare $behind $after" = "fails 0 1" ] || outcome=1

[ "$outcome" -eq 0 ] || echo "conformance: something required fails; the whole story is in $env/*.log" >&2
exit "$outcome"
