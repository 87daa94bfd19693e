"""The package from its sources, and the program by the variable SYSCAP."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[3]
SOURCES = ROOT / "bindings/python/src"
sys.path.insert(0, str(SOURCES))

from syscap._pytest import syscap_home  # noqa: E402, F401


class Beside:
    """What a test asks of the home beside the package."""

    def __init__(self, home):
        self.home = home

    def log(self):
        return [json.loads(line) for line in self.home.run("log", "show", "--json").splitlines()]

    def kinds(self):
        return [record["kind"] for record in self.log()]

    def policy(self, document):
        path = pathlib.Path(self.home.path).parent / "policy.json"
        path.write_text(json.dumps(document))
        self.home.run("policy", "set", str(path))

    def asking(self, tool):
        """A person is asked about each call of a tool."""
        asked = {"id": "asked", "effect": "deny", "on_fail": "ask", "reason": "Somebody looks.",
                 "subject": {"tool_id": tool}, "when": {"op": "all", "args": []}}
        rest = {"id": "rest", "effect": "allow", "on_fail": "block", "reason": "The rest.", "subject": None,
                "when": {"op": "all", "args": []}}
        self.policy({"v": 1, "constraints": [asked, rest]})

    def token(self, agent, tools, *more):
        words = [word for tool in tools for word in ("--tool", tool)]
        return self.home.run("token", "issue", "--agent", agent, *words, *more).strip()

    def program(self, token, code, *flags, agent="a", **more):
        """A program that `syscap ticket` has started with this code."""
        words = [self.home.program, "ticket", self.home.path, "--agent", agent, "--token", token, *flags, "--",
                 sys.executable, "-c", textwrap.dedent(code)]
        environment = os.environ | {"PYTHONPATH": str(SOURCES)}
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=environment, **more)


@pytest.fixture
def beside(syscap_home):
    return Beside(syscap_home)
