#!/bin/sh
# Installs the servers of this folder into interop/.env, which git ignores. Run it as often as you like: each part
# carries a stamp over the files that describe it, and a part whose stamp fits is left alone, also without network.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
env=$here/.env
mkdir -p "$env/stamps"

# Two test runs may come here at once. Who comes second waits, and then finds everything in place.
if command -v flock >/dev/null 2>&1; then
    exec 9>"$env/lock"
    flock 9
fi

missing() {
    echo "interop/install.sh: $1" >&2
    exit 1
}

# fits PART WORD FILE...: whether PART was installed from these files, by the tools that WORD names
stamp_of() {
    word=$1
    shift
    { echo "$word"; cat "$@"; } | sha256sum
}
fits() {
    part=$1
    shift
    [ -e "$env/stamps/$part" ] && [ "$(cat "$env/stamps/$part")" = "$(stamp_of "$@")" ]
}
done_with() {
    part=$1
    shift
    stamp_of "$@" >"$env/stamps/$part"
}

# --- Python: two environments, because mcp 2.x and mcp 1.x have one name ----------------------------
# fastmcp accepts the mcp 2.x that we want to probe, so those two share one.

command -v python3 >/dev/null 2>&1 ||
    missing "python3 (3.10 or newer) is missing; on Debian: apt-get install python3 python3-venv"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    missing "$(python3 -V) is too old, the mcp package needs 3.10"

# environment PART REQUIREMENTS WHAT: a virtual environment of that name with exactly what the file lists
environment() {
    if fits "$1" "$(python3 -V)" "$2" && "$env/$1/bin/python" -c pass 2>/dev/null; then
        return
    fi
    python3 -c 'import ensurepip, venv' 2>/dev/null ||
        missing "python3 cannot make virtual environments; on Debian: apt-get install python3-venv"
    echo "interop: installing $3" >&2
    rm -rf "${env:?}/$1"
    python3 -m venv "$env/$1"
    "$env/$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "$2"
    done_with "$1" "$(python3 -V)" "$2"
}
environment py "$here/python/requirements.txt" "the Python SDKs"
environment py-old "$here/python/requirements-old.txt" "the old Python SDK"

# The wheels have no examples, the source distributions have. The servers above do without them, so if they cannot
# be had that is said and is not an error.
set -- "$(python3 -V)" "$here/python/requirements.txt"
if ! fits examples "$@" || [ ! -d "$env/examples" ]; then
    echo "interop: fetching the Python examples" >&2
    rm -rf "$env/sdist" "$env/examples"
    # mcp==... and fastmcp==..., as two words
    wanted=$(grep -E '^(mcp|fastmcp)==' "$here/python/requirements.txt")
    # shellcheck disable=SC2086
    if "$env/py/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
        --no-binary mcp,fastmcp --dest "$env/sdist" $wanted; then
        mkdir -p "$env/examples"
        for package in mcp fastmcp; do
            tar -xzf "$env/sdist/$package"-[0-9]*.tar.gz -C "$env/sdist"
            mv "$env/sdist/$package"-[0-9]*/examples "$env/examples/$package"
        done
        done_with examples "$@"
    else
        echo "interop: no Python examples (the source distribution could not be fetched); everything else goes on" >&2
    fi
    rm -rf "$env/sdist"
fi

# --- Node --------------------------------------------------------------------------------------------

command -v node >/dev/null 2>&1 ||
    missing "node (20 or newer) is missing; on Debian 13: apt-get install nodejs npm"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] ||
    missing "node $(node -v) is too old, the TypeScript SDK needs 20; Debian 13 packages it"

set -- "$(node -v)" "$here/typescript/package.json" "$here/typescript/package-lock.json"
if ! fits node "$@" || [ ! -d "$env/node/node_modules" ]; then
    command -v npm >/dev/null 2>&1 || missing "npm is missing; on Debian: apt-get install npm"
    echo "interop: installing the TypeScript SDKs" >&2
    mkdir -p "$env/node"
    cp "$here/typescript/package.json" "$here/typescript/package-lock.json" "$env/node/"
    (cd "$env/node" && npm ci --no-audit --no-fund --loglevel=error >&2)
    done_with node "$@"
fi
# Outside of the stamp, which covers the packages: a script that is new here needs no packages installed again.
for script in "$here"/typescript/*.mjs; do
    [ -e "$env/node/${script##*/}" ] || ln -sfn "../../typescript/${script##*/}" "$env/node/${script##*/}"
done

# --- Rust --------------------------------------------------------------------------------------------

command -v cargo >/dev/null 2>&1 || missing "cargo is missing; rust-toolchain.toml says which, rustup installs it"
cd "$here/rmcp" # so that rust-toolchain.toml is found whatever the directory we were called from

set -- "$(cargo -V)" Cargo.toml Cargo.lock src/*.rs
if ! fits rmcp "$@" || [ ! -x "$env/target/debug/interop-rmcp" ] ||
    [ ! -x "$env/target/debug/interop-rmcp-sessions" ] || [ ! -x "$env/target/debug/interop-rmcp-defaults" ] ||
    [ ! -x "$env/target/debug/interop-rmcp-client" ]; then
    echo "interop: building the rmcp servers, and its client" >&2
    cargo build --quiet --locked --target-dir "$env/target"
    done_with rmcp "$@"
fi
