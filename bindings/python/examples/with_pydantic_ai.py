"""pydantic-ai: `syscap ticket HOME --agent A --token T --offer py.=read -- python3 with_pydantic_ai.py`"""

import asyncio

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset

import syscap
from syscap.pydantic_ai import Governed, checked


async def look_up(word: str) -> str:
    """Looks a word up."""
    return f"{word}: an insect"


def model(messages, info):
    """Asks for one call, so that this runs without an account."""
    parts = [part for message in messages for part in message.parts]
    said = [part.content for part in parts if isinstance(part, ToolReturnPart)]
    call = ToolCallPart("look_up", {"word": "bee"}, tool_call_id="c0")
    return ModelResponse(parts=[TextPart(str(said[0])) if said else call])


async def main() -> None:
    with syscap.join() as session:
        tools = Governed(FunctionToolset([look_up]), session, effects={"look_up": "read"})
        agent = checked(Agent(FunctionModel(model), toolsets=[tools], output_type=[str, DeferredToolRequests]))
        print((await agent.run("What is a bee?")).output)


asyncio.run(main())
