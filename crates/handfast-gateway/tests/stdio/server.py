"""A server on stdio that does as it is told: the name of the tool says what. It holds a connection to the test for as
long as any of its processes lives."""
import json, os, socket, subprocess, sys

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
heard, held, listening, calls, tokens = [], [], [], 0, []

with open(os.environ["STARTS"], "a") as starts:
    starts.write("x")
if "WITNESS" in os.environ:
    witness = socket.socket(socket.AF_UNIX)
    witness.connect(os.environ["WITNESS"])
    witness.set_inheritable(True)
if "BROKEN" in os.environ and os.path.exists(os.environ["BROKEN"]):
    sys.exit(1)


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(id, **result):
    say({"id": id, "result": {"pid": os.getpid(), "calls": calls, **result}})


def log(text):
    say({"method": "notifications/message", "params": {"level": "info", "data": text}})


def call(id, name, params, line):
    arguments = params.get("arguments", {})
    token = params.get("_meta", {}).get("progressToken")
    if name == "echo":
        answer(id, line=line, said=arguments.get("said"))
    elif name == "raw":
        print(arguments["line"].replace("ID", str(id)), flush=True)
    elif name == "hold":
        held.append((id, arguments))
        tokens.append(token)
    elif name == "release":
        # The last one first.
        for late, said in reversed(held):
            answer(late, said=said.get("said"))
        held.clear()
        answer(id)
    elif name == "progress":
        # For whoever is held, and for this one.
        for one in [*tokens, token]:
            if one is not None:
                say({"method": "notifications/progress", "params": {"progressToken": one, "progress": 1.50}})
        answer(id)
    elif name == "log":
        log(arguments["said"])
        answer(id)
    elif name == "die":
        os._exit(1)
    elif name == "fork":
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], close_fds=False)
        os._exit(1) if arguments.get("die") else answer(id)
    elif name == "noise":
        print("Server is ready!", flush=True)
        print('{"half": "a secret', flush=True)
        sys.stdout.buffer.write(b"\xff\xfe\n")
        say({"id": 987654, "result": {"for": "nobody"}})
        say({"id": "text", "result": {"for": "nobody"}})
        answer(id)
    elif name == "huge":
        say({"result": {"text": "a" * arguments["length"]}, "id": id})
    elif name == "heard":
        answer(id, heard=heard[:20], held=[late for late, _ in held])
    elif name == "ask":
        held.append((id, arguments))
        say({"id": "q", "method": "elicitation/create", "params": {"message": "sure?"}})
    elif name == "touch":
        for one in listening:
            say({"method": "notifications/resources/updated", "params": {"uri": "a:b", "_meta": {SUBSCRIPTION: one}}})
        answer(id)
    elif name == "unasked":
        say({"method": "notifications/tools/list_changed"})
        answer(id)
    elif name == "stderr":
        for text in arguments["lines"]:
            print(text, file=sys.stderr, flush=True)
        answer(id)
    elif name == "variables":
        answer(id, variables=dict(os.environ), folder=os.getcwd())


for line in sys.stdin:
    message = json.loads(line)
    method, params, id = message.get("method"), message.get("params", {}), message.get("id")
    if method == "tools/call":
        calls += 1
        call(id, params["name"], params, line)
    elif method == "initialize":
        if params.get("protocolVersion") == "bad":
            say({"id": id, "error": {"code": -32602, "message": "bad"}})
        else:
            answer(id, protocolVersion="2025-11-25")
    elif method == "subscriptions/listen":
        listening.append(id)
        say({"method": "notifications/subscriptions/acknowledged", "params": {"_meta": {SUBSCRIPTION: id}}})
    elif method is None and id == "q":
        late, _ = held.pop()
        answer(late, chosen=message.get("result"), refused=message.get("error"))
    elif id is not None and method is not None:
        say({"id": id, "error": {"code": -32601, "message": "no such method"}})
    else:
        heard.append(message)
