"""The part of serving that knows nothing of any SDK: both environments, with mcp 1.x and with 2.x, import it."""

import socket

import uvicorn

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


async def serve(app, listener: socket.socket, url: str) -> None:
    # The access log would go to stdout, where the test suite expects one line and nothing else.
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = _Announcing(config)
    server.url = url
    await server.serve(sockets=[listener])
