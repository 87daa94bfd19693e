"""An agent of pydantic-ai with a scripted model, on an MCP server.

    python agent_pydantic.py -- COMMAND ARGS...   (see plan.py)
"""

import asyncio
import json

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

import plan


async def main():
    script, command = plan.read()

    async def say(messages, info):
        for part in messages[-1].parts:
            if isinstance(part, ToolReturnPart):
                text = part.content if isinstance(part.content, str) else str(part.content)
                script.answered(text)
        step = script.next(tool.name for tool in info.function_tools)
        if step is None:
            return ModelResponse(parts=[TextPart("All done.")])
        return ModelResponse(parts=[ToolCallPart(step["call"], json.dumps(step["args"]))])

    transport = StdioTransport(command[0], command[1:], keep_alive=False)
    toolset = MCPToolset(transport, tool_error_behavior="failed")
    agent = Agent(FunctionModel(say), toolsets=[toolset])
    async with agent:
        result = await agent.run("Do the task.")
    script.report(result.output)


asyncio.run(main())
