"""The client for asyncio. `syscap` has the same names for programs without a loop."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import hashlib
import itertools
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from . import _wire as wire
from ._cbor import encode
from ._dial import Program, Streams, Ticket
from ._models import Tools
from ._schema import Foreign, Function, plain
from .errors import (Error, Forked, Lost, NoServer, NotAccepted, Refused, Version, of_answer, refused)

__all__ = ["Answer", "Receipt", "Session", "Tool", "connect", "join", "key_of"]

# Of 256 requests that a connection takes some are left for waits and cancellations.
_CALLS_MAX = 200
_CONNECTIONS_MAX = 16
_DIAL_SECONDS, _PAUSE_SECONDS = 10.0, 0.05
_READ_BYTES = 1 << 16


_Make = Callable[[dict[str, Any]], Awaitable[Any]]


class _Dialer(Protocol):
    def open(self) -> Awaitable[Streams]: ...


@dataclasses.dataclass(frozen=True)
class Receipt:
    """Where the call stands in the home's log: positions, and leaves of the hash chain."""

    log: bytes
    outcome_seq: int
    outcome_leaf: bytes
    intent_seq: int | None
    intent_leaf: bytes | None
    used: dict[str, int]
    left: dict[str, int]
    enforcement: str | None


@dataclasses.dataclass(frozen=True)
class Answer:
    """A call's result: `value`; `effect` is no_op, committed, rolled_back or unknown."""

    value: Any
    effect: str
    receipt: Receipt


def key_of(host: str, conversation: str, call: str) -> str:
    """A key for a call of a host's, so that it is made at most once. Ids of calls repeat, so the
    conversation's is part of it."""
    if not conversation:
        raise ValueError("a call's id alone is no key: name the conversation")
    return hashlib.sha256("\0".join((host, conversation, call)).encode()).hexdigest()[:40]


class NotMade(Exception):
    """A run that was ordered was not begun."""


class _Connection:
    """One connection, with a session of its own."""

    def __init__(self, streams: Streams, run: Callable[["_Connection", int, dict[int, Any]], None]) -> None:
        self._streams, self._wire, self._run = streams, wire.Wire(), run
        self._waiting: dict[int, asyncio.Future[tuple[int, Any]]] = {}
        self.is_over = self.is_closing = False
        self.calls, self.session = 0, 0
        self.agent, self.token = "", b""
        self.runs: dict[int, asyncio.Task[None]] = {}
        self._reader: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Says hello, and shows the ticket."""
        self._streams.writer.write(self._wire.hello())
        first: list[Any] = []
        while not first:
            data = await self._streams.reader.read(_READ_BYTES)
            if not data:
                raise NoServer("the server has gone")
            first = self._wire.feed(data)
        if first[0][0] != 2:
            code, least, most = first[0][1:]
            if code == 106:
                raise Version(f"the server speaks versions {least} to {most}, this client {wire.VERSION}")
            raise refused(code, None, None, None)
        self._reader = asyncio.create_task(self._read(first[1:]))
        taken = await self.ask(wire.TAKE, self._streams.ticket)
        self.session, self.agent, self.token = taken[1], taken[2], taken[3]

    def send(self, verb: int, value: Any) -> tuple[int, asyncio.Future[tuple[int, Any]]]:
        """Makes a request. Raises ValueError before anything is sent, and Lost."""
        number, frame = self._wire.request(verb, value)
        if self.is_over:
            raise Lost("the server has gone")
        answer: asyncio.Future[tuple[int, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._streams.writer.write(frame)
        return number, answer

    async def ask(self, verb: int, value: Any) -> Any:
        """Makes a request, and waits for what it gives. Raises Refused, Lost, Error."""
        return self.told(*await self.send(verb, value)[1])

    @staticmethod
    def told(kind: int, body: Any) -> Any:
        if kind == wire.DONE:
            return body
        if kind == wire.REFUSED:
            raise refused(*body)
        raise Error(f"the server says: {body}")

    def reply(self, order: int, body: Any) -> None:
        try:
            frame = self._wire.answer(order, body)
        except ValueError as error:
            frame = self._wire.answer(order, _failed(f"the result: {error}", wire.TX["unknown"]))
        if not self.is_over:
            self._streams.writer.write(frame)

    async def _read(self, frames: list[Any]) -> None:
        try:
            while True:
                for frame in frames:
                    self._take(*wire.parts(frame))
                data = await self._streams.reader.read(_READ_BYTES)
                if not data:
                    break
                frames = self._wire.feed(data)
        except (OSError, ValueError, LookupError):
            # What is no frame ends the connection as its end does: whoever waits is told.
            pass
        finally:
            self._end()

    def _take(self, number: int, kind: int, body: Any) -> None:
        if kind != wire.ORDER:
            answer = self._waiting.pop(number, None)
            if answer is not None and not answer.done():
                answer.set_result((kind, body))
            return
        verb, value = body
        if verb == wire.RUN:
            return self._run(self, number, value)
        if verb == wire.CLOSING:
            self.is_closing = True
        elif verb == wire.STOP and value in self.runs:
            self.runs[value].cancel()
        self.reply(number, None)

    def _end(self) -> None:
        self.is_over = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(Lost("the server has gone: what was out may have run"))
        self._waiting.clear()

    async def close(self) -> None:
        """Ends its session, and then it."""
        if self.session and not self.is_over:
            try:
                await self.ask(wire.CLOSE, self.session)
            except Error:
                # It ends with the connection, too.
                pass
        self.is_over = True
        await self._streams.close()
        if self._reader is not None:
            self._reader.cancel()


class Session:
    """A session of an agent's: calls by its token. It belongs to the loop and the process in which it
    began. Where one connection is full it opens more, each with a session of its own."""

    def __init__(self, dialer: _Dialer) -> None:
        self._dialer, self._process = dialer, os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: list[_Connection] = []
        self._dialing, self._offering = asyncio.Lock(), asyncio.Lock()
        self._places: asyncio.Semaphore | None = None
        self._functions: dict[str, Function | Foreign] = {}
        self._offered: dict[str, str] = {}
        self._stubs: dict[int, contextvars.Context | _Make] = {}
        self._tags = itertools.count(1)
        self._is_closed = False
        self.agent, self.token = "", b""

    async def begin(self) -> "Session":
        """Connects. Raises NoServer, Version, Refused."""
        self._loop = asyncio.get_running_loop()
        connection = await self._open(is_first=True)
        self.agent, self.token = connection.agent, connection.token
        limits = wire.amounts((await connection.ask(wire.LEFT, connection.session))[2])
        places = limits["concurrent"] or _CALLS_MAX
        self._places = asyncio.Semaphore(min(places, _CALLS_MAX * _CONNECTIONS_MAX))
        return self

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends it, and what it still runs."""
        self._is_closed = True
        connections, self._connections = self._connections, []
        for connection in connections:
            await connection.close()

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise Forked("this session is the parent's: join() in this process")
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("this session belongs to another loop")
        if self._is_closed:
            raise Error("the session was closed")

    async def _open(self, is_first: bool) -> _Connection:
        """Dials. A server that follows another knows the ticket a moment after it has begun."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _DIAL_SECONDS
        while True:
            try:
                connection = _Connection(await self._dialer.open(), self._order)
                try:
                    await connection.begin()
                    await self._offer(connection, list(self._functions.values()))
                except BaseException:
                    await connection.close()
                    raise
                self._connections.append(connection)
                return connection
            except (NoServer, Lost, OSError) as error:
                if loop.time() > until or (is_first and isinstance(error, NoServer)):
                    raise
            except Refused as error:
                passes = error.reason in ("closing", "overloaded") or error.reason == "not_bound" and not is_first
                if loop.time() > until or not passes:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _ready(self) -> _Connection:
        """A connection with room for one more call."""
        self._check()
        async with self._dialing:
            gone = [one for one in self._connections if one.is_over]
            for one in gone:
                self._connections.remove(one)
            able = [one for one in self._connections if not one.is_closing]
            least = min(able, key=lambda one: one.calls, default=None)
            if least is None or least.calls >= _CALLS_MAX and len(able) < _CONNECTIONS_MAX:
                least = await self._open(is_first=False)
            return least

    async def call(self, tool: str, args: dict[str, Any] | None = None, /, *, key: str | None = None,
                   refs: bool = False, **named: Any) -> Answer:
        """Calls a tool, by the arguments of a map, by name, or both. With a key it is made at most once,
        and sent again where the server is lost. With `refs` a `$ref` in the arguments is a result of this
        session (docs/results.md), else it is data.

        Raises:
            ValueError: it can't be said exactly; nothing was sent.
            Refused (Asked, Deferred, OverBudget), Failed (ToolFailed), Lost, NoServer, Forked.
        """
        given = plain(args | named if args is not None and named else named if args is None else args)
        return await self._call(tool, given if refs else _literal(given), key, 0)

    async def _call(self, tool: str, args: Any, key: str | None, tag: int) -> Answer:
        self._check()
        envelope = {"tool_id": tool, "args": args} | ({} if key is None else {"idempotency_key": key})
        packed = encode(envelope)
        assert self._places is not None
        loop = asyncio.get_running_loop()
        until = loop.time() + _DIAL_SECONDS
        while True:
            await self._places.acquire()
            try:
                connection = await self._ready()
                sent = {1: packed, 2: 1, 3: 2, 4: {1: tag, 2: [], 3: False}}
                number, answer = connection.send(wire.CALL, {1: connection.session, 2: sent})
            except BaseException:
                self._places.release()
                raise
            connection.calls += 1
            answer.add_done_callback(functools.partial(self._is_back, connection))
            try:
                kind, body = await asyncio.shield(answer)
            except asyncio.CancelledError:
                if not answer.done():
                    answer.add_done_callback(_heard)
                    if not connection.is_over:
                        connection.send(wire.CANCEL, number)[1].add_done_callback(_heard)
                raise
            except Lost:
                # Only what has a key is sent again: it is made once.
                if key is None or loop.time() > until:
                    raise
                continue
            if kind == wire.REFUSED and body[0] in (603, 604) and loop.time() <= until:
                # Nothing was done: the server ends, or the session has.
                connection.is_closing = True
                continue
            return self._answer(*connection.told(kind, body))

    def _is_back(self, connection: _Connection, _: object) -> None:
        connection.calls -= 1
        assert self._places is not None
        self._places.release()

    def _answer(self, answer: dict[str, Any], delivered: Any) -> Answer:
        if answer["status"] != "ok":
            raise of_answer(answer, delivered, self)
        names = [field.name for field in dataclasses.fields(Receipt)]
        receipt = Receipt(**{name: answer["receipt"].get(name) for name in names})
        return Answer(delivered, answer["tx_outcome"], receipt)

    async def wait(self, request: int, seconds: float = 600) -> tuple[str, str | None]:
        """How a request for approval stands: approved, denied, expired, over or waiting; and why it was
        refused, where the person said so. It makes no call and no record."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            left = max(0, min(until - loop.time(), 600))
            connection = await self._ready()
            try:
                stands = await connection.ask(
                    wire.WAIT, {1: connection.session, 2: request, 3: int(left * 1000)})
            except (Lost, Refused) as error:
                if isinstance(error, Refused) and error.reason not in ("closing", "no_session"):
                    raise
                connection.is_closing = True
                continue
            if stands[1] != 5 or until <= loop.time():
                return wire.STANDS[stands[1]], stands[2]

    async def is_approved(self, request: int, seconds: float = 600) -> bool:
        """True once a person has approved it."""
        return (await self.wait(request, seconds))[0] == "approved"

    async def tools(self) -> Tools:
        """The tools that the token grants, by the definitions on record."""
        connection = await self._ready()
        listed = (await connection.ask(wire.TOOLS, connection.session))[1]
        return Tools(listed, {name: one.schema for name, one in self._functions.items()})

    async def left(self) -> dict[str, int]:
        """What is left of the token; of `concurrent` the places that are free."""
        connection = await self._ready()
        return wire.amounts((await connection.ask(wire.LEFT, connection.session))[3])

    def tool(self, name: str, *, effect: str = "external_write", limit: float = 10, untrusted: bool = False,
             description: str | None = None, scopes: Mapping[str, str] | None = None) -> Callable[[Callable[..., Any]], "Tool"]:
        """Makes a function a tool: what is called by its name is a stub, and the function runs when the
        kernel orders it, with the kernel's arguments. It is offered before the session's next call. With
        `scopes={"page": "page"}` a token must permit each value of that argument, by `--scope page=VALUE`."""
        def made(function: Callable[..., Any]) -> Tool:
            if name in self._functions:
                raise ValueError(f"{name} is a tool of this session already")
            one = Function(function, name, effect, limit, untrusted, description, scopes)
            self._functions[name] = one
            return Tool(self, one)
        return made

    async def offer(self) -> None:
        """Offers the tools that were not offered yet. Raises NotAccepted, Refused."""
        async with self._offering:
            new = [one for name, one in self._functions.items() if name not in self._offered]
            if new:
                await self._ready()
                for connection in list(self._connections):
                    if not connection.is_over:
                        await self._offer(connection, new)
        waiting = [name for name, standing in self._offered.items() if standing != "ready"]
        if waiting:
            said = ", ".join(f"{name} is {self._offered[name]}" for name in waiting)
            raise NotAccepted(f"{said}: an operator accepts it by `syscap tools accept HOME {waiting[0]}`")

    async def _offer(self, connection: _Connection, functions: list[Function | Foreign]) -> None:
        if functions:
            told = await connection.ask(wire.OFFER, [{1: one.manifest} for one in functions])
            for one, offer in zip(functions, told[1]):
                self._offered[one.name] = wire.STANDINGS[offer[2]]

    def _order(self, connection: _Connection, number: int, order: dict[int, Any]) -> None:
        task = asyncio.create_task(self._run(connection, number, order))
        connection.runs[number] = task
        task.add_done_callback(lambda _: connection.runs.pop(number, None))

    async def _run(self, connection: _Connection, number: int, order: dict[int, Any]) -> None:
        connection.reply(number, await self._ran(order))

    async def _ran(self, order: dict[int, Any]) -> dict[int, Any]:
        one = self._functions.get(order[1])
        reads = one is not None and one.effect in ("pure", "read", "external_read")
        if one is None:
            return _failed("nobody here has this function", wire.TX["no_op"])
        stub = self._stubs.get(order[10])
        if isinstance(one, Foreign):
            if not callable(stub):
                return _failed("no call of this process waits for it", wire.TX["no_op"])
            return await self._came(stub(order[6]), reads)
        try:
            given = one.given(order[6])
        except (TypeError, ValueError, LookupError) as error:
            return _failed(f"the arguments: {error}", wire.TX["no_op"])
        context = stub if isinstance(stub, contextvars.Context) else contextvars.Context()
        if one.is_async:
            return await self._came(context.run(asyncio.ensure_future, one.function(**given)), reads)
        return await self._came(_apart(context, functools.partial(one.function, **given)), reads)

    @staticmethod
    async def _came(run: Awaitable[Any], reads: bool) -> dict[int, Any]:
        """What a run comes to."""
        unsure = wire.TX["no_op" if reads else "unknown"]
        try:
            result = plain(await run)
            encode(result)
        except NotMade as error:
            return _failed(str(error), wire.TX["no_op"])
        except asyncio.CancelledError:
            return _failed("it was given up", unsure)
        except BaseException as error:
            return _failed(f"{type(error).__name__}: {error}", unsure)
        return {1: [1, result], 2: wire.TX["no_op" if reads else "committed"], 3: [0] * 10}

    async def _through(self, tool: str, args: dict[str, Any], key: str | None, make: _Make) -> Any:
        """Calls a host's tool, which `make` runs once the kernel orders it."""
        await self.offer()
        tag = next(self._tags)
        self._stubs[tag] = make
        try:
            return (await self._call(tool, _literal(plain(args)), key, tag)).value
        finally:
            del self._stubs[tag]


class Tool:
    """A function behind the kernel. Called, it asks the kernel; `unguarded` is the function itself, for
    tests."""

    def __init__(self, session: Session, function: Function) -> None:
        self._session, self._function = session, function
        self.name, self.schema, self.unguarded = function.name, function.schema, function.function
        functools.update_wrapper(self, function.function)

    async def answer(self, args: dict[str, Any], *, key: str | None = None) -> Answer:
        """Calls it with arguments that a model wrote."""
        await self._session.offer()
        tag = next(self._session._tags)
        self._session._stubs[tag] = contextvars.copy_context()
        try:
            return await self._session._call(self.name, _literal(plain(args)), key, tag)
        finally:
            del self._session._stubs[tag]

    async def __call__(self, *args: Any, **named: Any) -> Any:
        return (await self.answer(self._function.bound(args, named))).value

    async def when_approved(self, seconds: float, /, *args: Any, **named: Any) -> Any:
        """The same; where a person has to approve it, it is made again once that is so."""
        from .errors import Asked
        try:
            return await self(*args, **named)
        except Asked as asked:
            if not await self._session.is_approved(asked.request, seconds):
                raise
        return await self(*args, **named)


def _literal(args: Any) -> Any:
    """Arguments in which nothing is an escape."""
    return {"$lit": args} if _has_escape(args) else args


def _has_escape(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key.startswith("$") for key in value) or any(map(_has_escape, value.values()))
    return isinstance(value, list) and any(map(_has_escape, value))


def _failed(words: str, effect: int) -> dict[int, Any]:
    said = words.encode("utf-8", "replace").decode()[:4096]
    return {1: [3, said], 2: effect, 3: [0] * 10}


def _heard(answer: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more."""
    if not answer.cancelled():
        answer.exception()


async def _apart(context: contextvars.Context, act: Callable[[], Any]) -> Any:
    """Runs what blocks on a thread of its own: a pool's few threads would wait for each other."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(act: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            act(value)

    def run() -> None:
        try:
            value = context.run(act)
        except BaseException as error:
            told = functools.partial(tell, done.set_exception, _kept(error))
        else:
            told = functools.partial(tell, done.set_result, value)
        try:
            loop.call_soon_threadsafe(told)
        except RuntimeError:
            # The loop has gone: the outcome is unknown to the server, too.
            pass

    threading.Thread(target=run, name="syscap-run", daemon=True).start()
    return await done


def _kept(error: BaseException) -> BaseException:
    # A future can't hold these; what ended so has failed.
    is_control = isinstance(error, (StopIteration, SystemExit, KeyboardInterrupt))
    return RuntimeError(f"{type(error).__name__}: {error}") if is_control else error


async def join(descriptor: int = 3, program: str = "syscap") -> Session:
    """A session by the ticket that `syscap ticket` has put there; inside `syscap run` by its channel.

    Raises:
        NoServer: there is no ticket, or nobody serves the home.
    """
    inside = "SYSCAP_LANE" in os.environ
    return await Session(Program([program, "channel"]) if inside else Ticket(descriptor)).begin()


async def connect(home: str | os.PathLike[str] | None = None, *, agent: str | None = None,
                  token: str | None = None, offer: Iterable[str] = (),
                  command: list[str] | None = None, program: str = "syscap") -> Session:
    """A session over a program's streams: `command` (ssh to another machine, say), or `syscap ticket` for
    that home, agent and token. It issues nothing, approves nothing and revokes nothing.

    Raises:
        NoServer: the program gave no channel.
    """
    if command is None:
        if home is None or agent is None or token is None:
            raise ValueError("name a home, an agent and a token, or a command")
        offers = [word for prefix in offer for word in ("--offer", prefix)]
        command = [program, "ticket", os.fspath(home), "--agent", agent, "--token", token, *offers,
                   "--", program, "channel"]
    return await Session(Program(command)).begin()
