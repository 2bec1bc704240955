"""Starts each server of a list, probes it as two users, and prints a table. `real.sh` says how to call this.

A server over HTTP is a process of ours that prints where it listens; over stdio the probe starts it. Either way it gets a
directory of its own for what it writes, and both are gone at the end.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HANDFAST, BASKET = os.environ["HANDFAST"], os.environ["BASKET"]

# The two users whom every gate of this folder knows; over stdio they are names in `_meta`.
OVER_HTTP = ["--identity-a", "alice-token", "--identity-b", "bob-token"]
OVER_STDIO = ["--identity-a", "alice", "--identity-b", "bob"]

# Seconds for one probe.
LONGEST = 240


@dataclass(frozen=True)
class Server:
    """How it is started, which package it is of, and whether nothing that a MUST forbids may be found."""

    words: str
    package: str
    transports: tuple[str, ...]
    clean: bool = False
    # All that it would destroy is in the memory of a process of ours.
    destructive: bool = False

    def options(self) -> list[str]:
        path = HERE / "profiles" / f"{self.words.split()[0]}.toml"
        profile = ["--profile", str(path)] if path.exists() else []
        return profile + ["--include-destructive"] * self.destructive


HTTP, STDIO = ("http",), ("stdio",)
BOTH = HTTP + STDIO
SERVERS = [
    # Published: as they are, and with a proxy in front that asks for a token.
    Server("powerpoint", "office-powerpoint-mcp-server", BOTH),
    Server("powerpoint --gate", "office-powerpoint-mcp-server", HTTP),
    Server("debugger", "@debugmcp/mcp-debugger", BOTH),
    Server("debugger --gate", "@debugmcp/mcp-debugger", HTTP),
    Server("taskmanager", "@kazuph/mcp-taskmanager", STDIO),
    Server("everything", "@modelcontextprotocol/server-everything", BOTH),
    Server("everything --gate", "@modelcontextprotocol/server-everything", HTTP),
    Server("example-python-stickynotes", "mcp 2", HTTP, destructive=True),
    Server("example-python-stickynotes --gate", "mcp 2", HTTP, destructive=True),
    # What an SDK does by itself.
    Server("python-sessions-old", "mcp 1", HTTP),
    Server("typescript-sessions", "@modelcontextprotocol/server", HTTP),
    Server("rmcp-sessions", "rmcp", HTTP),
    Server("python-defaults", "mcp 2", HTTP),
    Server("typescript-defaults", "@modelcontextprotocol/server", HTTP),
    Server("rmcp-defaults", "rmcp", HTTP),
    # The same with what the SDK offers, and what has to come out clean.
    Server("python-defaults --mode sound", "mcp 2", HTTP, clean=True),
    Server("typescript-defaults --mode sound", "@modelcontextprotocol/server", HTTP, clean=True),
    Server("rmcp-defaults --mode sound", "rmcp", HTTP),
    Server("python-high", "mcp 2", BOTH, clean=True),
    Server("python-sessions", "mcp 2", HTTP, clean=True),
    Server("fastmcp", "fastmcp", BOTH, clean=True),
    Server("basket", "handfast", BOTH, clean=True),
    Server("sound", "handfast", BOTH, clean=True),
]

# A MUST that the SDKs below the clean controls leave to whoever writes a server, and that gives nobody what is another's.
LEFT_TO_AUTHORS = {"asks-undeclared-client"}

# Whose something is: where these are refuted, that is worth a line as well.
WHOSE = {"handle-foreign-principal", "session-foreign-principal", "state-foreign-principal", "state-tampered"}

# And so is a reason that says that the server was there, and the experiment showed nothing.
NOTED = {
    "bad-state-ignored",
    "cross-use-unattributable",
    "guests-are-served",
    "handle-witness-unusable",
    "identities-not-distinguished",
    "question-without-state",
    "second-identity-not-live",
    "session-witness-unusable",
    "state-witness-unusable",
    "untouched-retry-did-not-succeed",
}


def versions() -> dict[str, str]:
    """`package version` by what SERVERS calls it, from the files that pin them."""
    pins = re.findall(r"^([\w-]+)==(\S+)", (HERE / "python/requirements.txt").read_text(), re.M)
    old = re.findall(r"^([\w-]+)==(\S+)", (HERE / "python/requirements-old.txt").read_text(), re.M)
    node = json.loads((HERE / "typescript/package.json").read_text())["dependencies"]
    [rmcp] = re.findall(r'^rmcp = .*"=([^"]+)"', (HERE / "rmcp/Cargo.toml").read_text(), re.M)
    named = {**dict(old), **dict(pins), **node, "rmcp": rmcp, "handfast": ""}
    found = {package: f"{package} {version}".strip() for package, version in named.items()}
    return {**found, "mcp 2": found["mcp"], "mcp 1": f"mcp {dict(old)['mcp']}"}


def command(server: Server, transport: str, place: Path) -> list[str]:
    stdio = transport == "stdio"
    match server.words:
        case "basket":
            return [BASKET, "--store", f"sqlite:{place / 'baskets.db'}", *(["--stdio"] if stdio else [])]
        case "sound":
            return [HANDFAST, "twin", "sound", "--transport", transport]
        case words:
            return [str(HERE / "run"), *words.split(), "--transport", transport]


class Running:
    """A server over HTTP, until the end of the block. It is alone in a process group, and the whole group is ended."""

    def __init__(self, words: list[str], environment: dict[str, str], log: Path):
        self._errors = log.open("w+")
        self._child = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=self._errors, text=True, start_new_session=True
        )
        self.url = None

    def __enter__(self):
        said = []
        for line in self._child.stdout:
            said.append(line)
            if found := re.match(r"(?:listening on )?(http://\S+)", line):
                self.url = found[1]
                break
        if self.url is None:
            raise RuntimeError(f"never listened: {''.join(said)}{Path(self._errors.name).read_text()[-500:]}")
        return self

    def token(self, name: str) -> str:
        """Of the library's example, which prints them after its address."""
        return self._child.stdout.readline().removeprefix(f"{name}: ").strip()

    def __exit__(self, *_):
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._child.wait()
        self._child.stdout.close()
        self._errors.close()


def probe(arguments: list[str], environment: dict[str, str]) -> dict:
    words = [HANDFAST, "probe", "--format", "json", *arguments]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=LONGEST, stdin=subprocess.DEVNULL
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"no report: {done.stderr[-500:]}") from None


def probed(server: Server, transport: str, scratch: Path) -> dict:
    """The report on one server over one transport."""
    place = scratch / re.sub(r"\W+", "-", f"{server.words}-{transport}")
    place.mkdir()
    # Whatever it keeps, it keeps here. What the caller has set for the probe is the caller's and not this run's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HANDFAST_", "CXG_"))}
    environment |= {"HOME": str(place), "TMPDIR": str(place)}
    words = command(server, transport, place)
    if transport == "stdio":
        return probe([*OVER_STDIO, *server.options(), "--", *words], environment)
    with Running(words, environment, place / "log") as running:
        users = OVER_HTTP
        if server.words == "basket":
            users = ["--identity-a", running.token("alice"), "--identity-b", running.token("bob")]
        return probe([*users, *server.options(), running.url], environment)


def is_news(check: dict) -> bool:
    """Whether a check is not plainly refuted or skipped."""
    verdict = check["verdict"]
    return (
        verdict in ("confirmed", "errored")
        or check["reason"] in NOTED
        or (verdict == "refuted" and check["id"] in WHOSE)
    )


def rows(server: Server, transport: str, version: str, scratch: Path, every: bool) -> list[tuple[str, ...]]:
    who = (server.words, version, transport)
    try:
        checks = probed(server, transport, scratch)["checks"]
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        print(f"interop: {server.words} over {transport}: {problem}", file=sys.stderr)
        return [(*who, "*", "errored", "no-report")]
    found = [(*who, check["id"], check["verdict"], check["reason"]) for check in checks if every or is_news(check)]
    if server.clean:
        wrong = {check["id"] for check in checks if check["verdict"] == "confirmed" and check["level"] == "must"}
        verdict = "clean" if wrong <= LEFT_TO_AUTHORS else "confirmed"
        found.append((*who, "every MUST", verdict, " ".join(sorted(wrong)) or "nothing-confirmed"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="interop/real.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every check, and not only what is worth a line")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only servers that are called so")
    chosen = parser.parse_args()
    servers = [server for server in SERVERS if not chosen.names or server.words.split()[0] in chosen.names]
    called = versions()
    scratch = Path(tempfile.mkdtemp(prefix="interop-real-"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        # Most of the time somebody waits.
        with ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1)) as pool:
            try:
                jobs = [
                    pool.submit(rows, server, transport, called[server.package], scratch, chosen.all)
                    for server in servers
                    for transport in server.transports
                ]
                table = [row for job in jobs for row in job.result()]
            except BaseException:
                # What runs is brought to its end, and ends its server. What waits never begins.
                pool.shutdown(cancel_futures=True)
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("| server | version | transport | check | verdict | reason |")
    print("|---|---|---|---|---|---|")
    for row in table:
        print("|", " | ".join(row), "|")
    # A control that is not clean is the one thing that is never as it should be.
    return int(any(row[3] == "every MUST" and row[4] != "clean" or row[5] == "no-report" for row in table))


if __name__ == "__main__":
    sys.exit(main())
