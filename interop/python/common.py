"""What the Python servers share: options, identities and the owner check. `serving.py` does the serving.

Nothing here speaks MCP. The protocol is the SDK's business in every file of this folder,
because the point of these servers is that the probe meets somebody else's wire.
"""

import argparse
import base64
import json
import secrets
import sys
import time

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.request_state import authenticated_principal
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, TextContent
from serving import CLIENT, USERS, bind, serve  # noqa: F401 (bind and serve are for the servers)

# Over stdio the specification defines no principal; this key is where the probe puts one.
PRINCIPAL_KEY = "io.modelcontextprotocol/principal"


def options(description: str) -> argparse.Namespace:
    """The options every server takes, in the words of interop/README.md."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--mode", choices=["flawed", "sound"], default="sound")
    parser.add_argument("--transport", choices=["http", "stdio"], default="http")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--handle", choices=["structured", "text", "both"], default="both")
    parser.add_argument("--principal", choices=["meta", "none"], default="meta")
    chosen = parser.parse_args()
    chosen.sound = chosen.mode == "sound"
    return chosen


# --- who is calling ---------------------------------------------------------------------------------


def caller(chosen: argparse.Namespace, meta) -> str:
    """The principal of this request: from the bearer token, else from `_meta`, else everybody is the same."""
    token = get_access_token()
    if token is not None:
        return token.subject
    if chosen.principal == "none":
        return "local"
    named = (meta or {}).get(PRINCIPAL_KEY)
    if not isinstance(named, str) or not named:
        # No name, no service. Falling back to a default user would make a nameless caller an owner.
        raise MCPError(INVALID_PARAMS, f"_meta names no {PRINCIPAL_KEY}")
    return named


def principal_binding(chosen: argparse.Namespace):
    """What sealed state is bound to: the SDK's own answer over HTTP, the same caller as above over stdio."""

    def bind(ctx) -> str | None:
        return authenticated_principal(ctx) or caller(chosen, ctx.meta)

    return bind


class Tokens(TokenVerifier):
    """Two users of one client. Everything else, and nothing at all, is answered 401 by the SDK."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    async def verify_token(self, token: str) -> AccessToken | None:
        user = USERS.get(token)
        if user is None:
            return None
        return AccessToken(token=token, client_id=CLIENT, scopes=[], resource=self._resource, subject=user)


def auth_settings(url: str) -> AuthSettings:
    """A resource server that accepts only tokens made for its own URL. The issuer is a name; nothing fetches it."""
    return AuthSettings(issuer_url=f"{url}/issuer", resource_server_url=url, validate_token_resource=True)


# --- what they own ----------------------------------------------------------------------------------


class Shelf:
    """Things by handle, each with its owner, and the one check on which flawed and sound differ."""

    def __init__(self, sound: bool) -> None:
        self._sound = sound
        self._things: dict[str, dict] = {}

    def put(self, prefix: str, thing: dict) -> str:
        handle = prefix + secrets.token_hex(8)
        self._things[handle] = thing
        return handle

    def find(self, handle, who: str) -> dict | None:
        """The thing, or None. Unknown and foreign are the same None, so that neither can be told from the other."""
        thing = self._things.get(handle)
        if thing is None:
            return None
        # FLAW, in flawed mode: the owner was recorded, and is never compared with the caller.
        if self._sound and thing["owner"] != who:
            return None
        return thing


# --- what they say ----------------------------------------------------------------------------------


def say(text: str, structured: dict | None = None, is_error: bool = False) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=structured, is_error=is_error
    )


def minted(chosen: argparse.Namespace, with_handle: str, without: str, structured: dict) -> CallToolResult:
    """The answer of a minting tool; `--handle` decides in which of the two places the handle stands."""
    if chosen.handle == "structured":
        return say(without, structured)
    if chosen.handle == "text":
        return say(with_handle)
    return say(with_handle, structured)


def destructive(tool: str) -> CallToolResult:
    """A probe must never come here, and the test suite reads stderr to see that it did not."""
    print(f"DESTRUCTIVE TOOL CALLED {tool}", file=sys.stderr, flush=True)
    return say(f"{tool}: done, nothing is left.")


# --- the state between two rounds -------------------------------------------------------------------


def fresh_state(who: str, tool: str, amount: int) -> dict:
    return {"principal": who, "tool": tool, "amount": amount, "expires": int(time.time()) + 600}


def encode(state: dict) -> str:
    """base64url of JSON, as many hand-written servers do it: readable, and nobody vouches for it."""
    return base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")


def decode(text: str) -> dict:
    # FLAW: whoever can write base64 can write this state. Only what does not decode at all is refused.
    return checked(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def checked(raw: bytes | str) -> dict:
    """JSON of the expected form that has not expired. This is good manners, it proves nothing about the author."""
    state = json.loads(raw)
    if not isinstance(state, dict) or not {"principal", "tool", "amount", "expires"} <= state.keys():
        raise ValueError("not a state of ours")
    if not isinstance(state["amount"], int) or not state["expires"] > time.time():
        raise ValueError("unusable or expired")
    return state


def bad_state() -> MCPError:
    """The refusal of the flawed modes, in the words that the SDK uses for its own."""
    return MCPError(INVALID_PARAMS, "Invalid or expired requestState")
