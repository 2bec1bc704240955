"""Diaries, on fastmcp 4.x and its own session handles: the server that has to come out clean.

In sound mode nothing about binding is ours: `create_session` mints, `SessionId` is the argument, and fastmcp keys
what is stored by (principal, id). A stranger's handle and an invented one miss in the same way. `UserSession` needs
no handle at all. fastmcp also seals `requestState` by default.

In flawed mode the diaries lie in a dictionary under a uuid, and the SDK is given a codec that only encodes. That is
its documented way to bring one's own cryptography, with the cryptography left out: the SDK still builds and checks
its envelope of claims, and anybody can write one.
"""

import base64
import json
import secrets
import uuid
from typing import Annotated

import anyio
import common
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.auth.auth import AccessToken, RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.dependencies import get_session
from fastmcp.server.middleware import Middleware
from fastmcp.server.sessions import SessionId, SessionProvider, UserSession, create_session
from fastmcp.tools.base import ToolResult
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.request_state import InvalidRequestState, RequestStateSecurity
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import AnyHttpUrl, Field

CHOSEN = common.options(__doc__.splitlines()[0])
NAME = "interop-diaries"
LISTENER, URL = common.bind(CHOSEN.port) if CHOSEN.transport == "http" else (None, None)


class EncodingOnly:
    """FLAW: a codec is asked for integrity, and this one offers base64."""

    def seal(self, payload: bytes) -> str:
        return base64.urlsafe_b64encode(payload).decode().rstrip("=")

    def unseal(self, token: str) -> bytes:
        try:
            return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except ValueError:
            raise InvalidRequestState("malformed") from None


class NamedByMeta(Middleware):
    """Over stdio there is no token. This makes the name in `_meta` the caller that fastmcp keys its sessions by."""

    async def on_call_tool(self, context, call_next):
        request = context.fastmcp_context.request_context
        who = common.caller(CHOSEN, request.meta)
        named = AccessToken(token=who, client_id=common.CLIENT, scopes=[], subject=who)
        before = auth_context_var.set(AuthenticatedUser(named))
        try:
            return await call_next(context)
        finally:
            auth_context_var.reset(before)


TOKENS = {token: {"client_id": common.CLIENT, "scopes": [], "sub": user} for token, user in common.USERS.items()}
AUTH = RemoteAuthProvider(
    token_verifier=StaticTokenVerifier(TOKENS),
    authorization_servers=[AnyHttpUrl(f"{URL}/issuer")],
    base_url=URL.removesuffix("/mcp"),
) if URL else None
KEYS = {"keys": [secrets.token_bytes(32)]} if CHOSEN.sound else {"codec": EncodingOnly()}

SERVER = FastMCP(
    NAME,
    version="1",
    auth=AUTH,
    middleware=[] if URL or CHOSEN.principal == "none" else [NamedByMeta()],
    request_state_security=RequestStateSecurity(
        **KEYS, bind_principal=common.principal_binding(CHOSEN), audience=NAME
    ),
)


def caller(ctx: Context) -> str:
    return common.caller(CHOSEN, ctx.request_context.meta)


# --- where diaries are kept -------------------------------------------------------------------------

if CHOSEN.sound:
    # The lifecycle tools of fastmcp itself. Theirs mints too, without a title.
    SERVER.add_provider(SessionProvider())

    async def keep(diary: dict, session_id: str | None = None) -> str:
        session_id = session_id or await create_session()
        await (await get_session(session_id)).set("diary", diary)
        return session_id

    async def find(session_id: str, ctx: Context) -> dict:
        # get_session raises for an id that this principal has not created; fastmcp words the refusal.
        blank = {"title": "untitled", "owner": caller(ctx), "entries": []}
        return await (await get_session(session_id)).get("diary", blank)

else:
    SHELF: dict[str, dict] = {}

    async def keep(diary: dict, session_id: str | None = None) -> str:
        session_id = session_id or str(uuid.uuid4())
        SHELF[session_id] = diary
        return session_id

    async def find(session_id: str, ctx: Context) -> dict:
        if session_id not in SHELF:
            raise ToolError("Invalid or unknown session.")
        # FLAW: diary["owner"] is right here, and nobody asks whether it is the caller.
        return SHELF[session_id]


def described(diary: dict) -> str:
    return f"Diary {diary['title']!r} of {diary['owner']}: {'; '.join(diary['entries']) or 'empty'}"


# --- tools ------------------------------------------------------------------------------------------


@SERVER.tool
async def start_diary(title: Annotated[str, Field(min_length=1, max_length=120)], ctx: Context) -> ToolResult:
    """Start a diary with a title. It lives as long as this process."""
    session_id = await keep({"title": title, "owner": caller(ctx), "entries": []})
    answer = common.minted(
        CHOSEN, f"Started diary {session_id}.", "Started a diary.", {"session_id": session_id, "pages": 0}
    )
    return ToolResult(content=answer.content, structured_content=answer.structured_content)


@SERVER.tool(annotations={"readOnlyHint": True})
async def read_diary(session_id: SessionId, ctx: Context) -> str:
    """Read a diary."""
    return described(await find(session_id, ctx))


@SERVER.tool
async def write_entry(
    session_id: SessionId, entry: Annotated[str, Field(min_length=1, max_length=500)], ctx: Context
) -> str:
    """Write an entry into a diary."""
    diary = await find(session_id, ctx)
    diary["entries"].append(entry)
    await keep(diary, session_id)
    return described(diary)


@SERVER.tool
async def order_copies(amount: Annotated[int, Field(ge=1, le=20)], ctx: Context) -> str | InputRequiredResult:
    """Order printed copies for the caller, after a question."""
    answer = (ctx.input_responses or {}).get("paper")
    if ctx.request_state is None or not isinstance(answer, ElicitResult):
        form = ElicitRequestFormParams(
            message=f"{amount} copies: on which paper?",
            requested_schema={
                "type": "object",
                "properties": {"paper": {"type": "string", "enum": ["white", "cream"]}},
                "required": ["paper"],
            },
        )
        state = json.dumps(common.fresh_state(caller(ctx), "order_copies", amount))
        return InputRequiredResult(input_requests={"paper": ElicitRequest(params=form)}, request_state=state)
    try:
        state = common.checked(ctx.request_state)
    except (ValueError, TypeError):
        raise common.bad_state() from None
    if answer.action != "accept":
        return "No copies were ordered."
    return f"{state['tool']}: {state['amount']} copies for {state['principal']}, on {answer.content['paper']} paper."


if URL or CHOSEN.principal == "meta":
    # State without a handle on the wire: one bucket for each user, which is what `ambient-shared` looks at.

    @SERVER.tool
    async def remember(fact: Annotated[str, Field(max_length=500)], session: UserSession) -> str:
        """Remember one fact about the caller."""
        await session.set("fact", fact)
        return "Noted."

    @SERVER.tool(annotations={"readOnlyHint": True})
    async def recall(session: UserSession) -> str:
        """Say what was remembered."""
        return str(await session.get("fact", "nothing yet"))


async def main() -> None:
    if LISTENER is None:
        await SERVER.run_async(transport="stdio", show_banner=False, log_level="warning")
    else:
        # fastmcp guards Host and Origin only on request.
        await common.serve(SERVER.http_app(path="/mcp", host_origin_protection=True), LISTENER, URL)


if __name__ == "__main__":
    anyio.run(main)
