#!/bin/sh
# Runs the official conformance suite against the server of this folder, for both revisions that it serves. The suite and
# its Node go into interop/.env, which git ignores; what is there already is left alone, also without network.
#
#   interop/conformance/run.sh            # one line for each revision; fails if anything required fails
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
env=$(dirname -- "$here")/.env/conformance
suite=@modelcontextprotocol/conformance
wanted="$suite@0.2.0-alpha.12 node@22"
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

# --- the server --------------------------------------------------------------------------------------

command -v cargo >/dev/null 2>&1 || missing "cargo is missing; rust-toolchain.toml says which, rustup installs it"
cd "$here" # so that rust-toolchain.toml is found whatever the directory we were called from
target=${CARGO_TARGET_DIR:-$env/target}
cargo build --quiet --locked --target-dir "$target"

server=
running=
# shellcheck disable=SC2329 # the trap below calls it
stop() {
    for process in $running $server; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    running=
    server=
}
# An interrupt ends the script, and its end stops the server.
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

: >"$env/server.out"
"$target/debug/conformance-server" >"$env/server.out" 2>"$env/server.err" 9>&- &
server=$!

url=
tries=0
while [ -z "$url" ]; do
    kill -0 "$server" 2>/dev/null || missing "the server did not start; $env/server.err says why"
    [ "$tries" -lt 100 ] || missing "the server says nothing after ten seconds"
    tries=$((tries + 1))
    sleep 0.1
    url=$(sed -n 's/^listening on //p' "$env/server.out")
done

# --- both revisions ----------------------------------------------------------------------------------

# Reads what the suite says at its end, and tells it in one line: what decides, what does not, and what failed.
# Fails if nothing required was run: silence is no success.
told() {
    awk -v revision="$1" -v warnings="$2" '
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
            line = sprintf("%s: %d of %d required scenarios pass (%d checks", revision, required - failed, required, passed)
            line = line sprintf(", warnings: %d); not required: %d of %d pass", warnings, others - others_failed, others)
            if (failed) line = line "; FAILED:" failed_names
            if (others_failed) line = line "; failed, not required:" other_names
            print line
            exit (failed > 0 || required == 0)
        }'
}

outcome=0
for revision in 2026-07-28 2025-11-25; do
    log=$env/$revision.log
    rm -rf "$env/results/$revision"
    # In the background, because an interrupt is heard while the shell waits, and not while it runs something.
    "$node" "$env/node_modules/$suite/dist/index.js" server --url "$url" --requirements "$revision" \
        -o "$env/results/$revision" >"$log" 2>&1 9>&- &
    running=$!
    # Its exit status counts as well: it knows best what it requires.
    wait "$running" || outcome=1
    running=
    warnings=$(find "$env/results/$revision" -name checks.json -exec cat {} + 2>/dev/null |
        grep -c '"status": "WARNING"' || true)
    told "$revision" "$warnings" <"$log" || outcome=1
done
[ "$outcome" -eq 0 ] || echo "conformance: something required fails; the whole story is in $env/*.log" >&2
exit "$outcome"
