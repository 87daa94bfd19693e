"""Scopes: docs/spec/tokens.md."""

import ipaddress
import re

from tables import is_uint, name, need

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_ROOT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", re.ASCII)
_MAPPED = bytes(10) + b"\xff\xff"


def texts(value, most):
    need(isinstance(value, list) and 0 < len(value) <= most, "a list within its limit")
    need(all(isinstance(one, str) for one in value), "text")
    keys = [one.encode() for one in value]
    need(all(a < b for a, b in zip(keys, keys[1:])), "ascending order")


def pairs(value, most):
    need(isinstance(value, list) and 0 < len(value) <= most, "a list within its limit")
    need(all(isinstance(one, list) and len(one) == 2 for one in value), "pairs")


def names(value):
    texts(value, 1024)
    need(all(1 <= len(one.encode()) <= 256 for one in value), "a name's length")


def ints(value):
    need(isinstance(value, list) and len(value) == 2 and all(type(one) is int for one in value), "two integers")
    need(value[0] <= value[1], "least and greatest")


def place(rule):
    """Where a rule stands in the order."""
    root, owner, below, _ = rule
    return (owner is not None, (owner or "").encode(), root.encode(), [part.encode() for part in below])


def paths(value):
    need(isinstance(value, list) and 0 < len(value) <= 256, "a list within its limit")
    for rule in value:
        need(isinstance(rule, list) and len(rule) == 4, "a rule")
        root, owner, below, rights = rule
        if root == "workspace":
            name("AgentId", owner)
        else:
            need(owner is None and isinstance(root, str) and len(root) <= 64, "a root")
            need(_ROOT.fullmatch(root) and root != "agents", "a root's name")
        need(isinstance(below, list) and len(below) <= 64, "components")
        for part in below:
            need(isinstance(part, str) and 1 <= len(part.encode()) <= 255, "a component")
            need(part not in (".", "..") and not set(part) & {"/", "\\", "\0"}, "a plain component")
        need(is_uint(rights) and rights <= 7, "rights")
    places = [place(rule) for rule in value]
    need(all(a < b for a, b in zip(places, places[1:])), "ascending order")
    for n, rule in enumerate(value):
        need(rule[3] != rights_at(value[:n] + value[n + 1 :], rule[:3]), "a rule that changes something")


def rights_at(rules, path):
    """The rights that the longest rule above a path gives."""
    root, owner, below = path
    above = [rule for rule in rules if rule[:2] == [root, owner] and below[: len(rule[2])] == rule[2]]
    return max(above, key=lambda rule: len(rule[2]))[3] if above else 0


def host(text, most):
    labels = text.split(".")
    need(1 <= len(text) <= most and all(len(label) <= 63 and _LABEL.fullmatch(label) for label in labels), "a host")
    need(not _NUMBER.fullmatch(labels[-1]), "a last label that is no number")


def hosts(value):
    texts(value, 1024)
    for pattern in value:
        host(pattern.removeprefix("*."), 249 if pattern.startswith("*.") else 253)
        others = [other for other in value if other != pattern]
        need(not under(pattern, others), "no pattern below another")


def under(pattern, others):
    """Whether all that a pattern names lies below a suffix of others."""
    bare = pattern.removeprefix("*.")
    parts = bare.split(".")
    suffixes = {"*." + ".".join(parts[n:]) for n in range(1, len(parts))}
    return bool(suffixes & set(others))


def ports(value):
    pairs(value, 256)
    last = -1
    for first, end in value:
        need(is_uint(first) and is_uint(end) and 1 <= first <= end <= 65535 and first > last + 1, "ranges of ports")
        last = end


def number(block):
    return int.from_bytes(block[0], "big")


def cidrs(value):
    pairs(value, 1024)
    for address, bits in value:
        need(isinstance(address, bytes) and len(address) in (4, 16) and is_uint(bits), "a block")
        need(bits <= 8 * len(address) and number([address]) & (1 << 8 * len(address) - bits) - 1 == 0, "a prefix")
        need(not (address[:12] == _MAPPED and len(address) == 16 and bits >= 96), "no mapped block")
    keys = [(len(address), address, bits) for address, bits in value]
    need(all(a < b for a, b in zip(keys, keys[1:])), "ascending order")
    present = {(address, bits) for address, bits in value} | {(_MAPPED + bytes(4), 96)}
    for block in value:
        address, bits = block
        others = [other for other in value if other is not block]
        need(not any(in_block(block, other) for other in others), "no block within another")
        if bits:
            sibling = number(block) ^ 1 << 8 * len(address) - bits
            need((sibling.to_bytes(len(address), "big"), bits) not in present, "no two that make up one")


def in_block(block, other):
    same = len(block[0]) == len(other[0]) and block[1] >= other[1]
    shift = 8 * len(block[0]) - other[1]
    return same and number(block) >> shift == number(other) >> shift


TYPES = {1: names, 2: ints, 3: paths, 4: hosts, 5: ports, 6: cidrs}


def scope(value):
    """Refuses what is no scope in normal form."""
    need(isinstance(value, list) and len(value) == 2 and type(value[0]) is int and value[0] in TYPES, "a scope")
    TYPES[value[0]](value[1])


def at_most(a, b):
    """Whether a scope permits no more than another."""
    (kind, a), (of, b) = a, b
    if kind != of:
        return False
    if kind == 1:
        return set(a) <= set(b)
    if kind == 2:
        return b[0] <= a[0] and a[1] <= b[1]
    if kind == 3:
        return all(rights_at(a, rule[:3]) & ~rights_at(b, rule[:3]) == 0 for rule in a + b)
    if kind == 4:
        return all(pattern in b or under(pattern, b) for pattern in a)
    if kind == 5:
        return all(any(first <= one[0] and one[1] <= last for first, last in b) for one in a)
    return all(any(in_block(block, other) for other in b) for block in a)


def permits(value, resource):
    """Whether a scope permits a resource, as the vectors write it."""
    kind, parts = value
    if kind == 3:
        needs = resource["needs"]
        rights = rights_at(parts, [resource["root"], resource["owner"], resource["path"]])
        return needs != 0 and needs & ~rights == 0
    if kind == 4:
        return resource["host"] in parts or under(resource["host"], parts)
    address = ipaddress.ip_address(resource["address"])
    address = getattr(address, "ipv4_mapped", None) or address
    return any(in_block([address.packed, 8 * len(address.packed)], block) for block in parts)


def grants(value):
    """Refuses what is no map of tools to scopes."""
    need(isinstance(value, dict) and len(value) <= 256, "grants")
    for tool, dimensions in value.items():
        name("ToolId", tool)
        need(isinstance(dimensions, dict) and len(dimensions) <= 16, "dimensions")
        for dimension, one in dimensions.items():
            need(isinstance(dimension, str), "a dimension")
            scope(one)


def grants_at_most(a, b):
    return all(
        tool in b and all(one in b[tool] and at_most(scope, b[tool][one]) for one, scope in dimensions.items())
        for tool, dimensions in a.items()
    )
