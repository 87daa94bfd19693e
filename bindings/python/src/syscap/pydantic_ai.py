"""pydantic-ai: a toolset whose tools run by the kernel's order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai import Agent, ApprovalRequired, RunContext
from pydantic_ai.exceptions import ToolFailed as HostFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from . import aio
from ._host import Host, told
from ._sync import Session
from .errors import Asked, Error


def checked(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """The agent, if all of its tools are governed.

    Raises:
        TypeError: with the names of those that would run by themselves.
    """
    bare = []
    for toolset in agent.toolsets:
        if not isinstance(toolset, Governed):
            bare += list(getattr(toolset, "tools", {toolset.label: None}))
    if bare:
        raise TypeError(f"not governed: {', '.join(bare)}")
    return agent


class Governed(WrapperToolset[Any]):
    """A toolset around another, innermost: what a capability has changed is what is judged, and what runs.
    Give all of an agent's tools by it, and have that `checked`.

    Where a person has to approve a call the run ends with it (`DeferredToolRequests` must be an output type);
    with `pause=False` the model is told. The results' own approval is a signal to try again, and no yes.
    Calls are made once in a conversation: `thread`, else pydantic-ai's own `conversation_id`.
    """

    def __init__(self, wrapped: AbstractToolset[Any], session: Session | aio.Session, *, thread: str | None = None,
                 once: bool = True, pause: bool = True, prefix: str = "py.",
                 effects: Mapping[str, str] | None = None, limit: float = 10) -> None:
        super().__init__(wrapped)
        # Until a run has begun nobody knows its conversation.
        self._host = Host(session, "pydantic-ai", thread or "-", once, prefix, dict(effects or {}), limit)
        self._thread, self._once, self._pause = thread, once, pause

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        inner = await self.wrapped.for_run(ctx)
        return self if inner is self.wrapped else self._around(inner)

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        inner = await self.wrapped.for_run_step(ctx)
        return self if inner is self.wrapped else self._around(inner)

    def visit_and_replace(
            self, visitor: Callable[[AbstractToolset[Any]], AbstractToolset[Any]]) -> AbstractToolset[Any]:
        return self._around(self.wrapped.visit_and_replace(visitor))

    def _around(self, inner: AbstractToolset[Any]) -> "Governed":
        made = object.__new__(Governed)
        made.__dict__.update(self.__dict__, wrapped=inner)
        return made

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools: dict[str, ToolsetTool[Any]] = await super().get_tools(ctx)
        for name, tool in tools.items():
            self._host.add(name, tool.tool_def.description or "", tool.tool_def.parameters_json_schema)
        return tools

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any],
                        tool: ToolsetTool[Any]) -> Any:
        async def make(given: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, given, ctx, tool)
        thread = self._thread or getattr(ctx, "conversation_id", None)
        if self._once and not thread:
            raise ValueError("this run has no conversation: name it by thread=, or say once=False")
        try:
            return await self._host.through(name, tool_args, self._host.key(ctx.tool_call_id, thread), make)
        except Asked as asked:
            if self._pause:
                raise ApprovalRequired(metadata={"request": asked.request}) from asked
            raise HostFailed(told(asked)) from asked
        except (Error, ValueError) as error:
            raise HostFailed(told(error) if isinstance(error, Error) else f"refused: {error}") from error
