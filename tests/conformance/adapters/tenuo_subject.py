"""tenuo (PyPI) as a subject: its warrants and authorizer decide, and this program performs what they let through.

Claimed is what its page claims: scope (Subpath: by the path's text alone) and delegate. It counts nothing.
"""

import json
import os
import sys
import time
import urllib.request
from importlib.metadata import version

from tenuo import Authorizer, OneOf, Range, SigningKey, SrlBuilder, Subpath, Warrant, Wildcard
from tenuo.exceptions import TenuoError


class Host:
    def start(self, ask):
        claims = ["scope", "delegate"]
        return {"implementation": "tenuo", "version": version("tenuo"), "claims": claims, "pids": [os.getpid()]}

    def reset(self, ask):
        self.place, self.key, self.holders, self.stacks, self.revoked = ask, SigningKey.generate(), {}, {}, []
        self.authorizer = Authorizer(trusted_roots=[self.key.public_key])

    def grant(self, ask):
        holder, parent = SigningKey.generate(), self.stacks.get(ask["parent"])
        if ask["parent"] is not None and parent is None:
            raise KeyError(ask["parent"])
        builder = Warrant.mint_builder() if parent is None else parent[-1].grant_builder()
        for tool, scope in ask["tools"].items():
            roots = [os.path.join(self.place["files"], root) for root in scope]
            if tool == "write":
                builder = builder.capability(tool, path=Subpath(roots[0]), text=Wildcard())
            elif tool == "read":
                builder = builder.capability(tool, path=Subpath(roots[0]))
            elif tool == "get":
                builder = builder.capability(tool, page=OneOf(scope))
            else:
                builder = builder.capability(tool, by=Range(min=0, max=ask["budget"]["units"]))
        builder = builder.holder(holder.public_key).ttl(max(1, ask["life_ms"] // 1000))
        if parent is not None and ask["depth"] == 0:
            builder = builder.terminal()
        warrant = builder.mint(self.key) if parent is None else builder.grant(self.holders[ask["parent"]])
        self.holders[warrant.id], self.stacks[warrant.id] = holder, [*(parent or []), warrant]
        return {"token": warrant.id}

    def revoke(self, ask):
        self.revoked.append(ask["token"])
        builder = SrlBuilder()
        for token in self.revoked:
            builder.revoke(token)
        builder.version(len(self.revoked))
        self.authorizer.set_revocation_list(builder.build(self.key))

    def call(self, ask):
        tool, stack = ask["tool"], self.stacks[ask["token"]]
        args = dict(ask["args"] if "args" in ask else json.loads(ask["text"]))
        if "path" in args:
            args["path"] = os.path.join(self.place["files"], args["path"])
        proof = bytes(stack[-1].sign(self.holders[ask["token"]], tool, args, int(time.time())))
        self.authorizer.check_chain(stack, tool, args, proof)
        if tool == "write":
            with open(args["path"], "w") as file:
                return file.write(args["text"])
        if tool == "read":
            with open(args["path"]) as file:
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
        except (TenuoError, KeyError, OSError, ValueError, TypeError, RuntimeError) as error:
            said = {"refused": f"{type(error).__name__}: {error}"}
        if ask["do"] == "stop":
            said = {"ok": None}
        print(json.dumps({"id": ask["id"], **said}), flush=True)
        if ask["do"] == "stop":
            return


if __name__ == "__main__":
    main()
