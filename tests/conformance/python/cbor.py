"""Canonical CBOR: docs/spec/cbor.md."""

import math
import struct

CONTROL, DATA = "CONTROL", "DATA"
DEPTH = {CONTROL: 16, DATA: 64}


class Refused(Exception):
    """Input that the specification refuses."""


class Decoder:
    """Reads items of one profile."""

    def __init__(self, data, profile):
        self.data, self.profile, self.at = data, profile, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Refused("length")
        self.at += count
        return self.data[self.at - count : self.at]

    def head(self):
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        if info == 31:
            raise Refused("indefinite")
        if info > 27:
            raise Refused("reserved")
        if info < 24:
            return major, info, info
        value = int.from_bytes(self.take(1 << (info - 24)), "big")
        if major != 7 and value < (24 if info == 24 else 1 << (8 << (info - 25))):
            raise Refused("not shortest")
        return major, info, value

    def item(self, depth=1):
        major, info, value = self.head()
        if major == 0:
            return value
        if major == 1:
            if value >= 1 << 63:
                raise Refused("integer")
            return -1 - value
        if major == 2:
            return self.take(value)
        if major == 3:
            return text(self.take(value))
        if major in (4, 5):
            if depth > DEPTH[self.profile]:
                raise Refused("depth")
            if value > len(self.data) - self.at:
                raise Refused("count")
            if major == 4:
                return [self.item(depth + 1) for _ in range(value)]
            return self.map(value, depth)
        if major == 6:
            raise Refused("tag")
        if info in (25, 26, 27):
            return self.float(info, value)
        if info in (20, 21, 22):
            return (False, True, None)[info - 20]
        raise Refused("simple value")

    def map(self, count, depth):
        entries, last, kind = {}, b"", None
        for n in range(count):
            start = self.at
            if self.at == len(self.data) or self.data[self.at] >> 5 not in (0, 3):
                raise Refused("key type")
            key = self.item(depth + 1)
            encoded = self.data[start : self.at]
            if n and encoded == last:
                raise Refused("duplicate key")
            if n and (encoded < last or type(key) is not kind):
                raise Refused("key order")
            last, kind = encoded, type(key)
            entries[key] = self.item(depth + 1)
        return entries

    def float(self, info, value):
        if self.profile == CONTROL:
            raise Refused("float")
        number = struct.unpack({25: ">e", 26: ">f", 27: ">d"}[info], value.to_bytes(1 << (info - 24), "big"))[0]
        if not math.isfinite(number):
            raise Refused("not finite")
        if len(encode_float(number)) != 1 + (1 << (info - 24)):
            raise Refused("not shortest")
        return number


def text(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("UTF-8") from error


def decode(data, profile=CONTROL):
    """The one item that the bytes are."""
    decoder = Decoder(data, profile)
    item = decoder.item()
    if decoder.at != len(data):
        raise Refused("bytes after the item")
    return item


def head(major, value):
    if value < 24:
        return bytes([major << 5 | value])
    for n in range(4):
        if value < 1 << (8 << n):
            return bytes([major << 5 | 24 + n]) + value.to_bytes(1 << n, "big")
    raise Refused("integer")


def encode_float(number):
    for lead, form in ((0xF9, ">e"), (0xFA, ">f"), (0xFB, ">d")):
        try:
            packed = struct.pack(form, number)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == number:
            return bytes([lead]) + packed
    raise Refused("not finite")


def encode(item):
    """The canonical bytes of an item."""
    if item is None or item is True or item is False:
        return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[item]
    if isinstance(item, int):
        return head(0, item) if item >= 0 else head(1, -1 - item)
    if isinstance(item, float):
        return encode_float(item)
    if isinstance(item, bytes):
        return head(2, len(item)) + item
    if isinstance(item, str):
        data = item.encode("utf-8")
        return head(3, len(data)) + data
    if isinstance(item, list):
        return head(4, len(item)) + b"".join(map(encode, item))
    entries = sorted((encode(key), encode(value)) for key, value in item.items())
    return head(5, len(entries)) + b"".join(key + value for key, value in entries)
