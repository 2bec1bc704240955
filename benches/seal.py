#!/usr/bin/env python3
"""Times sealing and opening a state of 200 bytes beside the bare cipher and the codecs of the official SDKs, in one run.

    python3 benches/seal.py [--quick]

Every contender is measured once in each round. The SDKs for Python and TypeScript are those of `interop/.env`
(`make interop`); where they are missing, their rows are left out. Prints ratios; asserts nothing. See README.md.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
INTEROP = HERE.parent / "interop" / ".env"

PYTHON = """
import sys, time
from mcp.server.request_state import AESGCMRequestStateCodec
codec, state = AESGCMRequestStateCodec([b"k" * 32]), b"s" * 200
for _ in sys.stdin:
    begun = time.perf_counter_ns()
    for _ in range(2000):
        codec.unseal(codec.seal(state))
    print((time.perf_counter_ns() - begun) / 2000, flush=True)
"""

NODE = """
import { createInterface } from 'node:readline';
import { createRequestStateCodec } from '@modelcontextprotocol/server';
const codec = createRequestStateCodec({ key: new Uint8Array(32).fill(7), ttlSeconds: 600, bind: () => 'alice' });
const state = 's'.repeat(200), ctx = { mcpReq: { method: 'tools/call' } };
for await (const _ of createInterface({ input: process.stdin })) {
    const begun = process.hrtime.bigint();
    for (let n = 0; n < 1000; n += 1) await codec.verify(await codec.mint(state, ctx), ctx);
    console.log(Number(process.hrtime.bigint() - begun) / 1000);
}
"""

# A row each: its name, ours, the other, the target.
ROWS = [
    ("seal and open / bare cipher and base64", "ours-digested", "bare", "<= 1.5 x time"),
    ("the same, with the digests of both requests", "ours", "bare", "<= 1.5 x time"),
    ("the same / bare cipher of as many bytes", "ours-digested", "bare-as-long", None),
    ("seal and open / codec of the SDK for Rust", "ours-digested", "peer", "<= 1 x time"),
    ("seal and open / codec of the SDK for TypeScript", "ours", "typescript", "<= 1 x time"),
    ("seal and open / codec of the SDK for Python", "ours", "python", "<= 1 x time"),
    ("a call without a state, wrapped / not wrapped", "call-wrapped", "call", "< 5,000 ns more"),
]


class Contender:
    """A program that answers each line with nanoseconds."""

    def __init__(self, command, cwd=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd)

    def measure(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 5 if parser.parse_args().quick else 25
    target = HERE / "seal" / "target"
    build = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", target]
    subprocess.run(build, cwd=HERE / "seal", check=True)

    rust = Contender([target / "release" / "bench-seal"])
    others = {}
    if (INTEROP / "py").is_dir():
        others["python"] = Contender([INTEROP / "py" / "bin" / "python", "-c", PYTHON])
    if (INTEROP / "node").is_dir():
        others["typescript"] = Contender(["node", "--input-type=module", "-e", NODE], cwd=INTEROP / "node")
    results = {side: [] for row in ROWS for side in row[1:3]}
    load = os.getloadavg()[0]
    for _ in range(rounds):
        for what, times in results.items():
            if what in ("python", "typescript"):
                if what in others:
                    times.append(others[what].measure("go"))
            else:
                times.append(rust.measure(what))
    for contender in (rust, *others.values()):
        contender.end()

    print(f"a state of 200 bytes; medians of {rounds} rounds; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after\n")
    print(f"{'':<50}{'ours':>10}{'other':>12}{'ratio':>8}  target")
    for name, ours, other, wanted in ROWS:
        if results[other]:
            mine, theirs = (statistics.median(results[side]) for side in (ours, other))
            print(f"{name:<50}{mine:>7,.0f} ns{theirs:>9,.0f} ns{mine / theirs:>8.2f}  {wanted or ''}")
    for missing in ("python", "typescript"):
        if missing not in others:
            print(f"left out: the SDK for {missing} is not installed (make interop)")


if __name__ == "__main__":
    main()
