#!/usr/bin/env python3
"""Times whole runs of the probe on the flawed twin, beside a floor, in one run. Prints medians; asserts nothing.

    python3 benches/run.py [RUNS]

Builds the release binary first. The floor of a run over HTTP is the start of a process; over stdio, the start of two.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BINARY = TARGET / "release" / "handfast"
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 30


def run(command, expected):
    """Runs a command; returns milliseconds and peak kilobytes."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = (time.perf_counter() - started) * 1000
    code = os.waitstatus_to_exitcode(status)
    if code != expected:
        sys.exit(f"{command} ended with {code}, not {expected}")
    return elapsed, usage.ru_maxrss


def median(name, command, expected, floor=None):
    """Prints the median of several runs, and its ratio to a floor."""
    times = [run(command, expected) for _ in range(RUNS)]
    middle = statistics.median(elapsed for elapsed, _ in times)
    peak = max(kilobytes for _, kilobytes in times) / 1024
    ratio = f"  {middle / floor:6.1f} x floor" if floor else ""
    print(f"{name:<34} {middle:8.1f} ms   peak {peak:6.1f} MB{ratio}", flush=True)
    return middle


def main():
    subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "-p", "handfast-cli"], cwd=ROOT, check=True)
    print(f"binary: {BINARY.stat().st_size / 1e6:.1f} MB; medians of {RUNS} runs\n")
    floor = median("floor: start of /bin/true", ["/bin/true"], 0)
    median("handfast --version", [BINARY, "--version"], 0, floor)
    for name in ("flawed", "sound"):
        expected = 1 if name == "flawed" else 0
        server = subprocess.Popen([BINARY, "twin", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = server.stdout.readline().strip()
            median(f"{name} twin over HTTP", [BINARY, "probe", url], expected, floor)
        finally:
            server.kill()
            server.wait()
        child = [BINARY, "probe", "--", BINARY, "twin", name, "--transport", "stdio"]
        median(f"{name} twin over stdio", child, expected, 2 * floor)


if __name__ == "__main__":
    main()
