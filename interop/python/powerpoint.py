"""Starts office-powerpoint-mcp-server, a published server that keeps presentations in memory, unchanged.

By itself it takes a fixed port and says nothing when it is ready. It asks nobody who they are; with `--gate` there is a
proxy in front of it that does, and tells it nothing.
"""

import argparse

import anyio
import serving
from ppt_mcp_server import app

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--transport", choices=["http", "stdio"], default="http")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--gate", action="store_true", help="a proxy in front that asks for a token")

if __name__ == "__main__":
    chosen = parser.parse_args()
    if chosen.transport == "stdio":
        app.run(transport="stdio")
    else:
        listener, url = serving.bind(chosen.port)
        served = app.streamable_http_app()
        anyio.run(serving.serve, serving.gated(served, url) if chosen.gate else served, listener, url)
