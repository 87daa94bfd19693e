"""The agents' channel (docs/spec/channel.md), without a socket, a thread or a clock."""

from __future__ import annotations

import itertools
import struct
from typing import Any

from ._cbor import decode, encode, head

VERSION, AGENTS = 8, 2
REQUEST, ORDER, DONE, REFUSED, FAILED = 2, 4, 5, 6, 7
TAKE, CALL, CANCEL, CLOSE, WAIT, TOOLS, LEFT, OFFER, WITHDRAW = range(1, 10)
RUN, STOP, CLOSING = 1, 2, 3
FRAME_BYTES_MAX = 1_114_112
TICKET_BYTES = 32
DIMENSIONS = (
    "calls", "llm_tokens", "cpu_us", "wall_us", "disk_write_bytes", "disk_files", "egress_bytes",
    "ingress_bytes", "credits_micro", "concurrent",
)
STANDS = {1: "approved", 2: "denied", 3: "expired", 4: "over", 5: "waiting"}
STANDINGS = {1: "ready", 2: "changed", 3: "taken", 4: "new"}
EFFECTS = {
    "pure": 1, "read": 2, "local_write": 3, "external_read": 4, "external_write": 5, "irreversible": 6,
}
TX = {"committed": 1, "rolled_back": 2, "no_op": 3, "unknown": 4}


class Wire:
    """The bytes of one connection, both ways."""

    def __init__(self) -> None:
        self._buffer, self._ids = bytearray(), itertools.count(1)

    def hello(self) -> bytes:
        return _framed(encode([1, VERSION, VERSION, AGENTS]))

    def request(self, verb: int, value: Any) -> tuple[int, bytes]:
        """A request and its id.

        Raises:
            ValueError: it has no form, or is longer than a frame may be.
        """
        packed, number = encode([verb, value], -16), next(self._ids)
        frame = b"\xa2\x01" + head(0, number) + head(0, REQUEST) + packed
        if len(frame) > FRAME_BYTES_MAX:
            raise ValueError(f"a request of {len(frame)} bytes, of {FRAME_BYTES_MAX}")
        return number, _framed(frame)

    def answer(self, order: int, body: Any, kind: int = DONE) -> bytes:
        """An answer to an order."""
        frame = b"\xa2\x01" + head(0, order) + head(0, kind) + encode(body, -16)
        if len(frame) > FRAME_BYTES_MAX:
            raise ValueError(f"an answer of {len(frame)} bytes, of {FRAME_BYTES_MAX}")
        return _framed(frame)

    def feed(self, data: bytes) -> list[Any]:
        """The items of the frames that are whole now."""
        self._buffer += data
        found = []
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < 4 + size:
                break
            found.append(decode(bytes(self._buffer[4:4 + size]))[0])
            del self._buffer[:4 + size]
        return found


def parts(frame: Any) -> tuple[int, int, Any]:
    """The id, the kind and the body of a frame."""
    number = frame.pop(1)
    (kind, body), = frame.items()
    return number, kind, body


def amounts(listed: list[int]) -> dict[str, int]:
    """Ten amounts by their names."""
    return dict(zip(DIMENSIONS, listed))


def _framed(frame: bytes) -> bytes:
    return struct.pack(">I", len(frame)) + frame
