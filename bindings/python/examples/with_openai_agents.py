"""OpenAI's Agents SDK: `syscap ticket HOME --agent A --token T --offer py.=read -- python3 with_openai_agents.py`"""

import asyncio
import os

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import agents
from agents.testing import ScriptedModel, assistant_message, function_call

import syscap
from syscap.openai_agents import govern


@agents.function_tool
async def look_up(word: str) -> str:
    """Looks a word up."""
    return f"{word}: an insect"


async def main() -> None:
    # A model that asks for two calls, so that this runs without an account.
    turn = [function_call("look_up", {"word": "bee"}, call_id="c0")]
    model = ScriptedModel([turn, [assistant_message("A bee is an insect.")]])
    agent = agents.Agent(name="reader", model=model, tools=[look_up])
    with syscap.join() as session:
        governed = govern(agent, session, thread="conversation-1", effects={"look_up": "read"})
        result = await agents.Runner.run(governed, "What is a bee?")
        for item in result.to_input_list():
            if item.get("type") == "function_call_output":
                print(item["output"])
        print(result.final_output)


asyncio.run(main())
