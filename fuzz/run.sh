#!/bin/sh
# Fuzzes each target for a while: fuzz/run.sh [SECONDS]
set -eu
cd "$(dirname "$0")/.."
command -v cargo-fuzz >/dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz"; exit 1; }
for target in $(cargo +nightly fuzz list); do
    cargo +nightly fuzz run "$target" -- -max_total_time="${1:-60}"
done
