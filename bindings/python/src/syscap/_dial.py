"""The ways to a server: by a ticket, or over a program's standard streams."""

from __future__ import annotations

import asyncio
import os
import subprocess

from ._wire import TICKET_BYTES
from .errors import Lost, NoServer

STREAM_BYTES = 1 << 20


class Ticket:
    """By a ticket at a descriptor, as `syscap ticket` puts it there: each connection shows it."""

    def __init__(self, descriptor: int = 3) -> None:
        try:
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        except OSError as error:
            raise NoServer(f"descriptor {descriptor} holds no ticket: start this by `syscap ticket`") from error
        if len(data) <= TICKET_BYTES or data[TICKET_BYTES:TICKET_BYTES + 1] != b"/":
            raise NoServer(f"descriptor {descriptor} holds no ticket: start this by `syscap ticket`")
        self.ticket, self._home = data[:TICKET_BYTES], data[TICKET_BYTES:]

    async def open(self) -> "Streams":
        """A connection.

        Raises:
            NoServer: nobody listens.
        """
        # A socket's name is short, and a home's path may be long.
        try:
            folder = os.open(self._home, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise NoServer(f"the home can't be reached: {error.strerror}") from error
        try:
            reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/socket")
        except OSError as error:
            raise NoServer("nobody serves the home") from error
        finally:
            os.close(folder)
        return Streams(reader, writer, self.ticket, None)


class Program:
    """Over a program's standard streams: `syscap channel` in a run, by a ticket, or by ssh."""

    def __init__(self, command: list[str]) -> None:
        if not command:
            raise ValueError("no program is named")
        self._command = list(command)

    async def open(self) -> "Streams":
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=STREAM_BYTES)
        except OSError as error:
            raise NoServer(f"{self._command[0]} can't be started: {error}") from error
        reader, writer = process.stdout, process.stdin
        if reader is None or writer is None:
            raise Lost("the program has no streams")
        try:
            first = await reader.readexactly(1)
            ticket = await reader.readexactly(TICKET_BYTES) if first == b"C" else b""
        except asyncio.IncompleteReadError as error:
            raise NoServer(f"{self._command[0]} gave no channel; it says why") from error
        if not ticket:
            raise NoServer(f"{self._command[0]} has no ticket")
        return Streams(reader, writer, ticket, process)


class Streams:
    """A connection's bytes, and the ticket that it shows."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ticket: bytes,
                 process: asyncio.subprocess.Process | None) -> None:
        self.reader, self.writer, self.ticket, self._process = reader, writer, ticket, process

    async def close(self) -> None:
        """Ends it, and the program with it."""
        self.writer.close()
        if self._process is not None:
            await self._process.wait()
