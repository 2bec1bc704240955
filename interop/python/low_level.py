"""Workspaces, on the low-level `Server` of the `mcp` package.

This tier seals nothing by itself, so it shows what an author gets who writes every handler by hand: the sound mode
has to append the SDK's RequestStateBoundary, the flawed mode forgets it and sends base64url(JSON).

Field and argument have the same name here: `workspace_id` is minted and `workspace_id` is asked for. The handle is
accepted by tools, by a resource template and by a prompt, and all three ways in go through the same `Shelf.find`.
A tool, a prompt and a resource answer `input_required`.
"""

import json
import secrets

import anyio
import common
import jsonschema
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

CHOSEN = common.options(__doc__.splitlines()[0])
SHELF = common.Shelf(CHOSEN.sound)

HANDLE = {"type": "string", "pattern": "^ws_[0-9a-f]{16}$", "description": "What open_workspace returned"}
REGIONS = ["eu-west", "us-east"]


def tool(name: str, description: str, properties: dict, required: list[str], output: dict | None = None, **hints):
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return types.Tool(
        name=name,
        description=description,
        input_schema=schema,
        output_schema=output,
        annotations=types.ToolAnnotations(**hints) if hints else None,
    )


# A declared output schema obliges the server to send structuredContent, which `--handle text` leaves out.
OPENED = None if CHOSEN.handle == "text" else {
    "type": "object",
    "properties": {"workspace_id": {"type": "string"}, "region": {"type": "string"}},
    "required": ["workspace_id"],
}

TOOLS = [
    tool(
        "open_workspace",
        "Open a workspace. It lives as long as this process.",
        {
            "name": {"type": "string", "minLength": 1, "maxLength": 120},
            "region": {"type": "string", "enum": REGIONS},
            "seats": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
        },
        ["name", "region"],
        OPENED,
    ),
    tool(
        "read_workspace",
        "Show a workspace and its notes.",
        {"workspace_id": HANDLE},
        ["workspace_id"],
        read_only_hint=True,
    ),
    tool(
        "add_note",
        "Add a note to a workspace.",
        {"workspace_id": HANDLE, "note": {"type": "string", "minLength": 1, "maxLength": 500}},
        ["workspace_id", "note"],
        destructive_hint=False,
    ),
    tool(
        "delete_workspace",
        "Delete a workspace and its notes.",
        {"workspace_id": HANDLE},
        ["workspace_id"],
        destructive_hint=True,
    ),
    tool(
        "reserve_seats",
        "Reserve seats for the caller, after a confirmation.",
        {"amount": {"type": "integer", "minimum": 1, "maximum": 40}},
        ["amount"],
    ),
]


def found(handle, who: str) -> dict:
    workspace = SHELF.find(handle, who)
    if workspace is None:
        raise LookupError("no such workspace")
    return workspace


def described(workspace: dict) -> str:
    notes = "".join(f"\n- {note}" for note in workspace["notes"])
    return f"Workspace {workspace['name']!r} in {workspace['region']}, owned by {workspace['owner']}.{notes}"


# --- two rounds, the same for tools, prompts and resources ------------------------------------------


def asked(who: str, what: str, amount: int) -> types.InputRequiredResult:
    form = types.ElicitRequestFormParams(
        message=f"{what} for {who}, amount {amount}?",
        requested_schema={
            "type": "object",
            "properties": {"confirm": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 200}},
            "required": ["confirm"],
        },
    )
    state = common.fresh_state(who, what, amount)
    # In sound mode the boundary seals this plaintext on its way out, and unseals it on its way in.
    carried = json.dumps(state) if CHOSEN.sound else common.encode(state)
    question = types.ElicitRequest(params=form)
    return types.InputRequiredResult(input_requests={"confirm": question}, request_state=carried)


def two_rounds(params, who: str, what: str, amount: int, done) -> types.InputRequiredResult | str:
    """Ask first; afterwards act on what the STATE says, which is why the state has to be trustworthy."""
    answer = (params.input_responses or {}).get("confirm")
    if params.request_state is None or not isinstance(answer, types.ElicitResult):
        return asked(who, what, amount)
    try:
        state = common.checked(params.request_state) if CHOSEN.sound else common.decode(params.request_state)
    except (ValueError, TypeError):
        raise common.bad_state() from None
    if answer.action != "accept" or not (answer.content or {}).get("confirm"):
        return f"{what}: not confirmed, nothing was done."
    return done(state)


# --- handlers ---------------------------------------------------------------------------------------


async def list_tools(ctx, params) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(ctx, params) -> types.CallToolResult | types.InputRequiredResult:
    schema = next((tool.input_schema for tool in TOOLS if tool.name == params.name), None)
    if schema is None:
        raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name}")
    args, who = params.arguments or {}, common.caller(CHOSEN, ctx.meta)
    try:
        # The low-level tier publishes the schema and checks nothing against it.
        jsonschema.validate(args, schema)
        return act(params, args, who)
    except jsonschema.ValidationError as problem:
        return common.say(f"bad arguments: {problem.message}", is_error=True)
    except LookupError as problem:
        return common.say(str(problem), is_error=True)


def act(params, args: dict, who: str) -> types.CallToolResult | types.InputRequiredResult:
    match params.name:
        case "open_workspace":
            workspace = {"owner": who, "name": args["name"], "region": args["region"], "notes": []}
            handle = SHELF.put("ws_", workspace)
            return common.minted(
                CHOSEN,
                f"Opened workspace {handle} in {args['region']}.",
                f"Opened a workspace in {args['region']}.",
                {"workspace_id": handle, "region": args["region"]},
            )
        case "read_workspace":
            return common.say(described(found(args["workspace_id"], who)))
        case "add_note":
            workspace = found(args["workspace_id"], who)
            workspace["notes"].append(args["note"])
            return common.say(f"Note {len(workspace['notes'])} added to {workspace['name']!r} of {workspace['owner']}.")
        case "delete_workspace":
            return common.destructive(params.name)
        case _:
            outcome = two_rounds(
                params, who, "reserve_seats", args["amount"],
                lambda state: f"{state['tool']}: {state['amount']} seats reserved for {state['principal']}.",
            )
            return common.say(outcome) if isinstance(outcome, str) else outcome


async def list_resources(ctx, params) -> types.ListResourcesResult:
    ledger = types.Resource(uri="ledger://seats", name="ledger", description="Who holds how many seats; asks first")
    return types.ListResourcesResult(resources=[ledger])


async def list_templates(ctx, params) -> types.ListResourceTemplatesResult:
    notes = types.ResourceTemplate(uri_template="workspace://{workspace_id}/notes", name="workspace-notes")
    return types.ListResourceTemplatesResult(resource_templates=[notes])


async def read_resource(ctx, params) -> types.ReadResourceResult | types.InputRequiredResult:
    who = common.caller(CHOSEN, ctx.meta)
    if params.uri == "ledger://seats":
        text = two_rounds(
            params, who, "read_ledger", 3, lambda state: f"{state['principal']} holds {state['amount']} seats."
        )
        if not isinstance(text, str):
            return text
    else:
        try:
            text = described(found(params.uri.removeprefix("workspace://").removesuffix("/notes"), who))
        except LookupError:
            raise MCPError(types.INVALID_PARAMS, "unknown resource") from None
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=text)])


async def list_prompts(ctx, params) -> types.ListPromptsResult:
    def prompt(name: str, description: str, argument: str) -> types.Prompt:
        arguments = [types.PromptArgument(name=argument, required=True)]
        return types.Prompt(name=name, description=description, arguments=arguments)

    return types.ListPromptsResult(
        prompts=[
            prompt("workspace_brief", "Brief somebody on a workspace", "workspace_id"),
            prompt("letter_of_intent", "Write that seats will be taken; asks first", "topic"),
        ]
    )


async def get_prompt(ctx, params) -> types.GetPromptResult | types.InputRequiredResult:
    args, who = params.arguments or {}, common.caller(CHOSEN, ctx.meta)
    if params.name == "letter_of_intent":
        text = two_rounds(
            params, who, "letter_of_intent", 2,
            lambda state: f"Write to {args.get('topic')}: {state['principal']} will take {state['amount']} seats.",
        )
        if not isinstance(text, str):
            return text
    else:
        try:
            text = f"Brief me on this: {described(found(args.get('workspace_id'), who))}"
        except LookupError as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from None
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(messages=[message])


SERVER = Server(
    "interop-workspaces",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
)
if CHOSEN.sound:
    security = RequestStateSecurity(keys=[secrets.token_bytes(32)], bind_principal=common.principal_binding(CHOSEN))
    SERVER.middleware.append(RequestStateBoundary(security, default_audience=SERVER.name))


async def main() -> None:
    if CHOSEN.transport == "stdio":
        async with stdio_server() as (read, write):
            await SERVER.run(read, write, SERVER.create_initialization_options())
    else:
        listener, url = common.bind(CHOSEN.port)
        app = SERVER.streamable_http_app(auth=common.auth_settings(url), token_verifier=common.Tokens(url))
        await common.serve(app, listener, url)


if __name__ == "__main__":
    anyio.run(main)
