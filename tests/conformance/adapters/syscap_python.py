"""syscap by its package for Python, as a subject that claims `scope`: SYSCAP names the program."""

import json
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "bindings/python/src"))

import syscap  # noqa: E402
from host import serve  # noqa: E402
from syscap.testing import Home  # noqa: E402

TOOLS = {"write": "fs.write", "read": "fs.read", "get": "py.get"}


def once(pairs):
    """A key that stands twice is no argument of ours to choose."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key twice")
    return made


class Subject:
    def __init__(self):
        self.home, self.sessions = None, {}

    def get(self, session):
        server = self.server

        @session.tool("py.get", scopes={"page": "page"})
        def get(page: str) -> str:
            with urllib.request.urlopen(f"{server}/{page}") as answer:
                return answer.read().decode()
        session.offer()

    def reset(self, ask):
        for session in self.sessions.values():
            session.close()
        if self.home is not None:
            self.home.close()
        self.sessions, self.server = {}, ask["server"].rstrip("/")
        # Its base is the runner's folder; a claim would be a file that no tool has written.
        self.home = Home(base=ask["files"], preset="recording")
        self.sessions[""] = self.home.session("host", tools=["echo"], offer=["py."])
        self.get(self.sessions[""])

    def grant(self, ask):
        if ask.get("parent"):
            raise ValueError("no children")
        words = []
        for tool, scope in ask["tools"].items():
            flag, words = {"write": "--write", "read": "--read"}.get(tool), [*words, "--tool", TOOLS[tool]]
            words += [word for one in scope for word in ((flag, one) if flag else ("--scope", f"page={one}"))]
        return {"token": self.home.run("token", "issue", "--agent", ask["agent"], *words).strip()}

    def call(self, ask):
        args = ask["args"] if "args" in ask else json.loads(ask["text"], object_pairs_hook=once)
        key = ask["agent"], ask["token"]
        if key not in self.sessions:
            self.sessions[key] = syscap.connect(self.home.path, agent=key[0], token=key[1], offer=["py."],
                                                program=self.home.program)
            self.get(self.sessions[key])
        return self.sessions[key].call(TOOLS.get(ask["tool"], ask["tool"]), args).value


if __name__ == "__main__":
    serve(Subject(), ("syscap by its package for Python", "0.1.0"), ["scope"], (syscap.Error,))
