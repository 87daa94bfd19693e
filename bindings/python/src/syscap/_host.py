"""What the adapters of agent frameworks share: a host's tool is a stub that asks the kernel, and what the
host would have run runs when the kernel orders it, with the kernel's arguments."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from . import aio
from ._schema import Foreign
from ._sync import Session
from .aio import NotMade, key_of
from .errors import Asked, Error, Refused

T = TypeVar("T")
Make = Callable[[dict[str, Any]], Awaitable[Any]]


class Host:
    """A session as a host's tools use it, from the host's own loop or threads."""

    def __init__(self, session: Session | aio.Session, host: str, thread: str | None, once: bool,
                 prefix: str, effects: dict[str, str], limit: float) -> None:
        if once and not thread:
            raise ValueError("ids of calls repeat: name the conversation by thread=, or say once=False")
        self._session = session._session if isinstance(session, Session) else session
        self._loop = session._loop.loop if isinstance(session, Session) else None
        self._host, self._thread, self._once = host, thread or "", once
        self._prefix, self._effects, self._limit = prefix, dict(effects), limit
        self.names: dict[str, str] = {}

    def add(self, name: str, description: str, schema: dict[str, Any]) -> None:
        """A tool of the host's; its name below the prefix is the kernel's. Raises ValueError where that is
        another tool's."""
        known = self._prefix + re.sub("[^a-z0-9_]", "_", name.lower())
        made = Foreign(known, name, description, schema, self._effects.get(name, "external_write"), self._limit)
        there = self._session._functions.setdefault(known, made)
        # The same tool of another agent or conversation is the same.
        if not isinstance(there, Foreign) or there.manifest != made.manifest:
            raise ValueError(f"two tools would be {known}")
        self.names[name] = known

    def key(self, call: str | None, thread: str | None = None) -> str | None:
        """The key of a call, so that it is made at most once."""
        return key_of(self._host, thread or self._thread, call) if self._once and call else None

    async def across(self, act: Coroutine[Any, Any, T]) -> T:
        """Does something in the session's loop."""
        if self._loop is None or self._loop is asyncio.get_running_loop():
            return await act
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(act, self._loop))

    async def through(self, name: str, args: dict[str, Any], key: str | None, make: Make) -> Any:
        """The result of a host's tool. Raises Error."""
        back = make if self._loop is None else self._home(make)
        return await self.across(self._session._through(self.names[name], args, key, back))

    @staticmethod
    def _home(make: Make) -> Make:
        """Runs it in the host's loop, where its context is."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()

        async def run(args: dict[str, Any]) -> Any:
            made: asyncio.Future[Any] = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_in(context, make, args), loop))
            return await made
        return run

    def through_blocking(self, name: str, args: dict[str, Any], key: str | None, make: Callable[..., Any]) -> Any:
        """The same for a host without a loop: the tool runs on a thread of its own."""
        if self._loop is None:
            raise RuntimeError("a session of syscap.aio is for coroutines: give this one of syscap")
        context = contextvars.copy_context()

        async def run(given: dict[str, Any]) -> Any:
            return await aio._apart(context, functools.partial(make, given))
        act = self._session._through(self.names[name], args, key, run)
        return asyncio.run_coroutine_threadsafe(act, self._loop).result()


async def _in(context: contextvars.Context, make: Make, args: dict[str, Any]) -> Any:
    return await context.run(asyncio.ensure_future, _awaited(make, args))


async def _awaited(make: Make, args: dict[str, Any]) -> Any:
    return await make(args)


class Held:
    """A call that was let through before the host has said what runs it: an order waits for that."""

    def __init__(self, host: Host, name: str, args: dict[str, Any], key: str | None, seconds: float) -> None:
        self.args = args
        self._ordered = asyncio.Event()
        self._make: asyncio.Future[Make] = asyncio.get_running_loop().create_future()
        self._seconds = seconds
        self._call = asyncio.ensure_future(host.through(name, args, key, self._run))

    async def _run(self, args: dict[str, Any]) -> Any:
        self._ordered.set()
        try:
            make = await asyncio.wait_for(self._make, self._seconds)
        except asyncio.TimeoutError as error:
            raise NotMade("the host did not run it") from error
        return await make(args)

    async def is_asked(self) -> bool:
        """True if a person has to approve it. Else it is decided."""
        ordered = asyncio.ensure_future(self._ordered.wait())
        await asyncio.wait({ordered, self._call}, return_when=asyncio.FIRST_COMPLETED)
        ordered.cancel()
        return self._call.done() and not self._call.cancelled() and isinstance(self._call.exception(), Asked)

    async def runs(self, make: Make) -> Any:
        """Has it run so, and gives its result."""
        if not self._make.done():
            self._make.set_result(make)
        return await self._call

    def drop(self) -> None:
        """The host does not run it."""
        if not self._make.done():
            self._make.set_exception(NotMade("the host runs something else"))
            # An order that never comes asks for it no more.
            self._make.exception()
        self._call.add_done_callback(aio._heard)


def told(error: Error) -> str:
    """An error, for a model."""
    kind = "a person must approve it" if isinstance(error, Asked) else "refused" if isinstance(error, Refused) else "failed"
    said = error.for_model if hasattr(error, "for_model") else str(error)
    return f"{kind}: {said}"
