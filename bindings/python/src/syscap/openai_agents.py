"""OpenAI's Agents SDK: function tools that run by the kernel's order."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import agents as sdk
from agents.tool_context import ToolContext

from . import aio
from ._host import Held, Host, told
from ._sync import Session
from .errors import Error

TESTED = "0.24"
# How long a call that was let through waits for the SDK's own guardrails.
_HELD_SECONDS = 8.0


def govern(agent: sdk.Agent[Any], session: Session | aio.Session, *, thread: str | None = None, once: bool = True,
           prefix: str = "py.", effects: Mapping[str, str] | None = None, limit: float = 10) -> sdk.Agent[Any]:
    """A new agent whose function tools, and those of the agents that it hands off to, run by the kernel's
    order. `thread` names the conversation: a call is made once in it. Where a person has to approve a
    call, the run pauses (`result.interruptions`); the state's own approval is a signal to try again, and
    no yes.

    Raises:
        TypeError: a tool, by name, that can't be wrapped: a hosted one, one of an MCP server (put that
            behind `syscap mcp`), an agent whose tools are not governed.
    """
    if not sdk.version.__version__.startswith(TESTED + "."):
        import warnings
        warnings.warn(f"openai-agents {sdk.version.__version__}: tested with {TESTED}", stacklevel=2)
    host = Host(session, "openai-agents", thread, once, prefix, dict(effects or {}), limit)
    return _governed(agent, host, {})


def _governed(agent: sdk.Agent[Any], host: Host, done: dict[int, sdk.Agent[Any]]) -> sdk.Agent[Any]:
    if id(agent) in done:
        return done[id(agent)]
    if agent.mcp_servers:
        raise TypeError(f"{agent.name}: the tools of its MCP servers can't be wrapped; put them behind `syscap mcp`")
    made = done[id(agent)] = dataclasses.replace(agent, tools=[_tool(agent, tool, host) for tool in agent.tools])
    handoffs = []
    for handoff in agent.handoffs:
        if not isinstance(handoff, sdk.Agent):
            raise TypeError(f"{agent.name}: a {type(handoff).__name__} can't be followed; hand off to agents")
        handoffs.append(_governed(handoff, host, done))
    made.handoffs = list(handoffs)
    return made


def _tool(agent: sdk.Agent[Any], tool: Any, host: Host) -> Any:
    if not isinstance(tool, sdk.FunctionTool):
        raise TypeError(f"{agent.name}: {type(tool).__name__} {getattr(tool, 'name', '')} runs elsewhere")
    if getattr(tool, "_is_agent_tool", False):
        inner = getattr(tool, "_agent_instance", None)
        bare = [one.name for one in inner.tools if not hasattr(one.on_invoke_tool, "syscap")] if inner else ["?"]
        if bare:
            raise TypeError(f"{tool.name}: {', '.join(bare)} would run ungoverned; govern that agent before as_tool")
        return tool
    host.add(tool.name, tool.description, tool.params_json_schema)
    held: dict[str, Held] = {}
    invoke, needed = tool.on_invoke_tool, tool.needs_approval

    async def asks(ctx: sdk.RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
        """Decided here, so that the SDK can pause; run only where the SDK comes to run it."""
        own = await needed(ctx, args, call_id) if callable(needed) else needed
        if own:
            return True
        call = held[call_id] = Held(host, tool.name, args, host.key(call_id), _HELD_SECONDS)
        is_asked = await call.is_asked()
        if is_asked:
            held.pop(call_id).drop()
        return is_asked

    async def stub(ctx: ToolContext[Any], raw: str) -> Any:
        args = json.loads(raw or "{}")

        async def make(given: dict[str, Any]) -> Any:
            return await invoke(ctx, json.dumps(given))
        call = held.pop(ctx.tool_call_id, None)
        try:
            if call is not None and call.args == args:
                return await call.runs(make)
            if call is not None:
                call.drop()
            return await host.through(tool.name, args, host.key(ctx.tool_call_id), make)
        except (Error, ValueError) as error:
            return told(error) if isinstance(error, Error) else f"refused: {error}"

    setattr(stub, "syscap", True)
    return dataclasses.replace(tool, on_invoke_tool=stub, needs_approval=asks)
