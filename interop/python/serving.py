"""The part of serving that knows nothing of any SDK: both environments, with mcp 1.x and with 2.x, import it."""

import socket

import uvicorn
from starlette.responses import JSONResponse, Response

USERS = {"alice-token": "alice", "bob-token": "bob"}

# Both users belong to one OAuth client: a server that binds to the client id alone must not look bound.
CLIENT = "interop-client"


def bind(port: int) -> tuple[socket.socket, str]:
    """Bind before the application is built: its authorization settings need the final URL."""
    listener = socket.create_server(("127.0.0.1", port))
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


class _Announcing(uvicorn.Server):
    url: str

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        print(f"listening on {self.url}", flush=True)


def gated(app, url: str):
    """A proxy in front of a server that asks nobody who they are: it lets the two users in, and tells the server nothing."""
    origin, path = url.removesuffix("/mcp"), "/.well-known/oauth-protected-resource/mcp"
    metadata = {"resource": url, "authorization_servers": [f"{url}/issuer"]}
    challenge = {"www-authenticate": f'Bearer error="invalid_token", resource_metadata="{origin}{path}"'}

    async def gate(scope, receive, send) -> None:
        if scope["type"] == "http":
            named = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            if scope["path"] == path:
                return await JSONResponse(metadata)(scope, receive, send)
            if named.removeprefix("Bearer ") not in USERS:
                return await Response(status_code=401, headers=challenge)(scope, receive, send)
        await app(scope, receive, send)

    return gate


async def serve(app, listener: socket.socket, url: str) -> None:
    # The access log would go to stdout, where the test suite expects one line and nothing else.
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = _Announcing(config)
    server.url = url
    await server.serve(sockets=[listener])
