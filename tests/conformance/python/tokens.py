"""Tokens and their derivation: docs/spec/tokens.md."""

import cbor
import crypto
import scopes
from tables import BITS, CODES, need, shape, SHAPES, is_uint

CONTEXT = b"syscap/token/v2\0"
LIFE_MS_MAX = 7776000000
_FIELDS = {row["name"]: row["key"] for row in SHAPES["TokenBody"]}
_FLAGS = BITS["TokenFlags"]


class Token:
    """A token's body, by the names of its fields. A refusal names a reason, or is `bad_token`."""

    def __init__(self, wire):
        need(len(wire) <= 65536, "too_large")
        parts = cbor.decode(wire)
        need(isinstance(parts, list) and len(parts) == 4 and parts[:2] == [2, 1], "a wire")
        need(all(isinstance(part, bytes) for part in parts[2:]) and len(parts[3]) == 64, "a wire's parts")
        body = cbor.decode(parts[2])
        shape("TokenBody", body)
        self.__dict__.update({name: body[key] for name, key in _FIELDS.items()})
        self.id = crypto.derive("TOKEN_ID", parts[2])
        self.check()
        need(crypto.is_signed(self.issuer, CONTEXT, parts[2], parts[3]), "bad_signature")

    def check(self):
        root = self.parent is None
        need(self.version == 2, "version")
        need(self.depth <= self.depth_max <= 16, "depth")
        need(root == (self.depth == 0), "parent")
        need(root == (self.head is not None), "head")
        need(root or self.renews is None, "renews")
        need(isinstance(self.ext, dict), "ext")
        self.renew_by, self.fresh_within, last = None, None, 0
        for caveat in self.caveats:
            need(isinstance(caveat, list) and len(caveat) == 2 and all(map(is_uint, caveat)), "unknown_authority")
            number, value = caveat
            need(last < number <= 2, "unknown_authority")
            last = number
            if number == 1:
                self.renew_by = value
            else:
                self.fresh_within = value
        if self.renew_by is not None:
            need(root and self.not_before < self.renew_by < self.expires, "bad_token")
        if self.fresh_within is not None:
            need(root and 0 < self.fresh_within <= LIFE_MS_MAX, "bad_token")
        need(self.flags & ~sum(_FLAGS.values()) == 0, "unknown_authority")
        need(0 < self.expires - self.not_before <= LIFE_MS_MAX, "life_too_long")

    def has(self, flag):
        return self.flags & _FLAGS[flag] != 0


def derives(child, parent):
    """Refuses a child that has what its parent lacks."""
    need(parent.holder is not None and not parent.has("TERMINAL"), "no_delegation")
    need(parent.depth < parent.depth_max, "no_delegation")
    need(child.issuer == parent.holder, "wrong_issuer")
    need(child.audience == parent.audience, "wrong_audience")
    need(child.parent == parent.id, "out_of_scope")
    need(child.depth == parent.depth + 1, "out_of_scope")
    need(child.depth_max <= parent.depth_max, "out_of_scope")
    need(child.agent == parent.agent or child.agent.startswith(parent.agent + "/"), "out_of_scope")
    need(child.not_before >= parent.not_before and child.expires <= parent.expires, "out_of_scope")
    need(child.epoch >= parent.epoch, "out_of_scope")
    need(scopes.grants_at_most(child.grants, parent.grants), "out_of_scope")
    need(all(a <= b for a, b in zip(child.budget, parent.budget)), "out_of_scope")
    need(parent.policy in (None, child.policy), "out_of_scope")
    need(child.flags & parent.flags == parent.flags, "out_of_scope")
