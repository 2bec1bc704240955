#!/usr/bin/env python3
"""Times the library's resolve and mint beside floors and a peer, in one run. Prints ratios; asserts nothing.

    python3 benches/handles.py [--quick]

Builds two programs first, which are told line by line what to measure next: every contender is measured once in each
round, so what else the machine does meets all of them. See README.md beside it.
"""

import argparse
import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LARGE = 1_000_000
SMALL = 10_000

# One row of the table each: its name, what is measured of ours and of the other, how they compare, the target.
# "slower": ours may take so many times as long. "as fast": ours must reach so much of the other's speed.
ROWS = [
    ("SQLite resolve / select by hand, one task", "p50 sqlite-resolve", "p50 sqlite-by-hand", "slower", 2),
    ("SQLite resolve / select by hand, 32 tasks", "rate sqlite-resolve", "rate sqlite-by-hand", "slower", 2),
    ("PostgreSQL resolve / pgbench, same select", "rate postgres-resolve", "rate pgbench-same", "as fast", 0.8),
    ("PostgreSQL resolve / pgbench, plain select", "rate postgres-resolve", "rate pgbench-plain", "as fast", None),
    ("PostgreSQL resolve / same by hand in Rust", "rate postgres-resolve", "rate postgres-by-hand", "as fast", None),
    ("SQLite resolve, {large} rows / {small}", "p50 sqlite-resolve-large", "p50 sqlite-resolve", "slower", 1.5),
    ("PostgreSQL resolve, {large} rows / {small}", "p50 postgres-resolve-large", "p50 postgres-resolve", "slower", 1.5),
    ("PostgreSQL mint / insert by hand", "p50 postgres-mint", "p50 postgres-insert", "slower", 1.5),
    ("PostgreSQL mint / insert and one more trip", "p50 postgres-mint", "p50 postgres-insert-and-more", "slower", 1),
    ("SQLite resolve / peer's load, one task", "p50 sqlite-resolve", "p50 sqlite-load", "as fast", 1),
    ("SQLite resolve / peer's load, 32 tasks", "rate sqlite-resolve", "rate sqlite-load", "as fast", 1),
    ("PostgreSQL resolve / peer's load, one task", "p50 postgres-resolve", "p50 postgres-load", "as fast", 1),
    ("PostgreSQL resolve / peer's load, 32 tasks", "rate postgres-resolve", "rate postgres-load", "as fast", 1),
]
MINT = "p50 sqlite-mint"


class Program:
    """One of the two programs, running."""

    def __init__(self, name, *arguments):
        binary = HERE / name / "target" / "release" / f"bench-{name}"
        command = [binary, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended with {self.process.wait()}")
        return line.strip()

    def measure(self, what, milliseconds):
        # Where nobody reads this any more, the next line says how it ended.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{what} {milliseconds}\n")
            self.process.stdin.flush()
        return float(self.line())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # It ends, and its server with it, when there is nothing more to read.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def build(name):
    # Into a folder of its own, whatever the environment says: two versions of SQLite do not go into one.
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", HERE / name / "target"]
    subprocess.run(command, cwd=HERE / name, check=True)


def ratio(what, ours, other, how):
    """Above 1 means for "slower" that ours takes longer, and for "as fast" that ours is faster."""
    return ours / other if what.startswith("p50") == (how == "slower") else other / ours


def shown(what, numbers):
    middle = statistics.median(numbers)
    return f"{middle:,.1f} us" if what.startswith("p50") else f"{middle:,.0f} /s"


def load():
    return " ".join(f"{load:.1f}" for load in os.getloadavg())


def table(results, large):
    print(f"{'':<46}{'ours':>13}{'other':>13}{'ratio':>8}  {'rounds':<15}{'target':<15}met")
    for name, ours, other, how, target in ROWS:
        middle = ratio(ours, statistics.median(results[ours]), statistics.median(results[other]), how)
        each = [ratio(ours, *pair, how) for pair in zip(results[ours], results[other])]
        wanted = met = ""
        if target is not None:
            wanted = f"<= {target} x time" if how == "slower" else f">= {target} x speed"
            met = "yes" if (middle <= target if how == "slower" else middle >= target) else "no"
        name = name.format(large=f"{large:,}", small=f"{SMALL:,}")
        numbers = f"{shown(ours, results[ours]):>13}{shown(other, results[other]):>13}{middle:>8.2f}"
        print(f"{name:<46}{numbers}  {min(each):>5.2f} - {max(each):<7.2f}{wanted:<15}{met}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and a smaller large store")
    quick = parser.parse_args().quick
    rounds, large = (3, 100_000) if quick else (15, LARGE)
    for name in ("handles", "peer"):
        build(name)

    begun, load_before = time.monotonic(), load()
    contenders = list(dict.fromkeys([side for row in ROWS for side in row[1:3]] + [MINT]))
    with tempfile.TemporaryDirectory(prefix="handfast-bench-") as folder, Program("handles", folder, large) as handles:
        database, version = handles.line(), handles.line()
        with Program("peer", folder, database) as peer:
            peer.line()
            seeded = time.monotonic()
            results = {what: [] for what in contenders}

            def measure(what):
                # pgbench counts in whole seconds; what is compared with it is given as long.
                milliseconds = 1000 if what.startswith(("rate postgres", "rate pgbench")) else 200
                return (peer if what.endswith("-load") else handles).measure(what, milliseconds)

            # First everybody opens all the connections that they will have.
            for name in dict.fromkeys(what.split()[1] for what in contenders):
                measure(f"rate {name}")
            for _ in range(rounds):
                for what in contenders:
                    results[what].append(measure(what))
        statements = handles.measure("p50 postgres-mint-statements", 0)

    print(f"PostgreSQL {version}, fsync off, 8 connections; {platform.machine()}, {os.cpu_count()} cores")
    took = f"seeded in {seeded - begun:.0f} s, measured in {time.monotonic() - seeded:.0f} s"
    print(f"medians of {rounds} rounds; {took}")
    print(f"load average: {load_before} before, {load()} after\n")
    table(results, large)
    met = "yes" if statements == 1 else "no"
    print(f"\nstatements that one PostgreSQL mint sends: {statements:g}; target 1: {met}")
    print(f"SQLite mint, for information: {shown(MINT, results[MINT])}")


if __name__ == "__main__":
    main()
