"""Biscuit (PyPI biscuit-python) as a subject: its authorizer decides, and this program performs what it lets through.

Claimed is what its page claims of attenuation: delegate. It keeps no state, so it counts nothing.
"""

from datetime import datetime, timezone
from importlib.metadata import version

import host
from biscuit_auth import AuthorizationError, AuthorizerBuilder, BiscuitBuilder, BlockBuilder, DataLogError, KeyPair


class Host:
    def reset(self, ask):
        self.place, self.now, self.keys, self.tokens, self.revoked = ask, ask["clock"], KeyPair(), {}, set()

    def advance(self, ask):
        self.now += ask["ms"]

    def at(self, later_ms):
        return datetime.fromtimestamp((self.now + later_ms) / 1000, timezone.utc)

    def grant(self, ask):
        # What is granted, as checks: a child has its own beside those of its parents.
        checks, values, tests = ["check if time($t), $t < {until}"], {"until": self.at(ask["life_ms"])}, []
        for n, (tool, scope) in enumerate(ask["tools"].items()):
            values[f"tool{n}"] = tool
            if tool in ("write", "read"):
                for m, root in enumerate(scope):
                    values[f"root{n}x{m}"] = root + "/"
                    tests.append(f"call({{tool{n}}}), path($p), $p.starts_with({{root{n}x{m}}})")
            elif tool == "get":
                for m, page in enumerate(scope):
                    values[f"page{n}x{m}"] = page
                    tests.append(f"call({{tool{n}}}), page({{page{n}x{m}}})")
            else:
                values["units"] = ask["budget"]["units"]
                tests.append(f"call({{tool{n}}}), by($b), $b >= 0, $b <= {{units}}")
        checks.append("check if " + " or ".join(tests))
        values["agent"], values["below"] = ask["agent"], ask["agent"] + "/"
        checks.append("check if agent($a), $a == {agent} || $a.starts_with({below})")
        block = (BiscuitBuilder if ask["parent"] is None else BlockBuilder)("; ".join(checks), values)
        above = self.tokens[ask["parent"]] if ask["parent"] is not None else None
        token = above.append(block) if above else block.build(self.keys.private_key)
        name = token.revocation_ids[-1]
        self.tokens[name] = token
        return {"token": name}

    def revoke(self, ask):
        self.revoked.add(ask["token"])

    def call(self, ask):
        token, tool = self.tokens[ask["token"]], ask["tool"]
        args = host.arguments(ask)
        if self.revoked & set(token.revocation_ids):
            raise KeyError("revoked")
        code, values = ["time({now})", "call({tool})", "agent({agent})"], {}
        for name in ("path", "page", "by"):
            if name in args:
                code.append(f"{name}({{{name}}})")
                values[name] = args[name]
        values.update(now=self.at(0), tool=tool, agent=ask["agent"])
        AuthorizerBuilder("; ".join(code) + "; allow if true", values).build(token).authorize()
        return host.perform(self.place, tool, args)


if __name__ == "__main__":
    host.serve(Host(), ("biscuit", version("biscuit-python")), ["delegate"], (AuthorizationError, DataLogError))
