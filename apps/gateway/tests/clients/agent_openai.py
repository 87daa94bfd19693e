"""An agent of openai-agents with a scripted model, on an MCP server.

    python agent_openai.py -- COMMAND ARGS...   (see plan.py)
"""

import asyncio
import json

from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio
from agents.models.interface import Model
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

import plan


class Scripted(Model):
    def __init__(self, script):
        self.script = script

    async def get_response(self, *, input, tools, **others):
        if isinstance(input, list):
            answers = [item for item in input if item.get("type") == "function_call_output"]
            if answers:
                output = answers[-1]["output"]
                parts = [output] if isinstance(output, str) else [part["text"] for part in output]
                self.script.answered("".join(parts))
        step = self.script.next(tool.name for tool in tools)
        if step:
            item = ResponseFunctionToolCall(
                type="function_call",
                call_id=f"call-{len(self.script.turns)}",
                name=step["call"],
                arguments=json.dumps(step["args"]),
            )
        else:
            text = ResponseOutputText(type="output_text", text="All done.", annotations=[])
            item = ResponseOutputMessage(
                id="message", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    async def stream_response(self, **others):
        raise NotImplementedError
        yield


async def main():
    script, command = plan.read()
    set_tracing_disabled(True)
    params = {"command": command[0], "args": command[1:]}
    async with MCPServerStdio(params, client_session_timeout_seconds=30) as server:
        agent = Agent(name="scripted", model=Scripted(script), mcp_servers=[server])
        result = await Runner.run(agent, "Do the task.", max_turns=30)
    script.report(result.final_output)


asyncio.run(main())
