"""Manifests and JSON Schemas of functions, and values between Python and the kernel."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from ._cbor import DEPTH_MAX, encode
from ._wire import EFFECTS

_ANY, _TEXT, _INT, _BOOL, _BYTES, _LIST, _MAP, _NUMBER = 0, 1, 2, 3, 4, 5, 6, 8
_PLAIN = {str: _TEXT, int: _INT, bool: _BOOL, bytes: _BYTES, float: _NUMBER, list: _LIST, tuple: _LIST,
          dict: _MAP, Sequence: _LIST, Mapping: _MAP, Any: _ANY, object: _ANY, type(None): _ANY}
_TYPES = {_TEXT: "string", _INT: "integer", _BOOL: "boolean", _LIST: "array", _MAP: "object", _NUMBER: "number"}
_REQUIRED, _OPTIONAL = 1, 2
# A scope of names: one of the listed ones.
_NAMES = 1
_PARAMS_MAX = 64


class Function:
    """A function as a tool: its manifest, its schema, and how it is called."""

    def __init__(self, function: Callable[..., Any], name: str, effect: str, limit: float,
                 untrusted: bool, description: str | None, scopes: Mapping[str, str] | None = None) -> None:
        self.function, self.name, self.effect = function, name, effect
        self.is_async = inspect.iscoroutinefunction(function)
        self.signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
        self.hints: dict[str, Any] = {}
        params, properties, required = [], {}, []
        for param in self.signature.parameters.values():
            if param.kind not in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
                raise TypeError(f"{name}: {param} can't be named by a call")
            if param.name not in hints:
                raise TypeError(f"{name}: {param.name} has no type hint")
            hint, said = _described(hints[param.name])
            self.hints[param.name] = hint
            is_optional = param.default is not param.empty
            default = plain(param.default) if is_optional else None
            # Null counts as left out, and a default of null is none.
            given = default if default is not None else None
            presence = _OPTIONAL if is_optional else _REQUIRED
            params.append({1: param.name, 2: _kind(hint), 3: presence, 4: given, 5: None, 6: None, 7: said})
            properties[param.name] = schema_of(hint) | ({"description": said} if said else {})
            required += [] if is_optional else [param.name]
        about = description if description is not None else inspect.getdoc(function) or ""
        self.schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required,
                                       "additionalProperties": False}
        title = getattr(function, "__name__", name)
        self.manifest = _manifest(name, title, about, effect, params, limit, untrusted)
        resources = [{1: argument, 2: dimension, 3: _NAMES} for argument, dimension in (scopes or {}).items()]
        if resources:
            unknown = [one for one in (scopes or {}) if one not in self.hints]
            if unknown:
                raise ValueError(f"{name} has no {', '.join(unknown)}")
            self.manifest |= {12: sorted(set((scopes or {}).values())), 18: resources}
            encode(self.manifest)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by their names, as the kernel takes them. Raises TypeError as the function
        itself would."""
        return {name: plain(value) for name, value in self.signature.bind(*args, **kwargs).arguments.items()}

    def given(self, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments of an order, as the function takes them. Raises TypeError, ValueError."""
        return {name: _as(self.hints[name], value) for name, value in args.items()}


class Foreign:
    """A tool of a host's, by its own JSON Schema: the host runs it, when the kernel orders it."""

    def __init__(self, name: str, title: str, description: str, schema: dict[str, Any], effect: str,
                 limit: float) -> None:
        self.name, self.schema, self.effect = name, schema, effect
        required = schema.get("required", ())
        params = [
            {1: key, 2: _named(one), 3: _REQUIRED if key in required and "default" not in one else _OPTIONAL,
             4: one.get("default"), 5: None, 6: None, 7: str(one.get("description", ""))}
            for key, one in schema.get("properties", {}).items()]
        self.manifest = _manifest(name, title, description, effect, params, limit, False)


_BY_NAME = {"string": _TEXT, "integer": _INT, "boolean": _BOOL, "array": _LIST, "object": _MAP, "number": _NUMBER}


def _named(schema: Any) -> int:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return _BY_NAME.get(kind, _ANY) if isinstance(kind, str) else _ANY


def _manifest(name: str, title: str, about: str, effect: str, params: list[dict[int, Any]], limit: float,
              untrusted: bool) -> dict[int, Any]:
    if effect not in EFFECTS:
        raise ValueError(f"effect is one of {', '.join(EFFECTS)}, not {effect!r}")
    if len(params) > _PARAMS_MAX:
        raise TypeError(f"{name}: {len(params)} arguments, of {_PARAMS_MAX}")
    wall_ms = max(1, int(limit * 1000))
    hold = [0, 0, 1_000_000, wall_ms * 1000, 0, 0, 0, 0, 0, 0]
    made = {1: 1, 2: name, 3: [], 4: title, 5: about, 6: EFFECTS[effect], 7: params, 8: 0, 9: hold, 10: 1 << 20,
            11: wall_ms, 12: [], 13: [], 14: None, 15: 1 if untrusted else 0}
    encode(made)
    return made


def plain(value: Any, depth: int = 0) -> Any:
    """A value of what CBOR has: dataclasses, pydantic's models and enumerations are taken apart."""
    if depth > DEPTH_MAX:
        raise ValueError(f"more than {DEPTH_MAX} levels, or a cycle")
    if isinstance(value, enum.Enum):
        return plain(value.value, depth + 1)
    if value is None or isinstance(value, (bool, int, float, str, bytes, bytearray)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name), depth + 1) for field in fields}
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return plain(value.model_dump(), depth + 1)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("a key that is no text")
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    raise ValueError(f"a value of {type(value).__name__} has no form")


def _described(hint: Any) -> tuple[Any, str]:
    if hasattr(hint, "__metadata__"):
        said = [one for one in hint.__metadata__ if isinstance(one, str)]
        return hint.__origin__, " ".join(said)
    return hint, ""


def _alone(hint: Any) -> Any:
    """A hint without `None` and names of fields' descriptions."""
    hint, _ = _described(hint)
    if get_origin(hint) in (Union, types.UnionType):
        others = [one for one in get_args(hint) if one is not type(None)]
        return _alone(others[0]) if len(others) == 1 else Any
    return hint


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint) or hasattr(hint, "model_validate") or typing.is_typeddict(hint))


def _kind(hint: Any) -> int:
    hint = _alone(hint)
    origin = get_origin(hint) or hint
    if origin is typing.Literal:
        kinds = {_PLAIN.get(type(value), _ANY) for value in get_args(hint)}
        return kinds.pop() if len(kinds) == 1 else _ANY
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        kinds = {_PLAIN.get(type(one.value), _ANY) for one in origin}
        return kinds.pop() if len(kinds) == 1 else _ANY
    if _is_record(origin):
        return _MAP
    if origin in _PLAIN:
        return _PLAIN[origin]
    raise TypeError(f"{hint!r} is no type of an argument")


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a hint."""
    hint = _alone(hint)
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(args)}
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return {"enum": [one.value for one in origin]}
    if hasattr(origin, "model_json_schema"):
        return dict(origin.model_json_schema())
    if _is_record(origin):
        hints = typing.get_type_hints(origin)
        required = [field.name for field in dataclasses.fields(origin)
                    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
                    ] if dataclasses.is_dataclass(origin) else sorted(origin.__required_keys__)
        properties = {name: schema_of(one) for name, one in hints.items()}
        return {"type": "object", "properties": properties, "required": required}
    kind = _kind(hint)
    if kind == _BYTES:
        return {"type": "object", "properties": {"$bytes": {"type": "string"}}, "required": ["$bytes"]}
    if kind == _LIST and args and args[0] is not Ellipsis:
        return {"type": "array", "items": schema_of(args[0])}
    if kind == _MAP and len(args) == 2:
        return {"type": "object", "additionalProperties": schema_of(args[1])}
    return {"type": _TYPES[kind]} if kind in _TYPES else {}


def _as(hint: Any, value: Any) -> Any:
    """A plain value, as that hint has it."""
    hint = _alone(hint)
    origin, args = get_origin(hint) or hint, get_args(hint)
    if value is None or origin in (Any, object):
        return value
    if origin is typing.Literal:
        if value not in args:
            raise ValueError(f"{value!r} is none of {args}")
        return value
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return origin(value)
    if hasattr(origin, "model_validate"):
        return origin.model_validate(value)
    if dataclasses.is_dataclass(origin) and isinstance(origin, type):
        hints = typing.get_type_hints(origin)
        _need(value, Mapping, hint)
        return origin(**{name: _as(hints.get(name, Any), one) for name, one in value.items()})
    kind = _kind(hint)
    if kind == _NUMBER:
        _need(value, (int, float), hint)
        return float(value)
    if kind in (_LIST, _MAP):
        _need(value, (list, Mapping), hint)
        if kind == _MAP:
            return {name: _as(args[1], one) if len(args) == 2 else one for name, one in value.items()}
        items = [_as(args[0], one) for one in value] if args else value
        return tuple(items) if origin is tuple else items
    _need(value, origin if isinstance(origin, type) else object, hint)
    return value


def _need(value: Any, kind: Any, hint: Any) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and hint is not bool):
        raise TypeError(f"{value!r} is no {getattr(hint, '__name__', hint)}")
