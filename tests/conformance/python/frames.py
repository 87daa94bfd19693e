"""Frames of the socket that never change: docs/spec/calls.md, The socket."""

import cbor
import tables
from tables import need

BYTES_MAX, LAST = 4096, 11
HOME = TOKEN = LEAF = "bstr of 32"

# The items behind each number, by who writes it.
FRAMES = {
    "who connects": {
        1: ("least", "greatest", "lane"), 4: ("uint", TOKEN), 5: ("uint", "target", "text", "change"),
        6: ("uint",), 7: ("uint",), 8: ("uint", "kind", "uint", "bstr"),
    },
    "holder": {
        2: ("uint", HOME), 3: ("uint", "least", "greatest"), 9: ("uint", "uint"), 10: ("uint", "uint", "text"),
        11: ("uint", HOME, "least", "greatest", "phase", "uint", LEAF, "uint", "uint", "uint"),
    },
}
# What is known of some items, and the reason of a holder that does not know it.
KNOWN = {
    "lane": ((1, 2), "wrong_lane"), "target": ((1, 2, 3), "bad_control"), "change": ((1, 2), "bad_control"),
    "kind": ((tables.CODES["RecordKind"]["revoke"], tables.CODES["RecordKind"]["freeze"]), "bad_control"),
}


def frame(data, by):
    """The reason for which the holder refuses it, if it does."""
    need(len(data) <= BYTES_MAX, "length")
    found = cbor.decode(data)
    need(isinstance(found, list) and found and tables.is_uint(found[0]), "a number")
    number, items = found[0], found[1:]
    if by == "who connects" and number > LAST:
        need(items and tables.is_uint(items[0]), "an id")
        return "unknown_version"
    forms = FRAMES[by].get(number)
    need(forms is not None and len(items) == len(forms), "its items")
    for form, value in zip(forms, items):
        tables.typed(form if form.startswith(("bstr", "text")) else "uint", value)
    named = dict(zip(forms, items))
    need(named.get("least", 0) <= named.get("greatest", 0), "versions")
    need(named.get("phase", 1) in (1, 2, 3), "phase")
    refused = [reason for form, (known, reason) in KNOWN.items() if named.get(form, known[0]) not in known]
    return refused[0] if refused else None
