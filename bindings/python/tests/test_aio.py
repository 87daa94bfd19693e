"""The same for asyncio: many calls at once, cancellation, loops."""

import asyncio
import threading

import pytest

import syscap
from syscap import aio


def own_threads():
    """Python 3.11 and before wait for each child by a thread."""
    return [one for one in threading.enumerate() if not one.name.startswith(("asyncio-waitpid", "waitpid"))]


def session_of(home, token, offer=()):
    return aio.connect(home.path, agent="a", token=token, offer=offer, program=home.program)


async def nap(ms: int) -> int:
    await asyncio.sleep(ms / 1000)
    return ms


def known(home):
    with home.session("first", tools=["echo"], offer=["py.=read"]) as session:
        session.tool("py.nap", effect="read")(nap)
        session.offer()


@pytest.mark.parametrize("places", [600, None])
def test_600_calls_at_once_are_all_answered(syscap_home, beside, places):
    known(syscap_home)
    budget = ["--budget", "concurrent=600", "--budget", "wall_us=7000000000"] if places else []
    token = beside.token("a", ["py.nap"], *budget)
    ms = 1000 if places else 20

    async def all_of_them():
        async with await session_of(syscap_home, token, ["py.=read"]) as session:
            tool = session.tool("py.nap", effect="read")(nap)
            before, peak = len(own_threads()), 0
            calls = [asyncio.create_task(tool(ms)) for _ in range(600)]
            while not all(call.done() for call in calls):
                peak = max(peak, len(own_threads()) - before)
                await asyncio.sleep(0.02)
            return [call.result() for call in calls], peak, len(session._connections)

    found, peak, connections = asyncio.run(all_of_them())
    assert found == [ms] * 600 and peak == 0, peak
    assert connections == (3 if places else 1)
    kinds = beside.kinds()
    assert (kinds.count("intent"), kinds.count("outcome"), kinds.count("refusal")) == (600, 600, 0)


def test_cancelled_call_is_on_record_as_ended(syscap_home, beside):
    known(syscap_home)
    token = beside.token("a", ["py.nap", "echo"])

    async def cancels():
        async with await session_of(syscap_home, token, ["py.=read"]) as session:
            tool = session.tool("py.nap", effect="read")(nap)
            call = asyncio.create_task(tool(5000))
            await asyncio.sleep(0.3)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            # Its place is free again, once it has ended.
            while (await session.left())["concurrent"] < 16:
                await asyncio.sleep(0.02)
            return (await session.call("echo", value=1)).value

    assert asyncio.run(cancels()) == {"value": 1}
    assert beside.kinds().count("outcome") == 2


def test_session_is_of_its_loop(syscap_home, beside):
    token = beside.token("a", ["echo"])
    kept = []

    async def first():
        kept.append(await session_of(syscap_home, token))
        assert (await kept[0].call("echo", value=1)).value == {"value": 1}

    async def second():
        with pytest.raises(RuntimeError):
            await kept[0].call("echo", value=2)

    asyncio.run(first())
    asyncio.run(second())


def test_blocking_call_in_the_loops_own_thread_is_said(syscap_home):
    known(syscap_home)
    with syscap_home.session("a", tools=["echo", "py.nap"], offer=["py.=read"]) as session:
        async def calls(ms: int) -> int:
            return session.call("echo", value=ms).value["value"]

        calls.__doc__ = nap.__doc__
        calls.__name__ = "nap"
        with pytest.raises(syscap.ToolFailed, match="syscap.aio"):
            session.tool("py.nap", effect="read")(calls)(1)
