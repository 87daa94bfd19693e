"""A client of the agents' channel, from docs/spec/channel.md. It lists what may be called, or calls:
    syscap ticket HOME --agent A --token T -- python3 client.py [TOOL ARGUMENTS]
"""

import contextlib
import itertools
import json
import math
import os
import socket
import struct
import subprocess
import sys
import threading

VERSION, AGENTS = 8, 2
REQUEST, ORDER, DONE, REFUSED = 2, 4, 5, 6
TAKE, CALL, CANCEL, CLOSE, WAIT, TOOLS, LEFT, OFFER, WITHDRAW = range(1, 10)
STANDS = {1: "approved", 2: "denied", 3: "expired", 4: "over", 5: "waiting"}
FRAME_BYTES_MAX, TEXT = 1114112, 3


def head(major, number):
    """The shortest head of an item."""
    if number < 24:
        return bytes([major << 5 | number])
    for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * width:
            return bytes([major << 5 | info]) + number.to_bytes(width, "big")
    raise ValueError("an integer of more than 64 bits")


def encode(value):
    """Canonical CBOR (docs/spec/cbor.md). What has no exact form is a ValueError."""
    if value is None or isinstance(value, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float) and math.isfinite(value):
        for form, first in ((">e", b"\xf9"), (">f", b"\xfa"), (">d", b"\xfb")):
            with contextlib.suppress(OverflowError):
                if struct.unpack(form, packed := struct.pack(form, value))[0] == value:
                    return first + packed
    if isinstance(value, (bytes, str)):
        data = value.encode() if isinstance(value, str) else value
        return head(2 if data is value else TEXT, len(data)) + data
    if isinstance(value, (list, tuple)):
        return head(4, len(value)) + b"".join(map(encode, value))
    if isinstance(value, dict):
        entries = sorted((encode(key), encode(item)) for key, item in value.items())
        return head(5, len(entries)) + b"".join(key + item for key, item in entries)
    raise ValueError(f"{value!r} has no form")


def decode(data, at=0):
    """The item that begins there, and where it ends. The server writes canonical items only."""
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    width = 1 << (info - 24) if info >= 24 else 0
    if major == 7:
        if width > 1:
            return struct.unpack({2: ">e", 4: ">f", 8: ">d"}[width], data[at:at + width])[0], at + width
        return {20: False, 21: True, 22: None}[info], at
    number = int.from_bytes(data[at:at + width], "big") if width else info
    at += width
    if major < 2:
        return (number if major == 0 else -1 - number), at
    if major < 4:
        value = data[at:at + number]
        return (value.decode() if major == TEXT else value), at + number
    items = []
    for _ in range(number * (2 if major == 5 else 1)):
        item, at = decode(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2])) if major == 5 else items), at


class Lost(Exception):
    """What was out may have run."""


class Refused(Exception):
    """Nothing was done. `reason` is a number; `field`, `got` and `allowed` are texts or None."""

    def __init__(self, reason, field=None, got=None, allowed=None):
        super().__init__(f"refused by reason {reason}: {field} {got} {allowed}")
        self.reason, self.field, self.got, self.allowed = reason, field, got, allowed


class Channel:
    """A connection. Requests may be made from many threads; answers are found by id."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.process = reader, writer, os.getpid()
        self.ids, self.waiting, self.lost = itertools.count(1), {}, False
        self.writing = threading.Lock()
        self._write(encode([1, VERSION, VERSION, AGENTS]))
        welcome = self._read()
        if welcome[0] != 2:
            raise Refused(welcome[1], "version", str(VERSION), f"{welcome[2]} to {welcome[3]}")
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, verb, value):
        """Makes a request, and waits for its answer."""
        packed = encode([verb, value])
        if len(packed) > FRAME_BYTES_MAX - 16:
            raise ValueError(f"a request of {len(packed)} bytes")
        number, answer = next(self.ids), [threading.Event()]
        self.waiting[number] = answer
        self._write(b"\xa2\x01" + head(0, number) + head(0, REQUEST) + packed)
        if self.lost or not answer[0].wait() or len(answer) == 1:
            raise Lost("the server has gone")
        if answer[1] == DONE:
            return answer[2]
        raise Refused(*answer[2]) if answer[1] == REFUSED else Refused(0, str(answer[2]))

    def _write(self, frame):
        if os.getpid() != self.process:
            raise Lost("this connection is the parent's: connect after the fork")
        try:
            with self.writing:
                self.writer.write(struct.pack(">I", len(frame)) + frame)
                self.writer.flush()
        except OSError as error:
            raise Lost("the server has gone") from error

    def _read(self):
        size = int.from_bytes(self.reader.read(4), "big")
        frame = self.reader.read(size)
        if not size or len(frame) < size:
            raise Lost("the server has gone")
        return decode(frame)[0]

    def _listen(self):
        try:
            while True:
                frame = self._read()
                number = frame.pop(1)
                (kind, body), = frame.items()
                if kind == ORDER:
                    self._write(encode({1: number, DONE: None}))
                elif answer := self.waiting.pop(number):
                    answer += [kind, body]
                    answer[0].set()
        except (Lost, OSError):
            self.lost = True
            for answer in list(self.waiting.values()):
                answer[0].set()


class Session:
    def __init__(self, channel, ticket):
        taken = channel.ask(TAKE, ticket)
        self.channel, (self.number, self.agent, self.token) = channel, map(taken.get, (1, 2, 3))

    def call(self, tool, args, key=None):
        """Calls a tool: the answer, with `result` where its status is ok, and else with `error`."""
        envelope = {"tool_id": tool, "args": args} | ({"idempotency_key": key} if key else {})
        sent = {1: encode(envelope), 2: 1, 3: 2, 4: {1: 0, 2: [], 3: False}}
        answer, delivered = self.channel.ask(CALL, {1: self.number, 2: sent})
        answer["result" if answer["status"] == "ok" else "error"] = delivered
        return answer

    def wait(self, request, seconds=600):
        """How a call stands that waits for a person, and why it was refused."""
        stands = self.channel.ask(WAIT, {1: self.number, 2: request, 3: int(seconds * 1000)})
        return STANDS[stands[1]], stands[2]

    def tools(self):
        names = "tool name title description schema effect label standing provided".split()
        listed = self.channel.ask(TOOLS, self.number)[1]
        return [{name: one[key] for key, name in enumerate(names, 1)} for one in listed]

    def left(self):
        return self.channel.ask(LEFT, self.number)[3]


def join(descriptor=3):
    """A session by the ticket that `syscap ticket` has put there."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    home = socket.socket(socket.AF_UNIX)
    home.connect(os.path.join(data[32:], b"socket"))
    return Session(Channel(home.makefile("rb"), home.makefile("wb")), data[:32])


def over(command):
    """A session by a program's streams: `syscap channel` in a run, or over ssh."""
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    first = program.stdout.read(33)
    if first[:1] != b"C":
        raise Lost("no channel was given")
    return Session(Channel(program.stdout, program.stdin), first[1:])


if __name__ == "__main__":
    session = join()
    if len(sys.argv) == 3:
        print(json.dumps(session.call(sys.argv[1], json.loads(sys.argv[2])), default=bytes.hex))
    for tool in session.tools() if len(sys.argv) < 3 else ():
        print(tool["tool"], "-", tool["description"])
