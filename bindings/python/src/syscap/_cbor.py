"""Canonical CBOR (docs/spec/cbor.md): what has no exact form is a ValueError before anything is sent."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

DEPTH_MAX = 64
_FLOATS = ((">e", 0xF9), (">f", 0xFA), (">d", 0xFB))


def head(major: int, number: int) -> bytes:
    """The shortest head of an item."""
    if number < 24:
        return bytes([major << 5 | number])
    for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * width:
            return bytes([major << 5 | info]) + number.to_bytes(width, "big")
    raise ValueError("an integer of more than 64 bits")


def encode(value: Any, depth: int = 0) -> bytes:
    """The item of a value of None, bool, int, float, str, bytes, list, tuple and mappings.

    Raises:
        ValueError: an integer of more than 64 bits, a float that is no number, half a surrogate,
             a key that is no text or integer, a cycle or more than 64 levels, another type.
    """
    if depth > DEPTH_MAX:
        raise ValueError(f"more than {DEPTH_MAX} levels, or a cycle")
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        data = value.encode()
        return head(3, len(data)) + data
    if isinstance(value, (bytes, bytearray)):
        return head(2, len(value)) + bytes(value)
    if isinstance(value, (list, tuple)):
        return head(4, len(value)) + b"".join(encode(item, depth + 1) for item in value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, (str, int)) and not isinstance(key, bool) for key in value):
            raise ValueError("a key that is no text")
        entries = sorted((encode(key, depth + 1), encode(item, depth + 1)) for key, item in value.items())
        return head(5, len(entries)) + b"".join(key + item for key, item in entries)
    raise ValueError(f"a value of {type(value).__name__} has no form")


def _float(value: float) -> bytes:
    if not math.isfinite(value):
        raise ValueError(f"{value!r} has no form")
    for form, first in _FLOATS:
        try:
            packed = struct.pack(form, value)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == value:
            return bytes([first]) + packed
    raise ValueError(f"{value!r} has no form")


def decode(data: bytes, at: int = 0) -> tuple[Any, int]:
    """The item that begins there, and where it ends. The server writes canonical items only."""
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    width = 1 << (info - 24) if info >= 24 else 0
    if major == 7:
        if width > 1:
            form = {2: ">e", 4: ">f", 8: ">d"}[width]
            return struct.unpack(form, data[at:at + width])[0], at + width
        return {20: False, 21: True, 22: None}[info], at
    number = int.from_bytes(data[at:at + width], "big") if width else info
    at += width
    if major < 2:
        return (number if major == 0 else -1 - number), at
    if major < 4:
        text = data[at:at + number]
        return (text.decode() if major == 3 else text), at + number
    items = []
    for _ in range(number * (2 if major == 5 else 1)):
        item, at = decode(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2])) if major == 5 else items), at
