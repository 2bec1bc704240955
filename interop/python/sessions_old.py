"""A memo for each session, on `FastMCP` of `mcp` 1.27.1, a version that looks sessions up by their id alone.

It runs in an environment of its own. The gate is the SDK's, and so is the flaw: the gate asks for a good token, the
session manager behind it asks for a good id, and neither asks whether the two belong together.
"""

import argparse
from weakref import WeakKeyDictionary

import anyio
import serving
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.session import ServerSession
from mcp.types import ToolAnnotations

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--transport", choices=["http"], default="http")
parser.add_argument("--port", type=int, default=0)
LISTENER, URL = serving.bind(parser.parse_args().port)


class Tokens(TokenVerifier):
    """Two users of one client. A token of this version has no field for its subject."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if token not in serving.USERS:
            return None
        return AccessToken(token=token, client_id=serving.CLIENT, scopes=[], resource=URL)


SERVER = FastMCP(
    "interop-memo",
    auth=AuthSettings(issuer_url=f"{URL}/issuer", resource_server_url=URL),
    token_verifier=Tokens(),
    log_level="WARNING",
)
# The SDK makes one of these objects for each session.
MEMOS: WeakKeyDictionary[ServerSession, str] = WeakKeyDictionary()


@SERVER.tool(annotations=ToolAnnotations(destructiveHint=False))
def remember(text: str, ctx: Context) -> str:
    """Remember a text for this session."""
    MEMOS[ctx.session] = text
    return "Remembered."


@SERVER.tool(annotations=ToolAnnotations(readOnlyHint=True))
def recall(ctx: Context) -> str:
    """Say what this session remembers."""
    return MEMOS.get(ctx.session, "Nothing is remembered.")


@SERVER.tool(annotations=ToolAnnotations(readOnlyHint=True))
def whoami(ctx: Context) -> str:
    """Say whose token this request carries."""
    return serving.USERS[ctx.request_context.request.user.access_token.token]


if __name__ == "__main__":
    anyio.run(serving.serve, SERVER.streamable_http_app(), LISTENER, URL)
