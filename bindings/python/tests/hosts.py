"""What the tests of the adapters share: a home where `act` runs and `mail` is asked about."""

import asyncio
import subprocess

import pytest

NAMES = ("act", "mail", "never")
EFFECTS = dict.fromkeys(NAMES, "local_write")


class World:
    """Effects are counted where they happen; the log says how many runs there were."""

    def __init__(self, home, beside):
        self.home, self.beside, self.done = home, beside, []
        beside.asking("py.mail")

    def tools(self):
        """Functions: one that runs, one that a person is asked about, one that no token grants."""
        async def act(x: str) -> str:
            "Acts."
            if x == "boom":
                raise KeyError("k")
            if x == "slow":
                await asyncio.sleep(30)
            self.done.append(x)
            return "did " + x

        async def mail(x: str) -> str:
            "Mails."
            self.done.append(x)
            return "did " + x

        async def never(x: str) -> str:
            "Is granted to nobody."
            self.done.append(x)
            return "did " + x
        return act, mail, never

    def known(self, govern):
        """Puts the host's tools on record, as its first start does."""
        with self.home.session("first", tools=["echo"], offer=["py.=read"]) as session:
            govern(session)
            session.offer()

    def session(self):
        return self.home.session("a", tools=["py.act", "py.mail"], offer=["py.=read"])

    def approve(self):
        asks = [record["seq"] for record in self.beside.log() if record["kind"] == "ask"]
        for ask in asks:
            subprocess.run([self.home.program, "approvals", "approve", self.home.path, str(ask)],
                           capture_output=True, check=False)

    def runs(self):
        """Runs that the log says were made."""
        log = self.beside.log()
        return sum(record["kind"] == "outcome" and record["tx"] == "committed" for record in log)

    def ends(self):
        """Each effect is one run on record, and no more."""
        assert self.runs() == len(self.done), (self.done, [(r["kind"], r.get("tx"), r.get("status")) for r in self.beside.log()])
        assert self.home.run("verify").startswith("sound")


@pytest.fixture
def world(syscap_home, beside):
    return World(syscap_home, beside)
