"""attenu-guard (PyPI) as a subject: its guards decide, and this program performs what they let through.

Claimed is what its page claims of hand-offs: delegate. It has no policy language, and its amounts are per call.
"""

import json
import os
import sys
import urllib.request

from attenu_guard import Allow, Authority, AuthorityDenied, AuthorityError, CallLimit, Guard, Prefix, SpendCap


class Host:
    def start(self, ask):
        from attenu_guard import __version__

        return {"implementation": "attenu-guard", "version": __version__, "claims": ["delegate"], "pids": [os.getpid()]}

    def reset(self, ask):
        self.place, self.guards = ask, {}

    def grant(self, ask):
        budget, ceilings = ask["budget"], []
        for tool, scope in ask["tools"].items():
            if tool in ("write", "read"):
                ceilings += [Prefix(f"{tool}_path", root + "/") for root in scope]
            elif tool == "get":
                ceilings.append(Allow("page", set(scope)))
        ceilings += [CallLimit(budget["calls"]), SpendCap(budget["units"])]
        scopes = {f"tool.{tool}" for tool in ask["tools"]}
        authority = Authority(scopes=scopes, ceilings=ceilings, ttl=max(1, ask["life_ms"] // 1000))
        if ask["parent"] is None:
            guard = Guard.issue(ask["agent"], authority)
        else:
            guard = self.guards[ask["parent"]].delegate(ask["agent"], authority, task="part")
        self.guards[guard.node_id] = guard
        return {"token": guard.node_id}

    def revoke(self, ask):
        self.guards[ask["token"]].revoke()

    def call(self, ask):
        guard, tool = self.guards[ask["token"]], ask["tool"]
        args = ask["args"] if "args" in ask else json.loads(ask["text"])
        context = {"page": args.get("page"), f"{tool}_path": args.get("path")}
        if tool == "count":
            context["spend"] = args["by"]
        guard.enforce(f"tool.{tool}", context={name: value for name, value in context.items() if value is not None})
        path = os.path.join(self.place["files"], args.get("path", ""))
        if tool == "write":
            with open(path, "w") as file:
                return file.write(args["text"])
        if tool == "read":
            with open(path) as file:
                return file.read()
        url = f"/{args['page']}" if tool == "get" else f"/count/{args['by']}"
        with urllib.request.urlopen(self.place["server"] + url) as answer:
            return answer.read().decode()


def main():
    host = Host()
    for line in sys.stdin:
        ask = json.loads(line)
        verb = getattr(host, ask["do"], None)
        try:
            said = {"ok": verb(ask)} if verb else {"unsupported": True}
        except (AuthorityDenied, AuthorityError, KeyError, OSError, ValueError) as error:
            said = {"refused": f"{type(error).__name__}: {error}"}
        if ask["do"] == "stop":
            said = {"ok": None}
        print(json.dumps({"id": ask["id"], **said}), flush=True)
        if ask["do"] == "stop":
            return


if __name__ == "__main__":
    main()
