"""LangChain: `syscap ticket HOME --agent A --token T --offer py.=read -- python3 with_langchain.py`"""

import asyncio

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import syscap
from syscap.langchain import govern


@tool
async def look_up(word: str) -> str:
    """Looks a word up."""
    return f"{word}: an insect"


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **more):
        return self


async def main() -> None:
    # A model that asks for one call, so that this runs without an account.
    call = {"name": "look_up", "args": {"word": "bee"}, "id": "c0"}
    model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("A bee is an insect.")]))
    with syscap.join() as session:
        tools = govern([look_up], session, effects={"look_up": "read"})
        agent = create_agent(model, tools, checkpointer=InMemorySaver())
        result = await agent.ainvoke({"messages": [("user", "What is a bee?")]}, {"configurable": {"thread_id": "1"}})
        print(*[message.content for message in result["messages"][2:]], sep="\n")


asyncio.run(main())
