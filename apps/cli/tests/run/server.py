"""A server of MCP with one tool, `look`, that does what it is told and says what came of it, as JSON.

`read`, `write`, `list`: a path; `run`: a command; `cwd`, `argv`, `env`: nothing.
"""

import json
import os
import subprocess
import sys


def done(what, of):
    if what == "read":
        return open(of).read()
    if what == "write":
        return open(of, "w").write("by the server")
    if what == "list":
        return sorted(os.listdir(of))
    if what == "run":
        return subprocess.run(of, capture_output=True, text=True).stdout
    return {"cwd": os.getcwd, "argv": lambda: sys.argv, "env": lambda: dict(os.environ)}[what]()


def look(what, of=None):
    try:
        return json.dumps(done(what, of))
    except OSError as error:
        return json.dumps(type(error).__name__)


TOOL = {"name": "look", "inputSchema": {
    "type": "object", "properties": {"what": {"type": "string"}, "of": {}}, "required": ["what"]}}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    result = {}
    if m["method"] == "initialize":
        result = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "look", "version": "1"}}
    elif m["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif m["method"] == "tools/call":
        text = look(**m["params"]["arguments"])
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
