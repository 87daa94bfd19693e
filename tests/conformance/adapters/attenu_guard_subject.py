"""attenu-guard (PyPI) as a subject: its guards decide, and this program performs what they let through.

Claimed is what its page claims of hand-offs: delegate. It has no policy language, and its amounts are per call.
"""

import host
from attenu_guard import Allow, Authority, AuthorityDenied, AuthorityError, CallLimit, Guard, Prefix, SpendCap, __version__


class Host:
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
        args = host.arguments(ask)
        context = {"page": args.get("page"), f"{tool}_path": args.get("path")}
        if tool == "count":
            context["spend"] = args["by"]
        guard.enforce(f"tool.{tool}", context={name: value for name, value in context.items() if value is not None})
        return host.perform(self.place, tool, args)


if __name__ == "__main__":
    host.serve(Host(), ("attenu-guard", __version__), ["delegate"], (AuthorityDenied, AuthorityError))
