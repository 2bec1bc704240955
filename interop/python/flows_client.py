"""The official Python client on the server of `flows.py`: `flows_client.py URL REVISION` does what a client can do, and prints
one line for each thing, the same ones whatever stands in between."""

import sys
import warnings

import anyio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.types import (
    ElicitResult,
    LoggingMessageNotification,
    ProgressNotification,
    PromptReference,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
)

ITEM = "test://item/1"
# These come to callbacks of their own.
EXPECTED = (LoggingMessageNotification, ProgressNotification, ResourceUpdatedNotification)


def told(what: str, *values: object) -> None:
    print(f"{what}:", *values, flush=True)


async def answered(_context, params) -> ElicitResult:
    told("asked", params.message)
    return ElicitResult(action="accept", content={"colour": "green"})


async def logged(params) -> None:
    told("log", params.level, params.data)


class Heard:
    """What the server says unasked."""

    def __init__(self) -> None:
        self.updated = anyio.Event()

    async def __call__(self, message) -> None:
        if isinstance(message, ResourceUpdatedNotification) and str(message.params.uri) == ITEM:
            self.updated.set()
        elif not isinstance(message, EXPECTED):
            told("heard", type(message).__name__)


def text(result) -> str:
    return "error" if result.is_error else result.content[0].text


async def updates(client: Client, heard: Heard, modern: bool) -> None:
    if modern:
        async with client.listen(resource_subscriptions=[ITEM]) as subscription:
            told("listening", subscription.honored.resource_subscriptions)
            await client.call_tool("touch", {"uri": "test://item/2"})
            await client.call_tool("touch", {"uri": ITEM})
            with anyio.fail_after(20):
                told("update", await anext(subscription) == ResourceUpdated(uri=ITEM))
        return
    await client.subscribe_resource(ITEM)
    # It comes by a stream of its own, which may not be open yet.
    with anyio.fail_after(20):
        while not heard.updated.is_set():
            await client.call_tool("touch", {"uri": ITEM})
            with anyio.move_on_after(0.2):
                await heard.updated.wait()
    told("update", True)


async def cancel(client: Client) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "linger", {})
        await client.call_tool("lingers", {})
        tasks.cancel_scope.cancel()
    told("cancelled", text(await client.call_tool("was_cancelled", {})))


async def progress(at: float, total: float | None, message: str | None) -> None:
    told("progress", at, total, message)


async def main(url: str, revision: str) -> None:
    modern, heard = revision >= "2026-07-28", Heard()
    client = Client(
        # Longer events than the 1 MiB that the SDK takes by itself.
        streamable_http_client(url, max_sse_event_size=8 << 20),
        mode="auto" if modern else "legacy",
        elicitation_callback=answered,
        logging_callback=logged,
        message_handler=heard,
        log_level="info",
        read_timeout_seconds=30,
    )
    async with client:
        told("revision", client.protocol_version, client.server_info.name if client.server_info else None)
        told("tools", [tool.name for tool in (await client.list_tools()).tools])
        opened = await client.call_tool("open_case", {"title": "a leak"})
        case = opened.structured_content["case_id"]
        told("case", opened.content[0].text.count(case), len(case) > 20)
        shown = text(await client.call_tool("show_case", {"case_id": case}))
        told("shown", shown.replace(case, "CASE"))
        told("unknown", text(await client.call_tool("no_such_tool", {})))
        told("count", text(await client.call_tool("count", {"to": 3}, progress_callback=progress)))
        if not modern:
            await client.set_logging_level("info")
        told("tell", text(await client.call_tool("tell", {})))
        told("paint", text(await client.call_tool("paint", {})))
        told("much", len(text(await client.call_tool("write_much", {"letters": 3_000_000}))))
        told("long", text(await client.call_tool("read_much", {"text": "x" * 1_500_000})))
        told("resources", [str(found.uri) for found in (await client.list_resources()).resources])
        templates = (await client.list_resource_templates()).resource_templates
        told("templates", [found.uri_template for found in templates])
        told("read", (await client.read_resource(ITEM)).contents[0].text)
        try:
            await client.read_resource("test://nothing")
        except Exception as problem:
            told("nothing", problem)
        told("prompts", [prompt.name for prompt in (await client.list_prompts()).prompts])
        told("prompt", (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content.text)
        for ref in (PromptReference(name="greet"), ResourceTemplateReference(uri="test://item/{name}")):
            told("completion", (await client.complete(ref, {"name": "name", "value": "A"})).completion.values)
        await updates(client, heard, modern)
        await cancel(client)
    told("over")


if __name__ == "__main__":
    # What 2026-07-28 has taken away is wanted here all the same.
    warnings.simplefilter("ignore")
    anyio.run(main, *sys.argv[1:3])
