"""Tools in the shapes that models' interfaces take."""

from __future__ import annotations

from typing import Any

from ._wire import EFFECTS, STANDINGS

_READS = {"pure", "read", "external_read"}
_CLASSES = {number: name for name, number in EFFECTS.items()}


class Tools(list[dict[str, Any]]):
    """The tools that a token grants: maps of tool, name, title, description, schema, effect, label,
    standing and provided. `name` is the one that a model is told."""

    def __init__(self, listed: list[dict[int, Any]], schemas: dict[str, Any]) -> None:
        keys = "tool name title description schema effect label standing provided".split()
        for one in listed:
            tool = {key: one[number] for number, key in enumerate(keys, 1)}
            tool["effect"], tool["standing"] = _CLASSES[tool["effect"]], STANDINGS[tool["standing"]]
            # Of what this process offers the hints say more than the record.
            tool["schema"] = schemas.get(tool["tool"], tool["schema"])
            self.append(tool)

    def id_of(self, name: str) -> str:
        """The tool that a model means by a name. Raises KeyError."""
        return next((str(one["tool"]) for one in self if one["name"] == name), None) or _unknown(name)

    def openai(self) -> list[dict[str, Any]]:
        """For OpenAI's chat completions."""
        return [{"type": "function", "function": {
            "name": one["name"], "description": one["description"], "parameters": one["schema"],
        }} for one in self]

    def anthropic(self) -> list[dict[str, Any]]:
        """For Anthropic's messages."""
        return [{"name": one["name"], "description": one["description"], "input_schema": one["schema"]}
                for one in self]

    def gemini(self) -> list[dict[str, Any]]:
        """For Gemini, which takes no `additionalProperties`."""
        return [{"functionDeclarations": [{
            "name": one["name"], "description": one["description"], "parameters": _pruned(one["schema"]),
        } for one in self]}]

    def mcp(self) -> list[dict[str, Any]]:
        """For an MCP server's list."""
        return [{"name": one["name"], "title": one["title"], "description": one["description"],
                 "inputSchema": one["schema"], "annotations": {"readOnlyHint": one["effect"] in _READS}}
                for one in self]


def _unknown(name: str) -> str:
    raise KeyError(name)


def _pruned(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _pruned(value) for key, value in schema.items() if key != "additionalProperties"}
    return [_pruned(value) for value in schema] if isinstance(schema, list) else schema
