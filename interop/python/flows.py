"""A server on mcp 2.3.0 for whatever a client can do with one, so that clients can be compared with and without something
in between. Nobody is asked who they are. The last tool tells whether the one before it was cancelled."""

import argparse
from typing import Annotated, TypedDict
from uuid import uuid4

import anyio
import common
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.types import Completion, EmptyResult, SetLevelRequestParams, SubscribeRequestParams
from pydantic import BaseModel

mcp = MCPServer(name="flows", version="1.0.0", instructions="Call whatever there is.")
cases: dict[str, str] = {}
subscribed: list[tuple[str, object]] = []


class Case(TypedDict):
    case_id: str


class Colour(BaseModel):
    colour: str


def which_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@mcp.tool()
def open_case(title: str) -> Case:
    case_id = f"case-{uuid4().hex}"
    cases[case_id] = title
    return {"case_id": case_id}


@mcp.tool()
def show_case(case_id: str) -> str:
    return f"{case_id} is about {cases[case_id]}" if case_id in cases else f"no case {case_id}"


@mcp.tool()
def write_much(letters: int) -> str:
    return "0123456789abcdef" * (letters // 16)


@mcp.tool()
def read_much(text: str) -> int:
    return len(text)


@mcp.tool()
async def count(to: int, ctx: Context) -> str:
    for at in range(1, to + 1):
        await ctx.report_progress(at, to, f"{at} of {to}")
    return f"counted to {to}"


@mcp.tool()
async def tell(ctx: Context) -> str:
    await ctx.info("one")
    await ctx.warning("two")
    return "told"


@mcp.tool()
async def paint(colour: Annotated[ElicitationResult[Colour], Resolve(which_colour)]) -> str:
    """Asks on the way in the manner of its revision: in rounds, or by a request to the client."""
    return f"{colour.action} {colour.data.colour}" if colour.action == "accept" else colour.action


@mcp.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Tells whoever has subscribed, in either revision."""
    await ctx.notify_resource_updated(uri)
    for wanted, session in list(subscribed):
        if wanted == uri:
            await session.send_resource_updated(uri)
    return "touched"


started, ended = anyio.Event(), anyio.Event()


@mcp.tool()
async def linger() -> str:
    global started, ended
    started.set()
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        ended.set()
        raise
    return "was not cancelled"


@mcp.tool()
async def lingers() -> bool:
    """Waits until the other one has begun."""
    with anyio.fail_after(20):
        await started.wait()
    return True


@mcp.tool()
async def was_cancelled() -> bool:
    global started, ended
    with anyio.move_on_after(10):
        await ended.wait()
    told, started, ended = ended.is_set(), anyio.Event(), anyio.Event()
    return told


@mcp.resource("test://plain")
def plain() -> str:
    return "plain text"


@mcp.resource("test://item/{name}")
def item(name: str) -> str:
    return f"item {name}"


@mcp.prompt()
def greet(name: str) -> str:
    return f"Greet {name}."


@mcp.completion()
async def complete(_ref, argument, _context) -> Completion:
    names = [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]
    return Completion(values=names, total=len(names), has_more=False)


async def subscribe(ctx: ServerRequestContext, params: SubscribeRequestParams) -> EmptyResult:
    subscribed.append((str(params.uri), ctx.session))
    return EmptyResult()


async def set_level(_ctx: ServerRequestContext, _params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


# There is no public way to these yet; the SDK's own example does the same.
mcp._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
mcp._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transport", choices=["http", "stdio"], default="http")
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.transport == "stdio":
        return await mcp.run_stdio_async()
    listener, url = common.bind(chosen.port)
    await common.serve(mcp.streamable_http_app(), listener, url)


if __name__ == "__main__":
    anyio.run(main)
