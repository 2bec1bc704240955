#!/bin/sh
# Probes real servers and prints what comes out as one table: those that strangers published, small ones that use an SDK as
# its documentation shows it, and controls that have to come out clean. docs/real-servers.md explains each line.
#
#   interop/real.sh            what is worth a line
#   interop/real.sh --all      every check of every server
#   interop/real.sh NAME...    only these servers
#
# It installs what is missing, builds Handfast and nothing else, and ends what it started. HANDFAST and BASKET name the
# program and the library's example where they are built already.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sh "$here/install.sh"
if [ -z "${HANDFAST:-}" ] || [ -z "${BASKET:-}" ]; then
    cd "$here/.."
    echo "interop: building handfast" >&2
    cargo build --quiet --release --locked --package handfast-cli
    cargo build --quiet --release --locked --package handfast --all-features --example basket
    release=${CARGO_TARGET_DIR:-target}/release
    HANDFAST=$(CDPATH='' cd -- "$release" && pwd)/handfast
    BASKET=$(CDPATH='' cd -- "$release/examples" && pwd)/basket
fi
export HANDFAST BASKET
exec python3 "$here/real.py" "$@"
