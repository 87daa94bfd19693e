"""The tables of the documents, as tests/conformance/vectors/shapes.json has them."""

import json
import pathlib
import re

import cbor
from cbor import Refused

_FILE = pathlib.Path(__file__).resolve().parent.parent / "vectors" / "shapes.json"
_ALL = json.loads(_FILE.read_text())
SHAPES, CODES, BITS, KINDS = _ALL["shapes"], _ALL["codes"], _ALL["bits"], _ALL["kinds"]
REASONS, DOMAINS, CONTROL = _ALL["reasons"], _ALL["domains"], _ALL["control"]
CODES["RecordKind"] = {name: kind["number"] for name, kind in KINDS.items()}
CODES["Reason"] = {name: reason["code"] for name, reason in REASONS.items()}

_COMPONENT = r"[a-z0-9_-][a-z0-9._-]*"
_NAMES = {
    "AgentId": (rf"{_COMPONENT}(/{_COMPONENT})*", 128),
    "ToolId": (r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", 64),
    "IdempotencyKey": (r"[A-Za-z0-9._:-]+", 64),
    "ConstraintId": (r"[A-Za-z0-9._/-]+", 160),
    "FactKey": (rf"({'|'.join(CODES['Namespace'])})\.[a-z0-9_-]{{1,64}}", 128),
}


def is_uint(value):
    return type(value) is int and 0 <= value < 1 << 64


def need(holds, what):
    if not holds:
        raise Refused(what)


def name(kind, value):
    pattern, most = _NAMES[kind]
    need(isinstance(value, str) and len(value.encode()) <= most and re.fullmatch(pattern, value, re.ASCII), kind)


def typed(form, value):
    """Refuses a value that is not of a type of the tables."""
    if form == "any":
        return
    if form in SHAPES:
        return shape(form, value)
    first, _, rest = form.partition(" ")
    if form == "bool":
        need(type(value) is bool, form)
    elif form == "array of 10 uint":
        need(isinstance(value, list) and len(value) == 10 and all(map(is_uint, value)), form)
    elif form == "array of 5 RoleSet":
        need(isinstance(value, list) and len(value) == 5, form)
        for number, roles in enumerate(value, 1):
            shape("RoleSet", roles)
            need(roles[1] == number, "roles in order")
            role_set(roles)
    elif form == "array [uint Seq, bstr of 32]":
        need(isinstance(value, list) and len(value) == 2 and is_uint(value[0]), form)
        typed("bstr of 32", value[1])
    elif form.startswith("map {text tool"):
        import scopes

        scopes.grants(value)
    elif first == "bstr":
        need(isinstance(value, bytes), form)
        size = re.match(r"of (\d+)", rest)
        need(not size or len(value) == int(size[1]), form)
        if rest.endswith("key"):
            import crypto

            crypto.public_key(value)
    elif first == "text":
        need(isinstance(value, str), form)
        if rest:
            name(rest, value)
    elif first == "uint":
        need(is_uint(value), form)
        if rest in CODES:
            need(value in CODES[rest].values(), f"a code of {rest}")
        elif rest == "Label":
            need(value & ~0xFFFFFFFF0F == 0 and value >> 1 & 7 <= 4, "a label")
    else:
        raise AssertionError(f"no such type: {form}")


def bits(name, value):
    need(is_uint(value) and value & ~sum(BITS[name].values()) == 0, f"bits of {name}")


# Which set of bits a field is.
_SETS = {"clock": "ClockFlags", "flags": "OutcomeFlags", "filled": "Filled"}


def field(row, value, name):
    form = row["type"]
    if value is None and row["null"]:
        return
    if row["list"]:
        need(isinstance(value, list), "a list")
        for one in value:
            typed(form, one)
    elif name == "TokenBody" and row["name"] == "flags":
        typed("uint", value)  # an unknown flag has a reason of its own
    elif form == "uint bits":
        bits(_SETS[row["name"]], value)
    else:
        typed(form, value)


def shape(name, value, rows=None):
    """Refuses a map that is not of a shape."""
    need(isinstance(value, dict), name)
    rows = SHAPES[name] if rows is None else rows
    for row in rows:
        if row["key"] not in value:
            need(row["absent"], f"{name}: key {row['key']} is missing")
        else:
            field(row, value[row["key"]], name)
    need(set(value) <= {row["key"] for row in rows}, f"{name}: another key")


def role_set(value):
    role, threshold, keys = value[1], value[2], [key[2] for key in value[3]]
    need(role <= 5 and 1 <= len(keys) <= 16 and all(a < b for a, b in zip(keys, keys[1:])), "keys in order")
    need(1 <= threshold <= (1 if role == 1 else len(keys)), "a threshold")


def _control(value):
    keys = [signed[1] for signed in value[3]]
    need(1 <= len(keys) <= 16 and all(a < b for a, b in zip(keys, keys[1:])), "signatures in order")
    need(len(value[2]) <= 60000, "a body within its limit")


def _trust(value):
    need(value[1] == 2, "version 2")


# What else holds of a shape.
BESIDE = {"RoleSet": role_set, "Control": _control, "Trust": _trust}
