"""LangChain and LangGraph, the real ones with a scripted model: judged by effects."""

import asyncio

import pytest

pytest.importorskip("langchain", reason="langchain is not installed")

from langchain.agents import create_agent  # noqa: E402
from langchain.agents.middleware import AgentMiddleware  # noqa: E402
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage, ToolMessage  # noqa: E402
from langchain_core.tools import BaseTool, StructuredTool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.types import Command  # noqa: E402

from hosts import EFFECTS, world  # noqa: E402, F401
from syscap.langchain import govern  # noqa: E402


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **more):
        return self


def tools_of(world, blocking=False):
    def blocks(one):
        def run(x: str) -> str:
            return asyncio.run(one(x))
        return {"func": run} if blocking else {}
    return [StructuredTool.from_function(coroutine=one, name=one.__name__, description=one.__doc__, **blocks(one))
            for one in world.tools()]


def agent_of(world, session, calls, middleware=(), blocking=False, **more):
    turn = AIMessage("", tool_calls=[{"name": name, "args": {"x": x}, "id": ident} for name, x, ident in calls])
    tools = govern(tools_of(world, blocking), session, effects=EFFECTS, **more)
    return create_agent(Scripted(messages=iter([turn, AIMessage("end"), AIMessage("end"), AIMessage("end")])), tools,
                        middleware=list(middleware), checkpointer=InMemorySaver())


def thread(name):
    return {"configurable": {"thread_id": name}}


GO = {"messages": [("user", "go")]}


def told(result):
    return [(message.content, message.status) for message in result["messages"] if isinstance(message, ToolMessage)]


@pytest.fixture
def known(world):
    world.known(lambda session: govern(tools_of(world), session, effects=EFFECTS))
    return world


def test_calls_run_by_the_kernels_order_and_refusals_are_told(known):
    with known.session() as session:
        calls = (("act", "a", "c0"), ("act", "boom", "c1"), ("never", "n", "c2"))
        said = told(asyncio.run(agent_of(known, session, calls).ainvoke(GO, thread("t1"))))
        assert known.done == ["a"] and said[0] == ("did a", "success"), said
        assert "KeyError" in said[1][0] and said[1][1] == "error"
        assert said[2][0].startswith("refused: not_granted") and said[2][1] == "error"
        for name, count in (("t2", 2), ("t1", 2)):
            asyncio.run(agent_of(known, session, calls[:1]).ainvoke(GO, thread(name)))
            assert len(known.done) == count
        # Without a loop.
        said = told(agent_of(known, session, (("act", "b", "c5"),), blocking=True).invoke(GO, thread("t3")))
        assert said == [("did b", "success")] and known.done[-1] == "b"
    known.ends()


def test_person_is_asked_and_the_hosts_yes_is_none(known):
    with known.session() as session:
        agent = agent_of(known, session, (("act", "a", "c0"), ("mail", "m", "c1"), ("mail", "n", "c2")))

        async def all_of_it():
            first = await agent.ainvoke(GO, thread("t1"))
            asks = first["__interrupt__"]
            assert len(asks) == 2 and known.done == ["a"]
            yes = Command(resume={one.id: "yes" for one in asks})
            alone = await agent.ainvoke(yes, thread("t1"))
            assert len(alone["__interrupt__"]) == 2 and known.done == ["a"]
            known.approve()
            done = await agent.ainvoke(Command(resume={one.id: "yes" for one in alone["__interrupt__"]}), thread("t1"))
            assert {said for said, _ in told(done)} == {"did a", "did m", "did n"}
            assert sorted(known.done) == ["a", "m", "n"]
        asyncio.run(all_of_it())
        said = told(asyncio.run(agent_of(known, session, (("mail", "o", "c5"),), pause=False).ainvoke(GO, thread("t2"))))
        assert said[0][0].startswith("a person must approve it") and "o" not in known.done
    known.ends()


def test_killed_between_approval_and_run_nothing_runs_twice(known):
    with known.session() as session:
        agent = agent_of(known, session, (("mail", "m", "c1"),))

        async def all_of_it():
            first = await agent.ainvoke(GO, thread("t1"))
            known.approve()
            known.home._server.kill()
            known.home._server.wait()
            await agent.ainvoke(Command(resume={one.id: 1 for one in first["__interrupt__"]}), thread("t1"))
        asyncio.run(all_of_it())
        assert known.done == ["m"]
    known.ends()


def test_middleware_stands_outside(known):
    class Change(AgentMiddleware):
        async def awrap_tool_call(self, request, handler):
            return await handler(request.override(tool_call={**request.tool_call, "args": {"x": "changed"}}))

    class Twice(AgentMiddleware):
        async def awrap_tool_call(self, request, handler):
            await handler(request)
            return await handler(request)

    class Broken(AgentMiddleware):
        async def awrap_tool_call(self, request, handler):
            raise ValueError("broken")

    with known.session() as session:
        asyncio.run(agent_of(known, session, (("act", "a", "c0"),), [Change()]).ainvoke(GO, thread("t1")))
        assert known.done == ["changed"] and '(x: "a")' not in known.home.run("log", "show")
        asyncio.run(agent_of(known, session, (("act", "b", "c0"),), [Twice()]).ainvoke(GO, thread("t2")))
        assert known.done == ["changed", "b"]
        with pytest.raises(ValueError):
            asyncio.run(agent_of(known, session, (("act", "c", "c0"),), [Broken()]).ainvoke(GO, thread("t3")))
        assert known.done == ["changed", "b"]
    known.ends()


def test_streamed_cancelled_and_what_can_not_be_wrapped(known):
    with known.session() as session:
        async def streamed():
            return [one async for one in agent_of(known, session, (("act", "a", "c0"),)).astream(GO, thread("t1"))]
        assert asyncio.run(streamed()) and known.done == ["a"]

        async def cancels():
            agent = agent_of(known, session, (("act", "slow", "c1"),))
            run = asyncio.create_task(agent.ainvoke(GO, thread("t2")))
            await asyncio.sleep(0.5)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        asyncio.run(cancels())
        assert known.done == ["a"]

        class Odd(BaseTool):
            name: str = "odd"
            description: str = "Odd."

            def _run(self, x: str) -> str:
                return x
        with pytest.raises(TypeError, match="odd"):
            govern([Odd()], session)
        said = told(asyncio.run(agent_of(known, session, (("act", "b", "c0"),)).ainvoke(GO, thread(""))))
        assert "no conversation" in said[0][0] and known.done == ["a"]
    known.ends()
