"""tenuo (PyPI) as a subject: its warrants and authorizer decide, and this program performs what they let through.

Claimed is what its page claims: scope (Subpath: by the path's text alone) and delegate. It counts nothing.
"""

import os
import time
from importlib.metadata import version

import host
from tenuo import Authorizer, OneOf, Range, SigningKey, SrlBuilder, Subpath, Warrant, Wildcard
from tenuo.exceptions import TenuoError


class Host:
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
        args = dict(host.arguments(ask))
        if "path" in args:
            args["path"] = os.path.join(self.place["files"], args["path"])
        proof = bytes(stack[-1].sign(self.holders[ask["token"]], tool, args, int(time.time())))
        self.authorizer.check_chain(stack, tool, args, proof)
        return host.perform(self.place, tool, args)


if __name__ == "__main__":
    host.serve(Host(), ("tenuo", version("tenuo")), ["scope", "delegate"], (TenuoError, RuntimeError))
