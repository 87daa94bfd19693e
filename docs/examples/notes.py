"""An MCP server for trying syscap: notes in a file, over standard input and output."""
import json, sys

FILE = sys.argv[1] if len(sys.argv) > 1 else "notes.txt"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object", "properties": {}}
TOOLS = [
    {"name": "read_notes", "description": "Reads all notes.", "inputSchema": NONE,
     "annotations": {"readOnlyHint": True}},
    {"name": "add_note", "description": "Adds a note.", "inputSchema": TEXT},
    {"name": "delete_notes", "description": "Deletes all notes.", "inputSchema": NONE,
     "annotations": {"destructiveHint": True}},
]


def call(name, arguments):
    if name == "read_notes":
        with open(FILE, "a+") as file:
            file.seek(0)
            return file.read()
    with open(FILE, "a" if name == "add_note" else "w") as file:
        file.write(arguments.get("text", "") and arguments["text"] + "\n")
    return "done"


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        text = call(params["name"], params.get("arguments", {}))
        return {"content": [{"type": "text", "text": text}]}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
