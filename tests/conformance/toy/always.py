"""A subject that says yes to everything, and does nothing."""

import json
import os
import sys

CLAIMS = ["decide", "scope", "budget", "approve", "delegate", "record", "recover"]

for line in sys.stdin:
    ask = json.loads(line)
    ok = {"implementation": "always", "version": "1", "claims": CLAIMS, "pids": [os.getpid()], "token": "t"}
    print(json.dumps({"id": ask["id"], "ok": ok}), flush=True)
    if ask["do"] == "stop":
        break
