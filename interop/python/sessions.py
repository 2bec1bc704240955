"""A memo for each session, on `MCPServer` of `mcp` 2.x: the sound control of the servers with sessions.

Nothing about the binding is ours. The session manager of this SDK remembers the client, the issuer and the subject of
the token that began a session, and answers everybody else as if there were no such session.
"""

import argparse

import anyio
import common
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--transport", choices=["http"], default="http")
parser.add_argument("--port", type=int, default=0)
LISTENER, URL = common.bind(parser.parse_args().port)

SERVER = MCPServer(
    "interop-memo",
    version="1",
    auth=common.auth_settings(URL),
    token_verifier=common.Tokens(URL),
    log_level="WARNING",
)
MEMOS: dict[str, str] = {}


def session(ctx: Context) -> str:
    """The id of the session, which the session manager has compared with the caller before any tool runs."""
    # A request of 2026-07-28 has no session and passes no session manager. Whatever its header says proves nothing.
    if ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise ToolError("this needs a session")
    return ctx.headers["mcp-session-id"]


@SERVER.tool(annotations=ToolAnnotations(destructive_hint=False))
def remember(text: str, ctx: Context) -> str:
    """Remember a text for this session."""
    MEMOS[session(ctx)] = text
    return "Remembered."


@SERVER.tool(annotations=ToolAnnotations(read_only_hint=True))
def recall(ctx: Context) -> str:
    """Say what this session remembers."""
    return MEMOS.get(session(ctx), "Nothing is remembered.")


@SERVER.tool(annotations=ToolAnnotations(read_only_hint=True))
def whoami() -> str:
    """Say whose token this request carries."""
    return get_access_token().subject


if __name__ == "__main__":
    anyio.run(common.serve, SERVER.streamable_http_app(), LISTENER, URL)
