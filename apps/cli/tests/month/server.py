"""An MCP server that keeps notes in a file: a line a note."""
import json, sys

NOTES = sys.argv[1]


def schema(*names):
    return {"type": "object", "properties": {n: {"type": "string"} for n in names}, "required": list(names)}


TOOLS = [
    {"name": "write", "description": "Writes a note.", "inputSchema": schema("text")},
    {"name": "count", "description": "Counts the notes.", "inputSchema": schema()},
    {"name": "send", "description": "Sends a note away.", "inputSchema": schema("text")},
]


def call(name, args):
    if name == "count":
        with open(NOTES) as notes:
            return str(len(notes.readlines()))
    with open(NOTES, "a") as notes:
        notes.write(("sent " if name == "send" else "") + args["text"] + "\n")
    return "written"


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        text = call(params["name"], params.get("arguments", {}))
        result = {"content": [{"type": "text", "text": text}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
