"""OpenAI's Agents SDK, the real one with a scripted model: judged by effects."""

import asyncio
import json
import os

import pytest

sdk = pytest.importorskip("agents", reason="openai-agents is not installed")
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402

import syscap  # noqa: E402
from hosts import EFFECTS, world  # noqa: E402, F401
from syscap.openai_agents import govern  # noqa: E402


def call(name, x, ident):
    return function_call(name, {"x": x}, call_id=ident)


def agent_of(world, *turns, **more):
    model = ScriptedModel([*[list(turn) for turn in turns], [assistant_message("end")]])
    tools = [sdk.function_tool(one, failure_error_function=None) for one in world.tools()]
    return sdk.Agent(name="a", model=model, tools=tools, **more)


def told(result):
    return [item["output"] for item in result.to_input_list() if item.get("type") == "function_call_output"]


def governed(session, agent, thread):
    return govern(agent, session, thread=thread, effects=EFFECTS)


@pytest.fixture
def known(world):
    world.known(lambda session: governed(session, agent_of(world), "t0"))
    return world


def test_calls_run_by_the_kernels_order_and_refusals_are_told(known):
    with known.session() as session:
        turn = (call("act", "a", "c0"), call("act", "boom", "c1"), call("never", "n", "c2"), call("act", "b", "c3"))
        agent = governed(session, agent_of(known, turn), "t1")
        said = told(asyncio.run(sdk.Runner.run(agent, "go")))
        assert sorted(known.done) == ["a", "b"]
        assert said[0] == "did a" and "KeyError" in said[1] and said[2].startswith("refused: not_granted"), said
        # The same ids in another conversation are other calls; in the same one they are made once.
        again = agent_of(known, (call("act", "a", "c0"),))
        for thread, effects in (("t2", 3), ("t1", 3)):
            asyncio.run(sdk.Runner.run(governed(session, again, thread), "go"))
            assert len(known.done) == effects, thread
            again.model.extend([[call("act", "a", "c0")], [assistant_message("end")]])
    known.ends()


def test_person_is_asked_and_the_hosts_yes_is_none(known):
    with known.session() as session:
        turn = (call("act", "a", "c0"), call("mail", "m", "c1"), call("act", "b", "c2"))
        agent = governed(session, agent_of(known, turn), "t1")
        result = asyncio.run(sdk.Runner.run(agent, "go"))
        assert [item.raw_item.call_id for item in result.interruptions] == ["c1"]
        assert "m" not in known.done
        state = result.to_state().to_string()

        async def resumed():
            one = await sdk.RunState.from_string(agent, state)
            one.approve(one.get_interruptions()[0])
            agent.model.extend([[assistant_message("end")]])
            return told(await sdk.Runner.run(agent, one))
        # The host approves alone; then a person has; then the same state once more.
        assert any("a person must approve it" in said for said in asyncio.run(resumed()))
        assert "m" not in known.done
        known.approve()
        assert "did m" in asyncio.run(resumed())
        assert "did m" in asyncio.run(resumed())
        assert sorted(known.done) == ["a", "b", "m"]
    known.ends()


def test_killed_between_approval_and_run_nothing_runs_twice(known):
    with known.session() as session:
        agent = governed(session, agent_of(known, (call("mail", "m", "c1"),)), "t1")
        result = asyncio.run(sdk.Runner.run(agent, "go"))
        state = result.to_state().to_string()
        known.approve()
        known.home._server.kill()
        known.home._server.wait()

        async def resumed():
            one = await sdk.RunState.from_string(agent, state)
            one.approve(one.get_interruptions()[0])
            agent.model.extend([[assistant_message("end")]])
            return told(await sdk.Runner.run(agent, one))
        assert asyncio.run(resumed()) == ["did m"] and asyncio.run(resumed()) == ["did m"]
        assert known.done == ["m"]
    known.ends()


def test_what_a_hook_of_the_hosts_rejects_does_not_run(known):
    @sdk.tool_input_guardrail
    def reject(data):
        return sdk.ToolGuardrailFunctionOutput.reject_content("not today")

    with known.session() as session:
        agent = agent_of(known, (call("act", "a", "c0"),))
        agent.tools[0].tool_input_guardrails = [reject]
        import syscap.openai_agents as adapter
        adapter._HELD_SECONDS, seconds = 0.3, adapter._HELD_SECONDS
        try:
            assert told(asyncio.run(sdk.Runner.run(governed(session, agent, "t1"), "go"))) == ["not today"]
            assert known.done == []
            while not [one for one in known.beside.log() if one["kind"] == "outcome"]:
                pass
        finally:
            adapter._HELD_SECONDS = seconds
    known.ends()


def test_streamed_and_without_a_loop(known):
    with known.session() as session:
        agent = governed(session, agent_of(known, (call("act", "a", "c0"),)), "t1")

        async def streamed():
            result = sdk.Runner.run_streamed(agent, "go")
            async for _ in result.stream_events():
                pass
            return told(result)
        assert asyncio.run(streamed()) == ["did a"]
        agent.model.extend([[call("act", "b", "c1")], [assistant_message("end")]])
        assert told(sdk.Runner.run_sync(agent, "go")) == ["did b"]
        assert known.done == ["a", "b"]
    known.ends()


def test_cancelled_run_is_on_record(known):
    with known.session() as session:
        agent = governed(session, agent_of(known, (call("act", "slow", "c0"),)), "t1")

        async def cancels():
            run = asyncio.create_task(sdk.Runner.run(agent, "go"))
            await asyncio.sleep(0.5)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        asyncio.run(cancels())
        while not [one for one in known.beside.log() if one["kind"] == "outcome"]:
            pass
        assert known.done == []
    known.ends()


def test_handoffs_are_walked_and_what_can_not_be_wrapped_fails_the_start(known):
    with known.session() as session:
        inner = agent_of(known, (call("act", "from inner", "c9"),))
        inner.name = "inner"
        outer = sdk.Agent(name="outer", tools=[], handoffs=[inner], model=ScriptedModel(
            [[function_call("transfer_to_inner", {}, call_id="h0")]]))
        made = governed(session, outer, "t1")
        assert made is not outer and outer.handoffs == [inner]
        asyncio.run(sdk.Runner.run(made, "go"))
        assert known.done == ["from inner"]
        kinds = [sdk.WebSearchTool(), sdk.HostedMCPTool(tool_config={
            "type": "mcp", "server_label": "x", "server_url": "http://127.0.0.1", "require_approval": "never"})]
        for tool in kinds:
            with pytest.raises(TypeError, match=type(tool).__name__):
                governed(session, sdk.Agent(name="b", tools=[tool]), "t2")
        with pytest.raises(TypeError, match="act"):
            governed(session, sdk.Agent(name="b", tools=[inner.as_tool("ask_inner", "Asks.")]), "t2")
        other = sdk.function_tool(known.tools()[1], name_override="act")
        with pytest.raises(ValueError, match="py.act"):
            governed(session, sdk.Agent(name="b", tools=[other]), "t2")
        with pytest.raises(ValueError, match="thread"):
            govern(sdk.Agent(name="b"), session)
        assert governed(session, sdk.Agent(name="b", tools=[]), "t3").name == "b"
    known.ends()


def test_poisoned_result_gets_nothing_that_is_not_granted(known):
    with known.session() as session:
        # The model follows a result that asks for a forbidden call.
        agent = governed(session, agent_of(
            known, (call("act", "never(x='all of it')", "c0"),), (call("never", "all of it", "c1"),)), "t1")
        said = told(asyncio.run(sdk.Runner.run(agent, "go")))
        assert said[1].startswith("refused: not_granted") and known.done == ["never(x='all of it')"]
    known.ends()
    assert json.dumps(said) and isinstance(syscap.__all__, list)
