"""For tests: a real server on a home of the test's own, and answers from a script."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from ._sync import Session, session
from .errors import Asked, Error, NoServer, Refused


class Home:
    """A home in a temporary folder, with a server. Keys without a passphrase: for tests alone. Agents' files
    are in a folder of its own, or in `base`."""

    def __init__(self, program: str | None = None, *, base: str | None = None, preset: str = "standard") -> None:
        found = program or os.environ.get("SYSCAP") or shutil.which("syscap")
        if found is None:
            raise NoServer("there is no program `syscap`: put it on PATH, or name it by SYSCAP")
        self.program, self._folder = found, tempfile.TemporaryDirectory(prefix="syscap-")
        self.path = os.path.join(self._folder.name, "home")
        self.run("init", "--no-passphrase", "--preset", preset)
        if base is not None:
            files = os.path.join(self.path, "files")
            shutil.rmtree(files)
            os.symlink(base, files)
        self._server = subprocess.Popen([self.program, "serve", self.path], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said: list[str] = []
        assert self._server.stderr is not None
        for line in self._server.stderr:
            if line.startswith("serving "):
                return
            said.append(line)
        raise NoServer("".join(said) or "the server did not begin")

    def run(self, *words: str) -> str:
        """What a command of `syscap` says; `run("approvals", "list")` is `syscap approvals list HOME`.
        Raises Error with its words."""
        count = 1 if words[0] in ("init", "verify", "recover", "doctor") else 2
        line = [self.program, *words[:count], self.path, *words[count:]]
        ran = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise Error(ran.stderr.strip())
        return ran.stdout

    def session(self, agent: str, *, tools: Iterable[str], offer: Iterable[str] = (), workspace: bool = False,
                budget: Mapping[str, int] | None = None) -> Session:
        """A session with a token of its own; see `syscap.session`."""
        return session(self.path, agent, tools=tools, offer=offer, workspace=workspace, budget=budget,
                       program=self.program)

    def close(self) -> None:
        """Ends the server, and removes the home."""
        self._server.terminate()
        self._server.wait()
        if self._server.stderr is not None:
            self._server.stderr.close()
        self._folder.cleanup()

    def __enter__(self) -> "Home":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Scripted:
    """Answers from a script: no server, no policy, no budget, no record, and no `Session`. What it is
    asked for is kept in `calls`."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers, self.calls = dict(answers), list[tuple[str, dict[str, Any]]]()

    def call(self, tool: str, args: dict[str, Any] | None = None, /, **named: Any) -> Any:
        """The scripted answer: a value, an exception to raise, or what a function makes of the arguments."""
        given = (args or {}) | named
        self.calls.append((tool, given))
        answer = self._answers[tool]
        if isinstance(answer, BaseException):
            raise answer
        return answer(given) if isinstance(answer, Callable) else answer  # type: ignore[arg-type]


def refuse(reason: str = "denied") -> Refused:
    """A refusal, for a script."""
    return Refused(reason)


def ask(request: int = 1) -> Asked:
    """A call that waits for a person, for a script."""
    asked = Asked("asked", got=str(request), retry="ask")
    asked.request = request
    return asked
