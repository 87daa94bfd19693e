"""What the adapters share: the protocol's lines, and the tools, which check nothing themselves."""

import json
import os
import sys
import urllib.request


def arguments(ask):
    return ask["args"] if "args" in ask else json.loads(ask["text"])


def perform(place, tool, args):
    """Performs a call that was let through."""
    path = os.path.join(place["files"], args.get("path", ""))
    if tool == "write":
        with open(path, "w") as file:
            return file.write(args["text"])
    if tool == "read":
        with open(path) as file:
            return file.read()
    url = f"/{args['page']}" if tool == "get" else f"/count/{args['by']}"
    with urllib.request.urlopen(place["server"] + url) as answer:
        return answer.read().decode()


def serve(host, who, claims, refusals):
    """Answers requests by the methods of `host`; `refusals` are the errors by which it says no."""
    for line in sys.stdin:
        ask = json.loads(line)
        verb = getattr(host, ask["do"], None)
        try:
            said = {"ok": verb(ask)} if verb else {"unsupported": True}
        except (*refusals, KeyError, OSError, TypeError, ValueError) as error:
            said = {"refused": f"{type(error).__name__}: {error}"}
        if ask["do"] == "start":
            said = {"ok": {"implementation": who[0], "version": who[1], "claims": claims, "pids": [os.getpid()]}}
        if ask["do"] == "stop":
            said = {"ok": None}
        print(json.dumps({"id": ask["id"], **said}), flush=True)
        if ask["do"] == "stop":
            return
