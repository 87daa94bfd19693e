"""Records, objects, rows of the vault and commitments: docs/spec/log.md."""

import cbor
import crypto
from cbor import DATA, Refused
from tables import KINDS, SHAPES, is_uint, need, shape, typed

BY_NUMBER = {kind["number"]: name for name, kind in KINDS.items()}


class Newer(Refused):
    """A form that a later version writes."""


def rows(kind, version):
    """The keys of a kind, those of calls among them."""
    found = []
    for row in SHAPES["Common keys"] + SHAPES[_FORMS.get((kind, version), kind)]:
        found += SHAPES["Call fields"] if row["type"] == "CallFields" else [row]
    return found


# Further versions of a kind: one that was written before, and one that says more.
_BESIDES = {"session": [2], "freeze": [3], "policy": [3], "late": [3]}
# The forms of those whose keys are others.
_FORMS = {("late", 3): "LateReport"}
_RESERVED = {"session": ("principal", None), "intent": ("arguments", []), "ask": ("arguments", [])}


class Record:
    """A record, by the names of its fields."""

    def __init__(self, data):
        need(len(data) <= 65535, "a record within its limit")
        item = cbor.decode(data)
        need(isinstance(item, dict) and all(is_uint(item.get(key)) for key in (0, 1, 3)), "a record's first keys")
        typed("bstr of 32", item.get(2))
        need(item[0] >= 2, "a version from before the formats were settled")
        self.what = BY_NUMBER.get(item[3])
        known = self.what and [KINDS[self.what]["version"], *_BESIDES.get(self.what, [])]
        if not known or item[0] not in known or KINDS[self.what]["reserved"]:
            raise Newer(f"kind {item[3]}, version {item[0]}")
        table = rows(self.what, item[0])
        shape(self.what, item, table)
        self.__dict__.update({row["name"]: item[row["key"]] for row in table})
        field, value = _RESERVED.get(self.what, (None, None))
        if field and getattr(self, field) != value:
            raise Newer(f"{field} of {self.what}")
        self.version = item[0]
        self.leaf = crypto.leaf(data)


def object_name(kind, data):
    """An object's name; refuses one that is not of its kind's form."""
    need(len(data) <= 16777216, "an object within its limit")
    item = cbor.decode(data)
    if kind == "token":
        need(isinstance(item, list) and len(item) == 4 and item[:2] == [2, 1], "a wire")
        shape("TokenBody", cbor.decode(item[2]))
        return crypto.derive("TOKEN_ID", item[2])
    shape({"manifest": "Manifest", "tools": "ToolsObject", "policy": "PolicyObject", "snapshot": "Snapshot"}[kind], item)
    if kind == "tools":
        tools = [entry[1].encode() for entry in item[1]]
        need(all(a < b for a, b in zip(tools, tools[1:])), "tools in order")
    return crypto.derive({"manifest": "OBJECT_ID"}.get(kind, kind.upper()), data)


def row(data):
    """Refuses a row of the vault that counts as erased."""
    item = cbor.decode(data)
    need(isinstance(item, list) and len(item) == 5 and item[0] in (1, 2) and type(item[0]) is int, "a row")
    need(item[1:4] == [None, None, None] and isinstance(item[4], bytes), "a row that is not encrypted")
    payload = cbor.decode(item[4])
    need(isinstance(payload, dict) and set(payload) == {1, 2, 3, 4}, "a payload")
    salts, arguments, result, texts = (payload[key] for key in (1, 2, 3, 4))
    need(salts is None or isinstance(salts, list) and len(salts) == 3, "salts")
    for salt in salts or []:
        typed("bstr of 32", salt)
    if item[0] == 1:
        need(arguments is None or isinstance(arguments, bytes), "arguments")
    else:
        need(isinstance(arguments, list) and 1 <= len(arguments) <= 33, "pieces")
        for piece in arguments:
            part = isinstance(piece, list) and len(piece) == 2 and is_uint(piece[0]) and isinstance(piece[1], list)
            need(isinstance(piece, bytes) or part and all(is_uint(s) or isinstance(s, str) for s in piece[1]), "a piece")
    need(result is None or isinstance(result, bytes), "a result")
    need(isinstance(texts, list) and len(texts) <= 128, "texts")
    for text in texts:
        need(isinstance(text, list) and len(text) == 3 and is_uint(text[1]) and isinstance(text[2], str), "a text")
        typed("bstr of 32", text[0])
        need(len(text[2].encode()) <= 4096, "a text within its limit")


def commitment(what, parts):
    """A commitment, of parts as the vectors write them."""
    data = lambda key: bytes.fromhex(parts[key])
    item = lambda key: cbor.decode(data(key), DATA)
    if what == "args_hash":
        return crypto.commit("ARGUMENTS", data("salt"), parts["tool"], data("manifest"), item("args"))
    if what == "sent_hash":
        return crypto.commit("SENT", data("salt"), parts["tool"], item("args"))
    if what == "call_hash":
        return crypto.commit("ENVELOPE", data("salt"), data("envelope"))
    if what == "result_hash":
        return crypto.commit("RESULT", data("salt"), parts["status"], item("delivered"), False)
    if what == "changes_hash":
        return crypto.commit("ARGUMENTS", data("salt"), item("changes"))
    if what == "fact_id":
        return crypto.commit("FACT", data("salt"), parts["key"], item("value"))
    if what == "matches_digest":
        return crypto.commit("MATCHES", *parts["places"])
    if what == "text_hash":
        return crypto.commit("TEXT", data("salt"), parts["field"], parts["text"])
    return crypto.commit("RECOVERY", 1, data("key"))


def message(parts):
    """Context and message of a signature, of parts as the vectors write them."""
    data = lambda key: bytes.fromhex(parts[key])
    if parts["what"] == "control":
        head = [parts["seq"], data("leaf")]
        return control(data("home"), head, data("key"), parts["counter"], parts["kind_number"], data("body"))
    if parts["what"] == "possession":
        return possession(data("home"), parts["role"], data("key"))
    if parts["what"] == "opening":
        return b"syscap/opening/v2\0" + cbor.encode([data("home"), data("token"), data("challenge")])
    items = [data("home"), parts["session"], data("challenge"), parts["counter"], data("envelope")]
    return b"syscap/proof/v2\0" + cbor.encode(items)


def control(home, head, key, counter, kind, body):
    return b"syscap/control/v2\0" + cbor.encode([home, head, key, counter, kind, body])


def possession(home, role, key):
    return b"syscap/possession/v1\0" + cbor.encode([home, role, 1, key])
