"""Deployments that are asked about first, on the low-level `Server` of `mcp` 2.x, as its documentation shows the tier.

The page is docs/handlers/multi-round-trip.md of modelcontextprotocol/python-sdk, "Hand-built state": on this tier
nothing is sealed until the author appends the boundary. So in flawed mode, which is what there is without that line,
the state is on the wire what the handler wrote: JSON. The sound mode is the same server and the one line. All else is
the SDK's: who calls, whom a state is bound to, and what is said about one that does not fit.
"""

import argparse
import json

import anyio
import common
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--mode", choices=["flawed", "sound"], default="flawed")
parser.add_argument("--transport", choices=["http"], default="http")
parser.add_argument("--port", type=int, default=0)
CHOSEN = parser.parse_args()

DEPLOY = types.Tool(
    name="deploy",
    description="Deploy to an environment, after a confirmation.",
    input_schema={
        "type": "object",
        "properties": {
            "env": {"type": "string", "maxLength": 120},
            "replicas": {"type": "integer", "minimum": 1, "maximum": 20},
        },
        "required": ["env", "replicas"],
    },
)
CONFIRM: types.ElicitRequestedSchema = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean"}},
    "required": ["confirm"],
}


async def list_tools(ctx, params) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[DEPLOY])


async def call_tool(ctx, params) -> types.CallToolResult | types.InputRequiredResult:
    answer = (params.input_responses or {}).get("confirm")
    if params.request_state is None or not isinstance(answer, types.ElicitResult):
        env, replicas = params.arguments["env"], params.arguments["replicas"]
        form = types.ElicitRequestFormParams(message=f"Deploy {replicas} to {env}?", requested_schema=CONFIRM)
        state = json.dumps({"step": "confirm", "env": env, "replicas": replicas})
        return types.InputRequiredResult(
            input_requests={"confirm": types.ElicitRequest(params=form)}, request_state=state
        )
    try:
        # FLAW, in flawed mode: this is whatever the client sent.
        state = json.loads(params.request_state)
        what = f"{state['replicas']:d} replicas to {state['env']}"
    except (ValueError, KeyError, TypeError):
        raise common.bad_state() from None
    if answer.action != "accept" or not (answer.content or {}).get("confirm"):
        return common.say(f"Not confirmed: {what}.")
    return common.say(f"Deployed {what}.")


SERVER = Server("interop-deployments", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
if CHOSEN.mode == "sound":
    SERVER.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=SERVER.name))

if __name__ == "__main__":
    listener, url = common.bind(CHOSEN.port)
    app = SERVER.streamable_http_app(auth=common.auth_settings(url), token_verifier=common.Tokens(url))
    anyio.run(common.serve, app, listener, url)
