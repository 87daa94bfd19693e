"""JSON to CBOR and back: docs/spec/cbor.md, JSON."""

import base64
import json
import math

import cbor
from cbor import Refused

ESCAPES = ("$bytes", "$ref", "$lit")


class Pairs(list):
    """The entries of an object, in the order of the text."""


def refuse(_):
    raise Refused("no number of JSON")


def integer(digits):
    if digits == "-0":
        raise Refused("negative zero")
    if len(digits) > 21 or not -(1 << 63) <= int(digits) < 1 << 64:
        raise Refused("integer")
    return int(digits)


def number(digits):
    value = float(digits)
    if not math.isfinite(value):
        raise Refused("float")
    return value


def parse(data):
    try:
        return json.loads(
            data.decode("utf-8"), object_pairs_hook=Pairs, parse_int=integer, parse_float=number, parse_constant=refuse
        )
    except RecursionError as error:
        raise Refused("depth") from error
    except ValueError as error:
        raise Refused("JSON") from error


def plain(value, convert):
    """A value without a look for escapes at its top."""
    if isinstance(value, Pairs):
        entries = {}
        for key, inner in value:
            if key in entries:
                raise Refused("duplicate key")
            entries[key] = convert(inner)
        return entries
    return [convert(inner) for inner in value] if isinstance(value, list) else value


def data(value):
    return plain(value, data)


def escaped(value):
    if not isinstance(value, Pairs) or len(value) != 1 or value[0][0] not in ESCAPES:
        return plain(value, escaped)
    (key, inner) = value[0]
    if key == "$lit":
        return {key: data(inner)}
    if key == "$bytes":
        return from_base64(inner)
    reference = data(inner)
    is_step = lambda step: isinstance(step, str) or (type(step) is int and step >= 0)
    if not (
        isinstance(reference, dict)
        and set(reference) == {"record", "path"}
        and type(reference["record"]) is int
        and reference["record"] >= 0
        and isinstance(reference["path"], list)
        and all(map(is_step, reference["path"]))
    ):
        raise Refused("$ref")
    return {key: reference}


def from_base64(inner):
    if not isinstance(inner, str):
        raise Refused("$bytes")
    try:
        found = base64.b64decode(inner.encode("ascii"), validate=True)
    except ValueError as error:
        raise Refused("$bytes") from error
    if base64.b64encode(found).decode() != inner:
        raise Refused("$bytes")
    return found


def checked(item):
    """The canonical bytes, within the profile's depth and with text that is Unicode."""
    try:
        encoded = cbor.encode(item)
        cbor.decode(encoded, cbor.DATA)
    except UnicodeEncodeError as error:
        raise Refused("surrogate") from error
    except RecursionError as error:
        raise Refused("depth") from error
    return encoded


def to_cbor(text):
    return checked(escaped(parse(text)))


def has_escape(value):
    if isinstance(value, Pairs):
        lone = len(value) == 1 and value[0][0] in ("$ref", "$lit")
        return lone or any(has_escape(inner) for _, inner in value)
    return isinstance(value, list) and any(map(has_escape, value))


def arguments(text):
    """A model's arguments, all of which are data."""
    value = Pairs() if not text.strip(b" \t\r\n") else parse(text)
    item = data(value)
    return checked({"$lit": item} if has_escape(value) else item)


def shown(number):
    mantissa, _, exponent = repr(number).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def printed(item, inside=False):
    """An item as JSON; `inside` a `$lit`, nothing is an escape."""
    if isinstance(item, float):
        return shown(item)
    if isinstance(item, bytes):
        return printed({"$bytes": base64.b64encode(item).decode()}, True)
    if isinstance(item, list):
        return "[" + ",".join(printed(inner, inside) for inner in item) + "]"
    if isinstance(item, dict):
        (key, *more) = item or [None]
        if not inside and not more and key in ESCAPES:
            if key == "$lit":
                return '{"$lit":' + printed(item[key], True) + "}"
            return '{"$lit":' + printed(item, True) + "}"
        entries = [json.dumps(str(key), ensure_ascii=False) + ":" + printed(value, inside) for key, value in item.items()]
        return "{" + ",".join(entries) + "}"
    return json.dumps(item, ensure_ascii=False)
