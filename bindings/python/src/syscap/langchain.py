"""LangChain and LangGraph: tools that run by the kernel's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import interrupt

from . import aio
from ._host import Host, told
from ._sync import Session
from .errors import Asked, Error


def govern(tools: Sequence[BaseTool], session: Session | aio.Session, *, thread: str | None = None, once: bool = True,
           pause: bool = True, prefix: str = "py.", effects: Mapping[str, str] | None = None,
           limit: float = 10) -> list[BaseTool]:
    """The same tools, which run by the kernel's order. Middleware stands outside: what it has changed is what
    is judged, and what runs; what it calls twice runs once. The conversation is `thread`, else `thread_id` of
    the run's configuration.

    Where a person has to approve a call the graph is interrupted (it needs a checkpointer); with `pause=False`
    the model is told. A resumed value is a signal to try again, and no yes.

    Raises:
        TypeError: a tool, by name, without a function of its own.
    """
    host = Host(session, "langchain", thread or "-", once, prefix, dict(effects or {}), limit)
    return [_governed(tool, host, thread, once, pause) for tool in tools]


def _governed(tool: BaseTool, host: Host, thread: str | None, once: bool, pause: bool) -> BaseTool:
    if not isinstance(tool, StructuredTool) or tool.func is None and tool.coroutine is None:
        raise TypeError(f"{tool.name}: {type(tool).__name__} has no function to wrap")
    schema = tool.tool_call_schema
    host.add(tool.name, tool.description, schema if isinstance(schema, dict) else schema.model_json_schema())
    func, coroutine = tool.func, tool.coroutine

    def key(runtime: ToolRuntime) -> str | None:
        own = thread or runtime.config.get("configurable", {}).get("thread_id")
        if once and not own:
            raise ToolException("this run has no conversation: name it by thread=, or say once=False")
        return host.key(runtime.tool_call_id, own)

    def asked(error: Asked, args: dict[str, Any]) -> None:
        if not pause:
            raise ToolException(told(error)) from error
        interrupt({"request": error.request, "tool": tool.name, "args": args})

    async def run(runtime: ToolRuntime, **args: Any) -> Any:
        async def make(given: dict[str, Any]) -> Any:
            if coroutine is not None:
                return await coroutine(**given)
            assert func is not None
            return func(**given)
        # A resumed call starts from its top; the key makes it one.
        while True:
            try:
                return await host.through(tool.name, args, key(runtime), make)
            except Asked as error:
                asked(error, args)
            except (Error, ValueError) as error:
                raise ToolException(told(error) if isinstance(error, Error) else f"refused: {error}") from error

    def run_blocking(runtime: ToolRuntime, **args: Any) -> Any:
        assert func is not None
        call = func
        while True:
            try:
                return host.through_blocking(tool.name, args, key(runtime), lambda given: call(**given))
            except Asked as error:
                asked(error, args)
            except (Error, ValueError) as error:
                raise ToolException(told(error) if isinstance(error, Error) else f"refused: {error}") from error

    return StructuredTool(name=tool.name, description=tool.description, args_schema=tool.args_schema,
                          func=run_blocking if func is not None else None, coroutine=run,
                          handle_tool_error=True, return_direct=tool.return_direct)
