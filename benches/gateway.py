#!/usr/bin/env python3
"""Measures what stands in front of an MCP server: nothing, nginx, two MCP proxies, and the gateway, in one run.

    python3 benches/gateway.py [--quick]

Builds a small, fast server and a load for it first, and installs the two proxies into `gateway/target`. nginx has to be
there (on Debian: nginx-light), PostgreSQL's server programs too; what is missing is left out, with a sentence. HANDFAST
names the program where it is built already. Prints ratios; asserts nothing but that every answer was right. See README.md.
"""

import argparse
import contextlib
import json
import os
import platform
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = HERE / "gateway" / "target"
PROGRAM = TARGET / "release" / "bench-gateway"
RUST_PEER = "0.6.0"

LEGS = {
    "mix": "2026-07-28, baskets: of 21 requests 18 read, 1 opens, 2 buy (a question, and its answer with the state)",
    "whoami": "2026-07-28, one tool without arguments",
    "session": "2025-11-25, a session for each connection, and one tool without arguments",
}
CONNECTIONS = (1, 16, 64)

# A column each: what stands above it, with how many connections, what is measured, and beside which row.
COLUMNS = [
    ("CPU us", 16, "cpu", None, ".1f"),
    ("CPU us", 64, "cpu", None, ".1f"),
    ("x nginx", 16, "cpu", "nginx", ".2f"),
    ("x nginx", 64, "cpu", "nginx", ".2f"),
    ("x rate", 16, "rate", "direct", ".2f"),
    ("x rate", 64, "rate", "direct", ".2f"),
    ("+ p50 us", 1, "p50", "direct", ".1f"),
    ("p99 us", 64, "p99", None, ",.0f"),
]

NGINX = """
worker_processes 2;
worker_rlimit_nofile 8192;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    upstream mcp {{ server {host}; keepalive 128; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://mcp;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 1h;
        }}
    }}
}}
"""

RUST = """
[proxy]
name = "bench"
separator = "_"
[proxy.listen]
host = "127.0.0.1"
port = {port}
[observability]
log_level = "warn"
[[backends]]
name = "up"
transport = "http"
url = "{upstream}"
"""

GATEWAY = """
listen = "127.0.0.1:{port}"
upstream = "{upstream}"
store = "{store}"
audience = "{url}"
rules = "{kept}/rules.toml"
keys = "{kept}/keys"
audit = "{kept}/audit"
[who]
issuer = "{issuer}"
jwks = "{jwks}"
tenant-claim = "tenant"
"""

RULES = """
version = 1
[[handle]]
mint = "open_basket"
pointer = "/structuredContent/basket_id"
consume = ["tools/call read_basket#basket_id", "tools/call buy#basket_id"]
"""


class LeftOut(Exception):
    """A row, or a leg of it, that is not measured, and why."""


def stat(pid):
    """What the kernel tells of a process, from its state on; nothing where it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def tree(root):
    """A process and all that it started."""
    children = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := stat(folder.name):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root] if root else []
    for pid in found:
        found += children.get(pid, [])
    return found


class Row:
    """Something that stands in front of the server, running."""

    def __init__(self, name, url, pid=None, database=None, prefix="", token=None):
        self.name, self.url, self.pid, self.database = name, url, pid, database
        self.more = ["--prefix", prefix] + (["--token", token] if token else [])
        self.legs, self.memory = [], []

    def cpu(self):
        """Microseconds of CPU so far, user and system: of the row, and of its database."""
        ticks = []
        for root in (self.pid, self.database):
            stats = [stat(pid) for pid in tree(root)]
            ticks.append(sum(int(fields[11]) + int(fields[12]) for fields in stats if fields))
        return [number * 1e6 / os.sysconf("SC_CLK_TCK") for number in ticks]

    def resident(self):
        """Megabytes: what each process has of its own, and files that several of them map once."""
        own, mapped = 0, 0
        for pid in tree(self.pid):
            lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            anonymous, file, shared = (int(lines[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem"))
            own, mapped = own + anonymous, max(mapped, file + shared)
        return (own + mapped) / 1024

    def ask(self, part, leg, *options):
        """Starts a part of the load and waits until its connections stand."""
        command = [PROGRAM, part, "--url", self.url, "--leg", leg, *self.more, *map(str, options)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.line(process, leg)
        return process

    def line(self, process, leg):
        line = process.stdout.readline()
        if not line:
            raise LeftOut(f"{self.name}, leg {leg}: {process.communicate()[1].strip()[:300]}")
        return line

    def load(self, leg, connections, **until):
        """Requests until then, and what they took; every answer is looked at."""
        options = [word for name, value in until.items() for word in (f"--{name}", value)]
        process = self.ask("load", leg, "--connections", connections, *options)
        before = self.cpu()
        process.stdin.write("go\n")
        process.stdin.flush()
        result = json.loads(self.line(process, leg))
        after = self.cpu()
        process.communicate()
        each = [(now - then) / result["requests"] for now, then in zip(after, before)]
        return {"cpu": each[0], "database": each[1], "rate": result["requests"] / result["seconds"], **result}

    def hold(self, leg, streams):
        """Megabytes while so many streams are open, through which nothing comes."""
        process = self.ask("idle", leg, "--streams", streams)
        time.sleep(1)
        resident = self.resident()
        process.communicate()
        return resident


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(stack, name, port, command, **options):
    """Starts a proxy; returns its number once somebody listens."""
    log = stack.enter_context(tempfile.TemporaryFile("w+"))
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)

    def end():
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return process.pid
        if process.poll() is not None:
            break
        time.sleep(0.1)
    log.seek(0)
    raise LeftOut(f"{name} does not start: {log.read()[-300:].strip()}")


def part(stack, *command):
    """Starts a program that says in one line what it has to say, and goes on; returns that line."""
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end():
        # Ours end with their input, and clean up before that.
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stdout.close()

    stack.callback(end)
    line = process.stdout.readline().strip()
    if not line:
        raise LeftOut(f"{command[1]} does not start")
    return line


def nginx(stack, folder, upstream):
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not binary:
        raise LeftOut("nginx is not installed; on Debian: apt-get install nginx-light")
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX.format(host=urllib.parse.urlsplit(upstream).netloc, port=port))
    command = [binary, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf", "-g", "daemon off;"]
    return Row("nginx", f"http://127.0.0.1:{port}/mcp", started(stack, "nginx", port, command))


def npm_peer(stack, folder, upstream):
    node = TARGET / "node"
    for file in ("package.json", "package-lock.json", "proxy.mjs"):
        node.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "gateway" / "node" / file, node)
    installed = node / "node_modules" / "mcp-proxy" / "package.json"
    wanted = json.loads((node / "package.json").read_text())["dependencies"]["mcp-proxy"]
    if not installed.exists() or json.loads(installed.read_text())["version"] != wanted:
        install("mcp-proxy (npm)", ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], node)
    port = free_port()
    pid = started(stack, "mcp-proxy (npm)", port, ["node", "proxy.mjs", upstream, port], cwd=node)
    return Row(f"mcp-proxy {wanted} (npm)", f"http://127.0.0.1:{port}/mcp", pid)


def rust_peer(stack, folder, upstream):
    root = TARGET / f"mcp-proxy-{RUST_PEER}"
    if not (root / "bin" / "mcp-proxy").exists():
        command = ["cargo", "install", "--quiet", "--locked", "--root", root, "--version", RUST_PEER, "mcp-proxy"]
        install("mcp-proxy (crate)", [*command, "--no-default-features", "--features", "protocol-2026-07-28"], HERE)
    port = free_port()
    (folder / "proxy.toml").write_text(RUST.format(port=port, upstream=upstream))
    command = [root / "bin" / "mcp-proxy", "--config", folder / "proxy.toml"]
    pid = started(stack, "mcp-proxy (crate)", port, command)
    return Row(f"mcp-proxy {RUST_PEER} (crate)", f"http://127.0.0.1:{port}/", pid, prefix="up_")


def install(name, command, folder):
    print(f"installing {name}", file=sys.stderr)
    try:
        subprocess.run(list(map(str, command)), cwd=folder, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LeftOut(f"{name} could not be installed: {error}") from error


def handfast():
    binary = os.environ.get("HANDFAST")
    if not binary:
        command = ["cargo", "build", "--release", "--quiet", "--locked", "-p", "handfast-cli"]
        subprocess.run(command, cwd=ROOT, check=True)
        binary = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "handfast"
    known = subprocess.run([binary, "gateway", "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return binary if known.returncode == 0 else None


def gateway(binary, kind):
    def start(stack, folder, upstream):
        name = f"gateway on {kind}"
        if not binary:
            raise LeftOut(f"{name}: this handfast has no command `gateway`")
        # As PostgreSQL does not wait for the disk either.
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        kept = stack.enter_context(tempfile.TemporaryDirectory(prefix="handfast-bench-", dir=memory))
        database, store = None, f"sqlite:{kept}/gateway.sqlite"
        if kind == "PostgreSQL":
            store = part(stack, PROGRAM, "postgres")
            data = Path(urllib.parse.unquote(urllib.parse.urlsplit(store).netloc.partition("@")[2])) / "data"
            database = int((data / "postmaster.pid").read_text().split()[0])
        port = free_port()
        url = f"http://127.0.0.1:{port}/mcp"
        issuer = json.loads(part(stack, binary, "issuer", "--audience", url, "--lifetime", "6h", "--format", "json"))
        with open(f"{kept}/keys", "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as keys:
            subprocess.run([binary, "keys", "new"], stdout=keys, check=True)
        Path(kept, "rules.toml").write_text(RULES)
        names = {"issuer": issuer["issuer"], "jwks": issuer["jwks"], "url": url, "kept": kept}
        config = Path(kept, "gateway.toml")
        config.write_text(GATEWAY.format(port=port, upstream=upstream, store=store, **names))
        pid = started(stack, name, port, [binary, "gateway", "--config", config])
        return Row(name, url, pid, database, token=issuer["tokens"]["a"])

    return start


def measure(stack, upstream, folder, size):
    """All rows, and for each leg, number of connections and row the results of all rounds."""
    rows, left_out = [Row("direct", upstream)], []
    binary = handfast()
    for start in (nginx, rust_peer, npm_peer, gateway(binary, "SQLite"), gateway(binary, "PostgreSQL")):
        try:
            rows.append(start(stack, folder, upstream))
        except LeftOut as why:
            left_out.append(str(why))
    for row in rows:
        for leg in LEGS:
            try:
                row.load(leg, 1, requests=25)
                row.legs.append(leg)
            except LeftOut as why:
                if row.name in ("direct", "nginx"):
                    sys.exit(str(why))
                left_out.append(str(why))
        if row.pid and row.legs:
            row.memory = [row.resident()]
            row.load(row.legs[0], 16, requests=size["requests"])
            row.memory.append(row.resident())
            for leg in row.legs:
                try:
                    row.memory += [row.hold(leg, size["streams"]), leg]
                    break
                except LeftOut as why:
                    left_out.append(f"idle streams: {why}")
    for row in rows:
        for leg in row.legs:
            row.load(leg, 16, seconds=size["seconds"])
    results = {}
    for _ in range(size["rounds"]):
        for leg in LEGS:
            for connections in CONNECTIONS:
                for row in rows:
                    if leg in row.legs:
                        seen = calls(upstream)
                        result = row.load(leg, connections, seconds=size["seconds"])
                        result["reached"] = (calls(upstream) - seen) / result["requests"]
                        results.setdefault((leg, connections, row.name), []).append(result)
    return rows, results, left_out


def calls(upstream):
    """How many calls the server has seen."""
    with urllib.request.urlopen(urllib.parse.urljoin(upstream, "/calls")) as answer:
        return int(answer.read())


def beside(results, leg, connections, what, name, other):
    """The numbers of a row, of each round: as they are, as ratios to another row's, or as what is added to them."""
    numbers, others = (
        [result[what] for result in results.get((leg, connections, row), [])] for row in (name, other)
    )
    if other is None:
        return numbers
    if what == "p50":
        return [ours - theirs for ours, theirs in zip(numbers, others)]
    return [ours / theirs for ours, theirs in zip(numbers, others) if theirs]


def table(rows, results):
    for leg, told in LEGS.items():
        print(f"\n{told}")
        print(f"{'':<24}" + "".join(f"{title:>10}" for title, *_ in COLUMNS) + "   rounds")
        print(f"{'connections':<24}" + "".join(f"{connections:>10}" for _, connections, *_ in COLUMNS) + "   x nginx, 16")
        for row in (row for row in rows if leg in row.legs):
            line = f"{row.name:<24}"
            for _, connections, what, other, form in COLUMNS:
                numbers = beside(results, leg, connections, what, row.name, other)
                # Nothing stands in front of the server: nothing to measure there.
                absent = not numbers or (row.pid is None and what in ("cpu", "p50"))
                line += f"{'-':>10}" if absent else f"{statistics.median(numbers):>10{form}}"
            spread = beside(results, leg, 16, "cpu", row.name, "nginx") if row.pid else []
            print(line + (f"   {min(spread):.2f} - {max(spread):.2f}" if spread else "   -"))
            if row.database:
                each = [statistics.median(beside(results, leg, n, "database", row.name, None)) for n in (16, 64)]
                print(f"{'  its database':<24}{each[0]:>10.1f}{each[1]:>10.1f}")
            reached = statistics.median(beside(results, leg, 16, "reached", row.name, None))
            if abs(reached - 1) > 0.01:
                print(f"  of one request {reached:.2f} reached the server")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, fewer requests and streams")
    quick = parser.parse_args().quick
    size = {"rounds": 5, "seconds": 2, "requests": 100_000, "streams": 1000}
    if quick:
        size = {"rounds": 2, "seconds": 0.5, "requests": 5000, "streams": 100}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    build = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", TARGET]
    subprocess.run(build, cwd=HERE / "gateway", check=True)

    begun, load = time.monotonic(), os.getloadavg()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="handfast-bench-")))
        try:
            rows, results, left_out = measure(stack, part(stack, PROGRAM, "upstream"), folder, size)
        except LeftOut as why:
            # It was right before: that is no row to leave out.
            sys.exit(str(why))
    loads = [" ".join(f"{number:.1f}" for number in numbers) for numbers in (load, os.getloadavg())]
    print(f"{platform.machine()}, {os.cpu_count()} cores; load average: {loads[0]} before, {loads[1]} after")
    print(f"medians of {size['rounds']} rounds of {size['seconds']} s; all in {time.monotonic() - begun:.0f} s")
    table(rows, results)
    print(f"\n{'resident MB':<26}{'at first':>10}{size['requests']:>10,} requests  of{size['streams']:>8,} idle streams  of")
    for row in rows:
        if row.memory:
            first, loaded, held, leg = (row.memory + [None, "-"])[:4]
            held = f"{held:.1f}" if held else "-"
            print(f"{row.name:<26}{first:>10.1f}{loaded:>19.1f}  {row.legs[0]:<8}{held:>15}{leg:>10}")
    print()
    for why in left_out:
        print(f"left out: {why}")


if __name__ == "__main__":
    main()
