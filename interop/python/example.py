"""Starts one of the example servers that come in the source distributions of mcp and fastmcp, unchanged.

The examples bring launchers of their own, with fixed ports and without a word when they are ready. So this imports
what they build and serves it like the other servers here: a free port, and one line once it accepts connections.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

import anyio
import common
from fastmcp import FastMCP
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from serving import gated

# name: the folder, the module in it, and the attribute that is the server, builds it, or builds its ASGI application
EXAMPLES = {
    "python-everything": ("mcp/servers/everything-server", "mcp_everything_server.server", "mcp"),
    "python-mrtr": ("mcp", "stories.mrtr.server", "build_server"),
    "python-mrtr-low": ("mcp", "stories.mrtr.server_lowlevel", "build_server"),
    "python-refund-desk": ("mcp", "stories.refund_desk.server", "build_server"),
    "python-stickynotes": ("mcp", "stories.stickynotes.server", "build_server"),
    "python-pagination": ("mcp", "stories.pagination.server_lowlevel", "build_server"),
    "python-bearer-auth": ("mcp", "stories.bearer_auth.server", "build_app"),
    "python-fastmcp-state": ("fastmcp/persistent_state", "server", "server"),
    "python-fastmcp-elicitation": ("fastmcp", "elicitation", "mcp"),
}


async def over_stdio(server) -> None:
    if isinstance(server, FastMCP):
        await server.run_async(transport="stdio", show_banner=False, log_level="warning")
    elif isinstance(server, MCPServer):
        await server.run_stdio_async()
    else:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=EXAMPLES)
    parser.add_argument("--transport", choices=["http", "stdio"], default="http")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--gate", action="store_true", help="a proxy in front that asks for a token")
    chosen = parser.parse_args()

    folder, module, attribute = EXAMPLES[chosen.name]
    unpacked = Path(__file__).parent.parent / ".env" / "examples" / folder
    if not unpacked.exists():
        sys.exit("the examples are not installed; interop/install.sh says why")
    sys.path.insert(0, str(unpacked))
    built = getattr(import_module(module), attribute)
    if attribute == "build_app":
        if chosen.transport == "stdio":
            sys.exit("this example speaks HTTP only")
        app = built()
    else:
        server = built() if attribute == "build_server" else built
        if chosen.transport == "stdio":
            return await over_stdio(server)
        app = server.http_app(path="/mcp") if isinstance(server, FastMCP) else server.streamable_http_app()
    listener, url = common.bind(chosen.port)
    await common.serve(gated(app, url) if chosen.gate else app, listener, url)


if __name__ == "__main__":
    anyio.run(main)
