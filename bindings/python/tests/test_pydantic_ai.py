"""pydantic-ai, the real one with a scripted model: judged by effects."""

import asyncio

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults  # noqa: E402
from pydantic_ai.capabilities import AbstractCapability  # noqa: E402
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart  # noqa: E402
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.toolsets import FunctionToolset  # noqa: E402

from hosts import EFFECTS, world  # noqa: E402, F401
from syscap.pydantic_ai import Governed, checked  # noqa: E402


def model(*calls):
    """One turn of calls, and the end."""
    def turn(messages, info):
        if any(part.part_kind in ("tool-return", "retry-prompt") for message in messages for part in message.parts):
            return ModelResponse(parts=[TextPart("end")])
        return ModelResponse(parts=[ToolCallPart(name, {"x": x}, tool_call_id=ident) for name, x, ident in calls])

    async def streamed(messages, info):
        from pydantic_ai.models.function import DeltaToolCall
        parts = turn(messages, info).parts
        if isinstance(parts[0], TextPart):
            yield "end"
        else:
            yield {at: DeltaToolCall(one.tool_name, '{"x": "%s"}' % one.args["x"], tool_call_id=one.tool_call_id)
                   for at, one in enumerate(parts)}
    return FunctionModel(turn, stream_function=streamed)


def agent_of(world, session, calls, thread="t1", capabilities=(), pause=True):
    toolset = Governed(FunctionToolset([*world.tools()]), session, thread=thread, effects=EFFECTS, pause=pause)
    output = [str, DeferredToolRequests] if pause else str
    return checked(Agent(model(*calls), toolsets=[toolset], capabilities=list(capabilities), output_type=output))


def told(result):
    return [(part.content, part.outcome) for message in result.all_messages() for part in message.parts
            if isinstance(part, ToolReturnPart)]


@pytest.fixture
def known(world):
    def govern(session):
        toolset = Governed(FunctionToolset([*world.tools()]), session, thread="t0", effects=EFFECTS)
        for one in world.tools():
            schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
            toolset._host.add(one.__name__, one.__doc__, schema)
    world.known(govern)
    return world


def test_calls_run_by_the_kernels_order_and_refusals_are_told(known):
    with known.session() as session:
        calls = (("act", "a", "c0"), ("act", "boom", "c1"), ("never", "n", "c2"))
        result = asyncio.run(agent_of(known, session, calls).run("go"))
        said = told(result)
        assert known.done == ["a"] and said[0] == ("did a", "success")
        assert "KeyError" in said[1][0] and said[1][1] == "failed"
        assert said[2][0].startswith("refused: not_granted") and said[2][1] == "failed", said
        for thread, count in (("t2", 2), ("t1", 2)):
            asyncio.run(agent_of(known, session, calls[:1], thread).run("go"))
            assert len(known.done) == count
        # Without a loop of the caller's, and without a name for the conversation: pydantic-ai has its own.
        agent_of(known, session, calls[:1], None).run_sync("go")
        assert len(known.done) == 3
    known.ends()


def test_person_is_asked_and_the_hosts_yes_is_none(known):
    with known.session() as session:
        agent = agent_of(known, session, (("act", "a", "c0"), ("mail", "m", "c1"), ("act", "b", "c2")))

        async def all_of_it():
            first = await agent.run("go")
            assert [call.tool_call_id for call in first.output.approvals] == ["c1"]

            async def resumed():
                return await agent.run(message_history=first.all_messages(),
                                       deferred_tool_results=DeferredToolResults(approvals={"c1": True}))
            alone = await resumed()
            assert "m" not in known.done and isinstance(alone.output, DeferredToolRequests)
            known.approve()
            for _ in range(2):
                assert (await resumed()).output == "end"
            assert sorted(known.done) == ["a", "b", "m"]
        asyncio.run(all_of_it())
        # Where the run can't end so the model is told.
        known.done.clear()
        said = told(asyncio.run(agent_of(known, session, (("mail", "n", "c5"),), pause=False).run("go")))
        assert said[0][0].startswith("a person must approve it") and known.done == []
    assert known.runs() == 3


def test_killed_between_approval_and_run_nothing_runs_twice(known):
    with known.session() as session:
        agent = agent_of(known, session, (("mail", "m", "c1"),))

        async def all_of_it():
            first = await agent.run("go")
            known.approve()
            known.home._server.kill()
            known.home._server.wait()
            for _ in range(2):
                await agent.run(message_history=first.all_messages(),
                                deferred_tool_results=DeferredToolResults(approvals={"c1": True}))
        asyncio.run(all_of_it())
        assert known.done == ["m"]
    known.ends()


def test_what_a_capability_changes_is_what_is_judged(known):
    class Change(AbstractCapability):
        async def before_tool_execute(self, ctx, *, call, tool_def, args):
            return {"x": "changed"}

    class Broken(AbstractCapability):
        async def before_tool_execute(self, ctx, *, call, tool_def, args):
            raise ValueError("broken")

    with known.session() as session:
        result = asyncio.run(agent_of(known, session, (("act", "a", "c0"),), capabilities=[Change()]).run("go"))
        assert known.done == ["changed"] and told(result)[0][0] == "did changed"
        shown = known.home.run("log", "show")
        assert '(x: "changed")' in shown and '(x: "a")' not in shown
        with pytest.raises(ValueError):
            asyncio.run(agent_of(known, session, (("act", "b", "c1"),), capabilities=[Broken()]).run("go"))
        assert known.done == ["changed"]
    known.ends()


def test_tool_that_is_not_governed_fails_the_start(known):
    def bare(x: str) -> str:
        return x

    with known.session() as session:
        toolset = Governed(FunctionToolset([*known.tools()]), session, thread="t1", effects=EFFECTS)
        with pytest.raises(TypeError, match="bare"):
            checked(Agent(model(), toolsets=[toolset], tools=[bare]))
        with pytest.raises(TypeError, match="bare"):
            checked(Agent(model(), toolsets=[toolset, FunctionToolset([bare])]))
        # What replaces the toolsets of an agent leaves it around them.
        assert isinstance(toolset.visit_and_replace(lambda inner: inner), Governed)


def test_streamed_and_cancelled(known):
    with known.session() as session:
        async def streamed():
            async with agent_of(known, session, (("act", "a", "c0"),)).run_stream("go") as result:
                return await result.get_output()
        assert asyncio.run(streamed()) == "end" and known.done == ["a"]

        async def cancels():
            run = asyncio.create_task(agent_of(known, session, (("act", "slow", "c1"),)).run("go"))
            await asyncio.sleep(0.5)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        asyncio.run(cancels())
        assert known.done == ["a"]
    known.ends()
