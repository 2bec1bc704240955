"""Baskets, on `MCPServer`, the high-level class of `mcp` 2.x.

This tier seals `requestState` whether the author thinks of it or not. The sound mode over HTTP is therefore just the
default; the flawed mode takes the SDK's boundary out again, as one does when retries fail behind two workers, and
carries `body.signature` whose signature nobody ever checks.

The minted field is called `id`, the argument `basket_id`. The checkout needs a basket of one's own before it asks
anything, and `choose_wrapping` asks through a resolver, the way this tier documents, with the SDK's own state.
"""

import hashlib
import hmac
import json
import secrets
from typing import Annotated, Literal

import anyio
import common
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

CHOSEN = common.options(__doc__.splitlines()[0])
SHELF = common.Shelf(CHOSEN.sound)
KEY = secrets.token_bytes(32)

LISTENER, URL = common.bind(CHOSEN.port) if CHOSEN.transport == "http" else (None, None)
OVER_HTTP = {"auth": common.auth_settings(URL), "token_verifier": common.Tokens(URL)} if URL else {}

# The default policy binds to the bearer token. Over stdio there is none, so the caller has to be named to it.
OVER_STDIO = {} if URL else {
    "request_state_security": RequestStateSecurity(keys=[KEY], bind_principal=common.principal_binding(CHOSEN))
}

SERVER = MCPServer("interop-baskets", version="1", log_level="WARNING", **OVER_HTTP, **OVER_STDIO)
if not CHOSEN.sound:
    # FLAW: without the boundary, what a handler calls its state is what the client sends.
    SERVER.middleware[:] = [layer for layer in SERVER.middleware if not isinstance(layer, RequestStateBoundary)]

BasketId = Annotated[str, Field(description="The basket")]


class Opened(BaseModel):
    id: str
    shelf_life_minutes: int


# An output schema obliges the tool to send structuredContent, which `--handle text` leaves out.
Minted = CallToolResult if CHOSEN.handle == "text" else Annotated[CallToolResult, Opened]


def caller(ctx: Context) -> str:
    return common.caller(CHOSEN, ctx.request_context.meta)


def found(basket_id: str, ctx: Context) -> dict:
    basket = SHELF.find(basket_id, caller(ctx))
    if basket is None:
        raise ToolError("no such basket")
    return basket


def described(basket: dict) -> str:
    items = ", ".join(f"{count} x {name}" for name, count in basket["items"]) or "nothing"
    return f"Basket {basket['title']!r} of {basket['owner']}: {items}"


# --- tools that make, read and change a basket ------------------------------------------------------


@SERVER.tool()
def create_basket(title: Annotated[str, Field(min_length=1, max_length=120)], ctx: Context) -> Minted:
    """Create a basket. It is kept for 60 minutes at least."""
    basket_id = SHELF.put("bsk_", {"owner": caller(ctx), "title": title, "items": []})
    return common.minted(
        CHOSEN, f"Created basket {basket_id}.", "Created a basket.", {"id": basket_id, "shelf_life_minutes": 60}
    )


@SERVER.tool(annotations=ToolAnnotations(read_only_hint=True))
def show_basket(basket_id: BasketId, ctx: Context) -> str:
    """Show what is in a basket, and whose it is."""
    return described(found(basket_id, ctx))


@SERVER.tool(annotations=ToolAnnotations(destructive_hint=False))
def add_item(
    basket_id: BasketId,
    item: Annotated[str, Field(min_length=1, max_length=80)],
    ctx: Context,
    quantity: Annotated[int, Field(ge=1, le=99)] = 1,
) -> str:
    """Put an item into a basket."""
    basket = found(basket_id, ctx)
    basket["items"].append((item, quantity))
    return described(basket)


@SERVER.tool(annotations=ToolAnnotations(destructive_hint=True))
def empty_basket(basket_id: BasketId) -> CallToolResult:
    """Throw everything out of a basket."""
    return common.destructive("empty_basket")


# --- the state of the flawed mode -------------------------------------------------------------------


def signed(state: dict) -> str:
    body = common.encode(state)
    return f"{body}.{hmac.new(KEY, body.encode(), hashlib.sha256).hexdigest()}"


def opened(text: str) -> dict:
    body, _signature = text.split(".")
    # FLAW: the signature is made with care, carried along, and never compared.
    return common.decode(body)


# --- tools that ask before they act -----------------------------------------------------------------


@SERVER.tool()
def checkout(
    basket_id: BasketId, amount: Annotated[int, Field(ge=1, le=500)], ctx: Context
) -> CallToolResult | InputRequiredResult:
    """Order what is in a basket, up to an amount, after the caller has said how it shall come."""
    found(basket_id, ctx)
    answer = (ctx.input_responses or {}).get("delivery")
    if ctx.request_state is None or not isinstance(answer, ElicitResult):
        form = ElicitRequestFormParams(
            message=f"Order for up to {amount}: how shall it come?",
            requested_schema={
                "type": "object",
                "properties": {
                    "way": {"type": "string", "enum": ["pickup", "courier"]},
                    "days": {"type": "integer", "minimum": 1, "maximum": 14},
                },
                "required": ["way"],
            },
        )
        state = common.fresh_state(caller(ctx), "checkout", amount)
        carried = json.dumps(state) if CHOSEN.sound else signed(state)
        return InputRequiredResult(input_requests={"delivery": ElicitRequest(params=form)}, request_state=carried)
    try:
        state = common.checked(ctx.request_state) if CHOSEN.sound else opened(ctx.request_state)
    except (ValueError, TypeError):
        raise common.bad_state() from None
    way = (answer.content or {}).get("way")
    if answer.action != "accept" or way not in ("pickup", "courier"):
        return common.say("Nothing was ordered.")
    return common.say(f"{state['tool']}: ordered for {state['principal']}, up to {state['amount']}, by {way}.")


class Wrapping(BaseModel):
    paper: Literal["plain", "striped"]


def ask_wrapping() -> Elicit[Wrapping]:
    return Elicit("Which paper?", Wrapping)


@SERVER.tool()
def choose_wrapping(basket_id: BasketId, wrapping: Annotated[Wrapping, Resolve(ask_wrapping)], ctx: Context) -> str:
    """Choose the paper that a basket is wrapped in."""
    return f"{described(found(basket_id, ctx))}, wrapped in {wrapping.paper} paper"


# --- the same handle, other doors -------------------------------------------------------------------


@SERVER.resource("basket://{basket_id}/contents")
def contents(basket_id: str, ctx: Context) -> str:
    try:
        return described(found(basket_id, ctx))
    except ToolError:
        raise ResourceNotFoundError("no such basket") from None


@SERVER.prompt()
def recipe_for_basket(basket_id: str, ctx: Context) -> str:
    """Ask for a recipe from what is in a basket."""
    try:
        return f"Suggest a recipe. {described(found(basket_id, ctx))}"
    except ToolError:
        raise MCPError(INVALID_PARAMS, "no such basket") from None


async def main() -> None:
    if LISTENER is None:
        await SERVER.run_stdio_async()
    else:
        await common.serve(SERVER.streamable_http_app(), LISTENER, URL)


if __name__ == "__main__":
    anyio.run(main)
