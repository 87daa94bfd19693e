"""The client for programs without a loop: one thread of the process has one, for all sessions."""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from . import aio
from ._issue import issued
from ._models import Tools
from .errors import Asked, Forked

T = TypeVar("T")


class _Loop:
    """The process's loop, on a thread of its own."""

    def __init__(self) -> None:
        self.process, self.loop = os.getpid(), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="syscap", daemon=True)
        self.thread.start()

    def run(self, act: Coroutine[Any, Any, T]) -> T:
        if os.getpid() != self.process:
            act.close()
            raise Forked("this session is the parent's: join() in this process")
        if threading.current_thread() is self.thread:
            act.close()
            raise RuntimeError("this would wait for itself: use syscap.aio in a coroutine")
        future = asyncio.run_coroutine_threadsafe(act, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_lock = threading.Lock()
_loop: _Loop | None = None


def _own_loop() -> _Loop:
    global _loop
    with _lock:
        if _loop is None or _loop.process != os.getpid():
            _loop = _Loop()
        return _loop


async def _cancel_all() -> None:
    own = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not own]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _at_exit() -> None:
    """Sessions that nobody has closed end with the process; the loop ends before the interpreter does."""
    if _loop is None or _loop.process != os.getpid():
        return
    done = asyncio.run_coroutine_threadsafe(_cancel_all(), _loop.loop)
    try:
        done.result(timeout=2)
    except Exception:
        # A tool that does not end keeps nobody from going.
        pass
    _loop.loop.call_soon_threadsafe(_loop.loop.stop)
    _loop.thread.join(timeout=2)


atexit.register(_at_exit)


def _after_fork() -> None:
    # A lock that another thread held at the fork is nobody's to give back.
    global _lock
    _lock = threading.Lock()


# A system without it has no forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Session:
    """A session of an agent's: calls by its token, from any thread of the process that began it."""

    def __init__(self, loop: _Loop, session: aio.Session) -> None:
        self._loop, self._session = loop, session
        self.agent, self.token = session.agent, session.token

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, act: Coroutine[Any, Any, T]) -> T:
        try:
            return self._loop.run(act)
        except Asked as asked:
            asked._session = self
            raise

    def call(self, tool: str, args: dict[str, Any] | None = None, /, *, key: str | None = None,
             refs: bool = False, **named: Any) -> aio.Answer:
        """Calls a tool; see `syscap.aio.Session.call`."""
        return self._run(self._session.call(tool, args, key=key, refs=refs, **named))

    def wait(self, request: int, seconds: float = 600) -> tuple[str, str | None]:
        """How a request for approval stands, and why it was refused."""
        return self._run(self._session.wait(request, seconds))

    def is_approved(self, request: int, seconds: float = 600) -> bool:
        """True once a person has approved it."""
        return self._run(self._session.is_approved(request, seconds))

    def tools(self) -> Tools:
        """The tools that the token grants, by the definitions on record."""
        return self._run(self._session.tools())

    @property
    def left(self) -> dict[str, int]:
        """What is left of the token; of `concurrent` the places that are free."""
        return self._run(self._session.left())

    def tool(self, name: str, *, effect: str = "external_write", limit: float = 10, untrusted: bool = False,
             description: str | None = None, scopes: Mapping[str, str] | None = None) -> Callable[[Callable[..., Any]], "Tool"]:
        """Makes a function a tool, and offers it; see `syscap.aio.Session.tool`."""
        made = self._session.tool(name, effect=effect, limit=limit, untrusted=untrusted, description=description,
                                  scopes=scopes)
        return lambda function: Tool(self, made(function))

    def offer(self) -> None:
        """Offers the tools that were not offered yet. Raises NotAccepted, Refused."""
        self._run(self._session.offer())

    def close(self) -> None:
        """Ends it, and what it still runs."""
        self._run(self._session.close())


class Tool:
    """A function behind the kernel; see `syscap.aio.Tool`."""

    def __init__(self, session: Session, tool: aio.Tool) -> None:
        self._session, self._tool = session, tool
        self.name, self.schema, self.unguarded = tool.name, tool.schema, tool.unguarded
        functools.update_wrapper(self, tool.unguarded)

    def answer(self, args: dict[str, Any], *, key: str | None = None) -> aio.Answer:
        """Calls it with arguments that a model wrote."""
        return self._session._run(self._tool.answer(args, key=key))

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.answer(self._tool._function.bound(args, named)).value

    def when_approved(self, seconds: float, /, *args: Any, **named: Any) -> Any:
        """The same; where a person has to approve it, it is made again once that is so."""
        return self._session._run(self._tool.when_approved(seconds, *args, **named))


def join(descriptor: int = 3, program: str = "syscap") -> Session:
    """A session by the ticket that `syscap ticket` has put there; see `syscap.aio.join`."""
    loop = _own_loop()
    return Session(loop, loop.run(aio.join(descriptor, program)))


def connect(home: str | os.PathLike[str] | None = None, *, agent: str | None = None,
            token: str | None = None, offer: Iterable[str] = (), command: list[str] | None = None,
            program: str = "syscap") -> Session:
    """A session over a program's streams; see `syscap.aio.connect`."""
    loop = _own_loop()
    made = aio.connect(home, agent=agent, token=token, offer=offer, command=command, program=program)
    return Session(loop, loop.run(made))


def session(home: str | os.PathLike[str], agent: str, *, tools: Iterable[str], offer: Iterable[str] = (),
            workspace: bool = False, read: Iterable[str] = (), write: Iterable[str] = (),
            budget: Mapping[str, int] | None = None, program: str = "syscap") -> Session:
    """Has a token issued by `syscap token issue`, and connects by it: for scripts, by whoever may sign in
    that home.

    Raises:
        Error: with what the program says, where it issues none.
    """
    own = ["workspace"] if workspace else []
    token = issued(program, home, agent, tools, budget or {}, [*own, *read], [*own, *write])
    return connect(home, agent=agent, token=token, offer=offer, program=program)
